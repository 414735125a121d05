"""A hypothesis up to its parameters: what `families` lists and `fitting` fits."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Predictions = Float[Array, "choices examples"]

NEAR_ZERO = 0.01  # from here on, the grid of a parameter that may be 0 is geometric


@dataclass(frozen=True)
class Parameter:
    """A continuous parameter, and the range in which it is sought."""

    name: str
    low: float
    high: float
    scale: Literal["log", "linear", "from zero"] = "log"

    def grid(self, size: int) -> np.ndarray:
        """Return points over the whole range, in the coordinate of the search."""
        if self.scale == "from zero":
            steps = np.linspace(0, math.log1p(self.high / NEAR_ZERO), size)
            return NEAR_ZERO * np.expm1(steps)
        spaced = np.geomspace if self.scale == "log" else np.linspace
        points = spaced(self.low, self.high, size)
        return np.log(points) if self.scale == "log" else points

    def value(self, coordinate: Any) -> Any:
        """Return the value at a coordinate, a number or a traced one."""
        if self.scale != "log":
            return coordinate
        exp = math.exp if isinstance(coordinate, float) else jnp.exp
        return exp(coordinate)


@dataclass(frozen=True, eq=False)
class Family:
    """A learning algorithm up to its parameters."""

    name: str
    predict: Callable[..., Predictions]
    parameters: tuple[Parameter, ...] = ()
    choices: tuple[dict[str, Any], ...] = ({},)
    fixed: tuple[tuple[str, Any], ...] = ()  # what this variant of the family assumes

    @property
    def num_parameters(self) -> int:
        """How many numbers are fitted, discrete ones included."""
        return len(self.parameters) + (len(self.choices) > 1) + len(self.fixed)
