"""Sections as one HTML file that needs no other file and runs no script."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from algoscope.experiments.record import Table, Verdict
from algoscope.foundation.plotting import COLORS, DARK_COLORS
from algoscope.reporting.markup import Markup, element, inline_svg, title_of
from algoscope.reporting.section import (
    LEGEND,
    JudgedClaim,
    Picture,
    Section,
    are_numbers,
    claims_of,
    count_verdicts,
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

IN_ROW = ("What decides", "Seeds")  # of a claim: said again only on a phone


def html_page(
    title: str, sections: Sequence[Section], command: str, playground: str | None = None
) -> str:
    """Return the page: contents with verdicts, and a part for each result.

    `playground` is the address of the playground beside the page, if there is one.
    """
    parts = [_head(title, sections, playground)]
    parts += [_section(number, section) for number, section in enumerate(sections)]
    made = element("p", "Made by ", element("code", command), ".")
    body = element("body", element("main", *parts), element("footer", made))
    return document(title, _palette() + STYLE.read_text(encoding="utf-8"), body)


def document(title: str, style: str, body: Markup) -> str:
    """Return a whole page without scripts, for light and for dark screens."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        Markup(f"<style>\n{style}</style>"),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en').html}\n"


def _palette() -> str:
    """Return the colors of figures as variables, for light and for dark paper."""

    def block(colors: Sequence[str]) -> str:
        inks = [color or "currentColor" for color in colors]
        each = [f"--color-{place}: {color};" for place, color in enumerate(inks)]
        return f":root {{ {' '.join(each)} }}"

    dark = f"@media screen and (prefers-color-scheme: dark) {{ {block(DARK_COLORS)} }}"
    return f"{block([*COLORS[:-1], ''])}\n{dark}\n"


def _head(title: str, sections: Sequence[Section], playground: str | None) -> Markup:
    parts = [element("h1", title)]
    if claims := claims_of(sections):
        parts.append(element("p", count_verdicts(claims)))
    parts.append(_contents(sections))
    if claims:
        parts.append(element("p", LEGEND, class_="quiet"))
    where: list[Markup | str] = ["See learners from inside in "]
    if playground:
        where += [element("a", "the playground", href=playground), "."]
    else:
        where += ["the playground: ", element("code", "algoscope play --open"), "."]
    return element("header", *parts, element("p", *where, class_="quiet"))


def _contents(sections: Sequence[Section]) -> Markup:
    items = []
    for number, section in enumerate(sections):
        counts = Counter(each.claim.verdict for each in section.claims)
        badges = [
            _badge(verdict, f"{counts[verdict]} {verdict}")
            for verdict in get_args(Verdict)
            if counts[verdict]
        ]
        link = element("a", section.title, href=f"#result-{number}")
        items.append(element("li", link, element("span", *badges)))
    return element("nav", element("ol", *items), aria_label="Contents")


def _badge(verdict: Verdict, text: str) -> Markup:
    return element("span", text, class_=f"verdict {BADGES[verdict]}")


def _section(number: int, section: Section) -> Markup:
    parts = [element("h2", section.title, id=f"result-{number}")]
    if not section.claims:
        parts += [element("p", finding, class_="lead") for finding in section.findings]
    for place, picture in enumerate(section.pictures):
        parts.append(_figure(picture, f"f{number}-{place}-"))
    if section.claims:
        heads = ("claim", "what decides", "seeds", "verdict")
        labels = [element("span", head) for head in heads]
        head = element("div", *labels, class_="heads", aria_hidden="true")
        claims = [_claim(each) for each in section.claims]
        parts.append(element("div", head, *claims, class_="claims"))
        if section.further_findings:
            found = [element("li", finding) for finding in section.further_findings]
            listed = element("ul", *found, class_="findings")
            parts.append(_folded("Further findings", listed))
    tables = list(map(_table, section.tables))
    if section.pictures:
        named = zip(section.tables, tables, strict=True)
        tables = [_folded(f"Table: {each.title}", table) for each, table in named]
    made = [_block(section.command, "command")] if section.command else []
    made.append(_facts(section))
    for name, values in section.details.items():
        text = json.dumps(values, indent=2, ensure_ascii=False)
        made += [element("h3", name), _block(text, "json")]
    parts += [*tables, _folded("How it was made", *made)]
    return element("section", *parts)


def _claim(judged: JudgedClaim) -> Markup:
    claim = judged.claim
    verdict = [_badge(claim.verdict, claim.verdict)]
    if judged.remark:
        verdict.append(element("span", judged.remark, class_="quiet"))
    row = element(
        "summary",
        element("strong", claim.name),
        element("span", judged.decides, class_="decides"),
        element("span", judged.seeds, class_="seeds"),
        element("span", *verdict),
    )
    told = []
    for name, text in judged.details().items():
        kind = {"class_": "again"} if name in IN_ROW else {}
        told.append(element("div", element("dt", name), element("dd", text), **kind))
    return element("details", row, element("dl", *told))


def _folded(name: str, *content: Markup) -> Markup:
    return element("details", element("summary", name), *content, class_="more")


def _figure(picture: Picture, prefix: str) -> Markup:
    caption, alt = picture.caption, picture.caption.alt
    svg = inline_svg(picture.svg, prefix=prefix, label=alt, source=picture.source)
    told: list[Markup] = []
    if caption.text:
        told.append(element("p", caption.text))
    if title := title_of(picture.svg):
        told.append(element("p", title, class_="quiet"))
    content = element("figcaption", *told or [Markup("")])
    return element("figure", _scrolling(alt, svg, "card"), content)


def _table(table: Table) -> Markup:
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.header)
    kinds = ["number" if are_numbers(column) else "words" for column in columns]
    heads = [
        element("th", name, scope="col", class_=each)
        for name, each in zip(table.header, kinds, strict=True)
    ]
    body = [
        element(
            "tr",
            *(
                element("td", cell, class_=each)
                for cell, each in zip(row, kinds, strict=True)
            ),
        )
        for row in table.rows
    ]
    whole = element(
        "table",
        element("caption", table.title),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
    )
    return _scrolling(table.title, whole, "scroll")


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
    return element("dl", *pairs, class_="facts")


def _block(text: str, kind: str) -> Markup:
    return element("pre", element("code", text), class_=kind)
