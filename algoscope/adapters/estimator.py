"""Any scikit-learn regressor as a black box (paper §4.1)."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.adapters.black_box import TIMEOUT, Failures, ask_each, one_line
from algoscope.foundation.validation import InvalidTypeError, require_positive
from algoscope.predictors import Question


class EstimatorPredictor:
    """A scikit-learn regressor, cloned and fitted for each question.

    With `incremental`, it receives the examples one by one, in order, through its
    `partial_fit`; the paper's SGD is such a learner (§3.2).

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> box = EstimatorPredictor(Ridge(alpha=1.0, fit_intercept=False))
        >>> x = np.array([[1.0], [1.0]])
        >>> box.name, next(box.answers([Question(x, x[:, 0], x[:1])])).round(3).tolist()
        ('Ridge(fit_intercept=False)', [0.667])
    """

    def __init__(
        self,
        estimator: Any,
        name: str | None = None,
        *,
        incremental: bool = False,
        timeout: float = TIMEOUT,
    ):
        rule = "be a scikit-learn regressor"
        if isinstance(estimator, type):
            remedy = f"Create one: {estimator.__name__}()."
            raise InvalidTypeError("estimator", rule, estimator.__name__, remedy)
        if not is_regressor(estimator):
            remedy = "For another kind of object, use `FunctionPredictor`."
            raise InvalidTypeError("estimator", rule, one_line(repr(estimator)), remedy)
        if incremental and not hasattr(estimator, "partial_fit"):
            rule = "have `partial_fit` to be incremental"
            raise InvalidTypeError("estimator", rule, one_line(repr(estimator)))
        require_positive("timeout", timeout)
        self.name = name or one_line(repr(estimator))
        self.failures = Failures()
        self._estimator, self._incremental = estimator, incremental
        self._timeout = timeout

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]:
        """Yield the predictions for each question, NaN where it cannot be fitted."""
        return ask_each(
            self.name, self.failures, questions, self._answer, self._timeout
        )

    def _answer(self, question: Question) -> Any:
        from sklearn.base import clone

        x, y, queries = (np.array(part, np.float64) for part in question)
        learner: Any = clone(self._estimator)
        if self._incremental:
            for i in range(len(x)):
                learner.partial_fit(x[i : i + 1], y[i : i + 1])
        else:
            learner.fit(x, y)
        return learner.predict(queries)


def is_regressor(value: Any) -> bool:
    """Return whether a value is a regressor as scikit-learn defines them."""
    if not (hasattr(value, "fit") and hasattr(value, "__sklearn_tags__")):
        return False
    from sklearn import base

    return base.is_regressor(value)
