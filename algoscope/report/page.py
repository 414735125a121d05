"""Sections as one HTML file that needs nothing else: no network, no script."""

import json
from collections.abc import Sequence
from pathlib import Path

from algoscope.experiments.record import Claim
from algoscope.report.claims import CLAIM_HEADER, LEGEND, counted, numbered_claims
from algoscope.report.markup import Markup, element
from algoscope.report.sections import Picture, Section
from algoscope.report.svg import inline_svg
from algoscope.report.tables import plain_table, scrolling, table_of

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
