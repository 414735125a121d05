"""Black boxes with a known truth, drawn at random, for `calibration.py`.

Every box is a plain NumPy function of (x, y, query), written without the code of
`algoscope.identification`. A truth says which family names are right, whether "none" is
right, and whether "is" may be said.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Rng = np.random.Generator
Box = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Truth:
    """A box, and what may be said about it."""

    group: str
    name: str
    box: Box
    families: frozenset[str] = frozenset()
    none_is_right: bool = False
    can_be: bool = True  # whether "is" is right
    switch: tuple[int, str, str] | None = None
    parameters: dict[str, float] = field(default_factory=dict)

    def is_right(self, relation: str, verdict: str, ties: list[str]) -> bool:
        """Return whether a statement about the box is right."""
        if relation == "none":
            return self.none_is_right or not self.families
        named = bool(self.families & {verdict, *ties})
        return named and (self.can_be or relation != "is")


def log_uniform(rng: Rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def linear(weights: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Box:
    return lambda x, y, q: float(weights(x, y) @ q)


def least_squares(x, y):
    return np.linalg.lstsq(x, y, rcond=1e-12)[0]


def ridge_weights(x, y, penalty):
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)


def with_intercept(weights) -> Box:
    def box(x, y, q):
        mx, my = x.mean(0), y.mean()
        centered = x - mx if len(x) > 1 else np.zeros_like(x)
        return float(my + weights(centered, y - my) @ (q - mx))

    return box


def descend(x, y, rate, steps, *, momentum=0.0, nesterov=False, penalty=0.0, mean=0):
    w = v = np.zeros(x.shape[1])
    scale = 1 / len(x) if mean else 1.0
    for _ in range(steps):
        at = w + momentum * v if nesterov else w
        g = 2 * (scale * (x.T @ (x @ at - y)) + penalty * at)
        v = momentum * v - rate * g
        w = w + v
    return w


def one_pass(
    x,
    y,
    rate,
    *,
    penalty=0.0,
    epochs=1,
    momentum=0.0,
    averaged=False,
    batch=1,
    clip=0.0,
):
    w = v = total = np.zeros(x.shape[1])
    count = 0
    for _ in range(epochs):
        gradient = np.zeros(x.shape[1])
        for i in range(len(x)):
            g = 2 * (x[i] * (x[i] @ w - y[i]) + penalty * w)
            gradient = gradient + (np.clip(g, -clip, clip) if clip else g) / batch
            if (i + 1) % batch:
                continue
            v = momentum * v - rate * gradient
            w, gradient = w + v, np.zeros(x.shape[1])
            total, count = total + w, count + 1
    return total / max(count, 1) if averaged else w


def project(x, y, rate):
    w = np.zeros(x.shape[1])
    for a, b in zip(x, y, strict=True):
        w = w + rate * a * (b - a @ w) / max(a @ a, 1e-300)
    return w


def forget(x, y, forgetting, penalty):
    n = len(x)
    b = forgetting ** np.arange(n - 1, -1, -1)
    gram = (x * b[:, None]).T @ x + forgetting**n * penalty * np.eye(x.shape[1])
    return np.linalg.solve(gram, (x * b[:, None]).T @ y)


def invert(x, y, steps):
    s = x.T @ x
    m = s / max(np.linalg.norm(s @ s), 1e-300)
    for _ in range(steps):
        m = 2 * m - m @ s @ m
    return m @ x.T @ y


def krylov(x, y, steps):
    s, r = x.T @ x, x.T @ y
    w, p = np.zeros(len(r)), r
    start = r @ r
    for _ in range(steps):
        if r @ r <= 1e-26 * start or start == 0:
            break
        a = (r @ r) / (p @ s @ p)
        w, new = w + a * p, r - a * s @ p
        p, r = new + (new @ new) / (r @ r) * p, new
    return w


def adapt(x, y, rate, steps):
    w = m = v = np.zeros(x.shape[1])
    for t in range(1, steps + 1):
        g = 2 * x.T @ (x @ w - y) / len(x)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w


def nearest(k, *, weighted=False, order=2) -> Box:
    def box(x, y, q):
        far = np.linalg.norm(x - q, ord=order, axis=1)
        near = np.argsort(far, kind="stable")[:k]
        if not weighted:
            return float(y[near].mean())
        if np.any(far[near] == 0):
            return float(y[near][far[near] == 0].mean())
        return float(np.average(y[near], weights=far[near] ** -2.0))

    return box


def smooth(width) -> Box:
    def box(x, y, q):
        score = -np.sum((x - q) ** 2, 1) / (2 * width**2)
        w = np.exp(score - score.max())
        return float(w @ y / w.sum())

    return box


def kernel(penalty, width=None) -> Box:
    def k(a, b):
        if width is None:
            return (1 + a @ b.T) ** 2
        return np.exp(-np.sum((a[:, None] - b[None]) ** 2, -1) / (2 * width**2))

    def box(x, y, q):
        gram = k(x, x) + (penalty + 1e-12) * np.eye(len(x))
        return float(k(q[None], x)[0] @ np.linalg.solve(gram, y))

    return box


def reweighted(x, y, rule, rounds=80):
    w = least_squares(x, y)
    if len(x) <= x.shape[1]:
        return w
    for _ in range(rounds):
        a = rule(np.abs(x @ w - y))
        gram = (x * a[:, None]).T @ x
        gram = gram + 1e-10 * np.trace(gram) * np.eye(x.shape[1])
        w = np.linalg.solve(gram, (x * a[:, None]).T @ y)
    return w


def total_least(x, y):
    if len(x) <= x.shape[1]:
        return least_squares(x, y)
    v = np.linalg.svd(np.concatenate([x, y[:, None]], 1))[2][-1]
    return -v[:-1] / v[-1]


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


def mixtures(rng: Rng, d: int, n: int) -> Truth:
    """A weighted mean of two algorithms: none, or one of the two.

    A mixture with zero is a shrunken algorithm, so it can be one of the families.
    """
    while True:
        one, two = members(rng, d, n), members(rng, d, n)
        if one.families != two.families:
            break
    share = float(rng.uniform(0.3, 0.7))
    return Truth(
        "mixture",
        f"{share} {one.name} + {two.name}",
        lambda x, y, q: share * one.box(x, y, q) + (1 - share) * two.box(x, y, q),
        one.families | two.families | {"shrunken"},
        none_is_right=True,
        can_be="zero" in one.families | two.families,
    )


def switches(rng: Rng, d: int, n: int) -> Truth:
    """One algorithm up to some n, another one after."""
    while True:
        one, two = members(rng, d, n), members(rng, d, n)
        if one.name != two.name:
            break
    at = int(rng.integers(d, n - 3))
    (first,), (second,) = one.families, two.families
    return Truth(
        "switch",
        f"{one.name} to {at}, then {two.name}",
        lambda x, y, q: (one if len(x) <= at else two).box(x, y, q),
        one.families | two.families,
        none_is_right=True,
        can_be=False,
        switch=(at, first, second),
    )


def noisy(rng: Rng, d: int, n: int) -> Truth:
    """A member whose answers have noise."""
    one, size = members(rng, d, n), log_uniform(rng, 1e-3, 0.1)
    draws = np.random.default_rng(int(rng.integers(2**31)))
    return Truth(
        "noisy",
        f"{one.name} + {size} noise",
        lambda x, y, q: one.box(x, y, q) + size * draws.standard_normal(),
        one.families,
    )


def rounded(rng: Rng, d: int, n: int) -> Truth:
    """A member whose answers are rounded."""
    one, digits = members(rng, d, n), int(rng.integers(1, 4))
    return Truth(
        "rounded",
        f"{one.name} to {digits} digits",
        lambda x, y, q: round(one.box(x, y, q), digits),
        one.families,
        can_be=True,
    )


def partial_boxes(rng: Rng, d: int, n: int) -> Truth:
    """A member that answers for some n only."""
    one, first = members(rng, d, n), int(rng.integers(2, 5))
    last = int(rng.integers(n - 3, n + 1))
    return Truth(
        "partial",
        f"{one.name} for n = {first}–{last}",
        lambda x, y, q: one.box(x, y, q) if first <= len(x) <= last else float("nan"),
        one.families,
    )


def conditional(rng: Rng, d: int, n: int) -> Truth:
    """A member that does something else on one kind of data."""
    one = members(rng, d, n)

    def outlier(x, y, q):
        wild = np.max(np.abs(y)) > 6 * np.median(np.abs(y)) + 1
        return 0.0 if wild else one.box(x, y, q)

    def shifted(x, y, q):
        far = np.linalg.norm(x.mean(0)) > 0.8 * np.sqrt(d) and len(x) > 2
        return float(y.mean()) if far else one.box(x, y, q)

    def lookup(x, y, q):
        seen = np.all(x == q, axis=1)
        return float(y[seen][-1]) if seen.any() else one.box(x, y, q)

    kind = [outlier, shifted, lookup][rng.integers(3)]
    return Truth(
        "conditional",
        f"{one.name}, but {kind.__name__}",
        kind,
        one.families,
        none_is_right=True,
        can_be=False,
    )


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


GROUPS = (
    (members, 0.2),
    (extremes, 0.08),
    (mixtures, 0.12),
    (switches, 0.12),
    (noisy, 0.1),
    (rounded, 0.06),
    (partial_boxes, 0.06),
    (conditional, 0.1),
    (outsiders, 0.16),
)


def draw(number: int, seed: int) -> tuple[Truth, int, int]:
    """Return box `number` of a seed, with d and the most examples."""
    rng = np.random.default_rng([seed, number])
    d = int(rng.integers(2, 4))
    n = int(rng.integers(2 * d + 4, 2 * d + 7))
    kinds, shares = zip(*GROUPS, strict=True)
    return kinds[rng.choice(len(kinds), p=shares)](rng, d, n), d, n
