"""What a process is told before it trains runs for a sweep.

Nothing here imports JAX: the number of threads has to be known before JAX starts.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable
from threading import Thread
from typing import Any


def limit_threads(cpus: int) -> None:
    """Give XLA in this process so many threads, and one device."""
    os.environ["NPROC"] = str(cpus)  # XLA reads it when it starts
    import jax

    jax.config.update("jax_num_cpu_devices", 1)


def limited(cpus: int, fn: Callable, *args: Any) -> Any:
    """Run a job in a process of a cluster, on so many cores."""
    limit_threads(cpus)
    return fn(*args)


def prepare_process(cpus: int) -> int:
    """Make this process a worker of the sweep that started it; returns its id."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sweep's to handle
    Thread(target=_end_with_parent, daemon=True).start()
    limit_threads(cpus)
    return os.getpid()


def _end_with_parent() -> None:
    """A sweep that is killed takes its workers with it, whose runs are then free."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
