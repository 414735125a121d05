"""`patch`: all three causal tests of one learner, and their sizes."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from algoscope.comparison.intervals import Estimate, estimates_of, summarize
from algoscope.comparison.metrics import squared_prediction_difference
from algoscope.comparison.predict import (
    HELD_OUT,
    Labels,
    draw_datasets,
    held_out,
    predict_all,
    predict_exactly,
)
from algoscope.foundation import provenance
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
    require_positive,
)
from algoscope.model.learner import InContextLearner
from algoscope.model.opened import OpenedLearner, PartedLearner, predict_intact
from algoscope.patching.ablations import ablate_each, parts_of
from algoscope.patching.edits import edit_readings, interchange
from algoscope.patching.result import Map, PatchingResult
from algoscope.predictors import ols
from algoscope.probing.targets import ProbeTarget, find_targets, target_values
from algoscope.tasks.task import Dataset, Task

# Folded into keys: neither training nor probing draws these datasets.
PAIRS, DONORS, FITTING, EDITED = (HELD_OUT + 10 + i for i in range(4))


@dataclass(frozen=True)
class PatchingConfig:
    """The sizes of the three causal tests.

    Example:
        >>> import algoscope as asc
        >>> asc.PatchingConfig(num_pairs=16).edit_size
        0.5
    """

    num_examples: int | None = None  # n, before the query; None: 2d, if that many fit
    num_pairs: int = 128  # pairs of datasets D and D′ that swap hidden states
    num_queries: int | None = None  # from which weights are implied; None: 4d
    num_training: int = 4096  # datasets on which the probes of edits are fitted
    num_edits: int = 1024  # other datasets, whose states are edited
    edit_size: float = 0.5  # standard deviation of Δ over that of the target
    num_ablation_datasets: int = 1000
    seed: int = 0

    def __post_init__(self):
        for name in ("num_examples", "num_queries"):
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        for name in ("num_pairs", "num_training", "num_edits", "num_ablation_datasets"):
            require_at_least(name, getattr(self, name), 2)
        require_positive("edit_size", self.edit_size)
        require_at_least("seed", self.seed, 0)

    def examples_for(self, learner: OpenedLearner) -> int:
        """Return n; reject more than the context length of the learner."""
        if self.num_examples is None:
            return min(2 * learner.dim, learner.max_examples)
        if self.num_examples > learner.max_examples:
            room = learner.max_examples
            rule = f"be at most {room}, the context length of {learner.name}"
            raise InvalidValueError("num_examples", rule, self.num_examples)
        return self.num_examples

    def queries_for(self, learner: OpenedLearner) -> int:
        """Return the number of queries from which weights are implied."""
        queries = 4 * learner.dim if self.num_queries is None else self.num_queries
        require_at_least("num_queries", queries, learner.dim)
        return queries

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON holds them."""
        return asdict(self)


BUDGETS: dict[str, PatchingConfig] = {
    "smoke": PatchingConfig(
        num_pairs=8, num_training=256, num_edits=64, num_ablation_datasets=64
    ),
    "cpu": PatchingConfig(),
}


def find_budget(budget: str | PatchingConfig) -> PatchingConfig:
    """Return the configuration of a budget; a configuration is returned unchanged.

    Example:
        >>> find_budget("cpu").num_pairs
        128
    """
    if isinstance(budget, PatchingConfig):
        return budget
    require_choice("budget", budget, BUDGETS)
    return BUDGETS[budget]


def patch(
    learner: OpenedLearner,
    task: Task | None = None,
    budget: str | PatchingConfig = "smoke",
    *,
    target: str | ProbeTarget = "w_ols",
    progress: Progress | bool = True,
) -> PatchingResult:
    """Swap hidden states, edit what probes read, and ablate each head and MLP.

    All tests ask for the answer to a query after n examples. Heads and MLPs are known
    in an `InContextLearner`, in a module that `export` wrote and in a GPT-2; in other
    learners nothing is ablated. The default task is the learner's own. The budget is
    `smoke` (about a minute), `cpu`, or your own.
    `target` names the weights that edits read and change, one number per dimension.

    Example:
        >>> import algoscope as asc
        >>> learner = asc.InContextLearner.from_pretrained("linear-d1")
        >>> asc.patch(learner).places[-2:]
        ('query', 'examples')
    """
    with shown(progress) as report:
        return _patch(
            learner, task or learner.task, find_budget(budget), target, report
        )


