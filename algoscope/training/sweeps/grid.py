"""Grids of hyper-parameters (paper §4.2), and the file that keeps one in a store.

A `Grid` is every combination of a few values of a few fields of a configuration. A
`SavedSweep` is a grid in `STORE/sweeps/ID.json`, so that it can be resumed by its store
alone.
"""

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from algoscope.foundation.files import read_saved, write_saved
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_choice,
)
from algoscope.training.config import TrainingConfig, preset

FIELDS = {
    each.name: each.type
    for each in fields(TrainingConfig)
    if each.metadata.get("option", True)
}
SWEEPS = "sweeps"  # the directory of a store that holds its sweeps


@dataclass(frozen=True)
class Grid:
    """A configuration, and the values that replace some of its fields.

    Example:
        >>> from algoscope.training.config import preset
        >>> axes = {"hidden_size": (8, 12), "num_heads": (1, 8)}
        >>> grid = Grid(preset("d1"), axes)
        >>> [(config.hidden_size, config.num_heads) for config in grid.configs]
        [(8, 1), (8, 8), (12, 1)]
        >>> print(*grid.left_out)
        hidden_size=12 num_heads=8: `num_heads` must divide `hidden_size` 12, got 8.
    """

    base: TrainingConfig
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self):
        for name, values in self.axes.items():
            require_choice("axis", name, FIELDS)
            if not values:
                raise InvalidValueError(name, "have at least one value", "none")
            if len(set(values)) < len(values):
                shown = ", ".join(map(str, values))
                raise InvalidValueError(name, "have each value once", shown)
        # In one order and of one type, so that equal grids have equal ids.
        ordered = {name: self.axes[name] for name in FIELDS if name in self.axes}
        for name, values in ordered.items():
            if FIELDS[name] is float:
                ordered[name] = tuple(map(_as_float, values))
        object.__setattr__(self, "axes", ordered)
        if not self.configs:
            problem = f"none: {self.left_out[0]}".removesuffix(".")
            raise InvalidValueError("grid", "leave at least one run", problem)

    @property
    def configs(self) -> tuple[TrainingConfig, ...]:
        """The runs, in the order of the fields; the last axis varies fastest."""
        return self._expansion[0]

    @property
    def left_out(self) -> tuple[str, ...]:
        """The combinations that are not valid configurations, each with the reason."""
        return self._expansion[1]

    @cached_property
    def _expansion(self) -> tuple[tuple[TrainingConfig, ...], tuple[str, ...]]:
        configs, left_out = [], []
        for values in itertools.product(*self.axes.values()):
            changes = dict(zip(self.axes, values, strict=True))
            try:
                configs.append(replace(self.base, **changes))
            except (InvalidValueError, InvalidTypeError) as error:
                several = [name for name in changes if len(self.axes[name]) > 1]
                names = several or list(changes)
                shown = " ".join(f"{name}={changes[name]}" for name in names)
                left_out.append(f"{shown}: {error}")
        return tuple(configs), tuple(left_out)

    @property
    def sweep_id(self) -> str:
        """Eight hexadecimal digits that name this grid."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @classmethod
    def from_dict(cls, values: Any) -> "Grid":
        """Return the grid that `asdict` wrote."""
        if not isinstance(values, dict) or set(values) != {"base", "axes"}:
            raise InvalidTypeError("grid", "be an object of base and axes", values)
        axes = {name: tuple(each) for name, each in values["axes"].items()}
        return cls(TrainingConfig.from_dict(values["base"]), axes)


def _as_float(value: Any) -> Any:
    return float(value) if type(value) is int else value


GRIDS: dict[str, Grid] = {
    # App. "Empirical scaling", figure 8: 7 · 6 · 6 · 4 · 2 = 2,016 runs.
    "paper": Grid(
        preset("paper"),
        {
            "dim": (1, 2, 4, 8, 12, 16, 20),
            "num_layers": (1, 2, 4, 8, 12, 16),
            "hidden_size": (16, 32, 64, 256, 512, 1024),
            "num_heads": (1, 2, 4, 8),
            "learning_rate": (1e-4, 2.5e-4),
        },
    ),
}


@dataclass(frozen=True)
class SavedSweep:
    """A grid that is trained in a store."""

    grid: Grid
    evaluation_datasets: int = 1000

    def __post_init__(self):
        require_at_least("evaluation_datasets", self.evaluation_datasets, 1)

    def save(self, store: Path) -> None:
        """Write the sweep into the store; the same grid replaces itself."""
        path = store / SWEEPS / f"{self.grid.sweep_id}.json"
        write_saved(path, "sweep", asdict(self))

    @classmethod
    def load(cls, path: Path) -> "SavedSweep":
        """Read what `save` wrote."""
        return read_saved(
            path, "sweep", lambda v: cls(Grid.from_dict(v.pop("grid")), **v)
        )


def saved_sweeps(store: Path) -> dict[str, SavedSweep]:
    """Return the sweeps of a store by id; reject a store without any."""
    paths = sorted((store / SWEEPS).glob("*.json"))
    if not paths:
        raise InvalidValueError("store", "hold a saved sweep", store)
    return {path.stem: SavedSweep.load(path) for path in paths}
