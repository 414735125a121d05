"""`algoscope demo`: train a small learner, then ask what a larger one computes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from algoscope.cli import show
from algoscope.cli.console import use_cores
from algoscope.cli.destinations import require_directory
from algoscope.foundation import cores_for_batch
from algoscope.foundation.validation import require_at_least
from algoscope.training.config import preset

EXAMPLES = """
algoscope demo                                           # about a minute
algoscope demo --out my-demo --num-datasets 1000
"""


@dataclass(frozen=True)
class Demo:
    """Train a small learner and ask which algorithm the shipped d = 8 model runs."""

    out: Path = Path("demo")
    """Where results go."""
    num_datasets: int = 10_000
    """Held-out datasets."""


def run_demo(command: Demo) -> None:
    """Train the demo preset, compare it and the d = 8 model, write the playground."""
    require_at_least("num_datasets", command.num_datasets, 1)
    config, out = preset("demo"), command.out
    require_directory("out", out)
    use_cores(cores_for_batch(config.batch_size))
    from algoscope.foundation.progress import shown
    from algoscope.model.learner import InContextLearner
    from algoscope.training.run import train

    show(f"1. Training a learner for d = {config.dim} in {out / 'run'} …")
    with shown(True, plain=True) as progress:
        small = train(config, out / "run", name="demo", progress=progress)
    _compare(small, command.num_datasets, out / "demo.png")
    print("\n2. The shipped model linear-d8, which took longer to train:", flush=True)
    large = InContextLearner.from_pretrained("linear-d8")
    _compare(large, command.num_datasets, out / "figure-1.png")
    print("\n3. Learners seen from inside, in the browser:", flush=True)
    from algoscope.playground import play

    page = play().write(out / "playground.html")
    print(f"Playground: {page} (open this file in a browser)")


def _compare(learner: Any, num_datasets: int, figure: Path) -> None:
    """Compare a learner with figure 1's references; save, draw and print the result."""
    from algoscope.cli.console import print_comparison
    from algoscope.comparison.compare import compare
    from algoscope.foundation.plotting import save_figure

    comparison, data = (
        compare(learner, num_datasets=num_datasets),
        f"{figure.stem}.json",
    )
    save_figure(comparison.plot(), figure)
    comparison.save(figure.with_name(data))
    print_comparison(comparison)
    print(f"Figure: {figure}   data: {figure.with_name(data)}", flush=True)
