"""Fits all probes of one source: at fixed places, then with learned attention.

The first pass over fresh datasets trains the MLPs at all fixed places, and sums up the
moments that give the best linear probes there. The second pass learns attention. Its
probes start from those of every fixed place, with their attention spread a little (see
`places`); of all of them, and of the fixed ones themselves, the best on validation
datasets is kept. So learned attention is never worse than a fixed place there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Float

from algoscope.probing.config import ProbingConfig
from algoscope.probing.passes import Carry, Errors, Pass
from algoscope.probing.places import fixed_attention, start_scores
from algoscope.probing.probes import Moments, Probes, random_mlps
from algoscope.probing.stream import (
    LEARNED,
    TEST,
    TRAINING,
    VALIDATION,
    Scaling,
    StateSource,
    Stream,
    filled_up,
    mesh_for,
    scaling_of,
)
from algoscope.probing.targets import ProbeTarget
from algoscope.tasks.task import Task

LEARNED_RATE = 0.5  # of the learning rate, where probes start from trained ones


class Fitted(NamedTuple):
    """What probes of one kind achieve for one target at one place."""

    blocks: Float[np.ndarray, "blocks layers prefixes"]  # squared error, test datasets
    validation: Float[np.ndarray, "layers prefixes"]
    history: Float[np.ndarray, "moments layers prefixes"]  # validation errors
    attention: Float[np.ndarray, "layers prefixes time"]
    variance: Float[np.ndarray, " prefixes"]  # of the target, on the test datasets


class Chosen(NamedTuple):
    """Which probe reads where: its place, kind, and target."""

    place: str
    kind: str
    target: str


@dataclass(frozen=True)
class Fitting:
    """A source of states, and all that decides how its probes are fitted.

    `attention` maps a fixed place and n to α, by default over the positions of tokens.
    """

    source: StateSource
    task: Task
    config: ProbingConfig
    targets: tuple[ProbeTarget, ...]
    layers: tuple[int, ...]  # whose numbers seed the initial probes
    seed: int
    attention: Callable[[str, int], Float[np.ndarray, " time"]] | None = None

    @property
    def mesh(self) -> Mesh:
        """The devices that share the work."""
        return mesh_for(self.config.batch_size, self.config.block_size)

    @property
    def columns(self) -> list[tuple[int, str]]:
        """Every pair of prefix and fixed place, filled up for the devices."""
        config = self.config
        pairs = [(n, place) for n in config.prefixes for place in config.fixed_places]
        return filled_up(pairs, self.mesh)

    @property
    def learned_columns(self) -> list[tuple[int, str, str]]:
        """Every prefix, learned place, and fixed place to start at, filled up."""
        config = self.config
        found = [
            (n, place, start)
            for n in config.prefixes
            for place in config.learned_places
            for start in config.fixed_places
        ]
        return filled_up(found, self.mesh)

    @property
    def stream(self) -> Stream:
        """The readings at fixed places."""
        config = self.config
        alpha = self.attention or (lambda p, n: fixed_attention(p, n, config.time))
        return Stream(
            self.source,
            np.stack([alpha(place, n) for n, place in self.columns]),
            np.array([config.prefixes.index(n) for n, _ in self.columns]),
            np.array(self.seed, np.uint32),
            self.task,
            self.targets,
            config.prefixes,
            config.num_examples,
        )

    def fit(
        self,
        unfinished: Path | None = None,
        report: Callable[[int], None] = lambda steps: None,
    ) -> dict[Chosen, Fitted]:
        """Fit all probes; return what each achieves.

        The state of training is saved to files that begin with `unfinished`, and
        resumed from them; `report` receives the number of steps just done.
        """
        config, stream = self.config, self.stream
        files = [
            None if unfinished is None else unfinished.with_suffix(f".{name}")
            for name in ("fixed", "learned")
        ]
        scaling = scaling_of(
            stream,
            self.mesh,
            num_datasets=config.num_pilot,
            batch_size=config.batch_size,
        )
        first = self._pass(stream, scaling, TRAINING, config.steps, 1.0)
        carry, errors = first.run(self._start(scaling), files[0], report)
        found = self._fixed(errors, stream)
        if config.learned_places:
            place_of = [self.columns.index((n, s)) for n, _, s in self.learned_columns]
            of_column = [config.prefixes.index(n) for n, _, _ in self.learned_columns]
            taken = scaling._replace(
                mean=scaling.mean[:, place_of], whitening=scaling.whitening[:, place_of]
            )
            again = replace(
                stream,
                attention=stream.attention[place_of],
                prefix_of=np.array(of_column),
            )
            steps = config.learned_steps
            second = self._pass(again, taken, LEARNED, steps, LEARNED_RATE)
            begun = self._attending(carry.all_probes(config.kinds), place_of)
            carry, errors = second.run(begun, files[1], report)
            found |= self._learned(found, carry.probes, errors)
        scale = scaling.target_scale**2
        for file in files:
            if file is not None:
                file.unlink(missing_ok=True)
        return {
            key: _in_units(each, scale[:, self._index(key.target)])
            for key, each in found.items()
            if key.place in config.places
        }

    def _pass(
        self, stream: Stream, scaling: Scaling, fold: int, steps: int, rate: float
    ) -> Pass:
        config, sizes = self.config, np.array(stream.sizes)
        return Pass(
            stream,
            scaling,
            np.arange(sizes.max()) < sizes[:, None],
            self.mesh,
            config.kinds,
            fold,
            config.batch_size,
            config.block_size,
            steps,
            config.learning_rate * rate,
            (VALIDATION, config.num_validation),
            (TEST, config.num_test),
        )

    def _start(self, scaling: Scaling) -> Carry:
        """Return random MLPs, and no moments yet."""
        sizes = self.stream.sizes
        layers, columns, hidden = scaling.mean.shape
        probes: dict[str, Probes] = {}
        if "mlp" in self.config.kinds:
            probes["mlp"] = random_mlps(
                self.seed,
                layers=self.layers,
                columns=self.columns,
                num_targets=len(sizes),
                hidden_size=hidden,
                inner_size=self.config.inner_size,
                size=max(sizes),
            )
        blank = Moments.zeros(layers, columns, hidden, len(sizes), max(sizes))
        return Carry.start(probes, blank)

    def _attending(self, solved: dict[str, Probes], place_of: list[int]) -> Carry:
        """Return the probes of the fixed places, with scores near these places."""
        scores = np.stack(
            [
                start_scores(place, start, n, self.config.time)
                for n, place, start in self.learned_columns
            ]
        ).astype(np.float32)

        def attending(probes: Probes) -> Probes:
            taken = jax.tree.map(
                lambda leaf: jnp.asarray(np.asarray(leaf)[:, place_of]), probes
            )
            shape = (*taken.b_out.shape[:3], scores.shape[-1])
            own = np.broadcast_to(scores[None, :, None], shape)
            return replace(taken, scores=jnp.asarray(own))

        return Carry.start({k: attending(each) for k, each in solved.items()}, None)

    def _index(self, target: str) -> int:
        return [each.name for each in self.targets].index(target)

    def _fixed(self, errors: dict[str, Errors], stream: Stream) -> dict[Chosen, Fitted]:
        """Return what each fixed place achieves."""
        found = {}
        for kind, (blocks, history, variance) in errors.items():
            for index, target in enumerate(self.targets):
                for place in self.config.fixed_places:
                    own = [self.columns.index((n, place)) for n in self.config.prefixes]
                    alpha = stream.attention[own].astype(np.float32)
                    past = history[:, :, own, index]
                    found[Chosen(place, kind, target.name)] = Fitted(
                        blocks[:, :, own, index],
                        past[-1],
                        past,
                        np.broadcast_to(alpha, (past.shape[1], *alpha.shape)),
                        variance[own, index],
                    )
        return found

    def _learned(
        self,
        fixed: dict[Chosen, Fitted],
        probes: dict[str, Probes],
        errors: dict[str, Errors],
    ) -> dict[Chosen, Fitted]:
        """Return the best of the learned and the fixed ones, by validation error."""
        config, found = self.config, {}
        for kind, (blocks, history, variance) in errors.items():
            attention = np.asarray(probes[kind].attention)
            for index, target in enumerate(self.targets):
                for place in config.learned_places:
                    candidates = [
                        fixed[Chosen(start, kind, target.name)]
                        for start in config.fixed_places
                    ]
                    for start in config.fixed_places:
                        own = [
                            self.learned_columns.index((n, place, start))
                            for n in config.prefixes
                        ]
                        past = history[:, :, own, index]
                        candidates.append(
                            Fitted(
                                blocks[:, :, own, index],
                                past[-1],
                                past,
                                attention[:, own, index],
                                variance[own, index],
                            )
                        )
                    found[Chosen(place, kind, target.name)] = best_of(candidates)
        return found


def best_of(candidates: list[Fitted]) -> Fitted:
    """Return, for every layer and prefix, the candidate of least validation error."""
    errors = np.stack([each.validation for each in candidates])
    best = np.argmin(errors, axis=0)  # [layers, prefixes]

    def pick(name: str, before: int, after: int) -> np.ndarray:
        stacked = np.stack([getattr(each, name) for each in candidates])
        index = best[(None,) * (1 + before) + (...,) + (None,) * after]
        return np.take_along_axis(stacked, index, axis=0)[0]

    return Fitted(
        pick("blocks", 1, 0),
        pick("validation", 0, 0),
        pick("history", 1, 0),
        pick("attention", 0, 1),
        candidates[0].variance,
    )


def _in_units(found: Fitted, scale: Float[np.ndarray, " prefixes"]) -> Fitted:
    """Return errors in the units of the target."""
    return found._replace(
        blocks=found.blocks * scale,
        validation=found.validation * scale,
        history=found.history * scale,
        variance=found.variance * scale,
    )
