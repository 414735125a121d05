"""A page shows all of a result, and no text in it is read as markup."""

import re

from hypothesis import given
from support.results import TEXT, Reader, reported, save_record

from algoscope.reporting.markup import element, visible


@given(TEXT)
def test_any_text_is_shown_as_it_is(text):
    page = Reader(element("p", text, title=text).html)
    assert page.text == visible(text)
    assert page.elements == [("p", {"title": visible(text)})]


@given(TEXT)
def test_visible_text_can_be_encoded_and_replaces_only_the_unprintable(text):
    shown = visible(text)
    shown.encode()
    assert len(shown) == len(text)
    assert visible(shown) == shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)


def test_an_experiment_is_shown_with_all_that_it_found(tmp_path):
    record = save_record(tmp_path / "fig1")
    page = reported(tmp_path / "report.html", tmp_path / "fig1")
    words = [
        "Figure 1: Which algorithm?",
        record.command,
        *record.findings,
        "72 min",
        "smoke",
    ]
    words += ["1 diverged, 1 finished", "c0ffee", "python 3.11, algoscope 0.1.0"]
    words += ["2 claims: 1 reproduced, 1 partly.", '"seeds"', "Distances", "0.002"]
    for claim in record.claims:
        words += [claim.name, claim.paper, claim.measured, claim.verdict, claim.reason]
    for word in words:
        assert word in page.text, word
    tags = [tag for tag, _ in page.elements]
    assert tags.count("svg") == 1
    assert tags.count("details") == 2
    assert not {"script", "img", "link", "iframe"} & set(tags)
    assert {"verdict good", "verdict mixed"} <= set(page.all("class"))
    assert page.all("content")[0].startswith("default-src 'none'; ")
