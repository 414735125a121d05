"""A model card holds the numbers of the run, in tables that are tables."""

import json
import re

import pytest
from support.comparisons import handmade

from algoscope.comparison.result import Comparison
from algoscope.model.checkpoints import MODELS
from algoscope.training.card import model_card
from algoscope.training.config import TrainingConfig

CONFIG = TrainingConfig(
    dim=3,
    prior_variance=1.5,
    noise_variance=0.25,
    num_examples=5,
    num_layers=2,
    hidden_size=12,
    num_heads=4,
    steps=1200,
    batch_size=48,
    seed=11,
)
COMPARISON = handmade(
    {
        "OLS": [0.0, 0.0123, 4.56e-5, 7.8e-6, 9.1e-7],
        "Ridge(0.1)": [0.0, 0.22, 0.33, 0.44, 0.55],
    }
)
METRICS = [
    {"step": 50, "loss": 4.0, "seconds": 10.0},
    {
        "step": 600,
        "loss": 1.23456,
        "spd_ols": 0.0321,
        "spd_bayes": 0.0654,
        "seconds": 99.0,
    },
    {
        "step": 1200,
        "loss": 0.5,
        "spd_ols": 1.2e-4,
        "spd_bayes": 3.4e-5,
        "seconds": 150.0,
    },
]
CARD = model_card("tiny", CONFIG, METRICS, COMPARISON)


def tables(card: str) -> list[list[list[str]]]:
    """Return the cells of every table, without their rules."""
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", card, re.MULTILINE)
    rows = [
        [
            [cell.strip() for cell in line[1:-1].split("|")]
            for line in block.splitlines()
        ]
        for block in blocks
    ]
    return rows


def test_the_card_begins_with_the_name():
    assert CARD.startswith("# tiny\n\n")


def test_the_card_says_what_the_learner_is():
    assert "d = 3 (linear task, τ² = 1.5, σ² = 0.25)" in CARD
    assert "with room for 4 examples and a query" in CARD
    shape = f"L = 2, H = 12, M = 4, {CONFIG.num_parameters:,} parameters"
    assert f"{shape}, pre_norm block." in CARD


def test_the_card_says_how_it_was_trained():
    assert "Trained for 1,200 steps of 48 datasets with the fast recipe" in CARD
    assert f"(seed 11, run {CONFIG.run_id}) in 2.5 minutes." in CARD


def test_the_card_says_what_was_measured():
    assert "mean over 12,345 held-out datasets (seed 7)" in CARD
    assert f"from {COMPARISON.task}, with the 95 % bootstrap interval" in CARD


def test_the_card_names_the_nearest_reference_and_says_that_identify_fits_parameters():
    assert (
        "\n\nOf these references OLS is the nearest: SPD/d = 0.0031 on average over "
        "n = 1, …, 4. Their parameters are fixed; `algoscope identify` also fits "
        "parameters, so it may name a predictor that is nearer still, such as ridge "
        "regression with a tiny penalty in place of OLS, which predicts almost the "
        "same.\n\n"
    ) in CARD
    swapped = handmade({"OLS": [0.0, 0.5], "Ridge(0.1)": [0.0, 0.25]})
    card = model_card("tiny", CONFIG, METRICS, swapped)
    assert "references Ridge(0.1) is the nearest: SPD/d = 0.25 on average" in card


def test_every_row_of_a_table_has_as_many_cells_as_its_header():
    found = tables(CARD)
    assert len(found) == 2
    for header, rule, *rows in found:
        assert rule == ["---:"] * len(header)
        assert rows
        assert {len(row) for row in rows} == {len(header)}


def test_the_first_table_holds_the_distances_to_every_reference():
    header, _, *rows = tables(CARD)[0]
    assert header == ["n", "OLS", "95 %", "Ridge(0.1)", "Y"]
    assert rows == [
        ["0", "0.00e+00", "0.00e+00 … 0.00e+00", "0.00e+00", "1.00e+01"],
        ["1", "1.23e-02", "6.15e-03 … 1.85e-02", "2.20e-01", "1.00e+01"],
        ["2", "4.56e-05", "2.28e-05 … 6.84e-05", "3.30e-01", "1.00e+01"],
        ["3", "7.80e-06", "3.90e-06 … 1.17e-05", "4.40e-01", "1.00e+01"],
        ["4", "9.10e-07", "4.55e-07 … 1.37e-06", "5.50e-01", "1.00e+01"],
    ]


def test_the_second_table_holds_the_steps_at_which_distances_were_measured():
    header, _, *rows = tables(CARD)[1]
    assert header == ["step", "loss", "SPD(OLS)/d", "SPD(Bayes)/d"]
    assert rows == [
        ["600", "1.2346", "3.21e-02", "6.54e-02"],
        ["1,200", "0.5000", "1.20e-04", "3.40e-05"],
    ]


@pytest.mark.parametrize("name", ["{config}", "{0}", "a}b", "100 %s"])
def test_a_name_is_not_a_template(name):
    card = model_card(name, CONFIG, METRICS, COMPARISON)
    assert card == CARD.replace("# tiny", f"# {name}")


def test_the_card_of_the_control_task_says_so():
    config = TrainingConfig(task="control", block="paper", recipe="paper")
    card = model_card("control", config, METRICS, COMPARISON)
    assert "(control task," in card
    assert "its SPD/d to the labels (column Y) is 10.\n" in card
    assert "to the labels (column Y)" not in CARD
    assert "with the paper recipe" in card
    assert "paper block." in card


@pytest.mark.parametrize(
    "name", sorted(path.parent.name for path in MODELS.glob("*/README.md"))
)
def test_the_card_of_a_shipped_model_is_what_its_files_say(name):
    config = json.loads((MODELS / name / "config.json").read_text())["training"]
    lines = (MODELS / name / "metrics.jsonl").read_text().splitlines()
    card = model_card(
        name,
        TrainingConfig.from_dict(config),
        [json.loads(line) for line in lines],
        Comparison.load(MODELS / name / "evaluation.json"),
    )
    assert (MODELS / name / "README.md").read_text() == card
