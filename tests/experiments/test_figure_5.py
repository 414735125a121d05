"""Figure 5: controls are judged against the learner, each in its best layer."""

from pathlib import Path

import pytest
from support.probing import EARLY, LATE, evidence, probing_result

from algoscope.experiments import figure_4, figure_5


@pytest.mark.parametrize(
    ("control", "verdict", "reason"),
    [
        (0.5, "reproduced", ""),
        (-0.02, "not reproduced", "Significantly worse in 0 of 4 cases."),
    ],
)
def test_controls_are_judged(control: float, verdict: str, reason: str):
    found = evidence(EARLY, LATE, 0.1, control)
    claim = figure_5.controls_are_worse(found, "c")
    assert (claim.verdict, claim.reason) == (verdict, reason)
    assert claim.name == "probes of c are worse"
    assert claim.seeds == 2
    assert claim.difference is not None
    assert claim.difference.mean == pytest.approx(control)


def test_the_controls_are_read_from_the_probing_of_figure_4(tmp_path: Path):
    probing_result(EARLY, LATE, 0.1, 0.5).save(tmp_path / "fig4")
    config = figure_4.EXPERIMENT.config("smoke")
    judgment = figure_5.EXPERIMENT.judge(config, tmp_path / "fig5")
    assert judgment.findings == (judgment.claims[0].measured,)
    assert [table.title for table in judgment.tables] == [
        "XᵀY in c: relative error",
        "w_OLS in c: relative error",
    ]
    assert figure_5.EXPERIMENT.draw(tmp_path / "fig5") == ("figure_5",)
    assert (tmp_path / "fig5" / "figure_5.svg").exists()
