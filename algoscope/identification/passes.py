"""Families that take one step per example, in order, and Adam.

All prefixes are held at once: the weights after n examples, for every n, are updated
together, so that several passes over the first n examples are possible too.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.identification.family import Points, Predict, count_points
from algoscope.identification.prefixes import Answers, Prefixes

EPSILON = 1e-8  # of Adam
DECAYS = (0.9, 0.999)  # of Adam's two moments


def sgd(
    *,
    intercept: bool = False,
    power: float | None = None,
    epochs: int = 1,
    batch: int = 1,
    averaged: bool = False,
) -> Predict:
    """Return stochastic gradient descent on (wᵀx − y)² + λ‖w‖².

    Parameters are learning_rate, and where they are free penalty, momentum and power,
    with αₜ = α/tᵖ. A batch takes one step on the mean of its gradients; one that is not
    full waits. `averaged` answers with the mean of the iterates.
    """

    def predict(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
        x = prefixes.x
        if intercept:
            x = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=-1)
        shape = (count_points(points), *prefixes.y.shape, x.shape[2])
        rate = points["learning_rate"][:, None, None, None]
        penalty = _column(points, "penalty") * np.ones(x.shape[2])
        if intercept:
            penalty[..., -1] = 0.0
        momentum = _column(points, "momentum")
        decay = _column(points, "power") if power is None else power
        w, v, total = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        gradient, steps = np.zeros(shape), 0
        for _ in range(epochs):
            for i in range(prefixes.num_examples - 1):
                later = slice(i + 1, None)  # the prefixes that hold example i
                wi = w[:, :, later]
                error = np.einsum("pbnd,bd->pbn", wi, x[:, i])
                error = error - prefixes.y[None, :, i, None]
                g = 2 * (error[..., None] * x[None, :, i, None] + penalty * wi)
                gradient[:, :, later] += g / batch
                if (i + 1) % batch:
                    continue
                steps += 1
                at = np.maximum(steps if epochs == 1 else i + 1, 1)
                moved = momentum * v[:, :, later] - rate * gradient[:, :, later] * (
                    float(at) ** -np.asarray(decay)
                )
                v[:, :, later] = moved
                w[:, :, later] = wi + moved
                total[:, :, later] += w[:, :, later]
                gradient[:, :, later] = 0.0
        if averaged:
            w = total / np.maximum(prefixes.sizes, 1)[None, None, :, None]
        return np.einsum("pbnd,bnd->pbn", w, x)

    return _quiet(predict)


def kaczmarz(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
    """w ← w + α x (y − wᵀx)/‖x‖²."""
    x, y = prefixes.x, prefixes.y
    sizes = np.sum(x**2, axis=2)
    sizes = np.where(sizes > 0, sizes, 1)
    rate = points["learning_rate"][:, None]
    w = np.zeros((len(rate), len(x), x.shape[2]))
    answers = np.zeros((len(rate), *y.shape))
    for i in range(prefixes.num_examples):
        answers[:, :, i] = np.einsum("pbd,bd->pb", w, x[:, i])
        step = rate * (y[:, i] - answers[:, :, i]) / sizes[:, i]
        w = w + step[..., None] * x[:, i]
    return answers


def rls(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
    """Recursive least squares: g = Px/(βλ + xᵀPx), P ← (P − g(Px)ᵀ)/β."""
    x, y = prefixes.x, prefixes.y
    forgetting = points["forgetting"][:, None]
    penalty = points["penalty"][:, None]
    shape = (len(forgetting), len(x), x.shape[2])
    w, p = np.zeros(shape), np.broadcast_to(np.eye(x.shape[2]), (*shape, x.shape[2]))
    answers = np.zeros((len(forgetting), *y.shape))
    for i in range(prefixes.num_examples):
        answers[:, :, i] = np.einsum("pbd,bd->pb", w, x[:, i])
        px = np.einsum("pbij,bj->pbi", p, x[:, i])
        size = forgetting * penalty + np.einsum("pbd,bd->pb", px, x[:, i])
        gain = px / size[..., None]
        w = w + gain * (y[:, i] - answers[:, :, i])[..., None]
        p = (p - gain[..., :, None] * px[..., None, :]) / forgetting[..., None, None]
    return answers


def adam(prefixes: Prefixes, points: Points) -> Iterator[Callable[[], Answers]]:
    """Adam on all examples at once, from 0; it does not see the scale of the loss."""
    sizes = np.maximum(prefixes.sizes, 1)[:, None, None]
    grams = 2 * prefixes.grams / sizes
    moments = 2 * prefixes.moments[..., None] / sizes
    rate = points["learning_rate"]
    w = np.zeros((*prefixes.moments.shape, len(rate)))  # points last: one product
    first, second, steps = np.zeros_like(w), np.zeros_like(w), 0
    while True:
        steps += 1
        g = grams @ w - moments
        first = DECAYS[0] * first + (1 - DECAYS[0]) * g
        second = DECAYS[1] * second + (1 - DECAYS[1]) * g**2
        mean = first / (1 - DECAYS[0] ** steps)
        spread = np.sqrt(second / (1 - DECAYS[1] ** steps))
        w = w - rate * mean / (spread + EPSILON)
        yield lambda w=w: np.einsum("bndp,bnd->pbn", w, prefixes.x)


def _column(points: Points, name: str) -> Float[np.ndarray, "points 1 1 1"]:
    values = points.get(name, np.zeros(count_points(points)))
    return values[:, None, None, None]


def _quiet(predict: Callable[..., Answers]) -> Predict:
    """Return the same function without warnings: a large rate diverges."""

    def quiet(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
        with np.errstate(all="ignore"):
            return predict(prefixes, points, choice)

    return quiet
