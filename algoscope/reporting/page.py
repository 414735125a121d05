"""Sections as one HTML file that needs no other file and runs no script."""

import json
from collections.abc import Sequence
from pathlib import Path

from algoscope.experiments.record import Claim, Verdict
from algoscope.reporting.markup import Markup, element, inline_svg
from algoscope.reporting.section import (
    CLAIM_HEADER,
    LEGEND,
    Picture,
    Section,
    are_numbers,
    count_verdicts,
    evidence,
    numbered_claims,
)

# The page may request nothing and run nothing; its styles and images are in the file.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
STYLE = Path(__file__).with_name("report.css")
BADGES: dict[Verdict, str] = {  # classes of report.css
    "reproduced": "good",
    "partly": "mixed",
    "not reproduced": "bad",
    "not testable": "open",
}


def html_page(
    title: str, sections: Sequence[Section], command: str, playground: str | None = None
) -> str:
    """Return the page: contents, all claims, and a part for each result.

    `playground` is the address of the playground beside the page, if there is one.
    """
    style = STYLE.read_text(encoding="utf-8")
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
    if any(section.claims for section in sections):
        parts.append(_all_claims(sections))
    parts += [_section(number, section) for number, section in enumerate(sections)]
    made = [element("p", "Made by ", element("code", command), ".")]
    if playground:
        link = element("a", "the playground", href=playground)
        made.insert(0, element("p", "See learners from inside in ", link, "."))
    body = element("body", element("main", *parts), element("footer", *made))
    return f"<!doctype html>\n{element('html', head, body, lang='en').html}\n"


def _contents(sections: Sequence[Section]) -> Markup:
    titles = {f"#result-{number}": each.title for number, each in enumerate(sections)}
    if any(section.claims for section in sections):
        titles = {"#claims": "Claims"} | titles
    items = [
        element("li", element("a", title, href=place))
        for place, title in titles.items()
    ]
    return element("nav", element("ol", *items), aria_label="Contents")


def _all_claims(sections: Sequence[Section]) -> Markup:
    def home(number: int) -> Markup:
        return element("a", sections[number].title, href=f"#result-{number}")

    claims = numbered_claims(sections)
    rows = [[*_claim(claim), home(number)] for number, claim in claims]
    return element(
        "section",
        element("h2", "Claims", id="claims"),
        element("p", count_verdicts(claim for _, claim in claims)),
        _table("", [*CLAIM_HEADER, "result"], rows, kind="claims"),
        element("p", LEGEND, class_="quiet"),
    )


def _section(number: int, section: Section) -> Markup:
    parts = [element("h2", section.title, id=f"result-{number}")]
    if section.findings:
        found = [element("li", finding) for finding in section.findings]
        parts.append(element("ul", *found, class_="findings"))
    for place, picture in enumerate(section.pictures):
        parts.append(_figure(picture, f"f{number}-{place}-", section.title))
    if section.claims:
        rows = [_claim(claim) for claim in section.claims]
        parts.append(_table("Claims", CLAIM_HEADER, rows, kind="claims"))
    parts += [_table(each.title, each.header, each.rows) for each in section.tables]
    if section.command:
        parts += [element("h3", "Command"), _block(section.command, "command")]
    parts.append(_facts(section))
    for name, values in section.details.items():
        text = json.dumps(values, indent=2, ensure_ascii=False)
        summary = element("summary", name)
        parts.append(element("details", summary, _block(text, "json")))
    return element("section", *parts)


def _claim(claim: Claim) -> list[Markup | str]:
    badge = element("span", claim.verdict, class_=f"verdict {BADGES[claim.verdict]}")
    name = element("strong", claim.name)
    return [name, claim.paper, claim.measured, *evidence(claim), badge, claim.reason]


def _figure(picture: Picture, prefix: str, title: str) -> Markup:
    label = f"{title}: {picture.title}"
    svg = inline_svg(picture.svg, prefix=prefix, label=label, source=picture.source)
    return element(
        "figure",
        _scrolling(label, svg, "card"),
        element("figcaption", picture.title),
    )


def _table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Markup | str]],
    kind: str = "plain",
) -> Markup:
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
    return _scrolling(title or "Claims", whole, "scroll")


def _scrolling(label: str, content: Markup, kind: str) -> Markup:
    """Return a box that scrolls by itself, also with the keyboard."""
    return element(
        "div", content, class_=kind, tabindex=0, role="region", aria_label=label
    )


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


def _block(text: str, kind: str) -> Markup:
    return element("pre", element("code", text), class_=kind)
