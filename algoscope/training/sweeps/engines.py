"""Engines: where the runs of a sweep are trained.

An engine is an executor as in `concurrent.futures`: `submit(function, *arguments)`
returns a `Future`. `Inline` runs jobs in this process, `Processes` in worker processes
of this machine, `RayCluster` and `Slurm` on the machines of a cluster, which must all
see the store under the same path. All but `Inline` have slots: threads that each give
one job at a time to a worker, and give it to another worker when that one is lost. So a
job must be able to resume where it was cut off.
"""

import importlib
import multiprocessing
import os
import secrets
import signal
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Literal, get_args

from algoscope.foundation import num_cores
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
)

EngineKind = Literal["inline", "processes", "ray", "slurm"]
ENGINES: tuple[str, ...] = get_args(EngineKind)
ATTEMPTS = 3  # how many workers one job may lose
OBJECT_STORE = 100 << 20  # bytes of Ray's: a job and its outcome are small
SLURM_JOBS = 100  # in Slurm's queue at once
SLURM_MEMORY = 4  # GB for each run


@dataclass(frozen=True)
class EngineOptions:
    """Options of the engines that have workers."""

    cpus_per_run: int = 1  # cores, and XLA threads, of each run
    address: str = "local"  # of a Ray cluster; local: start one on this machine
    cluster: str = "slurm"  # of submitit; local: processes of this machine
    partition: str | None = None  # of Slurm
    minutes: int = 24 * 60  # after which Slurm ends a job

    def __post_init__(self):
        require_at_least("cpus_per_run", self.cpus_per_run, 1)
        require_at_least("minutes", self.minutes, 1)


DEFAULT_OPTIONS = EngineOptions()


def open_engine(
    engine: str,
    store: Path,
    workers: int | None = None,
    options: EngineOptions = DEFAULT_OPTIONS,
) -> Executor:
    """Return the engine of this name; `workers` is how many runs it trains at once."""
    require_engine(engine, workers)
    if engine == "inline":
        return Inline()
    if engine == "processes":
        return Processes(workers, options)
    if engine == "ray":
        return RayCluster(workers, options)
    return Slurm(workers, options, store / "slurm")


def require_engine(engine: str, workers: int | None) -> None:
    """Reject an unknown engine, or one without workers."""
    require_choice("engine", engine, ENGINES)
    if workers is not None:
        require_at_least("workers", workers, 1)


def require_package(name: str, engine: str) -> Any:
    """Import the package that an engine needs, or say in one line how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidValueError(
            "engine",
            f"have the package {name}",
            f"{engine!r} without it",
            f"Install algoscope[{engine}], or use --engine processes.",
        ) from error


class WorkerLostError(RuntimeError):
    """A worker ended before its job: killed, out of memory, or its machine is gone."""


class Inline(Executor):
    """Runs each job where it is submitted."""

    def submit(self, fn: Callable, /, *args: Any, **kwargs: Any) -> Future:
        """Run the job, and return its result as a finished future."""
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Slots(ThreadPoolExecutor):
    """An executor whose threads wait for workers in other processes."""

    def __init__(self, slots: int):
        super().__init__(slots)
        self.abandoned = False

    @abstractmethod
    def run(self, fn: Callable, *args: Any) -> Any:
        """Run a job in a worker; raise WorkerLostError if the worker is lost."""

    def abandon(self) -> None:
        """End all workers at once."""

    def submit(self, fn: Callable, /, *args: Any, **kwargs: Any) -> Future:
        """Queue a job for the next free slot."""
        return super().submit(self._attempt, fn, *args, **kwargs)

    def _attempt(self, fn: Callable, *args: Any) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self.run(fn, *args)
            except WorkerLostError as error:
                if self.abandoned or attempt == ATTEMPTS:
                    raise WorkerLostError(
                        f"{attempt} workers were lost with it, the last one because: "
                        f"{error}"
                    ) from error

    def __exit__(self, kind, error, trace) -> None:
        if kind is not None:
            self.abandoned = True
            self.shutdown(wait=False, cancel_futures=True)
            self.abandon()
        super().__exit__(kind, error, trace)


class Processes(Slots):
    """Worker processes, by default one per core; each starts when first needed."""

    def __init__(self, workers: int | None, options: EngineOptions):
        self.cpus = options.cpus_per_run
        slots = workers or max(1, num_cores() // self.cpus)
        super().__init__(slots)
        self.idle: SimpleQueue[Worker | None] = SimpleQueue()
        for _ in range(slots):
            self.idle.put(None)
        self.alive: set[Worker] = set()

    def run(self, fn: Callable, *args: Any) -> Any:
        """Run a job in an idle worker."""
        worker = self.idle.get()
        try:
            if worker is None:
                worker = Worker(self.cpus)
                self.alive.add(worker)
            return worker.pool.submit(fn, *args).result()
        except BrokenProcessPool as error:
            if worker is not None:
                self.alive.discard(worker)
                worker.pool.shutdown()
            worker = None
            raise WorkerLostError("its process was killed") from error
        finally:
            self.idle.put(worker)

    def abandon(self) -> None:
        """Kill all workers."""
        for worker in list(self.alive):
            worker.kill()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers when they have finished their jobs."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        for worker in list(self.alive):
            worker.pool.shutdown(wait)


class Worker:
    """One process, in a pool of its own, so that its end breaks no other pool."""

    def __init__(self, cpus: int):
        # spawn: a fork of a process in which JAX runs would deadlock.
        context = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(1, mp_context=context)
        resource_tracker.ensure_running()  # which unblocks the signal
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:  # the process starts with Ctrl-C blocked: it could not handle it yet
            started = self.pool.submit(_prepare_process, cpus)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.process = started.result()

    def kill(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)


def _prepare_process(cpus: int) -> int:
    """Make this process a worker of the sweep that started it; return its id."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the sweep handles Ctrl-C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    Thread(target=_end_with_parent, daemon=True).start()
    limit_threads(cpus)
    return os.getpid()


def _end_with_parent() -> None:
    """End this worker, which frees its run, when its sweep is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class RayCluster(Slots):
    """A task of Ray Core for each run, `cpus_per_run` cores each.

    A cluster that is started here listens to this machine only, and answers nobody
    without its token, which no file holds.
    """

    def __init__(self, workers: int | None, options: EngineOptions):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if options.address == "local":
            for name, value in private_cluster().items():
                os.environ.setdefault(name, value)  # Ray reads them when it is loaded
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


def private_cluster() -> dict[str, str]:
    """Return the environment in which Ray starts a cluster for this machine alone.

    Ray binds to the loopback interface where it supports no clusters of several
    machines, and the first variable says that this is such a place.
    """
    return {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }


class Slurm(Slots):
    """A Slurm job for each run, through submitit, `cpus_per_run` cores each.

    Logs are in `STORE/slurm/`. A job that Slurm preempts, or ends because its time is
    over, is queued again and resumes its run from the last save.
    """

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


def limit_threads(cpus: int) -> None:
    """Limit XLA in this process to so many threads, and to one device."""
    os.environ["NPROC"] = str(cpus)  # XLA reads it when it starts
    import jax

    jax.config.update("jax_num_cpu_devices", 1)
