"""Position codes: what lets a head follow a timestep map (paper app. C.4.1).

A head follows K when its score is high on K(i) and low elsewhere, by more than the
exponential can resolve: its weights are then exactly 1/|K(i)| and 0. Where K(i)
is empty, the imaginary timestep with its score of zero takes all the weight, and the
head reads zero.

Scores come from units in the position embedding. `OneHot` takes one unit per timestep
and follows any map. `Compact` takes three, i/T, (i/T)² and the parity of i; with T a
power of two its scores are computed without rounding. One code serves all layers,
where the paper takes 2T new units for each.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from algoscope.construction.language.timesteps import Timesteps
from algoscope.foundation.validation import InvalidValueError

# Linear in the units of the code; the last column is constant.
Scoring = Float[np.ndarray, "key units"]


@runtime_checkable
class Code(Protocol):
    """A position code for sequences of up to `time` tokens."""

    @property
    def units(self) -> Float[np.ndarray, "time code"]:
        """The code of every timestep."""
        ...

    def scoring(
        self, timesteps: Timesteps, gap: float, *, content: bool = False
    ) -> tuple[Scoring, Scoring]:
        """Return the queries and keys of a head that follows `timesteps`.

        Scores are ≥ gap/2 on K(i) and ≤ −gap/2 elsewhere; with `content`, 0 on K(i)
        and ≤ −gap elsewhere, to add scores of the content to.
        """
        ...


@dataclass(frozen=True)
class OneHot:
    """One unit per timestep."""

    time: int

    @property
    def units(self) -> Float[np.ndarray, "time time"]:
        """The unit vectors."""
        return np.eye(self.time)

    def scoring(
        self, timesteps: Timesteps, gap: float, *, content: bool = False
    ) -> tuple[Scoring, Scoring]:
        """Return queries that list the scores of all timesteps, and unit keys."""
        inside = timesteps.average(self.time) > 0
        high, low = (0.0, -gap) if content else (gap / 2, -gap / 2)
        none = np.zeros((self.time, 1))
        queries = np.where(inside, high, low).T
        return np.hstack([queries, none]), np.hstack([np.eye(self.time), none])


@dataclass(frozen=True)
class Compact:
    """Three units: i/T, (i/T)², parity, for T the next power of two."""

    time: int

    @property
    def period(self) -> int:
        """T: the power of two at or above `time`."""
        return 1 << (self.time - 1).bit_length()

    @property
    def units(self) -> Float[np.ndarray, "time 3"]:
        """The code of every timestep, without rounding."""
        i = np.arange(self.time) / self.period
        return np.stack([i, i * i, np.arange(self.time) % 2], axis=1)

    def scoring(
        self, timesteps: Timesteps, gap: float, *, content: bool = False
    ) -> tuple[Scoring, Scoring]:
        """Return f(i) = (1, i, i², parity) as key, and its quadratic form as query."""
        quadratic = timesteps.quadratic(self.time)
        if quadratic is None or content:
            rule = "be a map that three units can express"
            remedy = "Use the one-hot code."
            raise InvalidValueError("timesteps", rule, str(timesteps), remedy)
        features = np.zeros((4, 4))
        features[0, 3] = 1
        features[[1, 2, 3], [0, 1, 2]] = self.period, self.period**2, 1
        return gap * quadratic @ features, features

    def exact(self, digits: int) -> bool:
        """Whether scores fit into this many binary digits, and so have no error."""
        return 2 * self.period**3 <= 2**digits


def choose_code(maps: Iterable[Timesteps], time: int, digits: int) -> Code:
    """Return the three-unit code where it is exact, the one-hot code elsewhere."""
    compact = Compact(time)
    simple = all(each.quadratic(time) is not None for each in maps)
    return compact if simple and compact.exact(digits) else OneHot(time)
