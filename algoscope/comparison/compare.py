"""`compare`: how near a learner is to each reference, after n examples (§4.1)."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from algoscope.comparison.intervals import curves_of, estimates_of, summarize
from algoscope.comparison.linearization import STEP
from algoscope.comparison.metrics import (
    ALL_METRICS,
    MEAN,
    MEASUREMENTS,
    METRICS,
    EvaluationData,
    Measured,
    Samples,
    mean_over_region,
)
from algoscope.comparison.predict import counted, held_out, is_slow
from algoscope.comparison.result import LABELS, Comparison
from algoscope.foundation import provenance
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
    require_positive,
)
from algoscope.predictors import (
    BlackBox,
    Predictor,
    PredictorFailedError,
    figure_1_references,
    parse_predictor,
)
from algoscope.tasks.task import Task

DEFAULT_EXAMPLES = 20
DEFAULT_DATASETS = 10_000
# The defaults for learners outside JAX, asked in batches or one question at a time.
BATCHED_DATASETS, BLACK_BOX_DATASETS = 2_000, 200


def compare(
    learner: Predictor | BlackBox,
    references: Sequence[Predictor | BlackBox | str] | None = None,
    task: Task | None = None,
    *,
    num_examples: int | None = None,
    num_datasets: int | None = None,
    seed: int = 0,
    metrics: Sequence[str] = ("spd",),
    num_costly_datasets: int = 500,
    num_queries: int | None = None,
    region: tuple[int, int] | None = None,
    difference_step: float = STEP,
    progress: Progress | bool = True,
) -> Comparison:
    """Measure the learner against each reference after 0, …, n examples.

    References are predictors or their names, by default those of figure 1. By default,
    a model is compared on its own task, with as many examples as fit into its context;
    any other predictor needs a `task`.

    SPD/d is always measured, also between each predictor and the labels (its risk).
    `metrics` adds others of `ALL_METRICS`:

    - `mspd`: the mean of SPD/d over a `region` of n, by default 1 ≤ n < d;
    - `sim_e`: the cosine of errors; `r2_gold`: the authors' R², of the labels;
    - `ilwd`: ‖ŵ − ŵ′‖²/d; `sim_w`: the cosine of ŵ; `r2`: of the linear fit ŵ;
    - `sensitivity`, `influence`: cosine and distance of ∂ŷ/∂x′ and ∂ŷ/∂y;
    - `symmetry`: the relative change under each of `SYMMETRIES`.

    Those of the last three lines need many predictions: they are measured on
    `num_costly_datasets` fresh datasets, with `num_queries` queries each, by default
    4d (the authors' code: 64). If a black box stops working meanwhile, the remaining
    metrics are skipped, with a warning.

    Example:
        >>> import algoscope as asc
        >>> learner = asc.InContextLearner.from_pretrained("linear-d2")
        >>> found = asc.compare(learner, [asc.ols, "ridge(0.5)"], num_datasets=50)
        >>> found.nearest(1, 20)[0][0]
        'OLS'
    """
    task, num_examples = asked_on(learner, task, num_examples)
    if num_datasets is None:
        num_datasets = _enough_for(learner)
    require_at_least("num_examples", num_examples, 1)
    require_at_least("num_costly_datasets", num_costly_datasets, 1)
    num_queries = 4 * task.dim if num_queries is None else num_queries
    require_at_least("num_queries", num_queries, task.dim)
    require_positive("difference_step", difference_step)
    for name in metrics:
        require_choice("metric", name, ALL_METRICS)
    span = _region(region, task.dim, num_examples)
    if references is None:  # those of figure 1, but for the learner itself
        own = learner.name
        references = [each for each in figure_1_references() if each.name != own]
    others = [
        parse_predictor(each) if isinstance(each, str) else each for each in references
    ]
    _reject_shared_names(learner, others)
    cheap = [m for m in METRICS if m == "spd" or m in metrics and not _is_costly(m)]
    costly = [m for m in METRICS if m in metrics and _is_costly(m)]
    n = num_examples + 1
    samples: dict[str, Samples] = {}
    missing: list[str] = []
    with shown(progress) as report:
        predictors = [counted(learner, report), *(counted(o, report) for o in others)]
        kinds = dict.fromkeys(METRICS[m].needs for m in [*cheap, *costly])
        total = len(predictors) * len(kinds)
        steps = Steps(report, f"comparing {learner.name}", total)
        x, y = held_out(task, num_datasets=num_datasets, num_examples=n, seed=seed)
        data = EvaluationData(x, y, x[:, :0])
        found = _measure("predictions", predictors, data, steps)
        for metric in cheap:
            samples |= METRICS[metric].compute(found, data)
        if costly:
            x, y = held_out(
                task,
                num_datasets=num_costly_datasets,
                num_examples=n + num_queries,
                seed=seed,
            )
            data = EvaluationData(x[:, :n], y[:, :n], x[:, n:], seed, difference_step)
            more, missing = _measure_costly(costly, predictors, data, steps)
            samples |= more
    settings: dict[str, Any] = {"metrics": [m for m in metrics if m not in missing]}
    mspd = []
    if MEAN in metrics and span is not None:
        settings["region"] = span
        means = [mean_over_region(spd, *span) for spd in samples["spd"].values()]
        summary = summarize(np.stack(means, axis=1), seed=seed)
        mspd = estimates_of(list(samples["spd"]), summary)
    if costly:
        settings["num_costly_datasets"] = num_costly_datasets
        settings["num_queries"] = num_queries
        settings["difference_step"] = difference_step
    curves = {
        name: curves_of(
            list(pairs), summarize(np.stack(list(pairs.values()), axis=1), seed=seed)
        )
        for name, pairs in samples.items()
    }
    return Comparison(
        learner=learner.name,
        dim=task.dim,
        task=repr(task),
        num_datasets=num_datasets,
        seed=seed,
        curves=curves.pop("spd"),
        versions=provenance(),
        metrics=curves,
        mspd=mspd,
        settings=settings,
    )


def asked_on(
    predictor: Predictor | BlackBox, task: Task | None, num_examples: int | None
) -> tuple[Task, int]:
    """Return the task and the largest number of examples to ask a predictor about.

    A model knows both; for any other predictor the task must be given.
    """
    task, room = task or known_task(predictor), getattr(predictor, "max_examples", None)
    if task is None:
        rule = f"be given for {predictor.name}, which does not know its task"
        remedy = "For example `LinearRegression(dim=4)`."
        raise InvalidValueError("task", rule, "None", remedy)
    if num_examples is None:
        return task, room or DEFAULT_EXAMPLES
    if room is not None and num_examples > room:
        rule = f"be at most {room}, the context length of {predictor.name}"
        raise InvalidValueError("num_examples", rule, num_examples)
    return task, num_examples


def known_task(predictor: Predictor | BlackBox) -> Task | None:
    """Return the task that a model was trained on, or None."""
    return getattr(predictor, "task", None)


def _enough_for(learner: Predictor | BlackBox) -> int:
    """Return how many datasets are asked about by default."""
    if is_slow(learner):
        return BLACK_BOX_DATASETS
    return BATCHED_DATASETS if isinstance(learner, BlackBox) else DEFAULT_DATASETS


def _is_costly(metric: str) -> bool:
    return METRICS[metric].needs != "predictions"


def _measure(
    kind: str, predictors: Sequence[Any], data: EvaluationData, steps: Steps
) -> Measured:
    """Measure every predictor; the references, all but the first, in float64."""
    found = {}
    for index, predictor in enumerate(predictors):
        measure = MEASUREMENTS[kind]
        if index == 0:
            found[predictor.name] = measure(predictor, data)
        else:
            with jax.enable_x64(True):
                found[predictor.name] = measure(predictor, data.exact())
        steps.add()
    return found


def _measure_costly(
    metrics: Sequence[str],
    predictors: Sequence[Any],
    data: EvaluationData,
    steps: Steps,
) -> tuple[dict[str, Samples], list[str]]:
    """Return the samples of costly metrics, and the metrics that were skipped.

    If a black box stops working, the metrics measured before are kept, with a warning.
    """
    samples: dict[str, Samples] = {}
    measured: dict[str, Measured] = {}
    for index, metric in enumerate(metrics):
        kind = METRICS[metric].needs
        try:
            if kind not in measured:
                measured[kind] = _measure(kind, predictors, data, steps)
        except PredictorFailedError as error:
            missing = list(metrics[index:])
            text = f"{error} Not measured: {', '.join(missing)}."
            warnings.warn(text, stacklevel=3)
            return samples, missing
        samples |= METRICS[metric].compute(measured[kind], data)
    return samples, []


def _reject_shared_names(
    learner: Predictor | BlackBox, references: Sequence[Predictor | BlackBox]
) -> None:
    if not references:
        raise InvalidValueError("references", "name at least one predictor", "none")
    names = [LABELS, learner.name, *(reference.name for reference in references)]
    for name in names:
        if names.count(name) > 1:
            rule = f"have a name of its own; {LABELS} stands for the labels"
            raise InvalidValueError("each predictor", rule, f"'{name}' twice")


def _region(
    region: tuple[int, int] | None, dim: int, num_examples: int
) -> list[int] | None:
    """Return the first and last n of MSPD: by default n < d, or None if d = 1."""
    if region is None:
        last = min(dim - 1, num_examples)
        return [1, last] if last >= 1 else None
    first, last = region
    if not 0 <= first <= last <= num_examples:
        rule = f"be a first and a last n with 0 ≤ first ≤ last ≤ {num_examples}"
        raise InvalidValueError("region", rule, tuple(region))
    return [first, last]
