"""What a predictor answered, and how far hypotheses are from it.

The distance between a hypothesis A and the predictor f is

    ρ = mean over datasets i and prefixes n ≥ 1 of (f − A)² / cᵢ,

where cᵢ is the mean square of the labels of dataset i plus that of the predictions, so
that a dataset does not count more because its numbers are large. ρ = 0 means that both
are the same function.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from algoscope.comparison.predict import Inputs, Labels
from algoscope.identification.prefixes import Prefixes

LARGEST_RESIDUAL = 1e6  # larger residuals, and NaN, count as this


@dataclass(frozen=True, eq=False)
class Observations:
    """Datasets by suite, and what the predictor answered at every position of each."""

    x: Inputs
    y: Labels
    predictions: Labels  # NaN where there is no answer
    suite: tuple[str, ...]
    again: Labels | None = None  # a second answer to the same question, or NaN

    @cached_property
    def noise(self) -> Labels:
        """(f − f′)²/2cᵢ of two answers to one question, NaN where it was asked once."""
        if self.again is None:
            return np.full_like(self.predictions, np.nan)
        twice = (self.predictions - self.again) ** 2 / (2 * self.scales[:, None])
        return np.where(self.counted, twice, np.nan)

    @cached_property
    def prefixes(self) -> Prefixes:
        """The datasets, as families see them."""
        return Prefixes(self.x, self.y)

    @cached_property
    def counted(self) -> Bool[np.ndarray, "datasets examples"]:
        """Where there is an answer that counts."""
        counted = np.isfinite(self.predictions)
        counted[:, 0] = False  # before the first example nothing has been learned
        return counted

    @cached_property
    def scales(self) -> Float[np.ndarray, " datasets"]:
        """cᵢ, the size of the numbers of each dataset."""
        size = np.where(self.counted, self.predictions, 0) ** 2
        sums = np.sum(size, axis=1) / np.maximum(self.counted.sum(axis=1), 1)
        scale = sums + np.mean(self.y**2, axis=1)
        return np.where(scale > 0, scale, 1)

    @cached_property
    def suites(self) -> dict[str, Int[np.ndarray, " some"]]:
        """The indices of the datasets of every suite that has answers."""
        names = dict.fromkeys(self.suite)
        answered = np.asarray(self.counted.any(axis=1))
        found = {
            name: np.array(
                [i for i, s in enumerate(self.suite) if s == name and answered[i]], int
            )
            for name in names
        }
        return {name: rows for name, rows in found.items() if len(rows)}

    @cached_property
    def shares(self) -> Float[np.ndarray, " datasets"]:
        """What each dataset counts: every suite the same, 1 in total."""
        shares = np.zeros(len(self.x))
        for rows in self.suites.values():
            shares[rows] = 1 / (len(rows) * len(self.suites))
        return shares

    def squares(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some datasets examples"]:
        """Return (A − f)²/cᵢ, 0 where there is no answer."""
        return self.residuals(hypotheses) ** 2

    def residuals(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some datasets examples"]:
        """Return (A − f)/√cᵢ, 0 where there is no answer."""
        with np.errstate(invalid="ignore", over="ignore"):
            differences = hypotheses - np.where(self.counted, self.predictions, 0)
            differences = differences / np.sqrt(self.scales)[:, None]
        numbers = np.nan_to_num(differences, nan=LARGEST_RESIDUAL)
        bounded = np.clip(numbers, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
        return np.where(self.counted, bounded, 0.0)

    def bounded(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some datasets examples"]:
        """Return r/√(1 + r²) of the residuals r, for fitting.

        Where an iteration diverges, a slightly different rate is off by orders of
        magnitude; such answers shall not outweigh all others.
        """
        found = self.residuals(hypotheses)
        return found / np.sqrt(1 + found**2)

    def per_dataset(
        self, squares: Float[np.ndarray, "datasets examples"]
    ) -> Float[np.ndarray, " datasets"]:
        """Return ρ of every dataset: the mean over its answered prefixes."""
        return squares.sum(axis=1) / np.maximum(self.counted.sum(axis=1), 1)

    @cached_property
    def parts(self) -> list[Bool[np.ndarray, "datasets examples"]]:
        """The answers of each suite, those at each n, and all of them."""
        positions = np.arange(self.counted.shape[1])
        parts = [
            self.counted & np.isin(np.arange(len(self.x)), rows)[:, None]
            for rows in self.suites.values()
        ]
        parts += [self.counted & (positions == n) for n in positions[1:]]
        parts.append(self.counted)
        return [part for part in parts if part.any()]

    def weighted(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some values"]:
        """Return bounded residuals whose sum of squares is nearly ρ, for fitting.

        Every suite counts the same.
        """
        counted = np.maximum(self.counted.sum(axis=1), 1)
        factors = np.sqrt(self.shares / counted)
        flat = self.bounded(hypotheses) * factors[:, None]
        return flat.reshape(*flat.shape[:-2], -1)

    def take(self, index: slice | np.ndarray) -> "Observations":
        """Return the datasets at these indices."""
        rows = np.arange(len(self.x))[index]
        return Observations(
            self.x[rows],
            self.y[rows],
            self.predictions[rows],
            tuple(self.suite[i] for i in rows),
            None if self.again is None else self.again[rows],
        )

    def only(self, *suites: str) -> "Observations":
        """Return the datasets of these suites."""
        return self.take(np.array([s in suites for s in self.suite], bool))

    def between(self, first: int, last: int) -> "Observations":
        """Return the same datasets, answered after `first` to `last` examples only."""
        kept = np.full_like(self.predictions, np.nan)
        part = slice(first, last + 1)
        kept[:, part] = self.predictions[:, part]
        found = Observations(self.x, self.y, kept, self.suite, self.again)
        object.__setattr__(found, "prefixes", self.prefixes)
        return found

    def join(self, other: "Observations") -> "Observations":
        """Return the datasets of both."""
        return Observations(
            np.concatenate([self.x, other.x]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.predictions, other.predictions]),
            self.suite + other.suite,
            None
            if self.again is None
            else np.concatenate([self.again, np.full_like(other.y, np.nan)]),
        )
