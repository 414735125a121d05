"""Timestep maps K, and position codes that let a head follow them (app. C.1, C.4.1).

A map says which timesteps each timestep reads. It has an exact meaning, the matrix that
averages over K(i), and, if it is simple enough, a score that separates K(i) from the
rest and is quadratic in i and j.

A head follows K when its score is high on K(i) and low elsewhere, by more than the
exponential can resolve: its weights are then exactly 1/|K(i)| and 0. Where K(i)
is empty, the imaginary timestep with its score of zero takes all the weight, and the
head reads zero.

Scores come from units in the position embedding. `OneHot` takes one unit per timestep
and follows any map. `Compact` takes three, i/T, (i/T)² and the parity of i, which can
express the quadratic scores; with T a power of two they are computed without rounding.
One code serves all layers, where the paper takes 2T new units for each.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from algoscope.foundation.validation import InvalidValueError, require_at_least

Average = Float[np.ndarray, "time time"]
Quadratic = Float[np.ndarray, "4 4"]
# Linear in the units of a code; the last column is constant.
Scoring = Float[np.ndarray, "key units"]


def _quadratic(entries: dict[tuple[int, int], float]) -> Quadratic:
    matrix = np.zeros((4, 4))
    for place, value in entries.items():
        matrix[place] = value
    return matrix


@runtime_checkable
class Timesteps(Protocol):
    """A map K: which timesteps each timestep reads."""

    def average(self, time: int) -> Average:
        """Return the matrix whose row i averages over K(i); zero where it is empty."""
        ...

    def quadratic(self, time: int) -> Quadratic | None:
        """Return S such that f(j)ᵀ S f(i) is ≥ ½ for j in K(i) and ≤ −½ for others.

        f(i) = (1, i, i², parity of i). None if there is no such S.
        """
        ...


@dataclass(frozen=True)
class Earlier:
    """K(i) = {i − steps}: the timestep itself (0), the one before it (1), ….

    Example:
        >>> Earlier(1).average(3).tolist()
        [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """

    steps: int

    def __post_init__(self):
        remedy = "A timestep sees itself and what is before it."
        require_at_least("steps", self.steps, 0, remedy)

    def __str__(self) -> str:
        return f"{{i-{self.steps}}}" if self.steps else "{i}"

    def average(self, time: int) -> Average:
        """Return the matrix whose row i is one at i − steps."""
        return np.eye(time, k=-self.steps)

    def quadratic(self, time: int) -> Quadratic:
        """Return S of ½ − (i − steps − j)²."""
        k = float(self.steps)
        return _quadratic(
            {
                (0, 0): 0.5 - k * k,
                (0, 1): 2 * k,
                (0, 2): -1,
                (1, 0): -2 * k,
                (1, 1): 2,
                (2, 0): -1,
            }
        )


@dataclass(frozen=True)
class Single:
    """K(i) = {token} for i ≥ token; if `later`, for i > token only. Else empty."""

    token: int
    later: bool = False

    def __post_init__(self):
        require_at_least("token", self.token, 0)

    def __str__(self) -> str:
        return f"{{{self.token}}}" + (f" if i>{self.token}" if self.later else "")

    def average(self, time: int) -> Average:
        """Return the matrix with ones in one column, from its own row or the next."""
        column = np.zeros((time, time))
        column[self.token + self.later :, self.token : self.token + 1] = 1
        return column

    def quadratic(self, time: int) -> Quadratic:
        """Return S of ½ − (token − j)², or of i − token − ½ − time (token − j)²."""
        t = float(self.token)
        if not self.later:
            return _quadratic({(0, 0): 0.5 - t * t, (1, 0): 2 * t, (2, 0): -1})
        m = float(time)
        constant = -t - 0.5 - m * t * t
        return _quadratic({(0, 0): constant, (0, 1): 1, (1, 0): 2 * m * t, (2, 0): -m})


@dataclass(frozen=True)
class Labels:
    """K(i) = all timesteps up to i that hold a label: 1, 3, 5, ….

    Example:
        >>> Labels().average(4)[3].tolist()
        [0.0, 0.5, 0.0, 0.5]
    """

    def __str__(self) -> str:
        return "{y}"

    def average(self, time: int) -> Average:
        """Return the matrix whose row i averages over the odd timesteps up to i."""
        odd = np.tril(np.ones((time, time))) * (np.arange(time) % 2)
        return odd / np.maximum(odd.sum(axis=1, keepdims=True), 1)

    def quadratic(self, time: int) -> Quadratic:
        """Return S of parity of j − ½."""
        return _quadratic({(0, 0): -0.5, (3, 0): 1})


@dataclass(frozen=True)
class Sets:
    """Any map, as a list of sets: K(i) = sets[i]."""

    sets: tuple[tuple[int, ...], ...]

    def __post_init__(self):
        for i, members in enumerate(self.sets):
            if any(not 0 <= j <= i for j in members):
                rule = f"hold timesteps from 0 to {i} for timestep {i}"
                remedy = "Attention is causal: nothing later can be read."
                raise InvalidValueError("sets", rule, f"{members}", remedy)

    def __str__(self) -> str:
        moved = {i: js for i, js in enumerate(self.sets) if js != (i,)}
        return "K" + "".join(
            f" {i}:{{{','.join(map(str, js))}}}" for i, js in moved.items()
        )

    def average(self, time: int) -> Average:
        """Return the matrix whose row i averages over sets[i]."""
        if time > len(self.sets):
            rule = f"say what each of the {time} timesteps reads"
            raise InvalidValueError("sets", rule, f"{len(self.sets)} sets")
        matrix = np.zeros((time, time))
        for i, members in enumerate(self.sets[:time]):
            matrix[i, list(members)] = 1 / max(len(members), 1)
        return matrix

    def quadratic(self, time: int) -> None:
        """Return None: arbitrary sets need one unit per timestep."""
        return


SELF = Earlier(0)
PREVIOUS = Earlier(1)


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
