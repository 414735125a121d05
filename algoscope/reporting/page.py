"""The claims of all results together: what a reader wants first."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.reporting.section import Picture, Section
from algoscope.reporting.svg import Markup, element, inline_svg

CLAIM_HEADER = ("claim", "the paper says", "measured here", "verdict", "why")
LEGEND = (
    "Reproduced: the measurement agrees with the paper's sentence. Partly: in some "
    "settings or to some extent, as said beside it. Not reproduced: it disagrees. Not "
    "testable: this budget cannot decide."
)


def numbered_claims(sections: Sequence[Section]) -> list[tuple[int, Claim]]:
    """Return every claim with the place of its section."""
    return [
        (number, claim)
        for number, section in enumerate(sections)
        for claim in section.claims
    ]


def counted(claims: Iterable[Claim]) -> str:
    """Return how many claims came out how.

    Example:
        >>> counted([Claim("a", "", "", "partly"), Claim("b", "", "", "reproduced")])
        '2 claims: 1 reproduced, 1 partly.'
    """
    counts = Counter(claim.verdict for claim in claims)
    each = [f"{counts[name]} {name}" for name in get_args(Verdict) if counts[name]]
    total = counts.total()
    return f"{total} claim{'s' if total != 1 else ''}: {', '.join(each)}."


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


# Nothing may be requested and nothing may run; styles and pictures are in the file.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
COLORS = {
    "reproduced": "good",
    "partly": "mixed",
    "not reproduced": "bad",
    "not testable": "open",
}


def html_page(title: str, sections: Sequence[Section], command: str) -> str:
    """Return the page: contents, all claims, and a part for each result."""
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        Markup(f"<style>\n{style}</style>"),
    )
    parts = [element("h1", title), _contents(sections)]
    claims = numbered_claims(sections)
    if claims:
        parts.append(_all_claims(sections, claims))
    parts += [_section(number, section) for number, section in enumerate(sections)]
    made = element("footer", element("p", "Made by ", element("code", command), "."))
    body = element("body", element("main", *parts), made)
    return f"<!doctype html>\n{element('html', head, body, lang='en').html}\n"


def _contents(sections: Sequence[Section]) -> Markup:
    titles = {f"#result-{number}": each.title for number, each in enumerate(sections)}
    if numbered_claims(sections):
        titles = {"#claims": "Claims"} | titles
    items = [
        element("li", element("a", title, href=place))
        for place, title in titles.items()
    ]
    return element("nav", element("ol", *items), aria_label="Contents")


def _all_claims(
    sections: Sequence[Section], claims: Sequence[tuple[int, Claim]]
) -> Markup:
    def home(number: int) -> Markup:
        return element("a", sections[number].title, href=f"#result-{number}")

    rows = [[*_claim(claim), home(number)] for number, claim in claims]
    return element(
        "section",
        element("h2", "Claims", id="claims"),
        element("p", counted(claim for _, claim in claims)),
        table_of("", [*CLAIM_HEADER, "result"], rows, kind="claims"),
        element("p", LEGEND, class_="quiet"),
    )


def _claim(claim: Claim) -> list[Markup | str]:
    badge = element("span", claim.verdict, class_=f"verdict {COLORS[claim.verdict]}")
    name = element("strong", claim.name)
    return [name, claim.paper, claim.measured, badge, claim.reason]


def _section(number: int, section: Section) -> Markup:
    parts = [element("h2", section.title, id=f"result-{number}")]
    if section.findings:
        found = [element("li", finding) for finding in section.findings]
        parts.append(element("ul", *found, class_="findings"))
    for place, picture in enumerate(section.pictures):
        parts.append(_figure(picture, f"f{number}-{place}-", section.title))
    if section.claims:
        rows = [_claim(claim) for claim in section.claims]
        parts.append(table_of("Claims", CLAIM_HEADER, rows, kind="claims"))
    parts += [plain_table(table) for table in section.tables]
    if section.command:
        parts += [element("h3", "Command"), _block(section.command, "command")]
    parts.append(_facts(section))
    for name, values in section.details.items():
        text = json.dumps(values, indent=2, ensure_ascii=False)
        summary = element("summary", name)
        parts.append(element("details", summary, _block(text, "json")))
    return element("section", *parts)


def _facts(section: Section) -> Markup:
    facts = section.facts | {"from": section.source}
    if section.versions:
        each = [f"{name} {version}" for name, version in section.versions.items()]
        facts |= {"versions": ", ".join(each)}
    pairs = [
        element("div", element("dt", name), element("dd", str(value)))
        for name, value in facts.items()
    ]
    return element("dl", *pairs)


def _figure(picture: Picture, prefix: str, title: str) -> Markup:
    label = f"{title}: {picture.title}"
    svg = inline_svg(picture.svg, prefix=prefix, label=label, source=picture.source)
    return element(
        "figure",
        scrolling(label, svg, "card"),
        element("figcaption", picture.title),
    )


def _block(text: str, kind: str) -> Markup:
    return element("pre", element("code", text), class_=kind)
