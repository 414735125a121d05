"""Which textbook algorithm is a learner like? Metrics per number of examples (§4.1)."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from algoscope.curves import Curve as Curve
from algoscope.curves import Estimate as Estimate
from algoscope.curves import curves_of, estimates_of
from algoscope.evaluation import held_out
from algoscope.measurements import COSTLY, Trial, costly_samples, kinds_for, measure
from algoscope.measurements.gradients import STEP
from algoscope.metrics import (
    error_similarity,
    label_scores,
    mean_over_region,
    squared_prediction_difference,
    summarize,
)
from algoscope.predictors import BlackBox, Predictor, PredictorFailedError
from algoscope.progress import Progress, Steps
from algoscope.provenance import provenance
from algoscope.results import LABELS as LABELS
from algoscope.results import Comparison as Comparison
from algoscope.tasks import Task
from algoscope.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
    require_positive,
)

ALL_METRICS = ("spd", "mspd", "sim_e", "r2_gold", *COSTLY)


def compare(
    learner: Predictor | BlackBox,
    references: Sequence[Predictor | BlackBox],
    task: Task,
    *,
    num_examples: int,
    num_datasets: int = 10_000,
    seed: int = 0,
    metrics: Sequence[str] = ("spd",),
    num_costly_datasets: int = 500,
    num_queries: int | None = None,
    region: tuple[int, int] | None = None,
    difference_step: float = STEP,
    progress: Progress | None = None,
) -> Comparison:
    """Measure the learner against each reference after 0, …, n examples.

    SPD/d is always measured, also of the learner and the references against the labels
    (their risk). `metrics` names what else, out of `ALL_METRICS`:

    - `mspd`: the mean of SPD/d over a `region` of n, by default 1 ≤ n < d;
    - `sim_e`: the cosine of errors; `r2_gold`: the authors' R², of the labels;
    - `ilwd`: ‖ŵ − ŵ′‖²/d; `sim_w`: the cosine of ŵ; `r2`: of the linear fit ŵ;
    - `sensitivity`, `influence`: cosine and distance of ∂ŷ/∂x′ and ∂ŷ/∂y;
    - `symmetry`: the relative change under each of `SYMMETRIES`.

    Those of the last three lines take many predictions: they are measured on
    `num_costly_datasets` fresh datasets, with `num_queries` queries each, by default
    4d (the authors' code: 64). A black box that fails for good during these costs only
    those that were not measured yet: they are left out, with a warning. `progress` is
    told the steps done, and all steps.
    """
    require_at_least("num_examples", num_examples, 1)
    require_at_least("num_costly_datasets", num_costly_datasets, 1)
    num_queries = 4 * task.dim if num_queries is None else num_queries
    require_at_least("num_queries", num_queries, task.dim)
    require_positive("difference_step", difference_step)
    for name in metrics:
        require_choice("metric", name, ALL_METRICS)
    span = _region(region, task.dim, num_examples)
    _refuse_shared_names(learner, references)
    kinds = kinds_for(tuple(metrics))
    predictors = [learner, *references]
    steps = Steps(progress, len(predictors) * (1 + len(kinds)))
    x, y = held_out(
        task, num_datasets=num_datasets, num_examples=num_examples + 1, seed=seed
    )
    trial = Trial(x, y, x[:, :0])
    predictions = {}
    for predictor in predictors:
        predictions[predictor.name] = measure(
            "predictions", predictor, trial, exactly=predictor is not learner
        )
        steps.add()

    others = [(learner.name, reference.name) for reference in references]
    risks = [(name, LABELS) for name in predictions]
    predictions[LABELS] = y
    both = {(a, b): (predictions[a], predictions[b]) for a, b in [*others, *risks]}
    samples = {
        "spd": {
            pair: squared_prediction_difference(*each, task.dim)
            for pair, each in both.items()
        }
    }
    if "sim_e" in metrics:
        samples["sim_e"] = {pair: error_similarity(*both[pair], y) for pair in others}
    if "r2_gold" in metrics:
        samples["r2_gold"] = {pair: label_scores(*both[pair]) for pair in risks}
    mspd = []
    if "mspd" in metrics and span is not None:
        means = [mean_over_region(spd, *span) for spd in samples["spd"].values()]
        mspd = estimates_of(list(both), summarize(np.stack(means, axis=1), seed=seed))
    if kinds:
        x, y = held_out(
            task,
            num_datasets=num_costly_datasets,
            num_examples=num_examples + 1 + num_queries,
            seed=seed,
        )
        n = num_examples + 1
        trial = Trial(x[:, :n], y[:, :n], x[:, n:], seed, difference_step)
        measured = _measure_costly(metrics, predictors, trial, steps)
        metrics = [m for m in metrics if m not in COSTLY or COSTLY[m] in measured]
        samples |= costly_samples(tuple(metrics), learner.name, measured, trial)

    curves = {
        name: curves_of(
            list(pairs), summarize(np.stack(list(pairs.values()), axis=1), seed=seed)
        )
        for name, pairs in samples.items()
    }
    settings: dict[str, Any] = {"metrics": list(metrics)}
    if mspd:
        settings["region"] = span
    if kinds:
        settings["num_costly_datasets"] = num_costly_datasets
        settings["num_queries"] = num_queries
        settings["difference_step"] = difference_step
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


def _measure_costly(
    metrics: Sequence[str],
    predictors: Sequence[Predictor | BlackBox],
    trial: Trial,
    steps: Steps,
) -> dict[str, dict[str, Any]]:
    """Return what the metrics need of each predictor, the learner being the first.

    When a black box fails for good, what was measured before is kept, with a warning.
    """
    measured: dict[str, dict[str, Any]] = {}
    try:
        for kind in kinds_for(tuple(metrics)):
            found = {}
            for predictor in predictors:
                exactly = predictor is not predictors[0]
                found[predictor.name] = measure(kind, predictor, trial, exactly=exactly)
                steps.add()
            measured[kind] = found
    except PredictorFailedError as error:
        costly = [name for name in metrics if name in COSTLY]
        left = ", ".join(name for name in costly if COSTLY[name] not in measured)
        warnings.warn(f"{error} Not measured: {left}.", stacklevel=3)
    return measured


def _refuse_shared_names(
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
    """Return the first and last n of MSPD; by default n < d, if there is such an n."""
    if region is None:
        last = min(dim - 1, num_examples)
        return [1, last] if last >= 1 else None
    first, last = region
    if not 0 <= first <= last <= num_examples:
        rule = f"be a first and a last n with 0 ≤ first ≤ last ≤ {num_examples}"
        raise InvalidValueError("region", rule, tuple(region))
    return [first, last]
