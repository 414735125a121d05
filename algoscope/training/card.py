"""Model cards: what a trained learner is and what was measured of it, as Markdown."""

from algoscope.comparison.result import LABELS, Comparison
from algoscope.foundation.files import read_json
from algoscope.foundation.text import scientific, short
from algoscope.model.checkpoints import CONFIG, EVALUATION, locate
from algoscope.training.config import TrainingConfig

TEXT = """# {name}

An in-context learner for d = {config.dim} ({config.task} task, τ² = \
{config.prior_variance:g}, σ² = {config.noise_variance:g}), with room for {room} \
examples and a query. L = {config.num_layers}, H = {config.hidden_size}, M = \
{config.num_heads}, {config.num_parameters:,} parameters, {config.block} block.

Trained for {config.steps:,} steps of {config.batch_size} datasets with the \
{config.recipe} recipe (seed {config.seed}, run {config.run_id}) in {minutes:.1f} \
minutes. config.json holds the whole configuration, metrics.jsonl the whole curve.

## What it computes

SPD/d to each reference after n examples: mean over {datasets:,} held-out datasets \
(seed {seed}) from {task}, with the 95 % bootstrap interval of the first column. \
evaluation.json holds the same with intervals for every reference.

{nearest}

{table}

## Training curve

SPD/d to ordinary least squares and to the Bayes predictor during training: mean over \
all prefixes with at least one example.

{curve}
"""

NEAREST = """Of these references {reference} is the nearest: SPD/d = {distance} on \
average over n = 1, …, {last}. Their parameters are fixed; `algoscope identify` also \
fits parameters, so it may name a predictor that is nearer still, such as ridge \
regression with a tiny penalty in place of OLS, which predicts almost the same."""

CONTROL = """ This model was trained on the control task, where w is always 1 and no \
examples are needed: its SPD/d to the labels (column {labels}) is {distance}."""


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    rule = ["---:"] * len(header)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def model_card(
    name: str,
    config: TrainingConfig,
    metrics: list[dict],
    comparison: Comparison,
) -> str:
    """Return the card of a finished run."""
    curves = [c for c in comparison.curves if c.first == comparison.learner]
    first = curves[0]
    table = _markdown(
        ["n", first.second, "95 %", *(c.second for c in curves[1:])],
        [
            [
                str(n),
                scientific(first.mean[n]),
                f"{scientific(first.low[n])} … {scientific(first.high[n])}",
                *(scientific(c.mean[n]) for c in curves[1:]),
            ]
            for n in range(len(first.mean))
        ],
    )
    curve = _markdown(
        ["step", "loss", "SPD(OLS)/d", "SPD(Bayes)/d"],
        [
            [
                f"{row['step']:,}",
                f"{row['loss']:.4f}",
                scientific(row["spd_ols"]),
                scientific(row["spd_bayes"]),
            ]
            for row in metrics
            if row.keys() >= {"spd_ols", "spd_bayes"}
        ],
    )
    reference, distance = comparison.nearest(1, comparison.num_examples)[0]
    nearest = NEAREST.format(
        reference=reference, distance=short(distance), last=comparison.num_examples
    )
    if config.task == "control":
        labels = comparison.against(LABELS).average(1, comparison.num_examples)
        nearest += CONTROL.format(labels=LABELS, distance=short(labels))
    return TEXT.format(
        name=name,
        config=config,
        room=config.num_examples - 1,
        minutes=(metrics[-1]["seconds"] if metrics else 0.0) / 60,
        datasets=comparison.num_datasets,
        seed=comparison.seed,
        task=comparison.task,
        nearest=nearest,
        table=table,
        curve=curve,
    )


def model_facts(name: str) -> dict[str, str | int | float]:
    """Return what `algoscope models` shows of a shipped model."""
    directory = locate(name)
    training = read_json(directory / CONFIG)["training"]
    evaluation = Comparison.load(directory / EVALUATION)
    return {
        "model": name,
        "task": training["task"],
        "d": training["dim"],
        "examples": training["num_examples"] - 1,
        "L": training["num_layers"],
        "H": training["hidden_size"],
        "M": training["num_heads"],
        "spd_ols": evaluation.against("OLS").average(1, evaluation.num_examples),
    }
