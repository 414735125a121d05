"""Steps until a model predicts like OLS: our recipe against the paper's (app. D).

    python benchmarks/recipes.py

The same model (L = 4, H = 64) on the same data (d = 8, 20 examples before the last
query) under the same budget of steps, to which every schedule is stretched. Counted is
the first step at which SPD(OLS)/d, averaged over n = 1, …, 20 and 1,000 held-out
datasets, is at most 0.05. The paper chose Adam's rate from 10⁻⁴ and 2.5·10⁻⁴ for larger
models; 10⁻³ is what suits this one.

It takes about half an hour on two cores.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import tyro
from report import RESULTS, markdown, note, write

from algoscope.foundation import num_cores
from algoscope.model.transformer import Transformer
from algoscope.training.config import TrainingConfig
from algoscope.training.loop import TrainingDivergedError, initial_state, train_steps
from algoscope.training.run import EVALUATION_DATASETS, evaluator

Evaluate = Callable[[Transformer], dict[str, float]]


@dataclass(frozen=True)
class Options:
    """Count the steps until a model predicts like OLS, recipe by recipe."""

    steps: int = 4000
    """The budget of every run."""
    threshold: float = 0.05
    """The mean SPD(OLS)/d to reach."""
    evaluate_every: int = 100
    """Steps between two measurements: a multiple of 50."""
    seed: int = 0
    """Seed of the initial weights and of the data."""
    out: Path = RESULTS / "recipes.json"
    """Where the results go."""


def recipes(options: Options) -> dict[str, TrainingConfig]:
    """Return the runs by name, ours first."""
    shared: dict[str, Any] = {
        "num_layers": 4,
        "steps": options.steps,
        "evaluate_every": options.evaluate_every,
        "seed": options.seed,
    }
    paper: dict[str, Any] = {"recipe": "paper", "warmup": 0.2, "clip": 0.0, **shared}
    return {
        "fast: Muon": TrainingConfig(**shared),
        "paper: Adam": TrainingConfig(learning_rate=1e-4, **paper),
        "paper: Adam, higher rate": TrainingConfig(learning_rate=2.5e-4, **paper),
        "Adam, tuned rate": TrainingConfig(learning_rate=1e-3, **paper),
    }


def run(name: str, config: TrainingConfig, evaluate: Evaluate) -> dict[str, Any]:
    """Train to the end of the budget; return the measured curve."""
    curve: list[tuple[int, float]] = []
    diverged_at = None
    try:
        for state, losses in train_steps(config, initial_state(config)):
            step = int(state.step)
            if step % config.evaluate_every == 0 or step == config.steps:
                curve.append((step, evaluate(state.transformer)["spd_ols"]))
                note(
                    f"{name}: step {step}, loss {losses.mean():.3f}, {curve[-1][1]:.3f}"
                )
    except TrainingDivergedError as error:
        diverged_at = error.step
    return {"recipe": name, "curve": curve, "diverged_at": diverged_at}


def first_step(result: dict[str, Any], threshold: float) -> int | None:
    """Return the first measured step at or below the threshold."""
    return next((step for step, spd in result["curve"] if spd <= threshold), None)


def row(
    result: dict[str, Any], config: TrainingConfig, threshold: float, ours: int | None
) -> list[str]:
    """Return the line of the table."""
    best = min((spd for _, spd in result["curve"]), default=float("nan"))
    reached = first_step(result, threshold)
    text = f"{reached:,}" if reached else f"not reached; best {best:.3f}"
    if result["diverged_at"]:
        text += f"; diverged at step {result['diverged_at']:,}"
    ratio = "–"
    if ours:
        ratio = f"{reached / ours:.1f}×" if reached else f"> {config.steps / ours:.1f}×"
    return [result["recipe"], f"{config.learning_rate:g}", text, f"{best:.4f}", ratio]


def main(options: Options) -> None:
    jax.config.update("jax_num_cpu_devices", num_cores())
    configs = recipes(options)
    evaluate = evaluator(next(iter(configs.values())))
    results = [run(name, config, evaluate) for name, config in configs.items()]
    ours = first_step(results[0], options.threshold)
    rows = [
        row(result, configs[result["recipe"]], options.threshold, ours)
        for result in results
    ]
    header = [
        "recipe",
        "peak rate",
        f"steps to {options.threshold:g}",
        f"best in {options.steps:,}",
        "steps / ours",
    ]
    print(markdown(header, rows))
    settings = {
        "threshold": options.threshold,
        "held_out_datasets": EVALUATION_DATASETS,
        "configurations": {name: asdict(config) for name, config in configs.items()},
    }
    for result in results:
        result["first_step"] = first_step(result, options.threshold)
    write(options.out, settings, results)


if __name__ == "__main__":
    main(tyro.cli(Options))
