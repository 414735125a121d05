"""`probe`: which quantities can be read from a learner's hidden states? (§5, app. E).

For every target, kind of probe, layer and prefix, one probe is trained on the hidden
states of the frozen learner and measured on held-out datasets. Targets and kinds share
the hidden states; learner and controls share the datasets.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.foundation import provenance
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import digest_of_arrays
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner
from algoscope.probing.config import Kind, ProbingConfig, find_budget
from algoscope.probing.probes import (
    Fitted,
    fit_least_squares,
    initial_probes,
    train_probes,
    variance,
)
from algoscope.probing.result import Measurement, ProbingResult
from algoscope.probing.states import Repeat, StateSplit
from algoscope.probing.targets import ProbeTarget, find_targets
from algoscope.tasks.task import Task

STATES_BYTES = 2**31  # hidden states in memory at a time; layers beyond it wait


def probe(
    learner: InContextLearner,
    task: Task | None = None,
    budget: str | ProbingConfig = "smoke",
    *,
    targets: Sequence[str | ProbeTarget] = ("moment", "w_ols"),
    controls: Sequence[InContextLearner] = (),
    directory: Path | str | None = None,
    progress: Progress | bool = True,
) -> ProbingResult:
    """Probe a learner, and in the same way, on the same datasets, its controls.

    The default task is the learner's own. The budget is `smoke` (seconds), `cpu` (an
    hour or two), `paper` (days), or a configuration. With a `directory`, finished parts
    are cached there: after an interruption the same call resumes, to the same bits.

    Example:
        >>> import algoscope as asc
        >>> learner = asc.InContextLearner.from_pretrained("linear-d1")
        >>> asc.probe(learner, targets=["w_ols"]).targets
        ('w_ols',)
    """
    with shown(progress) as report:
        return _probe(
            learner,
            task or learner.task,
            find_budget(budget),
            targets=targets,
            controls=controls,
            cache=Cache(None if directory is None else Path(directory)),
            progress=report,
        )


def _probe(
    learner: InContextLearner,
    task: Task,
    config: ProbingConfig,
    *,
    targets: Sequence[str | ProbeTarget],
    controls: Sequence[InContextLearner],
    cache: Cache,
    progress: Progress,
) -> ProbingResult:
    chosen = find_targets(targets)
    learners = [learner, *controls]
    _reject_unfit(learners, task)
    layers = {each.name: config.layers_of(each) for each in learners}
    calls = sum(-(-len(each) // config.layers_per_call) for each in layers.values())
    total = calls * config.repeats * len(chosen) * len(config.kinds) * config.steps
    steps = Steps(progress, f"probing {learner.name}", total)
    fitted: dict[tuple[str, str, str], list[Fitted]] = {}
    variances: dict[str, list[np.ndarray]] = {}
    for repeat in range(config.repeats):
        data = Repeat.draw(task, config, chosen, repeat)
        for target in chosen:
            of_mean = variance(data.targets[target.name])
            variances.setdefault(target.name, []).append(of_mean)
        for each in learners:
            found: dict[tuple[str, str], list[Fitted]] = {}
            for key, part in _probe_once(each, data, config, cache, steps.add):
                found.setdefault(key, []).append(part)
            for (target, kind), parts in found.items():
                whole = Fitted(*map(np.concatenate, zip(*parts, strict=True)))
                fitted.setdefault((each.name, target, kind), []).append(whole)
    measurements = tuple(
        Measurement(
            learner=name,
            target=target,
            kind=kind,
            layers=layers[name],
            error=np.stack([part.error for part in parts]),
            variance=np.stack(variances[target]),
            attention=np.stack([part.attention for part in parts]),
        )
        for (name, target, kind), parts in fitted.items()
    )
    return ProbingResult(
        learner=learner.name,
        controls=tuple(control.name for control in controls),
        dim=task.dim,
        task=repr(task),
        prefixes=config.prefixes,
        config=config.as_dict(),
        versions=provenance(),
        measurements=measurements,
    )


def _probe_once(
    learner: InContextLearner,
    data: Repeat,
    config: ProbingConfig,
    cache: Cache,
    report: Callable[[int], None],
) -> Iterator[tuple[tuple[str, str], Fitted]]:
    """Yield (target, kind) and its fitted probes, in the order of the layers."""
    weights = learner.digest
    digests = {
        name: digest_of_arrays(values._asdict())
        for name, values in data.targets.items()
    }
    for passed in _passes(learner, config):
        states = None  # computed when the first part is not cached
        whole = tuple(layer for group in passed for layer in group)
        for group in passed:
            start = whole.index(group[0])
            for target, kind in _each(data, config):
                identity = {
                    "learner": weights,
                    "task": data.task,
                    "target": digests[target],
                    "kind": kind,
                    "layers": group,
                    "seed": data.seed,
                    "config": _deciding(config),
                    "versions": provenance(),
                }
                label = f"{learner.name}-{target}-{kind}-{group[0]}-seed{data.seed}"
                found = cache.find(label, identity)
                if found is None:
                    if states is None:
                        states = data.states(learner, whole)
                    some = StateSplit(*(s[start : start + len(group)] for s in states))
                    part = _fit(some, data, target, kind, group, config, report)
                    cache.keep(label, identity, part._asdict())
                else:
                    part = Fitted(**found)
                    report(config.steps)
                yield (target, kind), part
        del states


def _fit(
    states: StateSplit,
    data: Repeat,
    target: str,
    kind: Kind,
    layers: tuple[int, ...],
    config: ProbingConfig,
    report: Callable[[int], None],
) -> Fitted:
    values = data.targets[target]
    if config.solver == "least_squares":
        part = fit_least_squares(states, values, config.prefixes)
        report(config.steps)
        return part
    probes = initial_probes(
        kind,
        config,
        layers=layers,
        hidden_size=states.training.shape[-1],
        target_size=values.training.shape[2],
        seed=data.seed,
    )
    return train_probes(probes, states, values, config, seed=data.seed, report=report)


def _each(data: Repeat, config: ProbingConfig) -> Iterator[tuple[str, Kind]]:
    return ((target, kind) for target in data.targets for kind in config.kinds)


def _passes(
    learner: InContextLearner, config: ProbingConfig
) -> Iterator[list[tuple[int, ...]]]:
    """Yield groups of layers, as many at a time as fit into memory."""
    layers, size = config.layers_of(learner), config.layers_per_call
    groups = [layers[i : i + size] for i in range(0, len(layers), size)]
    hidden_size = learner.transformer.w_e.shape[0]
    datasets = config.num_training + config.num_test
    bytes_per_group = 4 * size * datasets * config.time * hidden_size
    at_once = max(1, STATES_BYTES // bytes_per_group)
    for start in range(0, len(groups), at_once):
        yield groups[start : start + at_once]


def _deciding(config: ProbingConfig) -> dict[str, Any]:
    """Return the fields that decide the numbers of a cached part."""
    others = ("kinds", "layers", "repeats", "seed", "layers_per_call")
    return {k: v for k, v in config.as_dict().items() if k not in others}


def _reject_unfit(learners: list[InContextLearner], task: Task) -> None:
    names = [learner.name for learner in learners]
    if len(set(names)) < len(names):
        rule = "have names that differ from each other and from the learner's"
        raise InvalidValueError("controls", rule, ", ".join(names))
    for learner in learners:
        if learner.dim != task.dim:
            rule = f"have the dimension {learner.dim} of {learner.name}"
            raise InvalidValueError("task", rule, task.dim)
