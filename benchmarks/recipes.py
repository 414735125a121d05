"""Time until a model predicts like OLS: our recipe against the paper's (app. D).

    python benchmarks/recipes.py

The same model (L = 8, H = 64) on the same data (d = 8, 20 examples before the last
query). Every recipe climbs a ladder of budgets, its schedule stretched to each of them:
1,000, 4,000, 16,000 and 64,000 steps. Its time to a threshold is the least training
time at which SPD(OLS)/d, averaged over n = 1, …, 20 and 1,000 held-out datasets, is at
most that threshold, over all of its budgets. It stops when both thresholds are reached,
or at 20 times the time that ours needs for the lower one.

Time is that of training alone, without compilation and measuring. The paper chose
Adam's rate from 10⁻⁴ and 2.5·10⁻⁴ for larger models; 10⁻³ is what suits this one.
Finished budgets are kept in the file of results, so an interrupted benchmark goes on
where it stopped. It takes up to two hours on two cores.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import tyro
from report import RESULTS, markdown, note, note_load, write

from algoscope.foundation import num_cores
from algoscope.foundation.files import read_json
from algoscope.model.transformer import Transformer
from algoscope.training.config import TrainingConfig
from algoscope.training.loop import TrainingDivergedError, initial_state, train_steps
from algoscope.training.run import EVALUATION_DATASETS, evaluator

Evaluate = Callable[[Transformer], dict[str, float]]
MOST = 20  # times our own time

MODEL = TrainingConfig(num_layers=8, num_heads=4, hidden_size=64)
ADAM = replace(MODEL, recipe="paper", warmup=0.2, clip=0.0)
CONFIGS: dict[str, TrainingConfig] = {
    "fast": replace(MODEL, loss_weights="risk", decay="linear"),
    "fast, all positions alike": MODEL,
    "paper: Adam": replace(ADAM, learning_rate=2.5e-4),
    "Adam, tuned rate": replace(ADAM, learning_rate=1e-3),
}


@dataclass(frozen=True)
class Options:
    """Time every recipe until its model predicts like OLS."""

    budgets: tuple[int, ...] = (1000, 4000, 16_000, 64_000)
    """Steps of the ladder."""
    thresholds: tuple[float, ...] = (0.05, 0.01)
    """The mean SPD(OLS)/d to reach, from high to low."""
    evaluate_every: int = 100
    """Steps between two measurements: a multiple of 50."""
    only: tuple[str, ...] = ()
    """Recipes, by default all."""
    out: Path = RESULTS / "recipes.json"
    """Where the results go."""


def climb(
    config: TrainingConfig, most: float, last: float, evaluate: Evaluate
) -> dict[str, Any]:
    """Train one budget until `last` is reached or `most` seconds are over."""
    curve: list[tuple[int, float, float]] = []
    seconds, diverged_at = 0.0, None
    steps = train_steps(config, initial_state(config))
    try:
        start = time.perf_counter()
        for number, (state, _) in enumerate(steps):
            # The first call compiles: it counts as long as the second one takes.
            spent = time.perf_counter() - start
            seconds += spent if number > 1 else 2 * spent if number == 1 else 0.0
            step = int(state.step)
            if step % config.evaluate_every == 0 or step == config.steps:
                found = evaluate(state.transformer)["spd_ols"]
                curve.append((step, round(seconds, 2), found))
                if found <= last or seconds > most:
                    break
            start = time.perf_counter()
    except TrainingDivergedError as error:
        diverged_at = error.step
    return {"budget": config.steps, "curve": curve, "diverged_at": diverged_at}


def time_to(runs: Sequence[dict[str, Any]], threshold: float) -> float | None:
    """Return the least training time at or below the threshold, over all budgets."""
    times = [s for run in runs for _, s, spd in run["curve"] if spd <= threshold]
    return min(times, default=None)


def row(
    name: str,
    runs: Sequence[dict[str, Any]],
    ours: dict[float, float | None],
) -> list[str]:
    """Return the line of the table."""
    best = min((spd for run in runs for *_, spd in run["curve"]), default=float("nan"))
    spent = max((s for run in runs for _, s, _ in run["curve"]), default=0.0)
    cells = [name, f"{CONFIGS[name].learning_rate:g}", f"{best:.4f}"]
    for threshold, own in ours.items():
        found = time_to(runs, threshold)
        if own is None:
            cells.append("–")
        elif found is None:
            cells.append(f"> {spent / own:.1f}×")
        else:
            cells.append(f"{found / own:.1f}×")
    return cells


def main(options: Options) -> None:
    note_load()
    jax.config.update("jax_num_cpu_devices", num_cores())
    results: dict[str, list[dict[str, Any]]] = {}
    if options.out.exists():
        saved = read_json(options.out).get("results")
        results = saved if isinstance(saved, dict) else {}
    evaluate = evaluator(MODEL)
    last = min(options.thresholds)
    settings = {
        "thresholds": options.thresholds,
        "held_out_datasets": EVALUATION_DATASETS,
        "configurations": {name: asdict(each) for name, each in CONFIGS.items()},
    }
    for name in options.only or CONFIGS:
        runs = results.setdefault(name, [])
        own = time_to(results.get("fast", []), last)
        most = float("inf") if own is None or name == "fast" else MOST * own
        for budget in options.budgets:
            known = budget in {run["budget"] for run in runs}
            if known or time_to(runs, last) is not None:
                continue
            config = replace(
                CONFIGS[name], steps=budget, evaluate_every=options.evaluate_every
            )
            runs.append(climb(config, most, last, evaluate))
            step, seconds, spd = runs[-1]["curve"][-1]
            note(f"{name}, {budget:,}: step {step}, {seconds:.0f} s, {spd:.4f}")
            write(options.out, settings, results)
    ours = {each: time_to(results["fast"], each) for each in options.thresholds}
    header = ["recipe", "peak rate", "best SPD/d"]
    header += [f"time to {each:g} / ours" for each in options.thresholds]
    print(markdown(header, [row(name, results[name], ours) for name in results]))


if __name__ == "__main__":
    main(tyro.cli(Options))
