"""Text in a Markdown page is shown as it is, and its claims and figures are linked."""

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.results import TEXT, save_record

from algoscope.experiments.record import OURS, Claim, Difference
from algoscope.reporting import markdown, report
from algoscope.reporting.markup import visible
from algoscope.reporting.section import JudgedClaim, count_verdicts

PUNCTUATION = st.text("\\`*_{}[]()<>#+-=.!|~&$:/;\"' \n1a", max_size=12)
MARKS = ("&amp;", "&#60;", "<b>", "![a](b)", "[a]: b", "~~a~~", "1. ", "- ", "a ", "\n")
PIECES = st.lists(st.sampled_from(MARKS), max_size=4).map("".join)


def said(source: str) -> list[str]:
    """Return the text of each block, as a reader of Markdown sees it."""
    parser = MarkdownIt("commonmark").enable("table")
    blocks = [token for token in parser.parse(source) if token.type == "inline"]
    return [
        "".join(
            child.content
            for child in block.children or ()
            if child.type in ("text", "code_inline", "text_special")
        )
        for block in blocks
    ]


@given(PUNCTUATION | PIECES | TEXT)
def test_any_text_survives_markdown(text):
    line = " ".join(visible(text).split())
    escaped = markdown.escape(text)
    for source in (f"{escaped}", f"* {escaped}", f"## {escaped}"):
        assert "".join(said(source)) == line
    cells = [escaped, markdown.code(text), "last"]
    assert said(markdown.table(["a", "b", "c"], [cells]))[3:] == [line, line, "last"]


@given(PUNCTUATION | PIECES | TEXT)
def test_any_command_survives_a_block(text):
    (token,) = MarkdownIt("commonmark").parse(markdown.block(text))
    lines = visible(text).split("\n")
    assert token.content.split("\n")[: len(lines)] == lines


def test_a_page_of_markdown_has_a_row_per_claim_and_links_to_pictures(tmp_path):
    save_record(tmp_path / "results" / "a b", title="A | B")
    out = tmp_path / "docs" / "results.md"
    report([tmp_path / "results"], out)
    text = out.read_text()
    assert "| [depth](#depth) | **partly** (earlier rules) | – | – |\n" in text
    told = "* **Measured here:** two of three\n* **Rule:** This verdict was made by"
    assert f"* **The paper says:** §4.4: phases\n{told}" in text
    assert "* **Why:** few depths\n" in text
    assert "## Figure 1: A \\| B\n" in text
    assert "![curves](../results/a%20b/curves.png)\n" in text
    assert "```text\nalgoscope reproduce fig1 --budget smoke\n```" in text
    assert "| reference | SPD/d |\n| --- | ---: |\n| OLS | 0.002 |\n" in text


def test_a_claim_shows_its_seeds_and_the_difference_that_decides_it(tmp_path):
    gap = Difference("SPD/d to Ridge(0.1) − SPD/d to OLS, n < d", 0.5, 0.25, 0.75)
    claim = Claim("a", "b", "c", "reproduced", seeds=3, difference=gap)
    save_record(tmp_path / "fig1", claims=(claim,))
    for name in ("results.md", "report.html"):
        report([tmp_path / "fig1"], tmp_path / name, progress=False)
        text = (tmp_path / name).read_text()
        assert "SPD/d to OLS, n" in text
        assert "what decides" in text
    row = "| [a](#a) | **reproduced** | 3 | SPD/d to Ridge(0.1) − SPD/d to OLS, n \\< d"
    assert row in (tmp_path / "results.md").read_text()


def test_a_claim_is_linked_to_its_own_heading(tmp_path):
    names = ("a: b", "a  b", "Results")
    claims = tuple(Claim(name, "", "", "partly") for name in names)
    save_record(tmp_path / "fig1", claims=claims)
    out = tmp_path / "results.md"
    report(tmp_path / "fig1", out, progress=False)
    text = out.read_text()
    for link in ("[a: b](#a-b)", "[a b](#a-b-1)", "[Results](#results-1)"):
        assert f"| {link} |" in text


def test_rules_are_linked_where_they_are_beside_the_page(tmp_path):
    save_record(tmp_path / "fig1")
    out = tmp_path / "results.md"
    for is_there in (False, True):
        report(tmp_path / "fig1", out, progress=False)
        assert ("](verdicts.md)" in out.read_text()) == is_there
        (tmp_path / "verdicts.md").write_text("rules")


def test_a_finding_that_is_a_claim_is_not_repeated(tmp_path):
    claim = Claim("a", "", "Once. And once more.", "partly")
    save_record(tmp_path / "fig1", claims=(claim,), findings=("Once.", "Another."))
    for name in ("results.md", "report.html"):
        report(tmp_path / "fig1", tmp_path / name, progress=False)
        text = (tmp_path / name).read_text()
        assert (text.count("Once."), text.count("Another.")) == (1, 1)


def test_an_earlier_verdict_stays_visible(tmp_path):
    gap = Difference("0.99 − pooled R²", -0.1, -0.2, -0.05)
    claim = Claim("gradual linearity", "", "", "not reproduced", difference=gap)
    save_record(tmp_path / "fig6", figure="fig6", claims=(claim,), budget="cpu")
    out = tmp_path / "results.md"
    report(tmp_path / "fig6", out, progress=False)
    text = out.read_text()
    assert "**not reproduced** (before: partly)" in text
    assert "* **Before:** By earlier rules: partly. Now: pooled and median R²" in text
    assert "* **Rule:** Reproduced if for the pooled and for the median R² of" in text
    save_record(tmp_path / "fig6", figure="fig6", claims=(claim,), budget="smoke")
    report(tmp_path / "fig6", out, progress=False)
    assert "before" not in out.read_text().lower()


def test_claims_of_our_own_are_counted_apart():
    paper = [
        JudgedClaim(Claim("a", "The paper says.", "", "reproduced")),
        JudgedClaim(Claim("a", "The paper says.", "", "partly"), is_earlier=True),
    ]
    ours = [JudgedClaim(Claim("b", f"{OURS} We say.", "", "reproduced"))] * 2
    assert count_verdicts([*paper, *ours]) == (
        "2 claims: 1 reproduced, 1 partly. 2 claims of our own, not of the paper: "
        "2 reproduced. Verdicts by earlier rules: 1."
    )
    assert count_verdicts(ours[:1]) == (
        "1 claim of our own, not of the paper: 1 reproduced."
    )
