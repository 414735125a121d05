"""The engine `ray`: tasks of Ray Core, on this machine or on a cluster.

All machines of a cluster must see the store under the same path.
"""

import os
from collections.abc import Callable
from typing import Any

from algoscope.training.sweeps.engines import (
    EngineOptions,
    Slots,
    WorkerLostError,
    limited,
    require_package,
)

OBJECT_STORE = 100 << 20  # bytes: a job and its outcome are small


class RayCluster(Slots):
    """A task for each run, `cpus_per_run` cores each; by default on all cores."""

    def __init__(self, workers: int | None, options: EngineOptions):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self.ray = require_package("ray", "ray")
        self.cpus = options.cpus_per_run
        self.is_ours = not self.ray.is_initialized()
        if self.is_ours:
            local = {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
            self.ray.init(
                options.address,
                log_to_driver=False,
                logging_level="error",
                **(local if options.address == "local" else {}),
            )
        # A lost task is handed out again by the slot, like those of other engines.
        self.task = self.ray.remote(num_cpus=self.cpus, max_retries=0)(limited)
        cores = int(self.ray.cluster_resources().get("CPU", 1))
        super().__init__(workers or max(1, cores // self.cpus))

    def run(self, fn: Callable, *args: Any) -> Any:
        """Run a job as a task."""
        errors = self.ray.exceptions
        try:
            return self.ray.get(self.task.remote(self.cpus, fn, *args))
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            raise WorkerLostError(type(error).__name__) from error

    def abandon(self) -> None:
        """Leave the cluster, which ends its tasks."""
        if self.is_ours:
            self.ray.shutdown()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster when the tasks are done."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait and self.is_ours:
            self.ray.shutdown()
