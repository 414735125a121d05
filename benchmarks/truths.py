"""Algorithms with a known truth and random parameters: of a family, or of none.

A truth says which family names are right, whether "none" is right, and whether "is" may
be said. The algorithms are plain NumPy functions (`plain_algorithms.py`).
"""

from dataclasses import dataclass

import numpy as np
from plain_algorithms import (
    Box,
    adapt,
    descend,
    forget,
    invert,
    kernel,
    krylov,
    least_squares,
    linear,
    nearest,
    one_pass,
    project,
    reweighted,
    ridge_weights,
    smooth,
    total_least,
    with_intercept,
)

Rng = np.random.Generator


@dataclass(frozen=True)
class Truth:
    """A box, and what may be said about it; `parts` are what it is made of."""

    group: str
    name: str
    box: Box
    families: frozenset[str] = frozenset()
    none_is_right: bool = False
    can_be: bool = True  # whether "is" is right
    switch: tuple[int, str, str] | None = None
    parts: tuple["Truth", ...] = ()

    def is_right(self, relation: str, verdict: str, ties: list[str]) -> bool:
        """Return whether a statement about the box is right."""
        if relation == "none":
            return self.none_is_right or not self.families
        named = bool(self.families & {verdict, *ties})
        return named and (self.can_be or relation != "is")


