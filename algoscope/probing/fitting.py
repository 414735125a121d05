"""Fits all probes of one source: at fixed places, then with learned attention.

The first pass over fresh datasets trains the MLPs at all fixed places, and sums up the
moments that give the best linear probes there. The second pass learns attention. Its
probes start from those of every fixed place, with their attention spread a little (see
`places`). After a quarter of its steps, at the last of `config.TRIALS`, only the start
of least validation error is trained on, for each probe by itself. The better of its end
and the fixed ones, on validation datasets, is kept. So learned attention is never worse
than a fixed place there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float

from algoscope.probing.config import TRIALS, ProbingConfig
from algoscope.probing.passes import Carry, Errors, Pass, PassState
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
    def learned_columns(self) -> list[tuple[int, str]]:
        """Every pair of prefix and learned place, filled up."""
        config = self.config
        pairs = [(n, place) for n in config.prefixes for place in config.learned_places]
        return filled_up(pairs, self.mesh)

    @property
    def starts(self) -> list[tuple[int, str, str]]:
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
            for name in ("fixed", "starts", "learned")
        ]
        scaling = scaling_of(
            stream,
            self.mesh,
            num_datasets=config.num_pilot,
            batch_size=config.batch_size,
        )
        first = self._pass(stream, scaling, TRAINING, config.steps, 1.0)
        state = first.train(self._start(scaling), files[0], report)
        found = self._fixed(first.test(state), stream)
        if config.learned_places:
            starts, columns = self.starts, self.learned_columns
            learning = [
                self._pass(
                    self._reading_for([n for n, *_ in each]),
                    scaling,
                    LEARNED,
                    config.learned_steps,
                    LEARNED_RATE,
                )
                for each in (starts, columns)
            ]
            begun = self._attending(first.probes(state.carry), scaling)
            tried = learning[0].train(begun, files[1], report, moments=TRIALS)
            rows = [
                [starts.index((*column, s)) for s in config.fixed_places]
                for column in columns
            ]
            state = learning[1].train(best_starts(tried, rows), files[2], report)
            errors = learning[1].test(state)
            found |= self._learned(found, state.carry.probes, errors)
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

    def _reading_for(self, prefixes: list[int]) -> Stream:
        """Return the stream for probes with learned attention, of these prefixes."""
        indices = [self.config.prefixes.index(n) for n in prefixes]
        return replace(
            self.stream,
            attention=np.zeros((len(indices), self.config.time)),  # is learned instead
            prefix_of=np.array(indices),
        )

    def _start(self, scaling: Scaling) -> PassState:
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
        return PassState(Carry.start(probes, blank))

    def _attending(self, fitted: dict[str, Probes], scaling: Scaling) -> PassState:
        """Return the probes of the fixed places, with scores near these places."""
        place_of = [self.columns.index((n, start)) for n, _, start in self.starts]
        scores = np.stack(
            [
                start_scores(place, start, n, self.config.time)
                for n, place, start in self.starts
            ]
        ).astype(np.float32)

        def attending(probes: Probes) -> Probes:
            taken = jax.tree.map(lambda leaf: np.asarray(leaf)[:, place_of], probes)
            stack = taken.b_out.shape[:3]

            def for_each(values: np.ndarray) -> Array:
                """Return what probes of all targets share, for each of them."""
                own = values[:, :, None]
                whole = (*stack, *own.shape[3:])
                return jnp.asarray(np.broadcast_to(own, whole))

            return replace(
                jax.tree.map(jnp.asarray, taken),
                scores=for_each(scores[None]),
                mean=for_each(np.asarray(scaling.mean)[:, place_of]),
                whitening=for_each(np.asarray(scaling.whitening)[:, place_of]),
            )

        carry = {kind: attending(each) for kind, each in fitted.items()}
        return PassState(Carry.start(carry, None))

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
                    own = [
                        self.learned_columns.index((n, place)) for n in config.prefixes
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


def best_starts(tried: PassState, rows: list[list[int]]) -> PassState:
    """Return, of the columns in each row, the probes of least validation error so far.

    They are chosen for every layer, target and kind of probe.
    """
    carry, done, history = tried
    errors = history[-1]

    def chosen(kind: str, tree: Any) -> Any:
        own = errors[kind][:, np.array(rows)]  # [layers, rows, starts, kinds]
        best = np.take_along_axis(
            np.array(rows)[None, :, :, None], np.argmin(own, axis=2)[:, :, None], axis=2
        )[:, :, 0]
        layers, targets = np.arange(len(own)), np.arange(own.shape[-1])
        place = (layers[:, None, None], best, targets)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[place], tree)

    return PassState(
        Carry(
            {kind: chosen(kind, each) for kind, each in carry.probes.items()},
            {kind: chosen(kind, each) for kind, each in carry.adam.items()},
            None,
        ),
        done,
        tuple({k: chosen(k, each) for k, each in past.items()} for past in history),
    )


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
