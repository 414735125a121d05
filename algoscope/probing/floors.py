"""Floors: what a probe reads without opening the learner, from parts of its data.

A probe computes something by itself, so a low error alone does not show that a target
is stored. A floor is the error of a probe of the same kind and size, trained in the
same way, that is given instead of hidden states

* another target: XᵀY for w_OLS, and w_OLS for XᵀY;
* the last pair (xₙ, yₙ).

For x ~ N(0, I) and w ~ N(0, τ²I) without noise, XᵀY = (XᵀX) w. XᵀX is independent of
w = w_OLS for n ≥ d, has the mean n I, and E‖XᵀX w‖² = n(n+d+1)‖w‖². So the best linear
map has, in both directions, the error over the variance

    (d+1) / (n+d+1),   n ≥ d.

The other floors are probes of other networks, and of the input: see `probe`.
"""

from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.probing.config import ProbingConfig
from algoscope.probing.fitting import Chosen, Fitted, Fitting
from algoscope.probing.targets import ProbeTarget, symbol
from algoscope.tasks.task import Dataset, Task

LAST_PAIR = "last pair"
PLACE = "all"  # the only place: a quantity of a prefix has no positions


def closed_form(dim: int, n: int) -> float:
    """Return the floor of the best linear map between XᵀY and w_OLS, NaN for n < d.

    Example:
        >>> round(closed_form(4, 8), 3)
        0.385
    """
    return (dim + 1) / (n + dim + 1) if n >= dim else float("nan")


class Quantities(eqx.Module):
    """Targets and the last pair, as the layers of a source; prefixes are positions."""

    targets: tuple[ProbeTarget, ...] = eqx.field(static=True)
    prefixes: tuple[int, ...] = eqx.field(static=True)

    @property
    def names(self) -> tuple[str, ...]:
        """What each layer holds."""
        return (*(f"{symbol(each.name)} alone" for each in self.targets), LAST_PAIR)

    def __call__(self, data: Dataset) -> Float[Array, "batch layers time hidden"]:
        """Return the quantities, filled up with zeros to the largest."""
        rows = jnp.asarray(self.prefixes)
        found = [jax.vmap(target.of)(data)[:, rows] for target in self.targets]
        pairs = jnp.concatenate([data.x, data.y[..., None]], axis=-1)
        found.append(pairs[:, rows - 1])
        width = max(each.shape[-1] for each in found)
        wide = [
            jnp.pad(each, ((0, 0), (0, 0), (0, width - each.shape[-1])))
            for each in found
        ]
        return jnp.stack(wide, axis=1)


def fit_floors(
    task: Task,
    config: ProbingConfig,
    targets: tuple[ProbeTarget, ...],
    seed: int,
    unfinished: Path | None = None,
) -> dict[tuple[str, Chosen], Fitted]:
    """Return the floors of every target: from each other target, and the last pair."""
    source = Quantities(targets, config.prefixes)
    rows = dict(zip(config.prefixes, np.eye(len(config.prefixes)), strict=True))
    fitting = Fitting(
        source,
        task,
        replace(config, places=(PLACE,), control_places=None, layers=None),
        targets,
        tuple(range(len(source.names))),
        seed,
        lambda place, n: rows[n],
    )
    found = {}
    for key, each in fitting.fit(unfinished).items():
        for layer, name in enumerate(source.names):
            if name != f"{symbol(key.target)} alone":
                found[name, key] = _layer(each, layer)
    return found


def _layer(found: Fitted, layer: int) -> Fitted:
    """Return what was found in one layer."""
    here = slice(layer, layer + 1)
    return found._replace(
        blocks=found.blocks[:, here],
        validation=found.validation[here],
        history=found.history[:, here],
        attention=found.attention[here],
    )
