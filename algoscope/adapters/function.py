"""Any Python function of examples and a query, as a black box (paper §4.1)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.adapters.failures import TIMEOUT, Failures, ask_each
from algoscope.predictors import Question
from algoscope.validation import InvalidTypeError, require_positive


class FunctionPredictor:
    """f(X, y, x_query) -> ŷ, with NumPy arrays X [n, d], y [n] and x_query [d].

    Every call gets arrays of its own, which it may change.

    Example:
        >>> mean = FunctionPredictor(lambda X, y, x_query: y.mean(), "mean")
        >>> x, y = np.ones((4, 2)), np.arange(4.0)
        >>> [answer.tolist() for answer in mean.answers([Question(x, y, x[:2])])]
        [[1.5, 1.5]]
    """

    def __init__(
        self,
        function: Callable[[np.ndarray, np.ndarray, np.ndarray], Any],
        name: str | None = None,
        timeout: float = TIMEOUT,
    ):
        if not callable(function):
            rule = "be a function of X, y and x_query"
            raise InvalidTypeError("function", rule, repr(function))
        require_positive("timeout", timeout)
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.failures = Failures()
        self._function, self._timeout = function, timeout

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]:
        """Yield the predictions for each question; NaN where the function failed."""
        return ask_each(
            self.name, self.failures, questions, self._answer, self._timeout
        )

    def _answer(self, question: Question) -> list[Any]:
        return [
            self._predict(*(np.array(part, np.float64) for part in (*question[:2], q)))
            for q in question.queries
        ]

    def _predict(self, x: np.ndarray, y: np.ndarray, query: np.ndarray) -> Any:
        prediction = np.asarray(self._function(x, y, query))
        # scikit-learn's prediction for a batch of one query is a number too.
        return prediction.item() if prediction.shape in ((), (1,)) else prediction