def _patch(
    learner: OpenedLearner,
    task: Task,
    config: PatchingConfig,
    target: str | ProbeTarget,
    progress: Progress,
) -> PatchingResult:
    if learner.dim != task.dim:
        rule = f"have the dimension {learner.dim} of {learner.name}"
        raise InvalidValueError("task", rule, task.dim)
    (wanted,) = find_targets([target])
    n = config.examples_for(learner)

    def draw(fold: int, num_datasets: int, num_examples: int) -> Dataset:
        return draw_datasets(
            task,
            num_datasets=num_datasets,
            num_examples=num_examples,
            seed=config.seed,
            fold=fold,
        )

    rng = np.random.default_rng(config.seed)
    size = (config.num_pairs, config.queries_for(learner), task.dim)
    queries = rng.normal(size=size).astype(np.float32)
    swapped = interchange(
        learner,
        draw(PAIRS, config.num_pairs, n),
        draw(DONORS, config.num_pairs, n),
        queries,
        progress,
    )
    training, edited = (
        draw(fold, count, n + 1)
        for fold, count in ((FITTING, config.num_training), (EDITED, config.num_edits))
    )
    values = [target_values(wanted, data, (n,))[:, 0] for data in (training, edited)]
    if values[0].shape[1] != task.dim:
        rule = f"have one component per dimension of x, {task.dim}"
        raise InvalidValueError(f"target {wanted.name}", rule, values[0].shape[1])
    edits = edit_readings(
        learner,
        (training, values[0]),
        (edited, values[1]),
        edit_size=config.edit_size,
        seed=config.seed,
        progress=progress,
    )
    intact, *without = _ablations(learner, task, config, n, progress)
    maps = {
        "moved": Map.of_ratios(swapped.shift, swapped.apart),
        "ilwd": Map.of(swapped.ilwd),
        "error": Map.exactly(edits.error),
    }
    for name, follows in edits.follows.items():
        maps[name] = Map.of_ratios(follows, edits.expected)
    return PatchingResult(
        learner=learner.name,
        dim=task.dim,
        task=repr(task),
        num_examples=n,
        target=wanted.name,
        apart=float(swapped.apart.mean()),
        config=config.as_dict(),
        versions=provenance(),
        maps=maps,
        intact=intact,
        ablations=tuple(without),
    )


def _ablations(
    learner: OpenedLearner,
    task: Task,
    config: PatchingConfig,
    num_examples: int,
    progress: Progress,
) -> list[Estimate]:
    """Return SPD/d to OLS of the learner, first intact, then without each part."""
    x, y = held_out(
        task,
        num_datasets=config.num_ablation_datasets,
        num_examples=num_examples + 1,
        seed=config.seed,
    )
    reference = predict_exactly(ols, x, y)
    known = isinstance(learner, InContextLearner)
    parts = parts_of(learner) if known else getattr(learner, "parts", ())
    steps = Steps(progress, "ablations", 1 + len(parts))
    names, distances = [], []

    def add(name: str, predictions: Labels) -> None:
        spd = squared_prediction_difference(predictions, reference, task.dim)
        names.append(name)
        distances.append(spd[:, 1:].mean(axis=1))
        steps.add()

    if known:
        add("nothing", predict_all(learner, x, y))
        for part, left in ablate_each(learner, x, y):
            add(str(part), predict_all(left, x, y))
    else:
        add("nothing", np.asarray(predict_intact(learner, x, y)))
    if parts and isinstance(learner, PartedLearner):
        for part, predictions in learner.predict_without_each(x, y):
            add(str(part), np.asarray(predictions))
    pairs = [(name, ols.name) for name in names]
    return estimates_of(pairs, summarize(np.stack(distances, axis=1)))
