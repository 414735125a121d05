"""Datasets, and what families of algorithms compute from their prefixes only once.

Most linear learners are *filters*. With the singular value decomposition of the first
n inputs, X = U diag(s) Vᵀ, their weights are w = V diag(f(s²)) Vᵀ XᵀY for some function
f: 1/s² for least squares, 1/(s² + λ) for ridge regression, a polynomial for k steps of
gradient descent. The prediction at the next input x is then

    Σⱼ f(sⱼ²) sⱼ (Uᵀy)ⱼ (Vᵀx)ⱼ

so that a thousand parameters cost one decomposition per prefix. All is float64.

Axes: `prefixes` of 0, 1, …, N − 1 examples; the query after n examples is the next x.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from algoscope.comparison.predict import Inputs, Labels

ROUNDING = 1e-13  # singular values below this share of the largest are rounding

Directions = Float[np.ndarray, "datasets prefixes dim"]
Filters = Float[np.ndarray, "points datasets prefixes dim"]
Answers = Float[np.ndarray, "points datasets prefixes"]
Column = Float[np.ndarray, "points 1 1 1"]  # a parameter, shaped to multiply filters


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The decomposition of every prefix; directions that no example has are 0."""

    values: Directions  # λ = s², the eigenvalues of XᵀX
    terms: Directions  # sⱼ (Uᵀy)ⱼ (Vᵀx)ⱼ, what a filter multiplies
    moments: Directions  # (VᵀXᵀY)ⱼ = sⱼ (Uᵀy)ⱼ
    offsets: Labels  # what is added to the sum: 0, or ȳ with an intercept

    @cached_property
    def seen(self) -> Bool[np.ndarray, "datasets prefixes dim"]:
        """Which directions some example has."""
        return self.values > 0

    @cached_property
    def safe_values(self) -> Directions:
        """λ, and 1 in directions that no example has."""
        return np.where(self.seen, self.values, 1.0)

    @cached_property
    def inverses(self) -> Directions:
        """1/λ, and 0 in directions that no example has: least squares."""
        return np.where(self.seen, 1 / self.safe_values, 0.0)

    def predict(self, filters: Filters) -> Answers:
        """Return the predictions of filters f(λ)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.einsum("pbnd,bnd->pbn", filters, self.terms) + self.offsets


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Datasets whose every prefix is a question about the next input."""

    x: Inputs
    y: Labels

    @property
    def num_examples(self) -> int:
        """N, the length of the datasets."""
        return self.x.shape[1]

    @property
    def dim(self) -> int:
        """d."""
        return self.x.shape[2]

    @cached_property
    def sizes(self) -> Float[np.ndarray, " prefixes"]:
        """n = 0, 1, …, N − 1."""
        return np.arange(self.num_examples, dtype=float)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The decomposition of the examples as they are."""
        zero = np.zeros_like(self.x)
        return decompose(self.x, self.y, zero, zero[:, :, 0])

    @cached_property
    def centered(self) -> Spectrum:
        """The decomposition of the examples minus their mean: with an intercept."""
        return decompose(self.x, self.y, self.mean_x, self.mean_y)

    @cached_property
    def mean_x(self) -> Inputs:
        """x̄ of every prefix, 0 without examples."""
        return _means(self.x)

    @cached_property
    def mean_y(self) -> Labels:
        """ȳ of every prefix, 0 without examples."""
        return _means(self.y)

    @cached_property
    def squares(self) -> Float[np.ndarray, "datasets examples examples"]:
        """‖xᵢ − xⱼ‖²."""
        return np.sum((self.x[:, :, None] - self.x[:, None]) ** 2, axis=-1)

    @cached_property
    def products(self) -> Float[np.ndarray, "datasets examples examples"]:
        """xᵢᵀxⱼ."""
        return np.einsum("bid,bjd->bij", self.x, self.x)

    @cached_property
    def grams(self) -> Float[np.ndarray, "datasets prefixes dim dim"]:
        """XᵀX of every prefix."""
        return _sums(self.x[..., :, None] * self.x[..., None, :])

    @cached_property
    def moments(self) -> Directions:
        """XᵀY of every prefix."""
        return _sums(self.x * self.y[..., None])


def _sums(values: np.ndarray) -> np.ndarray:
    """Return sums over the examples before each position."""
    sums = np.cumsum(values, axis=1)
    return np.concatenate([np.zeros_like(sums[:, :1]), sums[:, :-1]], axis=1)


def _means(values: np.ndarray) -> np.ndarray:
    """Return means over the examples before each position, 0 without examples."""
    sizes = np.maximum(np.arange(values.shape[1]), 1)
    return _sums(values) / sizes.reshape(1, -1, *[1] * (values.ndim - 2))


def decompose(x: Inputs, y: Labels, mean_x: Inputs, mean_y: Labels) -> Spectrum:
    """Return the decomposition of every prefix minus its mean.

    Singular values count as 0 relative to those of the inputs before the mean is
    subtracted: one example minus itself leaves nothing but rounding.
    """
    values, moments, queries = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    sizes = np.sqrt(np.cumsum(np.sum(x**2, axis=2), axis=1))
    for n in range(1, x.shape[1]):
        inputs = x[:, :n] - mean_x[:, n, None]
        labels = y[:, :n] - mean_y[:, n, None]
        u, s, vt = np.linalg.svd(inputs, full_matrices=False)
        s = np.where(s > ROUNDING * max(x.shape[1:]) * sizes[:, n - 1, None], s, 0.0)
        k = s.shape[1]
        values[:, n, :k] = s**2
        moments[:, n, :k] = s * np.einsum("bik,bi->bk", u, labels)
        queries[:, n, :k] = np.einsum("bkd,bd->bk", vt, x[:, n] - mean_x[:, n])
    return Spectrum(values, moments * queries, moments, mean_y)
