"""All three causal tests of one learner, in one call."""

from collections.abc import Callable
from itertools import chain

import numpy as np

from algoscope.curves import Estimate, estimates_of
from algoscope.evaluation import (
    HELD_OUT,
    draw_datasets,
    held_out,
    predict_all,
    predict_exactly,
)
from algoscope.learner import InContextLearner
from algoscope.metrics import squared_prediction_difference, summarize
from algoscope.patching.ablations import ablate_each, parts_of
from algoscope.patching.config import PatchingConfig
from algoscope.patching.edits import edit_readings
from algoscope.patching.interchange import interchange
from algoscope.patching.result import Map, PatchingResult
from algoscope.predictors import ols
from algoscope.probing.targets import Target, find_targets, target_values
from algoscope.progress import Progress
from algoscope.provenance import provenance
from algoscope.tasks import Dataset, Task
from algoscope.validation import InvalidValueError

# Folded into keys: datasets that neither training nor probing draws.
PAIRS, DONORS, FITTING, EDITED = (HELD_OUT + 10 + i for i in range(4))

Stage = Callable[[str], Progress | None]


def patch(
    learner: InContextLearner,
    task: Task,
    config: PatchingConfig,
    *,
    target: str | Target = "w_ols",
    stage: Stage = lambda name: None,
) -> PatchingResult:
    """Swap states, edit readings and ablate parts; after n examples, before a query.

    `target` is what edits read and move: weights, one number per dimension. `stage` is
    told the name of each test, and returns who is told its progress.
    """
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
        stage("interchange"),
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
        progress=stage("edits"),
    )
    intact, *without = _ablations(learner, task, config, n, stage("ablations"))
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
    progress: Progress | None,
) -> list[Estimate]:
    """Return SPD/d to OLS of the learner, then without each of its parts."""
    x, y = held_out(
        task,
        num_datasets=config.num_ablation_datasets,
        num_examples=num_examples + 1,
        seed=config.seed,
    )
    reference = predict_exactly(ols, x, y)
    total = len(parts_of(learner)) + 1
    names, distances = [], []
    for part, left in chain([("nothing", learner)], ablate_each(learner, x, y)):
        spd = squared_prediction_difference(
            predict_all(left, x, y), reference, task.dim
        )
        names.append(str(part))
        distances.append(spd[:, 1:].mean(axis=1))
        if progress is not None:
            progress(len(names), total)
    pairs = [(name, ols.name) for name in names]
    return estimates_of(pairs, summarize(np.stack(distances, axis=1)))
