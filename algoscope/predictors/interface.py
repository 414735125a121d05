"""What a predictor is: a learning algorithm A that maps D and x′ to A(D)(x′) (§4.1).

Everything that learns has this signature, so any two can be compared: ridge regression,
a trained transformer, a compiled one, a user's own function. `predict_prefixes` is the
same algorithm asked at every position of one sequence, from the examples before it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.validation import require_examples, require_query


@runtime_checkable
class Predictor(Protocol):
    """A learning algorithm: examples D = (x, y) and a query x′ to a prediction."""

    @property
    def name(self) -> str: ...

    def __call__(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
        /,
    ) -> Float[Array, ""]: ...

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]: ...


@dataclass(frozen=True)
class LinearPredictor:
    """A predictor whose hypotheses are x′ ↦ wᵀx′, so its weights can be read off.

    `prefix_weights` maps x and y to w₀, …, wₙ: the weights after 0, 1, …, n examples.
    """

    name: str
    prefix_weights: Callable[
        [Float[Array, "examples dim"], Float[Array, " examples"]],
        Float[Array, "prefixes dim"],
    ]

    def weights(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"]
    ) -> Float[Array, " dim"]:
        """Return w(D), the weights after all examples."""
        require_examples(x, y)
        return self.prefix_weights(x, y)[-1]

    def __call__(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
        /,
    ) -> Float[Array, ""]:
        require_examples(x, y)
        require_query(query, x.shape[1])
        return self.weights(x, y) @ query

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return wᵢ₋₁ᵀxᵢ for i = 1, …, n."""
        require_examples(x, y)
        return jnp.sum(self.prefix_weights(x, y)[:-1] * x, axis=-1)
