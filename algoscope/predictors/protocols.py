"""What a predictor is: a learning algorithm A that maps D and x′ to A(D)(x′) (§4.1).

Everything that learns has this signature, so any two can be compared: ridge regression,
a trained transformer, a compiled one, a user's own function. `predict_prefixes` runs
the same algorithm at every position of one sequence: it predicts the label at xᵢ from
the examples before it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import require_examples
from algoscope.predictors.safe_numbers import predict_safely

Number = float | Float[Array, ""]  # a hyper-parameter, which JAX may trace


@runtime_checkable
class Predictor(Protocol):
    """A learning algorithm: examples D = (x, y) and a query x′ to a prediction.

    Example:
        >>> import algoscope as asc
        >>> isinstance(asc.ridge(0.1), asc.Predictor)
        True
    """

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
    """A predictor that is accurate only for some data, and warns about other data."""

    def warn_outside_range(
        self,
        x: Float[Array | np.ndarray, "datasets examples dim"],
        y: Float[Array | np.ndarray, "datasets examples"],
    ) -> None:
        """Warn if these data are outside of the range in which it is accurate."""
        ...


class Question(NamedTuple):
    """One request to a black box: predict at these queries from these examples."""

    x: Float[np.ndarray, "examples dim"]
    y: Float[np.ndarray, " examples"]
    queries: Float[np.ndarray, "queries dim"]


class PredictorFailedError(RuntimeError):
    """A black box that cannot answer any more: its name, what happened, what to do."""

    def __init__(self, name: str, event: str, remedy: str):
        super().__init__(f"`{name}` {event}. {remedy}")


@runtime_checkable
class BlackBox(Protocol):
    """A learning algorithm that JAX cannot trace, asked one question at a time.

    `answers` yields one array per question, in their order. A question that the box
    cannot answer (too few examples, a crash) is answered with NaN; a box that cannot
    continue raises `PredictorFailedError`.

    Example:
        >>> import algoscope as asc
        >>> box = asc.FunctionPredictor(lambda X, y, x_query: y.mean(), "mean")
        >>> isinstance(box, asc.BlackBox), isinstance(asc.ols, asc.BlackBox)
        (True, False)
    """

    @property
    def name(self) -> str: ...

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]: ...


@runtime_checkable
class BatchedBox(BlackBox, Protocol):
    """A black box that answers many questions in one call.

    `batches` yields the predictions at every position of some datasets, from what is
    before it, until all datasets are answered. They are NaN where there is no answer.
    """

    def batches(
        self,
        x: Float[np.ndarray, "datasets examples dim"],
        y: Float[np.ndarray, "datasets examples"],
        /,
    ) -> Iterator[Float[np.ndarray, "some examples"]]: ...


class Parametrized(partial):
    """A function with the parameters of an algorithm, equal if they are equal.

    Two predictors with the same parameters are equal too, so JAX compiles one program
    for both. Parameters that are arrays cannot be compared: use `partial` for them.

    Example:
        >>> import algoscope as asc
        >>> asc.ridge(0.1) == asc.ridge(0.1), asc.ridge(0.1) == asc.ridge(0.2)
        (True, False)
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parametrized) and self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self.func)

    @property
    def _facts(self) -> tuple[object, ...]:
        return self.func, self.args, *sorted(self.keywords.items())


@dataclass(frozen=True)
class LinearPredictor:
    """A predictor whose hypotheses are linear, x′ ↦ wᵀx′, with weights w(D).

    `prefix_weights` maps x and y to w₀, …, wₙ: the weights after 0, 1, …, n examples.

    Example:
        >>> def sums(x, y):  # w = Σᵢ xᵢyᵢ
        ...     return jnp.cumsum(jnp.pad(x * y[:, None], ((1, 0), (0, 0))), axis=0)
        >>> x, y = jnp.array([[1.0], [2.0]]), jnp.array([3.0, 4.0])
        >>> predictor = LinearPredictor("Sum", sums)
        >>> predictor.weights(x, y).tolist(), float(predictor(x, y, jnp.array([2.0])))
        ([11.0], 22.0)
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
        return predict_safely(partial(_at_query, self), x, y, query)

    def influence(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
    ) -> Float[Array, " examples"]:
        """Return ∂ŷ/∂y; if the prediction is linear in y, a row of the hat matrix."""
        return jax.grad(lambda y: self(x, y, query))(y)

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return wᵢ₋₁ᵀxᵢ for i = 1, …, n."""
        return predict_safely(partial(_at_every_input, self), x, y)


# Equal predictors are compiled once; else JAX compiles their loops at every call.


@partial(jax.jit, static_argnums=0)
def _at_query(predictor: LinearPredictor, x: Array, y: Array, query: Array) -> Array:
    return predictor.weights(x, y) @ query


@partial(jax.jit, static_argnums=0)
def _at_every_input(predictor: LinearPredictor, x: Array, y: Array) -> Array:
    return jnp.sum(predictor.prefix_weights(x, y)[:-1] * x, axis=-1)


def name_call(family: str, *values: object, **options: object) -> str:
    """Return the name of a predictor; an option of None is left out.

    Example:
        >>> name_call("GD", 0.02), name_call("GD", 0.02, steps=8, penalty=None)
        ('GD(0.02)', 'GD(0.02, steps=8)')
        >>> name_call("OLS")
        'OLS'
    """
    arguments = [_text(value) for value in values]
    arguments += [f"{key}={_text(v)}" for key, v in options.items() if v is not None]
    return f"{family}({', '.join(arguments)})" if arguments else family


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
