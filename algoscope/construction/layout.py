"""Named rows of the hidden state (paper §3: "the entries between rows i and j").

The paper gives registers by their first and last row; here they have names, and the
rows follow from the order in which they are declared. Below them come rows that belong
to no register: scratch (the paper's t), the position code, the pads of LayerNorm and
the reference row.
"""

from dataclasses import dataclass

from algoscope.construction.layers import Frame
from algoscope.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
)


@dataclass(frozen=True)
class Layout:
    """Which rows hold which register.

    Example:
        >>> layout = Layout({"y": 1, "x": 3}, code_size=3)
        >>> layout.rows("x"), layout.frame.hidden
        (slice(1, 4, None), 10)
    """

    registers: dict[str, int]  # name to size, from the top row down
    scratch_size: int = 0
    code_size: int = 0
    has_reference: bool = True

    def __post_init__(self):
        for name, size in self.registers.items():
            require_at_least(f"size of {name}", size, 1)

    @property
    def num_rows(self) -> int:
        """How many rows the registers take."""
        return sum(self.registers.values())

    @property
    def scratch(self) -> slice:
        """The rows that attention leaves something in for the feed-forward part."""
        return slice(self.num_rows, self.num_rows + self.scratch_size)

    @property
    def frame(self) -> Frame:
        """The rows that every layer needs."""
        code = slice(self.scratch.stop, self.scratch.stop + self.code_size)
        pads, top = (code.stop, code.stop + 1), code.stop + 2
        if self.has_reference:
            return Frame(top + 1, code, (pads,), top)
        return Frame(top, code, (pads,), None)

    def size(self, name: str | None) -> int:
        """Return the size of a register; none has size 0."""
        if name is None:
            return 0
        require_choice("register", name, self.registers)
        return self.registers[name]

    def start(self, name: str) -> int:
        """Return the first row of a register."""
        self.size(name)
        names = list(self.registers)
        return sum(self.registers[each] for each in names[: names.index(name)])

    def rows(self, name: str | None) -> slice:
        """Return the rows of a register; none has none."""
        if name is None:
            return slice(0, 0)
        return slice(self.start(name), self.start(name) + self.size(name))

    def require_size(self, name: str, size: int, operation: object) -> None:
        """Refuse a register that has not the size an operation needs."""
        if self.size(name) != size:
            rule = f"have size {size} for {operation}"
            raise InvalidValueError(name, rule, self.size(name))
