"""Tables of a page: each scrolls in its own box, and numbers stand to the right."""

import re
from collections.abc import Sequence

from algoscope.experiments.record import Table
from algoscope.report.markup import Markup, element

_ONE = r"[-−+<>≤≥~]?\s?(?:[\d.,]*\d(?:e[-+]?\d+)?(?: ?%)?|inf|nan|–)"
_INTERVAL = rf"{_ONE}(?: …|,) {_ONE}"
_NUMBER = re.compile(rf"(?:{_ONE}(?: ?[\[(]{_INTERVAL}[\])])?|{_INTERVAL})?")


def scrolling(label: str, content: Markup, kind: str) -> Markup:
    """Return a box that scrolls by itself, also with the keyboard."""
    return element(
        "div", content, class_=kind, tabindex=0, role="region", aria_label=label
    )


def plain_table(table: Table) -> Markup:
    """Return a table of plain text."""
    return table_of(table.title, table.header, table.rows)


def table_of(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Markup | str]],
    kind: str = "plain",
) -> Markup:
    """Return a table of cells that may be markup."""
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    kinds = ["number" if are_numbers(column) else "words" for column in columns]
    heads = [
        element("th", name, scope="col", class_=each)
        for name, each in zip(header, kinds, strict=True)
    ]
    body = [
        element(
            "tr",
            *(
                element("td", cell, class_=each, data_label=name)
                for cell, each, name in zip(row, kinds, header, strict=True)
            ),
        )
        for row in rows
    ]
    caption = [element("caption", title)] if title else []
    whole = element(
        "table",
        *caption,
        element("thead", element("tr", *heads)),
        element("tbody", *body),
        class_=kind,
    )
    return scrolling(title or "Claims", whole, "scroll")


def are_numbers(cells: Sequence[Markup | str]) -> bool:
    """Return whether a column holds numbers, maybe with their intervals.

    Example:
        >>> are_numbers(["0.5 [0.41, 0.6]", "–"]), are_numbers(["0.5", "ridge"])
        (True, False)
    """
    return any(cells) and all(
        isinstance(cell, str) and _NUMBER.fullmatch(cell) for cell in cells
    )
