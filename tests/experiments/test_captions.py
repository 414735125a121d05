"""Every figure has a caption; reports quote the rules of the documentation."""

from pathlib import Path

import pytest

from algoscope.experiments.captions import CAPTIONS, caption_of
from algoscope.experiments.record import Record
from algoscope.experiments.rules import RULES, rule_of

ROOT = Path(__file__).parents[2]
RECORDS = sorted(path.parent for path in ROOT.glob("results/*/result.json"))


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of the tables in a page, without headers."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in lines]
    return [row for row in rows if row[0] not in ("claim", ":--")]


VERDICTS = table_rows((ROOT / "docs" / "verdicts.md").read_text())


@pytest.mark.parametrize("directory", RECORDS, ids=lambda path: path.name)
def test_every_saved_figure_has_a_caption_and_a_text_for_it(directory):
    for name in Record.load(directory).figures:
        caption = caption_of(name)
        assert caption is not None, name
        assert caption.text.endswith(".")
        assert caption.alt.endswith(".")
        assert name not in caption.text + caption.alt


def test_captions_are_found_by_whole_words():
    assert caption_of("figure_1") is CAPTIONS["figure_1"]
    assert caption_of("figure_1_wider") is CAPTIONS["figure_1_wider"]
    assert caption_of("figure_4_attention_mlp_unmasked") is not None
    assert caption_of("figure_10") is None
    assert caption_of("curves") is None


def test_the_rules_that_reports_quote_are_those_of_the_documentation():
    told = [row[1:] for row in VERDICTS if len(row) == 3]
    assert told == [[rule.reproduced, rule.partly] for rule in RULES]


def test_every_changed_verdict_of_the_documentation_is_shown_by_reports():
    changed = [row for row in VERDICTS if len(row) == 4 and row[1] != row[2].strip("*")]
    shown = []
    for name, before, *_ in changed:
        claim, _, figure = name.removesuffix(")").partition(" (fig. ")
        rule = rule_of(f"fig{figure}", claim)
        assert rule is not None, name
        assert rule.before == before, name
        shown.append(rule)
    assert all(rule in shown for rule in RULES if rule.before)


@pytest.mark.parametrize("directory", RECORDS, ids=lambda path: path.name)
def test_every_claim_that_the_rules_of_today_judged_has_its_rule(directory):
    record = Record.load(directory)
    for claim in record.claims:
        rule = rule_of(record.figure, claim.name)
        assert rule or claim.difference is None, claim.name
    assert rule_of(record.figure, "unknown") is None
