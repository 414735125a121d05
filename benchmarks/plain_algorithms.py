"""Learning algorithms in plain NumPy, as a user would write them, for `truths.py`.

They share no code with `algoscope`. Weights are a function of (x, y), a box is one of
(x, y, query).
"""

from collections.abc import Callable

import numpy as np

Box = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


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
