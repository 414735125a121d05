"""`algoscope demo`: what the package does, in about a minute."""

from dataclasses import dataclass
from pathlib import Path

from algoscope.configuration import preset
from algoscope.machine import cores_that_share
from algoscope.validation import require_at_least


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
    from algoscope import demo

    demo.run_demo(command.out, num_datasets=command.num_datasets)
