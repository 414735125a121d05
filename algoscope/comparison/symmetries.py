"""Symmetries: changes of the data that some algorithms do not notice.

Each symmetry is a linear relation f(D, x′) = Σₖ cₖ f(Dₖ, x′ₖ) between predictions on
changed data. It holds for some algorithms and not for others: least squares has all of
them on noiseless data; one pass of SGD depends on the order of the examples, ridge
regression on the scale of x, gradient descent on a repeated example.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from algoscope.comparison.predict import Inputs, Labels, ask, predict_all
from algoscope.predictors import BlackBox, Predictor, Question

FACTOR = 2.0  # by which scales are changed
SYMMETRIES = (
    "permutation",  # of the examples
    "rotation",  # of all inputs
    "label scale",  # f(X, cy) = c f(X, y)
    "input scale",  # f(cX, y)(cx′) = f(X, y)(x′)
    "additivity",  # f(X, u + v) = f(X, u) + f(X, v)
    "duplicate",  # one example repeated
)


class _Term(NamedTuple):
    """cₖ and changed sequences, each prefix of which is a changed dataset Dₖ."""

    factor: float
    x: Inputs
    y: Labels


def symmetries(
    predictor: Predictor | BlackBox, x: Inputs, y: Labels, *, seed: int = 0
) -> dict[str, Labels]:
    """Return |f(D, x′) − Σₖ cₖ f(Dₖ, x′ₖ)| / √E f² for each symmetry, dataset and n.

    E f² is over the datasets, at the same n. The changes are drawn from the seed, so
    they are the same for every predictor. `duplicate` is NaN at the largest n, where
    the datasets have no room for a repeated example.
    """
    rng = np.random.default_rng(seed)
    unchanged = predict_all(predictor, x, y).astype(np.float64)
    changed = _whole_sequences(predictor, x, y, rng)
    for name, reorder in (("permutation", _permuted), ("duplicate", _repeated)):
        orders = reorder(len(x), x.shape[1], rng)
        changed[name] = np.full(y.shape, np.nan)
        if orders:
            prefixes = [order.prefix for order in orders]
            changed[name][:, prefixes] = _reordered(predictor, x, y, orders)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        count = np.maximum(np.sum(~np.isnan(unchanged), axis=0), 1)
        squares = np.where(np.isnan(unchanged), 0, unchanged) ** 2
        scale = np.sqrt(np.sum(squares, axis=0) / count)
        return {name: np.abs(unchanged - changed[name]) / scale for name in SYMMETRIES}


def _whole_sequences(
    predictor: Predictor | BlackBox, x: Inputs, y: Labels, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return Σₖ cₖ f(Dₖ, x′ₖ) for the symmetries that change all examples alike."""
    shape = (len(x), x.shape[2], x.shape[2])
    rotation = np.linalg.qr(rng.standard_normal(shape))[0].astype(x.dtype)
    # Labels of another linear function, of the same size as y: so are both halves.
    other = np.einsum("bnd,bd->bn", x, rng.standard_normal((len(x), x.shape[2])))
    other = (other * np.sqrt(np.mean(y**2) / np.mean(other**2))).astype(y.dtype)
    factor = np.asarray(FACTOR, x.dtype)
    relations = {
        "rotation": [_Term(1.0, x @ rotation, y)],
        "label scale": [_Term(1 / FACTOR, x, factor * y)],
        "input scale": [_Term(1.0, factor * x, y)],
        "additivity": [_Term(1.0, x, (y + other) / 2), _Term(1.0, x, (y - other) / 2)],
    }
    terms = [term for parts in relations.values() for term in parts]
    joined = (np.concatenate([term[part] for term in terms]) for part in (1, 2))
    predictions = predict_all(predictor, *joined).reshape(len(terms), *y.shape)
    each = iter(predictions.astype(np.float64))
    return {
        name: sum((term.factor * next(each) for term in parts), np.zeros(y.shape))
        for name, parts in relations.items()
    }


class _Order(NamedTuple):
    """An order of the first n examples, and the position of the query after them."""

    prefix: int
    position: int
    order: Int[np.ndarray, "datasets examples"]


def _permuted(datasets: int, length: int, rng: np.random.Generator) -> list[_Order]:
    """Return the first n examples in another order, for n = 1, 2, …"""
    orders = []
    for n in range(1, length):
        order = np.tile(np.arange(length), (datasets, 1))
        order[:, :n] = rng.permuted(order[:, :n], axis=1)
        orders.append(_Order(n, n, order))
    return orders


def _repeated(datasets: int, length: int, rng: np.random.Generator) -> list[_Order]:
    """Return the first n examples, one of them repeated, then the query."""
    orders = []
    for n in range(1, length - 1):
        order = np.tile(np.arange(length), (datasets, 1))
        order[:, n] = rng.integers(n, size=datasets)
        order[:, n + 1] = n
        orders.append(_Order(n, n + 1, order))
    return orders


def _reordered(
    predictor: Predictor | BlackBox, x: Inputs, y: Labels, orders: list[_Order]
) -> Float[np.ndarray, "datasets orders"]:
    """Return the prediction for the query in each of the orders."""
    places = [each.order for each in orders]
    xs = np.concatenate([np.take_along_axis(x, o[..., None], 1) for o in places])
    ys = np.concatenate([np.take_along_axis(y, o, 1) for o in places])
    positions = np.repeat([each.position for each in orders], len(x))
    if isinstance(predictor, BlackBox):
        questions = (
            Question(xs[row, :n], ys[row, :n], xs[row, n : n + 1])
            for row, n in enumerate(positions)
        )
        found = np.array([answer[0] for answer in ask(predictor, questions, len(xs))])
    else:
        found = predict_all(predictor, xs, ys)[np.arange(len(xs)), positions]
    return found.reshape(len(orders), len(x)).T
