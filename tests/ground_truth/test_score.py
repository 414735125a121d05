"""Scores: probes and patching are right about what is known."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from algoscope.ground_truth import (
    GroundTruthScores,
    LabelledLearner,
    score,
    write_ground_truth,
)
from algoscope.ground_truth.collection import COLLECTION
from algoscope.ground_truth.findings import Finding
from algoscope.ground_truth.reading import LINEAR, MLP, probe_states


@pytest.fixture(scope="module")
def found(written: Path) -> GroundTruthScores:
    return score([written / "gd-d2-n4"], "smoke", progress=False)


def test_every_held_quantity_is_read_and_every_used_one_found(found):
    exact = [s for s in found.scores() if s.truth and s.method != MLP]
    right = {s.reason: s.share for s in exact}
    assert right.keys() == {"held", "held and used", "carries the weights", "works"}
    assert set(right.values()) == {1.0}


def test_an_mlp_reads_what_is_held_and_more(written):
    labelled = LabelledLearner.load(written / "gd-d2-n4")
    cells = list(probe_states(labelled, 512, 128, 300))
    says = {(c.method, c.what, c.layer): c.says for c in cells}
    held = [c for c in cells if c.truth and c.method == MLP]
    assert min(cell.says for cell in held) > 0.95
    absent = [c for c in cells if c.reason == "never" and c.method == LINEAR]
    gains = [says[MLP, c.what, c.layer] - c.says for c in absent]
    assert max(gains) > 0.05  # it computes what is not there
    at_input = {c.what: c.says for c in held if c.layer == 0}
    assert says[MLP, "w2", 0] < 0.9
    assert not at_input.keys() & {"w2"}


def test_a_learner_is_scored_once(found, written, monkeypatch):
    def again(*_):
        raise AssertionError("scored again")

    module = sys.modules[score.__module__]
    monkeypatch.setattr(module, "_findings", again)
    place = written / "gd-d2-n4"
    assert score([place], "smoke", progress=False).findings == found.findings
    with pytest.raises(AssertionError, match="scored again"):
        score([place], "cpu", progress=False)


def test_what_is_absent_has_its_reason(found):
    reasons = {f.what: f.reason for f in found.findings if f.layer == 0 and not f.truth}
    assert reasons["w2"] == "not yet"
    assert reasons["w_ols"] == "never computed"
    strict = [s for s in found.scores() if s.reason == "idle"]
    assert all(score.share == 1 for score in strict)


def test_scores_are_counted_by_threshold(found):
    cells = [
        Finding("gd-d2-n4", "swap", "weights", 1, truth, "here", says)
        for truth, says in ((True, 0.9), (True, 0.2), (False, 0.6), (False, 0.1))
    ]
    counted = replace(found, findings=tuple(cells), thresholds={"swap": (0.5, 0.15)})
    shares = [(each.truth, each.threshold, each.right) for each in counted.scores()]
    assert shares == [
        (True, 0.5, 1),
        (True, 0.15, 2),
        (False, 0.5, 1),
        (False, 0.15, 1),
    ]
    assert "swap: 50.0% and 50.0%" in counted.sentence


def test_scores_are_saved_and_drawn(found, tmp_path):
    found.save(tmp_path)
    assert GroundTruthScores.load(tmp_path) == found
    assert len(found.plot().axes) == 1
    header, rows = found.summary()
    assert {len(row) for row in rows} == {len(header)}


def test_the_collection_has_rotated_and_plain_learners_of_several_sizes():
    names = [entry.name for entry in COLLECTION]
    assert len(set(names)) == len(names) >= 20
    rotated = {entry.name for entry in COLLECTION if entry.form == "rotated"}
    assert len(rotated) >= 5
    assert {name.removesuffix("-rotated") for name in rotated} <= set(names)


def test_unknown_learners_and_other_directories_are_refused(tmp_path, written):
    with pytest.raises(ValueError, match="`only` must name learners of the collection"):
        write_ground_truth(tmp_path, only=["sgd-d9-n9"])
    with pytest.raises(ValueError, match="be a directory of a ground truth"):
        LabelledLearner.load(tmp_path)
    with pytest.raises(ValueError, match="`quantity` must be one of token, x1"):
        LabelledLearner.load(written / "sgd-d2-n4").quantity("w9")
    with pytest.raises(ValueError, match="`budget` must be one of smoke, cpu"):
        score([], "huge")
