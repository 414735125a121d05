"""What should be in every register and what is, step by step (paper appendix A).

The appendix verifies its chain by writing out H after each line. Here the same matrices
come from running an algorithm twice: by its exact meaning, and through the transformer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

Shown = Literal["computed", "exact", "difference"]
Columns = Float[np.ndarray, "time size"]


@dataclass(frozen=True)
class TracedRegister:
    """What one register should hold and what it holds, in every column."""

    exact: Columns
    computed: Columns
    counts: Bool[np.ndarray, " time"]  # whether the prediction depends on it

    @property
    def difference(self) -> Columns:
        """How far the computed numbers are off."""
        return self.computed - self.exact


@dataclass(frozen=True)
class TracedStep:
    """All registers after one step; before the first one, the input."""

    label: str
    operation: str
    writes: tuple[str, ...]
    registers: dict[str, TracedRegister]

    @property
    def largest_difference(self) -> float:
        """How far off anything is that the prediction depends on."""
        return max(
            float(np.max(np.abs(each.difference[each.counts]), initial=0))
            for each in self.registers.values()
        )


def as_text(
    steps: Sequence[TracedStep], show: Shown = "computed", first: int = 0
) -> str:
    """Return the matrices, without the registers that are zero.

    An arrow marks what the step wrote; what the prediction does not depend on is in
    brackets. Steps are numbered from `first`.
    """
    return "\n\n".join(
        _step_as_text(number, step, show) for number, step in enumerate(steps, first)
    )


def _step_as_text(number: int, step: TracedStep, show: Shown) -> str:
    rows: list[list[str]] = []
    for name, register in step.registers.items():
        if not register.computed.any():
            continue
        columns = getattr(register, show)
        size = columns.shape[1]
        for row in range(size):
            mark = "→" if name in step.writes else " "
            numbers = [
                f" {value:.4g} " if counts else f"({value:.4g})"
                for value, counts in zip(columns[:, row], register.counts, strict=True)
            ]
            place = name if size == 1 else f"{name}[{row}]"
            rows.append([f"{mark} {place}", *numbers])
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = [
        row[0].ljust(first)
        + "".join(
            "  " + number.rjust(width)
            for number, width in zip(row[1:], others, strict=True)
        )
        for row in rows
    ]
    operation = f": {step.operation}" if step.operation else ""
    title = f"{number}. {step.label}{operation}"
    last = f"largest difference {step.largest_difference:.1e}"
    return "\n".join([title, *lines, last])


def as_dict(steps: Sequence[TracedStep]) -> list[dict[str, Any]]:
    """Return the trace as JSON holds it; a register is a list of columns."""
    return [
        {
            "label": step.label,
            "operation": step.operation,
            "writes": list(step.writes),
            "largest_difference": step.largest_difference,
            "registers": {
                name: {
                    "exact": register.exact.tolist(),
                    "computed": register.computed.tolist(),
                    "difference": register.difference.tolist(),
                    "counts": register.counts.tolist(),
                }
                for name, register in step.registers.items()
            },
        }
        for step in steps
    ]
