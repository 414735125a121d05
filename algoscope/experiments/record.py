"""What an experiment found: findings, tables, and a verdict on each claim of the paper.

A record is saved as a directory:

    result.json    the Record
    NAME.svg/.png  the figures that it lists
    …              the measurements, in files of their own

The report and docs/results.md are made from records, never from models.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from algoscope.foundation.files import parse_number
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import number, with_interval
from algoscope.foundation.validation import InvalidValueError, require_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESULT = "result.json"
OURS = "Ours, not the paper's:"  # how the text of a claim of our own starts

Verdict = Literal["reproduced", "partly", "not reproduced", "not testable"]


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Difference:
    """The paired difference that decides a claim, with its 95 % interval.

    It is taken on common datasets; the interval covers datasets and seeds. Numbers that
    nothing random decides, such as the error of a formula, have an interval of width 0.
    """

    of: str  # what is subtracted from what, such as "SPD/d to zero − SPD/d to OLS"
    mean: float
    low: float
    high: float

    @classmethod
    def exact(cls, of: str, value: float) -> "Difference":
        """Return a difference that nothing random decides."""
        return cls(of, value, value, value)

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.of}: {number(self.mean)}"
        return f"{self.of}: {with_interval(self.mean, self.low, self.high)}"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, what was measured about it, and the verdict."""

    name: str  # a few words: "minimum norm when under-determined"
    paper: str  # what the paper says, and where
    measured: str  # what was found here, with its interval and sample size
    verdict: Verdict
    reason: str = ""  # why the verdict is not simply "reproduced"
    seeds: int = 0  # of the least repeated model that decides; 0 if none was trained
    difference: Difference | None = None

    def __post_init__(self):
        require_choice("verdict", self.verdict, get_args(Verdict))

    @property
    def is_ours(self) -> bool:
        """Whether the claim is our own: it is counted apart from the paper's."""
        return self.paper.startswith(OURS)

    @classmethod
    def of_parts(
        cls,
        name: str,
        paper: str,
        measured: str,
        holds: Sequence[bool],
        otherwise: str = "",
        *,
        seeds: int = 0,
        difference: Difference | None = None,
    ) -> "Claim":
        """Return a claim with several parts: reproduced if all hold, partly if some do.

        `otherwise` is the reason if not all parts hold.
        """
        verdict: Verdict = "partly" if any(holds) else "not reproduced"
        if all(holds):
            verdict, otherwise = "reproduced", ""
        return cls(name, paper, measured, verdict, otherwise, seeds, difference)


@dataclass(frozen=True, repr=False)
class Record(SavedResult):
    """One finished experiment.

    Example:
        >>> import algoscope as asc
        >>> found = asc.Record.load("results/fig2")
        >>> found.claims[0].verdict
        'reproduced'
    """

    kind: ClassVar[str] = "experiment"
    file: ClassVar[str] = RESULT

    figure: str  # fig1, …, fig8, theorems, shifts or leaving
    title: str
    budget: str
    command: str  # which reproduces this result
    config: dict[str, Any]
    versions: dict[str, str]
    seconds: float  # of computing, over all sessions
    findings: tuple[str, ...]  # sentences with numbers
    figures: tuple[str, ...]  # file names without their endings
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    runs: dict[str, str] = field(default_factory=dict)  # training runs, id: status
    directory: Path | None = field(default=None, compare=False)  # where it is saved

    @property
    def sentence(self) -> str:
        """How many of the paper's claims were reproduced."""
        counts = Counter(claim.verdict for claim in self.claims)
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        return f"{self.figure} with budget {self.budget}: {verdicts or 'no claims'}."

    def rows(self) -> list[Row]:
        """Return the claims: what the paper says, what was measured, the verdict."""
        names = ("name", "verdict", "paper", "measured", "reason", "seeds")
        return [
            {name: getattr(claim, name) for name in names}
            | {"difference": str(claim.difference or "–")}
            for claim in self.claims
        ]

    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Show the experiment's first figure, as it was drawn into its directory."""
        from PIL import Image

        from algoscope.foundation.plotting import ResultFigure, owner_of

        if self.directory is None:
            remedy = "Load it: `Record.load(directory)`."
            raise InvalidValueError("record", "be saved", "one that is not", remedy)
        image = Image.open(self.directory / f"{self.figures[0]}.png").convert("RGB")
        size = (image.width / 120, image.height / 120)
        panel = ResultFigure(figsize=size).subplots() if axes is None else axes
        panel.imshow(np.asarray(image))
        panel.set_axis_off()
        figure = owner_of(panel)
        if axes is None:
            figure.subplots_adjust(0, 0, 1, 1)
        return figure

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        values = asdict(self)
        del values["directory"]
        return values, {}

    @classmethod
    def load(cls, path: Path | str) -> "Record":
        """Read the record in a directory."""
        return replace(super().load(path), directory=Path(path))

    @classmethod
    def from_fields(cls, values: Row, arrays: dict[str, np.ndarray]) -> "Record":
        odd = {each.name for each in fields(cls)} - {"directory"} ^ set(values)
        if odd:
            raise KeyError(min(odd))
        tables = tuple(
            Table(
                each["title"],
                tuple(each["header"]),
                tuple(tuple(row) for row in each["rows"]),
            )
            for each in values.pop("tables")
        )
        claims = tuple(map(_claim, values.pop("claims")))
        for name in ("findings", "figures"):
            values[name] = tuple(values[name])
        return cls(tables=tables, claims=claims, **values)


def _claim(values: Row) -> Claim:
    """Return the claim that was saved as a dictionary."""
    saved: Row | None = values.get("difference")
    found: Row = {"difference": None}
    if saved is not None:
        numbers = [parse_number(saved[each]) for each in ("mean", "low", "high")]
        found["difference"] = Difference(saved["of"], *numbers)
    return Claim(**values | found)
