"""Families with another loss, another penalty, or only some of the examples."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.identification.family import Points, Predict, count_points
from algoscope.identification.prefixes import Answers, Prefixes
from algoscope.predictors.lasso import lasso_weights

BLOCKS = (512, 1024, 2048, 4096)  # sparse systems that are solved at a time
HUBER_ROUNDS = 60  # of reweighting, at most
TINY = 1e-10  # ridge penalty of reweighted systems, relative to their trace


@jax.jit
def _sparse_weights(
    grams: Float[Array, "systems dim dim"],
    moments: Float[Array, "systems dim"],
    sizes: Float[Array, " systems"],
    penalties: Float[Array, " systems"],
    ratios: Float[Array, " systems"],
) -> Float[Array, "systems dim"]:
    squared = sizes * penalties * (1 - ratios)
    eye = jnp.eye(grams.shape[-1], dtype=grams.dtype)
    matrices = grams + squared[:, None, None] * eye[None]
    # `lasso_weights` multiplies its one penalty by the number of examples.
    return lasso_weights(matrices, moments, sizes * penalties * ratios, 1.0)


def _solve_in_blocks(*systems: np.ndarray) -> np.ndarray:
    """Return the weights of many systems, a block at a time: few compilations."""
    total, parts = len(systems[0]), []
    block = next((size for size in BLOCKS if size >= total), BLOCKS[-1])
    with jax.enable_x64(True):
        for start in range(0, total, block):
            rows = np.resize(np.arange(start, min(start + block, total)), block)
            found = _sparse_weights(*(jnp.asarray(each[rows]) for each in systems))
            parts.append(np.asarray(found))
    return np.concatenate(parts)[:total]


def elastic_net(*, intercept: bool = False) -> Predict:
    """Return ‖Y − Xw‖²/2n + λ(ρ‖w‖₁ + (1 − ρ)‖w‖²/2); without `ratio` the lasso."""

    def predict(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
        grams, moments, sizes = prefixes.grams, prefixes.moments, prefixes.sizes
        queries, offsets = prefixes.x, np.zeros_like(prefixes.y)
        if intercept:
            mean_x, offsets = prefixes.mean_x, prefixes.mean_y
            outer = mean_x[..., :, None] * mean_x[..., None, :]
            grams = grams - sizes[:, None, None] * outer
            moments = moments - sizes[:, None] * mean_x * offsets[..., None]
            queries = queries - mean_x
        dim, count = prefixes.dim, count_points(points)
        counts = np.broadcast_to(sizes, prefixes.y.shape).reshape(-1)
        ratio = points.get("ratio", np.ones(count))
        w = _solve_in_blocks(
            np.tile(grams.reshape(-1, dim, dim), (count, 1, 1)),
            np.tile(moments.reshape(-1, dim), (count, 1)),
            np.tile(counts, count),
            np.repeat(points["penalty"], len(counts)),
            np.repeat(ratio, len(counts)),
        ).reshape(count, *prefixes.x.shape)
        return np.einsum("pbnd,bnd->pbn", w, queries) + offsets

    return predict


def huber(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
    """Least squares for residuals up to δ, and their absolute value beyond it.

    Iteratively reweighted: an example counts min(1, δ/|residual|). For n ≤ d all
    residuals are 0, and it is least squares.
    """
    x, y, dim = prefixes.x, prefixes.y, prefixes.dim
    delta = points["delta"][None, :, None]
    ols = prefixes.spectrum.predict(prefixes.spectrum.inverses[None])
    answers = np.repeat(ols, delta.size, axis=0)
    # For each example, xxᵀ and yx in one row: a weighted sum is then one product.
    outer = (x[..., :, None] * x[..., None, :]).reshape(*x.shape[:2], -1)
    rows = np.concatenate([outer, x * y[..., None]], axis=2)
    for n in range(dim + 1, prefixes.num_examples):
        inputs, labels = np.swapaxes(x[:, :n], 1, 2), y[:, None, :n]
        near = np.ones((len(x), delta.size, n))
        w = np.zeros((len(x), delta.size, dim))
        for _ in range(HUBER_ROUNDS):
            sums = near @ rows[:, :n]
            gram = sums[..., : dim * dim].reshape(*w.shape, dim)
            size = np.trace(gram, axis1=2, axis2=3)[..., None, None]
            matrix = gram + (TINY * size + 1e-290) * np.eye(dim)
            following = np.linalg.solve(matrix, sums[..., dim * dim :, None])[..., 0]
            done = np.allclose(following, w, rtol=1e-8, atol=1e-10)
            w = following
            if done:
                break
            rest = np.abs(w @ inputs - labels)
            near = np.minimum(1, delta / np.maximum(rest, 1e-300))
        answers[:, :, n] = np.einsum("bpd,bd->pb", w, x[:, n])
    return answers


def window_choices(prefixes: Prefixes) -> tuple[dict[str, Any], ...]:
    """Least squares on the last or the first m examples."""
    sizes = range(1, prefixes.num_examples - 1)
    return tuple({"only": side, "m": m} for side in ("last", "first") for m in sizes)


def windowed_ols(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
    """Least squares on the last m examples, or on the first m."""
    m = choice["m"]
    answers = prefixes.spectrum.predict(prefixes.spectrum.inverses[None])[0].copy()
    for n in range(m + 1, prefixes.num_examples):
        part = slice(n - m, n) if choice["only"] == "last" else slice(0, m)
        x = np.concatenate([prefixes.x[:, part], prefixes.x[:, n, None]], axis=1)
        y = np.concatenate([prefixes.y[:, part], prefixes.y[:, n, None]], axis=1)
        u, s, vt = np.linalg.svd(x[:, :m], full_matrices=False)
        kept = s > 1e-12 * s[:, :1]
        inverse = np.where(kept, 1 / np.where(kept, s, 1), 0.0)
        labels = np.einsum("bik,bi->bk", u, y[:, :m])
        queries = np.einsum("bkd,bd->bk", vt, x[:, m])
        answers[:, n] = np.sum(inverse * labels * queries, axis=1)
    return answers[None]


def discrete_bayes(pool: Float[np.ndarray, "tasks dim"]) -> Predict:
    """Return Σᵢ pᵢwᵢᵀx, p = softmaxᵢ(−Σⱼ (yⱼ − wᵢᵀxⱼ)²/2σ²), over a pool of weights."""

    def predict(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
        answers = prefixes.x @ pool.T
        after = np.cumsum((prefixes.y[..., None] - answers) ** 2, axis=1)
        losses = np.concatenate([np.zeros_like(after[:, :1]), after[:, :-1]], axis=1)
        losses -= losses.min(axis=-1, keepdims=True)
        found = []
        for variance in points["noise_variance"]:  # one by one: a pool can be large
            shares = np.exp(-losses / (2 * variance))
            found.append(np.sum(shares * answers, axis=-1) / np.sum(shares, axis=-1))
        return np.stack(found)

    return predict
