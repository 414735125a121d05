"""All three causal tests of one learner, in one call."""

from itertools import chain

import numpy as np

from algoscope.comparison.intervals import Estimate, estimates_of, summarize
from algoscope.comparison.metrics import squared_prediction_difference
from algoscope.comparison.predict import (
    HELD_OUT,
    draw_datasets,
    held_out,
    predict_all,
    predict_exactly,
)
from algoscope.foundation.machine import provenance
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner
from algoscope.patching.ablations import ablate_each, parts_of
from algoscope.patching.config import PatchingConfig, find_budget
from algoscope.patching.edits import edit_readings
from algoscope.patching.interchange import interchange
from algoscope.patching.result import Map, PatchingResult
from algoscope.predictors import ols
from algoscope.probing.targets import Target, find_targets, target_values
from algoscope.tasks.task import Dataset, Task

# Folded into keys: datasets that neither training nor probing draws.
PAIRS, DONORS, FITTING, EDITED = (HELD_OUT + 10 + i for i in range(4))


def patch(
    learner: InContextLearner,
    task: Task | None = None,
    budget: str | PatchingConfig = "smoke",
    *,
    target: str | Target = "w_ols",
    progress: Progress | bool = True,
) -> PatchingResult:
    """Swap states, edit readings and ablate parts; after n examples, before a query.

    The task is by default the learner's own. The budget is `smoke` (about a minute),
    `cpu`, or a configuration. `target` is what edits read and move: weights, one number
    per dimension.

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
    learner: InContextLearner,
    task: Task,
    config: PatchingConfig,
    target: str | Target,
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
    learner: InContextLearner,
    task: Task,
    config: PatchingConfig,
    num_examples: int,
    progress: Progress,
) -> list[Estimate]:
    """Return SPD/d to OLS of the learner, then without each of its parts."""
    x, y = held_out(
        task,
        num_datasets=config.num_ablation_datasets,
        num_examples=num_examples + 1,
        seed=config.seed,
    )
    reference = predict_exactly(ols, x, y)
    steps = Steps(progress, "ablations", len(parts_of(learner)) + 1)
    names, distances = [], []
    for part, left in chain([("nothing", learner)], ablate_each(learner, x, y)):
        spd = squared_prediction_difference(
            predict_all(left, x, y), reference, task.dim
        )
        names.append(str(part))
        distances.append(spd[:, 1:].mean(axis=1))
        steps.add()
    pairs = [(name, ols.name) for name in names]
    return estimates_of(pairs, summarize(np.stack(distances, axis=1)))
