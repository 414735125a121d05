"""The demonstration: train a small learner, then ask what a larger one computes."""

from pathlib import Path

from algoscope.comparison import Comparison, compare
from algoscope.configuration import preset
from algoscope.console import print_comparison, training_progress
from algoscope.figures import draw_comparison
from algoscope.learner import InContextLearner
from algoscope.predictors import figure_1_references
from algoscope.runs import Run, execute
from algoscope.tasks import LinearRegression


def run_demo(out: Path, *, num_datasets: int) -> Comparison:
    """Train the demo preset, compare the shipped d = 8 model, and draw figure 1."""
    config = preset("demo")
    print(f"1. Training a learner for d = {config.dim} in {out / 'run'} …", flush=True)
    run = Run.open(out / "run", config, resume=True)
    with training_progress("demo") as watch:
        execute(run, name="demo", watch=watch)
    small = InContextLearner.from_pretrained(run.directory)
    _show(_compare(small, num_datasets), out / "demo.png")
    print("\n2. The shipped model linear-d8, which took longer to train:", flush=True)
    comparison = _compare(InContextLearner.from_pretrained("linear-d8"), num_datasets)
    _show(comparison, out / "figure-1.png")
    return comparison


def _compare(learner: InContextLearner, num_datasets: int) -> Comparison:
    return compare(
        learner,
        figure_1_references(),
        LinearRegression(learner.dim),
        num_examples=learner.max_examples,
        num_datasets=num_datasets,
    )


def _show(comparison: Comparison, figure: Path) -> None:
    draw_comparison(comparison, figure)
    comparison.save(figure.with_suffix(".json"))
    print_comparison(comparison)
    print(f"Figure: {figure}   data: {figure.with_suffix('.json')}", flush=True)
