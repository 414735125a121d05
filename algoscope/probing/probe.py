"""`probe`: which quantities can be read from a learner's hidden states? (§5, app. E).

For every target, kind of probe, place, layer and prefix, one probe is trained on the
hidden states of the frozen learner and measured on held-out datasets. All probes of a
learner share its forward pass; learner and controls share the datasets.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.comparison.predict import draw_datasets
from algoscope.foundation import provenance
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import digest_of_arrays
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner
from algoscope.model.opened import OpenedLearner
from algoscope.predictors import RangeAware
from algoscope.probing.called import CalledStates
from algoscope.probing.config import ProbingConfig, find_budget
from algoscope.probing.fitting import Chosen, Fitted, Fitting
from algoscope.probing.floors import Quantities, fit_floors
from algoscope.probing.measurement import Measurement
from algoscope.probing.places import Place
from algoscope.probing.positions import POSITION, fit_positions
from algoscope.probing.result import ProbingResult
from algoscope.probing.states import Repeat
from algoscope.probing.stream import PILOT, LearnerStates, StateSource
from algoscope.probing.targets import ProbeTarget, find_targets, target_values
from algoscope.tasks.task import Task

FLOORS = "floors"  # in labels of cached parts
CHECKED = 64  # datasets on which targets and the range of operands are checked

Parts = dict[Chosen, Fitted]


def probe(
    learner: OpenedLearner,
    task: Task | None = None,
    budget: str | ProbingConfig = "smoke",
    *,
    targets: Sequence[str | ProbeTarget] = ("moment", "w_ols"),
    controls: Sequence[OpenedLearner] = (),
    places: Sequence[Place] | None = None,
    floors: bool = True,
    directory: Path | str | None = None,
    progress: Progress | bool = True,
) -> ProbingResult:
    """Probe a learner, and in the same way, on the same datasets, its controls.

    The default task is the learner's own. The budget is `smoke` (seconds), `cpu` (about
    half an hour for each learner of 8 layers and 64 units), `paper` (days), or a
    configuration. `places` are where probes read, by default those of the budget; see
    `algoscope.probing.places`. `floors` adds what probes read without a learner. With a
    `directory`, finished parts are cached there, and the state of the unfinished one:
    after an interruption the same call resumes, to the same bits.

    Example:
        >>> import algoscope as asc
        >>> learner = asc.InContextLearner.from_pretrained("linear-d1")
        >>> asc.probe(learner, targets=["w_ols"], places=["query"]).targets
        ('w_ols',)
    """
    config = find_budget(budget, learner.max_examples).at(places)
    with shown(progress) as report:
        return _Probing(
            task or learner.task,
            config,
            tuple(find_targets(targets)),
            Cache(None if directory is None else Path(directory)),
        ).run(learner, controls, floors and config.solver == "adam", report)


class _Probing:
    """What all learners have in common, and the cache of finished parts."""

    def __init__(
        self,
        task: Task,
        config: ProbingConfig,
        targets: tuple[ProbeTarget, ...],
        cache: Cache,
    ):
        self.task, self.config, self.targets, self.cache = task, config, targets, cache
        self._called: dict[tuple[str, tuple[int, ...]], CalledStates] = {}

    def run(
        self,
        learner: OpenedLearner,
        controls: Sequence[OpenedLearner],
        floors: bool,
        progress: Progress,
    ) -> ProbingResult:
        config, learners = self.config, [learner, *controls]
        _reject_unfit(learners, self.task)
        layers = {each.name: config.layers_of(each) for each in learners}
        self._digests = self._target_digests()
        groups = {name: _groups(found, config) for name, found in layers.items()}
        total = sum(
            len(groups[each.name]) * (own.steps + own.learned_steps)
            for each in learners
            for own in [config if each is learner else config.for_controls]
        )
        stage = f"probing {learner.name}"
        self.steps = Steps(progress, stage, config.repeats * total)
        found: dict[tuple[str, Chosen], list[Fitted]] = {}
        below: dict[tuple[str, Chosen], list[Fitted]] = {}
        for repeat in range(config.repeats):
            seed = config.seed + repeat
            if floors:
                known = self._floors(seed)
                names = Quantities(tuple(self.targets), config.prefixes).names
                for key in sorted(
                    known, key=lambda key: (*self._order(key[1]), names.index(key[0]))
                ):
                    below.setdefault(key, []).append(known[key])
            for each in learners:
                if isinstance(each, RangeAware):
                    each.warn_outside_range(*self._examples(seed))
                own = config if each is learner else config.for_controls
                parts = [self._part(each, g, seed, own) for g in groups[each.name]]
                for key in sorted(parts[0], key=self._order):
                    whole = _joined([part[key] for part in parts])
                    found.setdefault((each.name, key), []).append(whole)
        return ProbingResult(
            learner=learner.name,
            controls=tuple(control.name for control in controls),
            dim=self.task.dim,
            task=repr(self.task),
            prefixes=config.prefixes,
            config=config.as_dict(),
            versions=provenance(),
            measurements=tuple(
                _measurement(name, key, layers[name], parts)
                for (name, key), parts in found.items()
            ),
            floors=tuple(
                _measurement(name, key, (0,), parts)
                for (name, key), parts in below.items()
            ),
        )

    def _order(self, key: Chosen) -> tuple[int, int, int]:
        """Sort by target, kind and place, each in the order in which it was given."""
        names = [target.name for target in self.targets]
        places: list[str] = [*self.config.places, POSITION, "all"]
        kinds: list[str] = list(self.config.kinds)
        return (
            names.index(key.target),
            kinds.index(key.kind),
            places.index(key.place),
        )

    def _examples(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        data = draw_datasets(
            self.task,
            num_datasets=CHECKED,
            num_examples=self.config.num_examples,
            seed=seed,
            fold=PILOT,
        )
        return np.asarray(data.x), np.asarray(data.y)

    def _target_digests(self) -> dict[str, str]:
        """Return a digest of each target's values, which reject unfit targets too."""
        data = draw_datasets(
            self.task,
            num_datasets=CHECKED,
            num_examples=self.config.num_examples,
            seed=0,
            fold=PILOT,
        )
        values = {
            target.name: target_values(target, data, self.config.prefixes)
            for target in self.targets
        }
        return {k: digest_of_arrays({"values": each}) for k, each in values.items()}

    def _identity(self, config: ProbingConfig, **own: Any) -> dict[str, Any]:
        return {
            **own,
            "task": repr(self.task),
            "targets": self._digests,
            "config": _deciding(config),
            "versions": provenance(),
        }

    def _floors(self, seed: int) -> dict[tuple[str, Chosen], Fitted]:
        config = replace(self.config, places=("all",))
        identity = self._identity(config, source=FLOORS, seed=seed)

        def fit(unfinished: Path | None) -> dict[tuple[str, Chosen], Fitted]:
            return fit_floors(self.task, config, self.targets, seed, unfinished)

        return self._cached(f"{FLOORS}-seed{seed}", identity, fit, 0)

    def _part(
        self,
        learner: OpenedLearner,
        layers: tuple[int, ...],
        seed: int,
        config: ProbingConfig,
    ) -> Parts:
        """Return all probes of some layers."""
        identity = self._identity(
            config, source=learner.digest, layers=layers, seed=seed
        )

        def fit(unfinished: Path | None) -> Parts:
            if config.solver == "least_squares":
                self.steps.add(config.steps + config.learned_steps)
                return self._positions(learner, layers, seed)
            source = self._source(learner, layers)
            fitting = Fitting(source, self.task, config, self.targets, layers, seed)
            return fitting.fit(unfinished, self.steps.add)

        label = f"{learner.name}-{layers[0]}-seed{seed}"
        steps = config.steps + config.learned_steps
        return self._cached(label, identity, fit, steps)

    def _source(self, learner: OpenedLearner, layers: tuple[int, ...]) -> StateSource:
        """Return the states of some layers; one program serves all repeats."""
        if isinstance(learner, InContextLearner):
            return LearnerStates(learner.transformer, layers)
        key = (learner.name, layers)
        if key not in self._called:
            examples = self._examples(self.config.seed)
            self._called[key] = CalledStates.of(learner, layers, *examples)
        return self._called[key]

    def _positions(
        self, learner: OpenedLearner, layers: tuple[int, ...], seed: int
    ) -> Parts:
        config = self.config
        repeat = seed - config.seed
        data = Repeat.draw(self.task, config, list(self.targets), repeat)
        states = data.states(learner, layers)
        return {
            Chosen(POSITION, "linear", name): fit_positions(
                states, values, config.prefixes, config.block_size
            )
            for name, values in data.targets.items()
        }

    def _cached(
        self,
        label: str,
        identity: dict[str, Any],
        fit: Callable[[Path | None], dict[Any, Fitted]],
        steps: int,
    ) -> dict[Any, Fitted]:
        """Return a part that is cached, or fit and cache it."""
        known = self.cache.find(label, identity)
        if known is not None:
            if steps:
                self.steps.add(steps)
            return _unpacked(known)
        text = json.dumps(identity, sort_keys=True)
        name = f"unfinished-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        directory = self.cache.directory
        fitted = _packed(fit(None if directory is None else directory / name))
        self.cache.keep(label, identity, fitted)
        return _unpacked(fitted)  # as if read: sums depend on the order in memory