def log_uniform(rng: Rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def members(rng: Rng, d: int, n: int) -> Truth:
    """Algorithms of a family, with parameters anywhere."""
    rate = log_uniform(rng, 0.002, 0.02)
    penalty = log_uniform(rng, 1e-3, 300)
    steps = int(rng.integers(1, 41))
    beta = float(rng.uniform(0.2, 0.9))
    short = int(rng.integers(1, 7))
    k = int(rng.integers(1, n - 1))
    width = log_uniform(rng, 0.3, 3)
    last = int(rng.integers(d + 1, n - 2))
    factor = float(rng.choice([rng.uniform(0.4, 0.95), rng.uniform(1.1, 1.6)]))
    fast = log_uniform(rng, 0.02, 0.3)
    table: list[tuple[str, str, Box]] = [
        ("ols", "ols", linear(least_squares)),
        ("ols", "ols with intercept", with_intercept(least_squares)),
        (
            "ridge",
            f"ridge({penalty})",
            linear(lambda x, y: ridge_weights(x, y, penalty)),
        ),
        (
            "ridge",
            f"ridge({penalty}) with intercept",
            with_intercept(lambda x, y: ridge_weights(x, y, penalty)),
        ),
        (
            "ridge",
            f"mean ridge({penalty})",
            linear(lambda x, y: ridge_weights(x, y, penalty * len(x))),
        ),
        ("gd", f"gd({rate}, {steps})", linear(lambda x, y: descend(x, y, rate, steps))),
        (
            "gd",
            f"gd({rate}, {steps}, 0.5)",
            linear(lambda x, y: descend(x, y, rate, steps, penalty=0.5)),
        ),
        (
            "gd",
            f"mean gd({fast}, {steps})",
            linear(lambda x, y: descend(x, y, fast, steps, mean=1)),
        ),
        (
            "heavy_ball",
            f"heavy_ball({rate}, {beta}, {steps + 1})",
            linear(lambda x, y: descend(x, y, rate / 2, steps + 1, momentum=beta)),
        ),
        (
            "nesterov",
            f"nesterov({rate}, {beta}, {steps + 1})",
            linear(
                lambda x, y: descend(
                    x, y, rate / 2, steps + 1, momentum=beta, nesterov=True
                )
            ),
        ),
        ("sgd", f"sgd({rate})", linear(lambda x, y: one_pass(x, y, rate))),
        (
            "sgd",
            f"sgd({rate}, 0.3)",
            linear(lambda x, y: one_pass(x, y, rate, penalty=0.3)),
        ),
        (
            "sgd",
            f"sgd({rate}) {2 + short % 4} epochs",
            linear(lambda x, y: one_pass(x, y, rate, epochs=2 + short % 4)),
        ),
        (
            "sgd",
            f"averaged sgd({rate})",
            linear(lambda x, y: one_pass(x, y, rate, averaged=True)),
        ),
        (
            "sgd",
            f"momentum sgd({rate}, {beta})",
            linear(lambda x, y: one_pass(x, y, rate, momentum=beta)),
        ),
        (
            "sgd",
            f"mini-batch sgd({rate})",
            linear(lambda x, y: one_pass(x, y, rate, batch=2)),
        ),
        ("kaczmarz", f"kaczmarz({beta})", linear(lambda x, y: project(x, y, beta))),
        (
            "rls",
            f"rls({0.5 + beta / 2}, {penalty})",
            linear(lambda x, y: forget(x, y, 0.5 + beta / 2, min(penalty, 10))),
        ),
        ("newton", f"newton({short})", linear(lambda x, y: invert(x, y, short))),
        ("knn", f"knn({k})", nearest(k)),
        ("knn", f"weighted knn({k})", nearest(k, weighted=True)),
        ("nadaraya_watson", f"nadaraya_watson({width})", smooth(width)),
        ("kernel_ridge", f"rbf ridge({width})", kernel(0.1, max(width, 0.7))),
        ("kernel_ridge", "quadratic ridge", kernel(log_uniform(rng, 0.1, 10))),
        (
            "shrunken",
            f"{factor} ols",
            linear(lambda x, y: factor * least_squares(x, y)),
        ),
        (
            "windowed_ols",
            f"ols of the last {last}",
            linear(lambda x, y: least_squares(x[-last:], y[-last:])),
        ),
        (
            "windowed_ols",
            f"ols of the first {last}",
            linear(lambda x, y: least_squares(x[:last], y[:last])),
        ),
        ("total_least_squares", "total least squares", linear(total_least)),
        (
            "huber",
            f"huber({width})",
            linear(
                lambda x, y: reweighted(
                    x, y, lambda r: np.minimum(1, width / np.maximum(r, 1e-12))
                )
            ),
        ),
        (
            "adam",
            f"adam({fast}, {steps})",
            linear(lambda x, y: adapt(x, y, fast, steps)),
        ),
        ("average", "average", linear(lambda x, y: x.T @ y / len(x))),
        ("mean", "mean", lambda x, y, q: float(y.mean())),
        ("zero", "zero", lambda x, y, q: 0.0),
    ]
    if d > 2:
        table.append(
            ("conjugate_gradients", "cg(2)", linear(lambda x, y: krylov(x, y, 2)))
        )
    family, name, box = table[rng.integers(len(table))]
    return Truth("member", name, box, frozenset({family}))


def extremes(rng: Rng, d: int, n: int) -> Truth:
    """Parameters beyond the ranges that are searched, where families coincide."""
    tiny, huge = log_uniform(rng, 1e-9, 1e-7), log_uniform(rng, 2e4, 1e6)
    steps, rate = int(rng.integers(70, 400)), log_uniform(rng, 5e-4, 5e-3)
    table = [
        (
            {"ols", "ridge"},
            f"ridge({tiny})",
            linear(lambda x, y: ridge_weights(x, y, tiny)),
        ),
        (
            {"ridge", "gd", "zero"},
            f"ridge({huge})",
            linear(lambda x, y: ridge_weights(x, y, huge)),
        ),
        (
            {"gd"},
            f"gd({rate}, {steps})",
            linear(lambda x, y: descend(x, y, rate, steps)),
        ),
        ({"mean", "knn"}, "knn(all)", nearest(n + 5)),
        (
            {"rls"},
            "rls(0.995)",
            linear(lambda x, y: forget(x, y, 0.995, 0.3)),
        ),
        ({"newton", "ols"}, "newton(14)", linear(lambda x, y: invert(x, y, 14))),
        (
            {"mean", "nadaraya_watson"},
            "nadaraya_watson(60)",
            smooth(60.0),
        ),
    ]
    families, name, box = table[rng.integers(len(table))]
    return Truth("extreme", name, box, frozenset(families))


def outsiders(rng: Rng, d: int, n: int) -> Truth:
    """Algorithms that no family describes.

    One is the limit of a family: Huber's loss with δ → 0 is the absolute deviation.
    """
    penalty, rate = log_uniform(rng, 0.05, 5), log_uniform(rng, 0.005, 0.03)
    features = rng.standard_normal((d, 40))
    angle = float(rng.uniform(1, 4))

    def relu(x, y, q):
        f = np.maximum(x @ features, 0)
        gram = f @ f.T + penalty * np.eye(len(x))
        return float(np.maximum(q @ features, 0) @ f.T @ np.linalg.solve(gram, y))

    def cubic(x, y, q):
        f = np.concatenate([x, x**3], 1)
        w = ridge_weights(f, y, penalty)
        return float(w @ np.concatenate([q, q**3]))

    def median_neighbors(x, y, q):
        return float(np.median(y[np.argsort(np.sum((x - q) ** 2, 1))[:5]]))

    def marginal(x, y):
        return x.T @ y / np.maximum(np.sum(x**2, 0), 1e-9) / x.shape[1]

    def leading(x, y):
        v = np.linalg.svd(x, full_matrices=False)[2][0]
        z = x @ v
        return v * (z @ y) / max(z @ z, 1e-12)

    def signs(x, y):
        w = np.zeros(x.shape[1])
        for a, b in zip(x, y, strict=True):
            w = w + 5 * rate * np.sign(b - w @ a) * a
        return w

    table: list[tuple[str, Box]] = [
        ("random ReLU features", relu),
        ("cubic ridge", cubic),
        ("median of neighbors", median_neighbors),
        ("median", lambda x, y, q: float(np.median(y))),
        ("tanh of ols", lambda x, y, q: float(np.tanh(least_squares(x, y) @ q))),
        (
            "clipped ols",
            lambda x, y, q: float(
                np.clip(least_squares(x, y) @ q, -np.abs(y).max(), np.abs(y).max())
            ),
        ),
        (
            "ols plus sine",
            lambda x, y, q: float(least_squares(x, y) @ q + np.sin(angle * q.sum())),
        ),
        ("marginal regression", linear(marginal)),
        ("first component", linear(leading)),
        ("sign LMS", linear(signs)),
        ("clipped SGD", linear(lambda x, y: one_pass(x, y, 3 * rate, clip=0.5))),
        (
            "least absolute deviations",
            linear(
                lambda x, y: reweighted(x, y, lambda r: 1 / np.maximum(r, 1e-3), 40)
            ),
        ),
        ("neighbors in the 1-norm", nearest(3, order=1)),
        (
            "ridge with penalty 1/n",
            linear(lambda x, y: ridge_weights(x, y, 5 * penalty / len(x) ** 2)),
        ),
        (
            "ols without the last",
            linear(
                lambda x, y: (
                    least_squares(x[:-1], y[:-1])
                    if len(x) > 1
                    else np.zeros(x.shape[1])
                )
            ),
        ),
        (
            "ols of the signs",
            lambda x, y, q: float(least_squares(np.sign(x), y) @ np.sign(q)),
        ),
        ("a constant", lambda x, y, q: 0.7),
        ("a sine", lambda x, y, q: float(np.sin(angle * q.sum() + y.sum()))),
        ("the last label", lambda x, y, q: float(y[-1])),
        ("a random projection", lambda x, y, q: float(features[:, 0] @ q)),
        ("|ols|", lambda x, y, q: float(abs(least_squares(x, y) @ q))),
    ]
    name, box = table[rng.integers(len(table))]
    limits = {"huber"} if name == "least absolute deviations" else set()
    return Truth("outsider", name, box, frozenset(limits), none_is_right=True)
