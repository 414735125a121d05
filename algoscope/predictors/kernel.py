"""Kernel regression: a mean of the labels, which near examples dominate.

One softmax attention head over the examples computes it.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from algoscope.predictors.moments import Number
from algoscope.predictors.naming import name_call
from algoscope.validation import require_examples, require_positive, require_query


def kernel_predictions(
    squares: Float[Array, "queries examples"],
    y: Float[Array, " examples"],
    seen: Bool[np.ndarray, "queries examples"],
    bandwidth: Number,
) -> Float[Array, " queries"]:
    """Return Σᵢ kᵢyᵢ / Σᵢ kᵢ, kᵢ = exp(−‖xᵢ − x′‖²/2h²), over the examples seen.

    Without examples it is 0. Far from all examples, where every kᵢ underflows, it is
    their ratios that count: the largest is taken as 1.
    """
    if y.shape[0] == 0:
        return jnp.zeros(squares.shape[0], y.dtype)
    scores = -squares / (2 * bandwidth**2)
    peak = jnp.max(jnp.where(seen, scores, -jnp.inf), axis=1, keepdims=True)
    # Unseen examples may be nearer than the peak: their exponentials could overflow.
    heights = jnp.where(seen, scores - jax.lax.stop_gradient(peak), 0)
    kernels = jnp.where(seen, jnp.exp(heights), 0)
    total = jnp.sum(kernels, axis=1)
    return kernels @ y / jnp.where(np.any(seen, axis=1), total, 1)


def kernel_prefix_predictions(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"], *, bandwidth: Number
) -> Float[Array, " examples"]:
    """Return the prediction at each xᵢ from the examples before it."""
    squares = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    past = np.tri(len(x), k=-1, dtype=bool)
    return kernel_predictions(squares, y, past, bandwidth)


@dataclass(frozen=True)
class NadarayaWatson:
    """Kernel regression with a Gaussian kernel of width h, the `bandwidth`."""

    bandwidth: float

    def __post_init__(self):
        require_positive("bandwidth", self.bandwidth)

    @property
    def name(self) -> str:
        """For example `NadarayaWatson(0.5)`."""
        return name_call("NadarayaWatson", self.bandwidth)

    def __call__(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
        /,
    ) -> Float[Array, ""]:
        require_examples(x, y)
        require_query(query, x.shape[1])
        squares = jnp.sum((x - query[None]) ** 2, axis=-1)
        seen = np.ones((1, len(x)), bool)
        return kernel_predictions(squares[None], y, seen, self.bandwidth)[0]

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return the prediction at each xᵢ from the examples before it."""
        require_examples(x, y)
        return kernel_prefix_predictions(x, y, bandwidth=self.bandwidth)


def nadaraya_watson(bandwidth: float) -> NadarayaWatson:
    """Return kernel regression with a Gaussian kernel.

    Example:
        >>> nadaraya_watson(0.5).name
        'NadarayaWatson(0.5)'
    """
    return NadarayaWatson(bandwidth)
