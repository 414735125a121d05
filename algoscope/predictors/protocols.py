"""What a predictor is: a learning algorithm A that maps D and x′ to A(D)(x′) (§4.1).

Everything that learns has this signature, so any two can be compared: ridge regression,
a trained transformer, a compiled one, a user's own function. `predict_prefixes` is the
same algorithm asked at every position of one sequence, from the examples before it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import require_examples, require_query


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


@runtime_checkable
class RangeAware(Protocol):
    """A predictor that is right only within a range, and says when it is outside."""

    def warn_outside_range(
        self,
        x: Float[Array | np.ndarray, "datasets examples dim"],
        y: Float[Array | np.ndarray, "datasets examples"],
    ) -> None:
        """Warn if the predictor was not made for data like these."""
        ...


class Question(NamedTuple):
    """What a black box is asked: predictions for some queries from some examples."""

    x: Float[np.ndarray, "examples dim"]
    y: Float[np.ndarray, " examples"]
    queries: Float[np.ndarray, "queries dim"]


class PredictorFailedError(RuntimeError):
    """A black box that cannot be asked any further: who, what happened, what to do."""

    def __init__(self, name: str, event: str, remedy: str):
        super().__init__(f"`{name}` {event}. {remedy}")


@runtime_checkable
class BlackBox(Protocol):
    """A learning algorithm that JAX cannot trace: it is asked one question at a time.

    `answers` yields one array per question, in their order. A question that the box
    cannot answer (too few examples, a crash) is answered with NaN; a box that cannot
    go on raises `PredictorFailedError`.
    """

    @property
    def name(self) -> str: ...

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]: ...


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

    def influence(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
    ) -> Float[Array, " examples"]:
        """Return ∂ŷ/∂y: the row of the hat matrix, where the predictor has one."""
        return jax.grad(lambda y: self(x, y, query))(y)

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return wᵢ₋₁ᵀxᵢ for i = 1, …, n."""
        require_examples(x, y)
        return jnp.sum(self.prefix_weights(x, y)[:-1] * x, axis=-1)


def name_call(family: str, *values: object, **options: object) -> str:
    """Return the name of a predictor; an option of None is left out.

    Example:
        >>> name_call("GD", 0.02), name_call("GD", 0.02, steps=8, penalty=None)
        ('GD(0.02)', 'GD(0.02, steps=8)')
        >>> name_call("OLS")
        'OLS'
    """
    words = [_word(value) for value in values]
    words += [f"{key}={_word(v)}" for key, v in options.items() if v is not None]
    return f"{family}({', '.join(words)})" if words else family


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