def _packed(part: dict[Any, Fitted]) -> dict[str, np.ndarray]:
    """Return the arrays of a part, named after what they belong to."""
    return {
        json.dumps([_flat(key), name]): np.ascontiguousarray(values)
        for key, fitted in part.items()
        for name, values in fitted._asdict().items()
    }


def _flat(key: Any) -> list[str]:
    return list(key) if isinstance(key, Chosen) else [key[0], *key[1]]


def _unpacked(arrays: dict[str, np.ndarray]) -> dict[Any, Fitted]:
    """Return the part that `_packed` described, in its order."""
    grouped: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
    for text, values in arrays.items():
        key, name = json.loads(text)
        grouped.setdefault(tuple(key), {})[name] = values
    found: dict[Any, Fitted] = {}
    for key, values in grouped.items():
        own: Any = Chosen(*key) if len(key) == 3 else (key[0], Chosen(*key[1:]))
        found[own] = Fitted(**values)
    return found


def _joined(parts: list[Fitted]) -> Fitted:
    """Return the parts of several groups of layers as one."""
    axes = {"blocks": 1, "validation": 0, "history": 1, "attention": 0}
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=axis)
        for name, axis in axes.items()
    }
    return Fitted(**joined, variance=parts[0].variance)


def _measurement(
    name: str, key: Chosen, layers: tuple[int, ...], parts: list[Fitted]
) -> Measurement:
    """Return the repeats of one kind of probe, target and place."""
    blocks = np.stack([part.blocks for part in parts])
    return Measurement(
        learner=name,
        target=key.target,
        kind=key.kind,
        layers=layers,
        error=blocks.mean(axis=1),
        variance=np.stack([part.variance for part in parts]),
        attention=np.stack([part.attention for part in parts]),
        place=key.place,
        blocks=blocks.astype(np.float32),
        validation=np.stack([part.validation for part in parts]),
        history=np.stack([part.history for part in parts]).astype(np.float32),
    )


def _groups(layers: tuple[int, ...], config: ProbingConfig) -> list[tuple[int, ...]]:
    size = config.layers_per_call
    return [layers[i : i + size] for i in range(0, len(layers), size)]


def _deciding(config: ProbingConfig) -> dict[str, Any]:
    """Return the fields that decide the numbers of a cached part."""
    others = ("layers", "repeats", "seed", "layers_per_call", "control_places")
    return {k: v for k, v in config.as_dict().items() if k not in others}


def _reject_unfit(learners: list[OpenedLearner], task: Task) -> None:
    names = [learner.name for learner in learners]
    if len(set(names)) < len(names):
        rule = "have names that differ from each other and from the learner's"
        raise InvalidValueError("controls", rule, ", ".join(names))
    for learner in learners:
        if learner.dim != task.dim:
            rule = f"have the dimension {learner.dim} of {learner.name}"
            raise InvalidValueError("task", rule, task.dim)
