"""What a page shows of one result, whatever kind of result it is."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from algoscope.experiments.record import Claim, Table


@dataclass(frozen=True)
class Picture:
    """A figure as SVG text, and where its PNG is if there is one."""

    title: str
    svg: str
    source: str  # named where the SVG is refused
    png: Path | None = None


@dataclass(frozen=True)
class Section:
    """One result: what was found first, and what it rests on last."""

    title: str
    source: str  # the file or directory that it was read from
    findings: tuple[str, ...]  # sentences
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)  # name: value, both short
    command: str = ""  # what makes the result again
    details: dict[str, Any] = field(default_factory=dict)  # name: JSON, shown folded
    versions: dict[str, str] = field(default_factory=dict)
