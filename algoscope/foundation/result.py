"""What every measurement returns: one kind of result, saved and shown in one way.

A result holds arrays, configuration and versions, never a model. It answers in one
sentence, tabulates and draws itself, and shows all three in a notebook. Loading a saved
result reads JSON and arrays and executes nothing.
"""

import base64
import html
import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from algoscope.foundation.files import load_arrays, read_saved, save_arrays, write_saved
from algoscope.foundation.text import number

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]
Result = TypeVar("Result", bound="SavedResult")

LONGEST_REPR = 390  # characters
MOST_ROWS = 20  # of a table in a notebook
PAPER_STYLE = "max-width:100%;background:#fff;border-radius:6px"  # of a figure


class SavedResult(ABC):
    """A result: a sentence, rows, a figure, and a file or directory that holds it.

    A subclass names its `kind`, as in "format": "algoscope comparison". One that is
    saved as a directory names the `file` in it, and `arrays_file` if it has arrays.
    """

    kind: ClassVar[str]
    file: ClassVar[str] = ""
    arrays_file: ClassVar[str] = ""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The answer, in one sentence."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """Return the numbers behind the answer, one dictionary per row."""

    @abstractmethod
    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Draw the result into a new figure, or its main panel into given axes."""

    @abstractmethod
    def to_fields(self) -> "tuple[Row, dict[str, np.ndarray]]":
        """Return the fields as plain values, and the arrays by name."""

    @classmethod
    @abstractmethod
    def from_fields(
        cls: type[Result], values: Row, arrays: "dict[str, np.ndarray]"
    ) -> Result:
        """Return the result that `to_fields` described; KeyError names a bad field."""

    def table(self) -> Any:
        """Return the rows as a pandas DataFrame, or as a list if pandas is missing."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            return self.rows()
        return pandas.DataFrame(self.rows())

    def save(self, path: Path | str) -> None:
        """Write the result to a file, or to a directory if it is saved as several."""
        path = Path(path)
        values, arrays = self.to_fields()
        if self.arrays_file:
            about = {"format": f"algoscope {self.kind}"}
            save_arrays(path / self.arrays_file, arrays, about)
        write_saved(path / self.file, self.kind, values)

    @classmethod
    def load(cls: type[Result], path: Path | str) -> Result:
        """Read a result that `save` wrote; one that has no answer is damaged."""
        path = Path(path)

        def build(values: Row) -> Result:
            arrays = load_arrays(path / cls.arrays_file)[0] if cls.arrays_file else {}
            found = cls.from_fields(values, arrays)
            found.require_whole()
            return found

        return read_saved(path / cls.file, cls.kind, build)

    def require_whole(self) -> None:
        """Raise an error if the fields of a loaded result do not fit together."""
        str(self.sentence)
        self.rows()
        self.to_fields()

    def __repr__(self) -> str:
        sentence = " ".join(self.sentence.split())
        text = f"<{type(self).__name__}: {sentence}>"
        if len(text) <= LONGEST_REPR:
            return text
        return f"{text[: LONGEST_REPR - 2]}…>"

    def _repr_html_(self) -> str:
        """Return the sentence, the figure and the folded table, for a notebook.

        The figure is on white paper, whatever the colors of the notebook are.
        """
        from algoscope.foundation.plotting import render

        drawn = base64.b64encode(render(self.plot(), ".svg")).decode()
        rows, told = self.rows(), html.escape(self.sentence)
        folded = (
            f"<details><summary>{len(rows)} rows</summary>{html_table(rows)}</details>"
        )
        return (
            f"<p>{told}</p>"
            f'<img src="data:image/svg+xml;base64,{drawn}" '
            f'alt="The figure of this {html.escape(self.kind)}" '
            f'style="{PAPER_STYLE}">{folded if rows else ""}'
        )


def html_table(rows: Sequence[Row]) -> str:
    """Return rows as an HTML table, with numbers to three digits, all escaped."""
    if not rows:
        return ""
    shown, left_out = rows[:MOST_ROWS], len(rows) - MOST_ROWS
    names = list(dict.fromkeys(name for row in shown for name in row))
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(_cell(row.get(name)) for name in names)}</tr>" for row in shown
    )
    more = f"<p>{left_out} more rows in .table()</p>" if left_out > 0 else ""
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x:auto">{whole}</div>{more}'


def _cell(value: Any) -> str:
    """Return a cell; numbers are at its right."""
    text = number(value) if isinstance(value, float) else str(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    style = ' style="text-align:right"' if is_number else ""
    return f"<td{style}>{html.escape('–' if value is None else text)}</td>"
