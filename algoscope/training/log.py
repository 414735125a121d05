"""The log of a training run: metrics.jsonl, a line per compiled call.

A row has the step, the loss and the seconds trained; SPD when it was measured. Rows are
appended while the run trains, so a kill or a power cut may leave a damaged end, and a
disk may damage anything. What is no row is skipped: the others are still good.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from algoscope.foundation.files import append, require_regular, sync, write_atomically

METRICS = "metrics.jsonl"
TAIL = 1 << 14  # bytes: the last rows, with an SPD among them
NUMBERS = {"step", "loss", "seconds", "spd_ols", "spd_bayes"}
Row = dict[str, Any]


class TrainingLog:
    """The rows of the run in a directory.

    Example:
        >>> import tempfile
        >>> log = TrainingLog(Path(tempfile.mkdtemp()))
        >>> log.add({"step": 10, "loss": 0.5, "seconds": 1.0})
        >>> _ = log.path.write_bytes(log.path.read_bytes() + b'{"step": 2')
        >>> [row["step"] for row in log.rows()], log.latest()["loss"]
        ([10], 0.5)
    """

    def __init__(self, directory: Path):
        self.path = directory / METRICS

    def add(self, row: Row) -> None:
        """Append one row."""
        append(self.path, (json.dumps(row) + "\n").encode())

    def sync(self) -> None:
        """Wait until all rows are on the disk."""
        sync(self.path)

    def forget_after(self, step: int) -> None:
        """Drop the rows of later steps, and what is no row."""
        rows = [row for row in self.rows() if row["step"] <= step]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        write_atomically(self.path, text.encode())

    def rows(self) -> list[Row]:
        """Return all rows, in their order."""
        found = (_row(line) for line in self._lines())
        return [row for row in found if row is not None]

    def latest(self) -> Row:
        """Return the latest value of each metric, from the end of the file."""
        found: Row = {}
        for line in self._lines_from_the_end():
            found = (_row(line) or {}) | found
            if found.keys() >= NUMBERS:
                break
        return found

    def _lines_from_the_end(self) -> Iterator[bytes]:
        """Yield the last lines; if they hold no row, those of the whole file."""
        tail = self._lines(TAIL)
        yield from reversed(tail)
        if not any(map(_row, tail)):
            yield from reversed(self._lines())

    def _lines(self, last: int | None = None) -> list[bytes]:
        """Return the lines in the last bytes of the file, or in all of it."""
        try:
            require_regular(self.path)
            with open(self.path, "rb") as file:
                if last is not None:
                    file.seek(-min(last, file.seek(0, 2)), 2)
                return file.read().splitlines()
        except FileNotFoundError:
            return []


def _row(line: bytes) -> Row | None:
    """Return a line as a row; None if it is damaged."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or not {"step", "loss", "seconds"} <= set(row):
        return None
    known = NUMBERS & set(row)
    is_whole = isinstance(row["step"], int) and 0 <= row["step"] < 2**63
    if not is_whole or not all(_is_number(row[name]) for name in known):
        return None
    return row if math.isfinite(row["seconds"]) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
