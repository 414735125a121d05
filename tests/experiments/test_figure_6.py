"""Figure 6: linearity is judged by its growth."""

from pathlib import Path

import pytest

from algoscope.comparison.intervals import Curve
from algoscope.comparison.metrics import LINEAR_FIT
from algoscope.comparison.result import Comparison
from algoscope.experiments import figure_6


def linearity(values: list[float], width: float = 0.01) -> Comparison:
    """Return a made-up comparison that holds R² after 0, 1, … examples."""
    low, high = [v - width for v in values], [v + width for v in values]
    spd = Curve("learner", "OLS", values, low, high, values)
    r2 = Curve("learner", LINEAR_FIT, values, low, high, values)
    sizes = {"num_costly_datasets": 10, "num_queries": 8}
    return Comparison(
        "learner", 4, "task", 10, 0, [spd], {}, {"r2": [r2]}, settings=sizes
    )


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.0, 0.5, 0.6, 0.8, 0.98, 1.0], "reproduced"),
        ([0.0, 0.5, 0.9, 0.7, 0.98, 1.0], "partly"),
        ([0.0, 0.9, 1.0, 1.0, 1.0, 1.0], "partly"),  # linear from two examples on
        ([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], "not reproduced"),
        ([0.0, 0.9, 0.8, 0.7, 0.6, 0.5], "not reproduced"),
    ],
)
def test_linearity_is_judged_by_its_growth(
    tmp_path: Path, values: list[float], verdict: str
):
    linearity(values).save(tmp_path / figure_6.FILE)
    judgment = figure_6.judge(figure_6.Figure6(), tmp_path)
    assert judgment.claims[0].verdict == verdict
    assert figure_6.draw(tmp_path) == ("figure_6",)
