"""Families that are filters of the singular values (see `prefixes`).

f(λ) is what the algorithm puts in place of 1/λ, where λ are the eigenvalues of XᵀX.
An iterative one yields f after 1, 2, … steps, or is a formula for k of them. Rates are
those of the loss Σᵢ (wᵀxᵢ − yᵢ)²; of the mean loss, which others use, where the name
says so.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from algoscope.identification.prefixes import Column, Filters, Prefixes, Spectrum

NUM_PENALTIES = 17  # of the mixture, evenly spaced on the log scale

Steps = Iterator[Filters]
Spread = Float[np.ndarray, "#points #datasets #prefixes #dim"]  # one value for many


def zero(spectrum: Spectrum, prefixes: Prefixes) -> np.ndarray:
    """w = 0."""
    return np.zeros_like(spectrum.values)


def average(spectrum: Spectrum, prefixes: Prefixes) -> np.ndarray:
    """w = XᵀY/n."""
    return 1 / np.maximum(prefixes.sizes, 1)[None, :, None] + 0 * spectrum.values


def ols(spectrum: Spectrum, prefixes: Prefixes) -> np.ndarray:
    """Minimum-norm least squares: 1/λ."""
    return spectrum.inverses


def shrunken_ols(spectrum: Spectrum, prefixes: Prefixes, factor: Column) -> Filters:
    """c times least squares."""
    return factor * spectrum.inverses


def ridge(spectrum: Spectrum, prefixes: Prefixes, penalty: Column) -> Filters:
    """The penalty λ‖w‖²."""
    return 1 / (spectrum.values + penalty)


def mean_ridge(spectrum: Spectrum, prefixes: Prefixes, penalty: Column) -> Filters:
    """The penalty λn‖w‖²: ridge regression on the mean loss."""
    return 1 / (spectrum.safe_values + penalty * prefixes.sizes[None, :, None])


def shrunken_ridge(
    spectrum: Spectrum, prefixes: Prefixes, penalty: Column, factor: Column
) -> Filters:
    """c times ridge regression."""
    return factor / (spectrum.values + penalty)


def optimal_gd(
    spectrum: Spectrum, prefixes: Prefixes, noise_to_prior: Column
) -> Filters:
    """One step with the rate of least risk: 1/(n + 1 + d + σ²/τ²)."""
    sizes = prefixes.sizes[None, :, None] + 1 + prefixes.dim
    return 1 / (sizes + noise_to_prior) + 0 * spectrum.values


def gd(
    spectrum: Spectrum,
    prefixes: Prefixes,
    steps: int,
    learning_rate: Column,
    penalty: Column | float = 0.0,
) -> Filters:
    """Steps w ← w − 2α (Sw − b + λw)."""
    return _after(steps, 2 * learning_rate, spectrum.values[None] + penalty)


def mean_gd(
    spectrum: Spectrum,
    prefixes: Prefixes,
    steps: int,
    learning_rate: Column,
    penalty: Column | float = 0.0,
) -> Filters:
    """Gradient descent on the mean loss: w ← w − 2α ((Sw − b)/n + λw)."""
    sizes = np.maximum(prefixes.sizes, 1)[None, :, None]
    curvature = spectrum.values[None] + penalty * sizes
    return _after(steps, 2 * learning_rate / sizes, curvature)


def _after(steps: int, rate: Spread, curvature: Spread) -> Filters:
    """Return f after k steps f ← f + r (1 − cf) from 0: (1 − (1 − rc)ᵏ)/c."""
    size = rate * curvature
    small = -np.expm1(steps * np.log1p(-np.minimum(size, 0.5)))  # keeps its digits
    reached = np.where(size < 0.5, small, 1 - (1 - size) ** steps)
    flat = curvature == 0
    return np.where(flat, steps * rate, reached / np.where(flat, 1, curvature))


def heavy_ball(
    spectrum: Spectrum, prefixes: Prefixes, learning_rate: Column, momentum: Column
) -> Steps:
    """Polyak's momentum: v ← βv − 2α (Sw − b), w ← w + v."""
    f = v = np.zeros_like(spectrum.values)
    while True:
        v = momentum * v + 2 * learning_rate * (1 - spectrum.values * f)
        f = f + v
        yield f


def nesterov(
    spectrum: Spectrum, prefixes: Prefixes, learning_rate: Column, momentum: Column
) -> Steps:
    """Nesterov's momentum: the gradient is taken at w + βv."""
    f = v = np.zeros_like(spectrum.values)
    while True:
        ahead = f + momentum * v
        v = momentum * v + 2 * learning_rate * (1 - spectrum.values * ahead)
        f = f + v
        yield f


