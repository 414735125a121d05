"""The demonstration: train a small learner, then ask what a larger one computes."""

from dataclasses import dataclass
from pathlib import Path

from algoscope.cli.console import print_comparison
from algoscope.comparison.compare import compare
from algoscope.comparison.result import Comparison
from algoscope.foundation.machine import cores_that_share
from algoscope.foundation.plotting import save_figure
from algoscope.foundation.progress import shown
from algoscope.foundation.validation import require_at_least
from algoscope.model.learner import InContextLearner
from algoscope.training.config import preset
from algoscope.training.run import Run, execute


def show_demo(out: Path, *, num_datasets: int) -> Comparison:
    """Train the demo preset, compare the shipped d = 8 model, and draw figure 1."""
    config = preset("demo")
    print(f"1. Training a learner for d = {config.dim} in {out / 'run'} …", flush=True)
    run = Run.open(out / "run", config, resume=True)
    with shown(True, plain=True) as progress:
        execute(run, name="demo", progress=progress)
    small = InContextLearner.from_pretrained(run.directory)
    _show(_compare(small, num_datasets), out / "demo.png")
    print("\n2. The shipped model linear-d8, which took longer to train:", flush=True)
    comparison = _compare(InContextLearner.from_pretrained("linear-d8"), num_datasets)
    _show(comparison, out / "figure-1.png")
    return comparison


def _compare(learner: InContextLearner, num_datasets: int) -> Comparison:
    return compare(learner, num_datasets=num_datasets)


def _show(comparison: Comparison, figure: Path) -> None:
    save_figure(comparison.plot(), figure)
    comparison.save(figure.with_suffix(".json"))
    print_comparison(comparison)
    print(f"Figure: {figure}   data: {figure.with_suffix('.json')}", flush=True)


@dataclass(frozen=True)
class Demo:
    """Train a small learner and ask which algorithm the shipped d = 8 model runs."""

    out: Path = Path("demo")
    """Where results go."""
    num_datasets: int = 10_000
    """Held-out datasets."""


def run_demo(command: Demo) -> None:
    """Run the demonstration."""
    require_at_least("num_datasets", command.num_datasets, 1)
    import jax

    cores = cores_that_share(preset("demo").batch_size)
    jax.config.update("jax_num_cpu_devices", cores)
    show_demo(command.out, num_datasets=command.num_datasets)
