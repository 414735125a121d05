"""Families that weigh examples by how near they are to the query."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from algoscope.identification.family import Points, Predict, count_points
from algoscope.identification.prefixes import Answers, Prefixes

WEIGHTINGS = (("uniform", 2), ("weighted", 2), ("weighted", 1))  # with the power
TINY = 1e-12  # added to a kernel's diagonal, and to local moments, relative to them

Kernels = Float[np.ndarray, "points datasets examples examples"]


def _past(prefixes: Prefixes) -> Bool[np.ndarray, "examples examples"]:
    return np.tri(prefixes.num_examples, k=-1, dtype=bool)


def mean(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
    """The mean label."""
    return prefixes.mean_y[None]


def neighbor_choices(prefixes: Prefixes) -> tuple[dict[str, Any], ...]:
    """Every number of neighbors, with every weighting."""
    return tuple(
        {"k": k, "weighting": weighting, **({"power": 1} if power == 1 else {})}
        for weighting, power in WEIGHTINGS
        for k in range(1, prefixes.num_examples)
        if weighting == "weighted" or k < prefixes.num_examples - 1
    )


def neighbors(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
    """The mean label of the k nearest; if some are at distance 0, only they count.

    Of equally near examples the first counts, or the latest.
    """
    squares = np.where(_past(prefixes), prefixes.squares, np.inf)
    if choice.get("latest_first"):
        backwards = np.argsort(squares[..., ::-1], axis=-1, kind="stable")
        order = prefixes.num_examples - 1 - backwards[..., : choice["k"]]
    else:
        order = np.argsort(squares, axis=-1, kind="stable")[..., : choice["k"]]
    near = np.take_along_axis(squares, order, axis=-1)
    labels = np.take_along_axis(
        np.broadcast_to(prefixes.y[:, None], squares.shape), order, axis=-1
    )
    weights = np.isfinite(near).astype(float)
    if choice["weighting"] == "weighted":
        power = choice.get("power", 2)
        exact = near == 0
        inverse = np.where(weights > 0, np.where(exact, 1.0, near) ** (-power / 2), 0.0)
        weights = np.where(exact.any(axis=-1, keepdims=True), exact, inverse)
    total = weights.sum(axis=-1)
    return (np.sum(weights * labels, axis=-1) / np.where(total > 0, total, 1))[None]


def nadaraya_watson(
    prefixes: Prefixes, points: Points, choice: dict[str, Any]
) -> Answers:
    """The mean label with the weights exp(−‖x − x′‖²/2h²)."""
    width = points["bandwidth"][:, None, None, None]
    with np.errstate(over="ignore"):
        scores = -prefixes.squares[None] / (2 * width**2)
    scores = np.where(_past(prefixes), scores, -np.inf)
    scores[:, :, 0, 0] = 0.0  # without examples the answer is 0
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    answers = np.einsum("pbij,bj->pbi", weights, prefixes.y) / weights.sum(axis=-1)
    answers[:, :, 0] = 0.0
    return answers


def rbf(prefixes: Prefixes, points: Points) -> Kernels:
    """exp(−‖x − x′‖²/2h²)."""
    width = points["bandwidth"][:, None, None, None]
    with np.errstate(over="ignore"):
        return np.exp(-prefixes.squares[None] / (2 * width**2))


def quadratic(prefixes: Prefixes, points: Points) -> Kernels:
    """(1 + xᵀx′)²."""
    values = (1 + prefixes.products) ** 2
    return np.broadcast_to(values, (count_points(points), *values.shape))


def exponential(prefixes: Prefixes, points: Points) -> Kernels:
    """exp(xᵀx′/h²), the kernel of softmax attention."""
    width = points["bandwidth"][:, None, None, None]
    with np.errstate(over="ignore"):
        return np.exp(np.minimum(prefixes.products[None] / width**2, 300))


def kernel_ridge(kernel: Callable[[Prefixes, Points], Kernels]) -> Predict:
    """Return kernel ridge regression: the mean of a Gaussian process.

    With K + λI = LLᵀ and z = L⁻¹y, the prediction after n examples is the sum of Lₙᵢzᵢ
    over i < n: one factorization serves all prefixes.
    """

    def predict(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
        values = kernel(prefixes, points)
        size = np.einsum("pbii->pb", values)[..., None, None] / values.shape[-1]
        eye = np.eye(values.shape[-1])
        penalty = points["penalty"][:, None, None, None]
        matrix = values + (penalty + TINY * size) * eye
        answers = np.full(matrix.shape[:3], np.inf)
        good = np.isfinite(matrix).all(axis=(1, 2, 3))
        try:
            factor = np.linalg.cholesky(matrix[good])
        except np.linalg.LinAlgError:
            return answers
        labels = np.broadcast_to(prefixes.y[None, ..., None], (*factor.shape[:3], 1))
        z = np.linalg.solve(factor, labels)[..., 0]
        answers[good] = np.einsum("pbni,pbi->pbn", np.tril(factor, -1), z)
        return answers

    return predict


def local_linear(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
    """Least squares with an intercept, each example weighted by its nearness."""
    weights = np.where(_past(prefixes), rbf(prefixes, points), 0.0)
    answers = np.zeros(weights.shape[:3])
    for n in range(1, prefixes.num_examples):
        inputs = prefixes.x[:, :n] - prefixes.x[:, n, None]  # the query is the origin
        inputs = np.concatenate([inputs, np.ones((*inputs.shape[:2], 1))], axis=-1)
        near = weights[:, :, n, :n] + 1e-300
        gram = np.einsum("pbi,bij,bik->pbjk", near, inputs, inputs)
        moment = np.einsum("pbi,bij,bi->pbj", near, inputs, prefixes.y[:, :n])
        size = np.einsum("pbii->pb", gram)[..., None, None]
        matrix = gram + (1e-9 * size + 1e-290) * np.eye(gram.shape[-1])
        answers[:, :, n] = np.linalg.solve(matrix, moment[..., None])[..., -1, 0]
    return answers
