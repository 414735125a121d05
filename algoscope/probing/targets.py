"""The targets of probes: quantities of the first n examples of a dataset (paper §5).

The paper probes for XᵀY and the minimum-norm least-squares weights, which gradient
descent and ridge regression would compute on their way to a prediction.

Axes: `prefixes` of 0, 1, …, n examples; `size` the components of a target.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.predictors import LinearPredictor, ols, parse_predictor, ridge
from algoscope.predictors.least_squares import prefix_moments
from algoscope.tasks.task import Dataset, Task

Values = Float[Array, "prefixes size"]
OfExamples = Callable[[Float[Array, "examples dim"], Float[Array, " examples"]], Values]

SYMBOLS = {"moment": "XᵀY", "gram": "XᵀX", "w_ols": "w_OLS", "w_ridge": "w_Ridge"}


def symbol(target: str) -> str:
    """Return the paper's symbol for a target, or its name.

    Example:
        >>> symbol("moment"), symbol("residual")
        ('XᵀY', 'residual')
    """
    return SYMBOLS.get(target, target)


@dataclass(frozen=True)
class ProbeTarget:
    """A named quantity of a dataset after 0, 1, …, n of its examples."""

    name: str
    of: Callable[[Dataset], Values]

    @classmethod
    def of_examples(cls, name: str, function: OfExamples) -> "ProbeTarget":
        """Return the target that a function of all x and y computes, row by row.

        Example:
            >>> def label_sums(x, y):
            ...     return jnp.concatenate([jnp.zeros(1), jnp.cumsum(y)])[:, None]
            >>> ProbeTarget.of_examples("Σy", label_sums).name
            'Σy'
        """
        return cls(name, lambda data: function(data.x, data.y))


def weights_of(predictor: LinearPredictor) -> ProbeTarget:
    """Return the weights of a linear algorithm as a target.

    Example:
        >>> weights_of(ridge(0.5)).name
        'w of Ridge(0.5)'
    """
    return ProbeTarget.of_examples(f"w of {predictor.name}", predictor.prefix_weights)


def _moment(x: Float[Array, "examples dim"], y: Float[Array, " examples"]) -> Values:
    return prefix_moments(x, y)[1]


def _gram(x: Float[Array, "examples dim"], y: Float[Array, " examples"]) -> Values:
    gram, _ = prefix_moments(x, y)
    return gram.reshape(gram.shape[0], -1)


def _residual(x: Float[Array, "examples dim"], y: Float[Array, " examples"]) -> Values:
    """Return yₙ − w_OLS(n−1)ᵀxₙ, the error of least squares at the last label.

    It is 0 after no examples, where there is no label.
    """
    errors = y - ols.predict_prefixes(x, y)
    return jnp.concatenate([jnp.zeros(1, y.dtype), errors])[:, None]


def _true_weights(data: Dataset) -> Values:
    return jnp.tile(data.w[None], (data.x.shape[0] + 1, 1))


TARGETS: dict[str, ProbeTarget] = {
    "moment": ProbeTarget.of_examples("moment", _moment),  # XᵀY
    "w_ols": ProbeTarget.of_examples("w_ols", ols.prefix_weights),  # of minimum norm
    "gram": ProbeTarget.of_examples("gram", _gram),  # XᵀX, all d² entries
    "w_ridge": ProbeTarget.of_examples("w_ridge", ridge(0.1).prefix_weights),
    "residual": ProbeTarget.of_examples("residual", _residual),
    "w": ProbeTarget("w", _true_weights),  # of the task, not computed from examples
}


def find_targets(targets: Sequence[str | ProbeTarget]) -> list[ProbeTarget]:
    """Return targets by name; a target is returned unchanged. Names must differ.

    A call such as `sgd(0.05)` names the weights of a linear algorithm.
    """
    found = [_named(each) if isinstance(each, str) else each for each in targets]
    names = [target.name for target in found]
    if not names or len(set(names)) < len(names):
        rule = "name at least one target, and no target twice"
        raise InvalidValueError("targets", rule, ", ".join(names) or "none")
    return found


def _named(name: str) -> ProbeTarget:
    if "(" not in name:
        require_choice("target", name, TARGETS)
        return TARGETS[name]
    predictor = parse_predictor(name)
    if not isinstance(predictor, LinearPredictor):
        rule = "be the name of a target or a linear algorithm such as sgd(0.05)"
        raise InvalidValueError("target", rule, name)
    return weights_of(predictor)


def target_sizes(targets: Sequence[ProbeTarget], task: Task) -> tuple[int, ...]:
    """Return the number of components of each target."""
    data = jax.eval_shape(lambda key: task.sample(key, 2), jax.random.key(0))
    return tuple(jax.eval_shape(target.of, data).shape[-1] for target in targets)


class TargetSplit(NamedTuple):
    """Values of a target on the training datasets and on the test datasets."""

    training: Float[np.ndarray, "datasets prefixes size"]
    test: Float[np.ndarray, "others prefixes size"]


@lru_cache(maxsize=64)
def _compiled(target: ProbeTarget) -> Callable[[Dataset], Array]:
    return jax.jit(jax.vmap(target.of))


def target_values(
    target: ProbeTarget, data: Dataset, prefixes: tuple[int, ...]
) -> Float[np.ndarray, "datasets chosen size"]:
    """Return a target's values after some prefixes of each dataset, in float64."""
    longest = data.x.shape[1]
    with jax.enable_x64(True):
        exact = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), data)
        values = np.asarray(_compiled(target)(exact))
    if values.ndim != 3 or values.shape[1] != longest + 1:
        rule = f"give {longest + 1} rows from {longest} examples, one per prefix"
        shape = f"shape {values.shape[1:]}"
        raise InvalidValueError(f"target {target.name}", rule, shape)
    chosen = values[:, list(prefixes)]
    if not np.all(np.isfinite(chosen)):
        rule = "be finite after every prefix"
        raise InvalidValueError(f"target {target.name}", rule, "NaN or infinity")
    return chosen
