"""The cores of this machine, and about how long training takes on them."""

import os

from algoscope.configuration import TrainingConfig

CORE_FLOPS = 35e9  # per second and core: what training reaches at H = 64


def num_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def most_that_share(size: int, most: int) -> int:
    """Return the largest number up to `most` that divides a size evenly.

    Example:
        >>> most_that_share(40, 3), most_that_share(7, 2)
        (2, 1)
    """
    return next(n for n in range(most, 0, -1) if size % n == 0)


def cores_that_share(batch_size: int) -> int:
    """Return the most cores, one virtual device each, that divide a batch evenly."""
    return most_that_share(batch_size, num_cores())


def estimated_seconds(config: TrainingConfig) -> float:
    """Return about how long a run takes on this machine's cores."""
    return config.steps * config.flops_per_step / (CORE_FLOPS * num_cores())
