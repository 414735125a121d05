"""The engine `slurm`: a Slurm job for each run, through submitit.

Jobs write their logs to `STORE/slurm/`. A job that Slurm preempts or ends for its time
is queued again and goes on where its run was saved.
"""

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from algoscope.training.sweeps.engines import (
    EngineOptions,
    Slots,
    WorkerLostError,
    limited,
    require_package,
)

JOBS = 100  # in Slurm's queue at once
MEMORY = 4  # GB for each run


class Requeued:
    """A job that submitit queues again, as it is, when Slurm cuts it off."""

    def __call__(self, cpus: int, fn: Callable, *args: Any) -> Any:
        return limited(cpus, fn, *args)

    def checkpoint(self, cpus: int, fn: Callable, *args: Any) -> Any:
        """Return what to run instead: the same."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, cpus, fn, *args)


class Slurm(Slots):
    """A job for each run, `cpus_per_run` cores each, `workers` of them at once."""

    def __init__(self, workers: int | None, options: EngineOptions, logs: Path):
        submitit = require_package("submitit", "slurm")
        self.lost = submitit.core.utils.UncompletedJobError
        self.cpus = options.cpus_per_run
        self.executor = submitit.AutoExecutor(logs, cluster=options.cluster)
        self.executor.update_parameters(
            name="algoscope",
            cpus_per_task=self.cpus,
            mem_gb=MEMORY,
            timeout_min=options.minutes,
            **({"slurm_partition": options.partition} if options.partition else {}),
        )
        self.submitting = Lock()
        self.jobs: set[Any] = set()
        super().__init__(workers or JOBS)

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
