"""Data of any kind and size, for predictors that are called directly.

Algorithms square their data, so in float32 numbers beyond 10^±19 would overflow or
vanish, and a prediction would be 0 without any sign. Outside of traced code, data of
unusual size are therefore computed in float64, and the prediction is rounded. Integers
are taken as floats. An unknown number, NaN or infinity, makes every prediction NaN that
is made from it.

Traced code, such as `compare`, is left alone: there references run in float64 anyway.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from algoscope.foundation.validation import (
    InvalidTypeError,
    require_examples,
    require_query,
)

SMALLEST, LARGEST = 2.0**-24, 2.0**24  # whose fourth powers are well within float32


def predict_safely(
    compute: Callable[..., Any], x: Any, y: Any, query: Any = None
) -> Any:
    """Return compute(x, y, query), or compute(x, y) without a query, for any numbers.

    Without a query, compute returns one number per example, each from the examples
    before it.
    """
    given = [x, y] if query is None else [x, y, query]
    if any(isinstance(each, Tracer) for each in given):
        _require_shapes(*given)
        return compute(*given)
    given = [_as_floats(n, a) for n, a in zip(["x", "y", "query"], given, strict=False)]
    _require_shapes(*given)
    unknown = _unknown(*given)
    given = [np.where(np.isfinite(each), each, 0) for each in given]
    if all(_is_usual(each) for each in given):
        found = compute(*map(jnp.asarray, given))
        return jnp.where(unknown, jnp.nan, found) if np.any(unknown) else found
    kind = jax.dtypes.canonicalize_dtype(given[0].dtype)
    with jax.enable_x64(True):
        wide = np.asarray(compute(*(jnp.asarray(each, np.float64) for each in given)))
    with np.errstate(over="ignore"):  # what is too large for float32 is infinite there
        return jnp.asarray(np.where(unknown, np.nan, wide).astype(kind))


def _require_shapes(x: Any, y: Any, query: Any = None) -> None:
    require_examples(x, y)
    if query is not None:
        require_query(query, x.shape[1])


def _as_floats(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        return array.astype(jnp.result_type(float))
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise InvalidTypeError(name, "hold real numbers", f"{array.dtype} values")
    return array


def _is_usual(values: np.ndarray) -> bool:
    """Return whether every input or label has a size whose powers are in no danger."""
    sizes = np.abs(values)
    if values.ndim > 1:  # the size of an input is that of its largest coordinate
        sizes = np.max(sizes, axis=1, initial=0)
    return bool(np.all((sizes == 0) | ((sizes > SMALLEST) & (sizes < LARGEST))))


def _unknown(x: np.ndarray, y: np.ndarray, query: np.ndarray | None = None) -> Any:
    """Return whether a prediction, or which of those at each x, is unknown."""
    inputs, labels = ~np.isfinite(x).all(axis=1), ~np.isfinite(y)
    if query is not None:
        return inputs.any() or labels.any() or not np.isfinite(query).all()
    before = np.cumsum(inputs | labels) - (inputs | labels)
    return inputs | (before > 0)
