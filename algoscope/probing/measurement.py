"""What one stack of probes achieves: errors per repeat, layer and prefix.

The mean of every block of test datasets is kept, so that intervals are those of a
bootstrap over repeats and blocks, and differences between probes on the same datasets
are paired. Results that were saved without blocks have intervals over repeats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from algoscope.comparison.intervals import interval_of, over_seeds, replicates
from algoscope.foundation.validation import InvalidValueError, require_choice

LEARNED = "learned"  # the place of results that were saved without one
RESAMPLES = 1000

Measure = Literal["error", "relative"]
PerLayer = Float[np.ndarray, " layers"]


class MeanWithInterval(NamedTuple):
    """A mean over repeats per layer, with 95 % intervals: NaN for a single repeat."""

    mean: PerLayer
    low: PerLayer
    high: PerLayer


def mean_with_interval(
    samples: Float[np.ndarray, "repeats layers"],
) -> MeanWithInterval:
    """Return mean ± t s/√r over r repeats, with Student's t for r − 1."""
    mean = samples.mean(axis=0)
    if len(samples) < 2:
        unknown = np.full_like(mean, np.nan)
        return MeanWithInterval(mean, unknown, unknown)
    spread = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    margin = stats.t.ppf(0.975, len(samples) - 1) * spread
    return MeanWithInterval(mean, mean - margin, mean + margin)


@dataclass(frozen=True)
class Measurement:
    """Probes of one kind for one target in one learner."""

    learner: str
    target: str
    kind: str
    layers: tuple[int, ...]
    error: Float[np.ndarray, "repeats layers prefixes"]
    variance: Float[np.ndarray, "repeats prefixes"]  # error of predicting the mean
    attention: Float[np.ndarray, "repeats layers prefixes time"]  # α
    place: str = LEARNED
    blocks: Float[np.ndarray, "repeats blocks layers prefixes"] | None = None
    validation: Float[np.ndarray, "repeats layers prefixes"] | None = None
    history: Float[np.ndarray, "repeats moments layers prefixes"] | None = None

    @property
    def relative(self) -> Float[np.ndarray, "repeats layers prefixes"]:
        """The error over the target's variance: 1 is no better than its mean.

        It is NaN where the target is constant.
        """
        known = np.where(self.variance > 0, self.variance, np.nan)
        return self.error / known[:, None]

    def samples(
        self, measure: Measure = "relative"
    ) -> Float[np.ndarray, "repeats layers"]:
        """Return the mean over prefixes, for each repeat and layer."""
        require_choice("measure", measure, ("error", "relative"))
        return getattr(self, measure).mean(axis=2)

    def resampled(
        self, measure: Measure = "relative", prefixes: Sequence[int] | None = None
    ) -> Float[np.ndarray, "resamples layers"]:
        """Return bootstrap means over prefixes (by index), repeats and test datasets.

        They are paired with those of other probes on the same datasets.
        """
        if self.blocks is None:
            remedy = "Probe again: it was saved without errors of blocks of datasets."
            raise InvalidValueError("measurement", "hold blocks", "none", remedy)
        chosen = slice(None) if prefixes is None else list(prefixes)
        errors = self.blocks.astype(np.float64)
        if measure == "relative":
            errors = (
                errors
                / np.where(self.variance > 0, self.variance, np.nan)[:, None, None]
            )
        each = [
            replicates(repeat, num_resamples=RESAMPLES)
            for repeat in errors[..., chosen].mean(axis=-1)
        ]
        return over_seeds(np.stack(each))

    def per_layer(self, measure: Measure = "relative") -> MeanWithInterval:
        """Return the mean over prefixes, with its interval."""
        samples = self.samples(measure)
        if self.blocks is None:
            return mean_with_interval(samples)
        low, high = interval_of(self.resampled(measure))
        return MeanWithInterval(samples.mean(axis=0), low, high)

    def best_layer(self, measure: Measure = "relative") -> int:
        """Return the index in `layers` of the least error, on validation datasets."""
        if self.validation is None:
            return int(np.argmin(self.samples(measure).mean(axis=0)))
        errors = self.validation
        if measure == "relative":
            errors = errors / np.where(self.variance > 0, self.variance, 1)[:, None]
        return int(np.argmin(errors.mean(axis=(0, 2))))
