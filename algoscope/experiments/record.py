"""What an experiment found, as data: a directory that tables, pages and checks read.

    result.json    a Record
    NAME.svg/.png  the figures it lists
    …              the measurements, in files of their own

The report and docs/results.md are made from these and never from models.
"""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from algoscope.checkpoints import DamagedFileError, read_json, write_json
from algoscope.validation import require_choice

FORMAT = "algoscope experiment"
RESULT = "result.json"

Verdict = Literal["reproduced", "partly", "not reproduced", "not testable"]


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper against a measurement of ours."""

    name: str  # a few words: "minimum norm when under-determined"
    paper: str  # what the paper says, and where
    measured: str  # what we found, with its interval and sample size
    verdict: Verdict
    reason: str = ""  # why it is not simply reproduced

    def __post_init__(self):
        require_choice("verdict", self.verdict, get_args(Verdict))


@dataclass(frozen=True)
class Record:
    """One finished experiment."""

    figure: str  # fig1, …, fig8
    title: str
    budget: str
    command: str  # what makes this result again
    config: dict[str, Any]
    versions: dict[str, str]
    seconds: float  # of computing, over all sittings
    findings: tuple[str, ...]  # sentences
    figures: tuple[str, ...]  # names of files, without their endings
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    runs: dict[str, str] = field(default_factory=dict)  # id: status, of trained models

    def save(self, directory: Path) -> None:
        """Write `result.json`."""
        write_json(directory / RESULT, {"format": FORMAT, **asdict(self)})

    @classmethod
    def load(cls, directory: Path) -> "Record":
        """Read what `save` wrote."""
        values = read_json(directory / RESULT)
        try:
            if values.pop("format") != FORMAT:
                raise KeyError("format")
            if set(values) != {each.name for each in fields(cls)}:
                raise KeyError("fields")
            tables = tuple(
                Table(each["title"], tuple(each["header"]), _rows(each["rows"]))
                for each in values.pop("tables")
            )
            claims = tuple(Claim(**each) for each in values.pop("claims"))
            for name in ("findings", "figures"):
                values[name] = tuple(values[name])
            return cls(tables=tables, claims=claims, **values)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(
                str(directory / RESULT), "hold a saved experiment", f"an error: {error}"
            ) from error


def _rows(rows: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row) for row in rows)
