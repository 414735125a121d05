"""Figure 1: judged by which reference is nearest, and drawn."""

from pathlib import Path

import numpy as np
import pytest

from algoscope.comparison.intervals import Curve, Estimate
from algoscope.comparison.result import LABELS, Comparison
from algoscope.experiments import figure_1
from algoscope.experiments.references import paper_names


def fit(own: dict[str, float], dim: int = 4, last: int = 6) -> Comparison:
    """Return a made-up comparison whose SPD and ILWD do not depend on n."""

    def curve(first: str, second: str, value: float) -> Curve:
        mean, low, high = ([value * c] * (last + 1) for c in (1.0, 0.9, 1.1))
        return Curve(first, second, mean, low, high, mean)

    curves = [curve("learner", name, value) for name, value in own.items()]
    labels = [curve(name, LABELS, 0.5) for name in ("learner", *figure_1.LABELED)]
    mspd = [
        Estimate("learner", name, value, value * 0.9, value * 1.1, value, 10)
        for name, value in own.items()
    ]
    return Comparison(
        "learner",
        dim,
        "task",
        10,
        0,
        curves + labels,
        {},
        {"ilwd": curves},
        mspd,
        {"num_costly_datasets": 10, "region": [1, dim - 1]},
    )


ORDER = dict(zip(paper_names(), np.geomspace(1e-3, 0.6, 9).tolist(), strict=True))


@pytest.mark.parametrize(
    ("own", "verdicts"),
    [
        (ORDER, ["reproduced"] * 3),
        (
            {name: 0.02 + value for name, value in ORDER.items()},
            ["partly", "partly", "reproduced"],
        ),
        (ORDER | {"OLS": 0.9}, ["not reproduced"] * 3),
        (ORDER | {"SGD(0.01)": 0.9}, ["reproduced", "reproduced", "partly"]),
    ],
)
def test_figure_1_is_judged(tmp_path: Path, own: dict[str, float], verdicts: list[str]):
    fit(own | {"OptimalGD": 0.5}).save(tmp_path / figure_1.FILE)
    judgment = figure_1.judge(figure_1.Figure1(), tmp_path)
    assert [claim.verdict for claim in judgment.claims] == verdicts
    assert figure_1.draw(tmp_path) == ("figure_1", "figure_1_wider")


def test_the_sentences_say_where_ols_is_close(tmp_path: Path):
    fit(ORDER | {"OptimalGD": 0.5}).save(tmp_path / figure_1.FILE)
    judgment = figure_1.judge(figure_1.Figure1(), tmp_path)
    fits, wider = judgment.findings
    assert fits == (
        "OLS is the nearest of 9 references at 6 of 6 n; SPD(OLS, learner)/d is 0.001 "
        "on average over n = 1–6 and significantly below 0.01 at 6 of 6 n; its largest "
        "value is 0.001 [0.0009, 0.0011] at n = 1 (10 datasets)."
    )
    assert wider.startswith("The nearest of the wider reference set over the same n")
    minimum_norm = judgment.claims[1].measured
    assert minimum_norm.endswith("no other reference is significantly nearer at any n.")
