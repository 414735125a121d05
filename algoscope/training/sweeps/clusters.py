"""The engines `ray` and `slurm`: runs on the machines of a cluster.

All machines must see the store under the same path. Slurm jobs write their logs to
`STORE/slurm/`; a job that Slurm preempts, or ends because its time is over, is queued
again and resumes its run from the last save.
"""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from algoscope.training.sweeps.engines import (
    EngineOptions,
    Slots,
    WorkerLostError,
    limit_threads,
    require_package,
)

OBJECT_STORE = 100 << 20  # bytes of Ray's: a job and its outcome are small
SLURM_JOBS = 100  # in Slurm's queue at once
SLURM_MEMORY = 4  # GB for each run


class RayCluster(Slots):
    """A task of Ray Core for each run, `cpus_per_run` cores each."""

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
        # Slots start a lost task again, as for the other engines; Ray does not.
        self.task = self.ray.remote(num_cpus=self.cpus, max_retries=0)(_run_job)
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


class Slurm(Slots):
    """A Slurm job for each run, through submitit, `cpus_per_run` cores each."""

    def __init__(self, workers: int | None, options: EngineOptions, logs: Path):
        submitit = require_package("submitit", "slurm")
        self.lost = submitit.core.utils.UncompletedJobError
        self.cpus = options.cpus_per_run
        self.executor = submitit.AutoExecutor(logs, cluster=options.cluster)
        self.executor.update_parameters(
            name="algoscope",
            cpus_per_task=self.cpus,
            mem_gb=SLURM_MEMORY,
            timeout_min=options.minutes,
            **({"slurm_partition": options.partition} if options.partition else {}),
        )
        self.submitting = Lock()
        self.jobs: set[Any] = set()
        super().__init__(workers or SLURM_JOBS)

    def run(self, fn: Callable, *args: Any) -> Any:
        """Run a job through the queue."""
        with self.submitting:
            job = self.executor.submit(Requeued(), self.cpus, fn, *args)
        self.jobs.add(job)
        try:
            return job.result()
        except self.lost as error:
            raise WorkerLostError(f"job {job.job_id} ended without a result") from error
        finally:
            self.jobs.discard(job)

    def abandon(self) -> None:
        """Cancel the jobs."""
        for job in list(self.jobs):
            job.cancel()


class Requeued:
    """A job that submitit queues again, unchanged, when Slurm cuts it off."""

    def __call__(self, cpus: int, fn: Callable, *args: Any) -> Any:
        return _run_job(cpus, fn, *args)

    def checkpoint(self, cpus: int, fn: Callable, *args: Any) -> Any:
        """Return the same job, to be submitted again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, cpus, fn, *args)


def _run_job(cpus: int, fn: Callable, *args: Any) -> Any:
    """Run a job in a process of a cluster, on so many cores."""
    limit_threads(cpus)
    return fn(*args)
