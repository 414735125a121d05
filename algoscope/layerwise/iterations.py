"""Iterative algorithms, after every number of steps, and which step matches a layer.

    GD                    w ← w + c/λ (b − Sw), S = XᵀX, b = XᵀY, λ the largest
                          eigenvalue of S
    conjugate gradients   k ≤ d steps: then it has solved Sw = b
    Newton                M ← 2M − MSM, w = Mb (Fu et al., 2024)

All start at w = 0 but Newton's method, which starts at M ∝ S. GD has the rate c, of
which each number of steps gets its best: a fixed rate would make it slower than it has
to be. The match of a layer is the number of steps, and the rate, whose predictions are
nearest to the read-out's. They are chosen on every other dataset and measured on the
rest, so that choosing does not make the distance look smaller.

Axes: `steps` 0, 1, …; `rates`; `prefixes` n = 0, 1, …; `depth` layers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.comparison.intervals import summarize
from algoscope.comparison.predict import Inputs, Labels, run_in_batches
from algoscope.predictors.accelerated import (
    conjugate_gradients_iterates,
    newton_iterates,
)
from algoscope.predictors.gradient_descent import Iterates, iterate
from algoscope.predictors.least_squares import apply, prefix_moments

RATES = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 1.9)  # c of GD; it diverges from 2 on
GD_STEPS, NEWTON_STEPS = 64, 30
BATCH = 100  # datasets per compiled call

Predictions = Float[np.ndarray, "datasets curves prefixes"]


class Match(NamedTuple):
    """The steps of an algorithm that are nearest to one layer, and how near: SPD/d."""

    algorithm: str
    layer: int
    steps: int
    rate: float | None
    distance: float
    low: float
    high: float
    more: bool = False  # the most steps that were tried: more may be nearer

    @property
    def shown(self) -> str:
        """The number of steps as text."""
        return f"≥{self.steps}" if self.more else str(self.steps)


@dataclass(frozen=True)
class Iteration:
    """An algorithm: its weights after 0, 1, … steps from x and y, for each rate."""

    name: str
    iterates: Callable[..., Iterates]
    rates: tuple[float, ...] = ()
    ends: bool = False  # further steps change nothing

    def predictions(
        self, x: Inputs, y: Labels
    ) -> Float[np.ndarray, "datasets rates steps prefixes"]:
        """Return the prediction at every x after every number of steps, in float64."""
        with jax.enable_x64(True):
            exact = (x.astype(np.float64), y.astype(np.float64))
            return run_in_batches(_compiled(self), *exact, BATCH)

    def of_dataset(self, x: Array, y: Array) -> Array:
        """Return the predictions [rates, steps, prefixes] on one dataset."""
        options = [(rate,) for rate in self.rates] or [()]
        weights = jnp.stack([self.iterates(x, y, *each) for each in options])
        return jnp.einsum("rsnd,nd->rsn", weights[:, :, :-1], x)


@lru_cache(maxsize=64)
def _compiled(algorithm: Iteration) -> Callable[[Array, Array], Array]:
    return jax.jit(jax.vmap(algorithm.of_dataset))


def gd_by_curvature(
    num_steps: int,
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    rate: float,
) -> Float[Array, "iterates prefixes dim"]:
    """Return the weights after 0, 1, …, k steps: w ← w + c/λ (b − Sw)."""
    gram, moment = prefix_moments(x, y)
    largest = jnp.linalg.eigvalsh(gram)[:, -1]
    step_size = rate / jnp.where(largest > 0, largest, 1)

    def step(w: Array) -> Array:
        return w + step_size[:, None] * (moment - apply(gram, w))

    return iterate(step, jnp.zeros_like(moment), num_steps)


@cache
def iterations(dim: int) -> tuple[Iteration, ...]:
    """Return the algorithms that layers are matched with.

    Example:
        >>> [each.name for each in iterations(4)]
        ['GD', 'conjugate gradients', 'Newton']
    """
    solving = partial(conjugate_gradients_iterates, num_steps=dim)
    inverting = partial(newton_iterates, num_steps=NEWTON_STEPS)
    return (
        Iteration("GD", partial(gd_by_curvature, GD_STEPS), RATES),
        Iteration("conjugate gradients", solving, ends=True),
        Iteration("Newton", inverting),
    )


class Matched(NamedTuple):
    """SPD/d of every layer to every number of steps, and the best of them."""

    distances: Float[np.ndarray, "depth steps"]  # at the best rate of each
    matches: list[Match]


def match(
    algorithm: Iteration,
    x: Inputs,
    y: Labels,
    answers: Float[np.ndarray, "datasets depth prefixes"],
) -> Matched:
    """Find the steps of an algorithm that are nearest to each layer's answers."""
    found = algorithm.predictions(x, y)
    spd = np.stack(
        [
            np.mean((found - each[:, None, None])[..., 1:] ** 2, axis=-1) / x.shape[2]
            for each in np.moveaxis(answers, 1, 0)
        ]
    )  # [depth, datasets, rates, steps]
    choosing, measuring = spd[:, ::2].mean(axis=1), spd[:, 1::2]
    rates = np.argmin(choosing, axis=1)  # [depth, steps]
    best_rate = rates[:, None, None]
    distances = np.take_along_axis(spd.mean(axis=1), best_rate[:, 0], axis=1)[:, 0]
    steps = np.argmin(np.min(choosing, axis=1), axis=1)  # [depth]
    matches = []
    for layer, count in enumerate(steps):
        rate = rates[layer, count]
        sample = summarize(measuring[layer, :, rate, count])
        matches.append(
            Match(
                algorithm.name,
                layer,
                int(count),
                algorithm.rates[rate] if algorithm.rates else None,
                float(sample.mean),
                float(sample.low),
                float(sample.high),
                bool(count == distances.shape[1] - 1 and not algorithm.ends),
            )
        )
    return Matched(distances, matches)