def gd_plus_plus(
    spectrum: Spectrum, prefixes: Prefixes, learning_rate: Column, curvature: Column
) -> Steps:
    """GD++ (von Oswald et al., 2023): t ← t (1 − γt²λ), f ← f + 2αt² (1 − λf)."""
    f, t = np.zeros_like(spectrum.values), np.ones_like(spectrum.values)
    while True:
        t = t * (1 - curvature * t**2 * spectrum.values)
        f = f + 2 * learning_rate * t**2 * (1 - spectrum.values * f)
        yield f


def chebyshev(
    spectrum: Spectrum, prefixes: Prefixes, low: Column, high: Column
) -> Steps:
    """The Chebyshev semi-iteration for eigenvalues of S/n in [low, high]."""
    sizes = np.maximum(prefixes.sizes, 1)[None, :, None]
    values = spectrum.values / sizes
    middle, half_square = (low + high) / 2, ((high - low) / 2) ** 2
    q = 1 / middle
    v = q / sizes + 0 * values
    f = v
    while True:
        yield f
        following = 1 / (2 * middle - half_square * q)
        rest = 1 / sizes - values * f
        v = q * following * half_square * v + 2 * following * rest
        f, q = f + v, following


def newton(spectrum: Spectrum, prefixes: Prefixes) -> Steps:
    """M ← 2M − MSM from M₀ = S/‖SSᵀ‖."""
    values = spectrum.values[None]
    norm = np.sqrt(np.sum(values**4, axis=-1, keepdims=True))
    f = values / np.where(norm > 0, norm, 1)
    while True:
        f = 2 * f - values * f**2
        yield f


def conjugate_gradients(spectrum: Spectrum, prefixes: Prefixes) -> Steps:
    """The w in span{b, Sb, …, Sᵏ⁻¹b} of least loss, in the directions of V."""
    values, b = spectrum.values, spectrum.moments
    w, rest, v = np.zeros_like(b), b, b
    total, small = np.sum(b**2, axis=-1), np.sum(values, axis=-1)
    safe = np.where(spectrum.seen & (b != 0), b, 1)
    rounding = 10 * prefixes.dim * np.finfo(float).eps
    while True:
        size, bent = np.sum(rest**2, axis=-1), np.sum(values * v**2, axis=-1)
        flat = rounding * small * np.sum(v**2, axis=-1)
        active = (size > rounding**2 * total) & (bent > flat)
        length = np.where(active, size, 0) / np.where(active, bent, 1)
        w = w + length[..., None] * v
        following = rest - length[..., None] * values * v
        turn = np.where(active, np.sum(following**2, axis=-1), 0)
        turn = turn / np.where(active, size, 1)
        v = np.where(active[..., None], following + turn[..., None] * v, v)
        rest = following
        yield (w / safe)[None]


def total_least_squares(spectrum: Spectrum, prefixes: Prefixes) -> np.ndarray:
    """1/(λ − σ²): σ is the least singular value of (X, Y). For n ≤ d, least squares."""
    joined = np.concatenate([prefixes.x, prefixes.y[..., None]], axis=-1)
    least = np.zeros(prefixes.y.shape)
    for n in range(prefixes.dim + 1, prefixes.num_examples):
        least[:, n] = np.linalg.svd(joined[:, :n], compute_uv=False)[:, -1] ** 2
    return np.where(spectrum.seen, 1 / (spectrum.safe_values - least[..., None]), 0.0)


def bayesian_mixture(
    spectrum: Spectrum, prefixes: Prefixes, penalty: Column, spread: Column
) -> Filters:
    """Ridge regression averaged over its penalty, as when the noise is not known.

    The prior of log λ is uniform within a factor `spread` of `penalty`; w ~ N(0, I).
    """
    values, moments = spectrum.values, spectrum.moments
    labels = np.cumsum(prefixes.y**2, axis=1)
    total = np.concatenate([np.zeros_like(labels[:, :1]), labels[:, :-1]], axis=1)
    sizes = prefixes.sizes[None, :, None]
    scores, filters = [], []
    for place in np.linspace(-1, 1, NUM_PENALTIES):
        noise = penalty * spread**place
        filters.append(1 / (values + noise))
        fit = np.sum(moments**2 * filters[-1], axis=-1, keepdims=True)
        volume = np.sum(np.log1p(values / noise), axis=-1, keepdims=True)
        error = (total[..., None] - fit) / noise
        scores.append(-0.5 * (volume + sizes * np.log(noise) + error))
    raw = np.stack(scores)
    weights = np.exp(raw - raw.max(axis=0))
    weights /= weights.sum(axis=0)
    return np.sum(weights * np.stack(filters), axis=0)
