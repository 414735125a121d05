"""`leaving`: what is measured on the way, and what is concluded from it."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from support.experiments import place_in

from algoscope.experiments.learners import NoLearnerError
from algoscope.experiments.leaving import (
    EXPERIMENT,
    LINES,
    Leaving,
    Snapshot,
    distance,
    draw,
    judge,
    load,
    measure,
    start_of,
)
from algoscope.foundation.files import write_json

GOAL = "one step of GD"
TINY = Leaving((GOAL,), 1, 2, num_datasets=8, num_identified=0)


def saved(directory: Path, *, written: float, bayes: float, loss: float) -> None:
    """Write runs of which the written one ends at these distances and this loss."""
    first = Snapshot(0, 1.0, 1e-6, 0.5, 0.2, 0.0, "–", "–", np.nan)
    last = replace(first, step=4, construction=written, bayes=bayes, loss=loss)
    for variant in LINES:
        end = last if variant == "written" else replace(first, step=4)
        file = f"one-step-of-gd-{variant.replace(' ', '-')}.json"
        write_json(directory / file, {"snapshots": [asdict(first), asdict(end)]})


@pytest.mark.parametrize(
    ("written", "bayes", "loss", "verdicts"),
    [
        (0.3, 0.01, 0.5, ["reproduced", "reproduced"]),
        (0.05, 0.1, 0.5, ["partly", "reproduced"]),
        (0.01, 0.3, 1.5, ["not reproduced", "not reproduced"]),
    ],
)
def test_claims_follow_the_distances(tmp_path, written, bayes, loss, verdicts):
    saved(tmp_path, written=written, bayes=bayes, loss=loss)
    found = judge(TINY, tmp_path)
    assert [claim.verdict for claim in found.claims] == verdicts
    assert all(claim.is_ours for claim in found.claims)
    assert len(found.tables[0].rows) == 6
    assert draw(tmp_path) == ("leaving",)
    assert (tmp_path / "leaving.svg").exists()
    assert np.isnan(load(tmp_path, GOAL, "random")[0].nearest_distance)


def test_nothing_is_trained_where_only_finished_runs_are_asked_for(tmp_path: Path):
    with pytest.raises(NoLearnerError, match="written: not trained to its end"):
        measure(TINY, place_in(tmp_path, finished=True))
    assert not list(tmp_path.rglob("*.json"))


def test_the_distance_ignores_a_few_wild_datasets():
    found, reference = np.zeros((5, 3)), np.ones((5, 3))
    reference[0] = 1e6
    assert distance(found, reference, 2) == 0.5


def test_starts_have_equal_size():
    starts = [start_of(TINY, GOAL, variant) for variant in LINES]
    sizes = {each.transformer.num_parameters for each in starts}
    assert len(sizes) == 1
    assert len({each.name for each in starts}) == 3


def test_every_budget_ends_at_a_snapshot_that_a_call_reaches():
    for config in EXPERIMENT.budgets.values():
        assert all(step % config.steps_per_call == 0 for step in config.snapshots)
