"""Training many runs, each exactly once, whatever happens on the way."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed, wait
from contextlib import contextmanager
from pathlib import Path

from algoscope.configuration import TrainingConfig
from algoscope.sweeps.engines import (
    DEFAULT_OPTIONS,
    EngineOptions,
    open_engine,
    require_engine,
)
from algoscope.sweeps.jobs import Job, Unsettled, is_settled, train_run
from algoscope.sweeps.locks import held, is_held
from algoscope.sweeps.outcomes import Outcome, read_outcome, record_outcome
from algoscope.sweeps.progress import SweepProgress
from algoscope.sweeps.saved import SWEEPS
from algoscope.sweeps.watching import reporting
from algoscope.validation import require_at_least

POLL = 0.5  # seconds between two looks at runs that another sweep trains


class SweepInterruptedError(KeyboardInterrupt):
    """The sweep stopped on request (Ctrl-C); what was running is saved."""


def train_all(
    configs: Sequence[TrainingConfig],
    store: Path,
    *,
    engine: str = "processes",
    workers: int | None = None,
    evaluation_datasets: int = 1000,
    retry: bool = False,
    watch: Callable[[SweepProgress], None] | None = None,
    options: EngineOptions = DEFAULT_OPTIONS,
) -> list[Outcome]:
    """Train each run to its end in `store`, and return how each ended, in order.

    A finished run is not trained again, one that was cut off goes on where it was
    saved, and one that another sweep trains is waited for. A diverged run is left as it
    is unless `retry`, and a failed one is tried again; with `retry` both start from the
    beginning. `workers` runs go on at once, by default one for each core. `watch` is
    told where the runs are, every second or so, from another thread.

    Programs that use the engine `processes` need the usual
    `if __name__ == "__main__":` around what they do.
    """
    require_engine(engine, workers)
    require_at_least("evaluation_datasets", evaluation_datasets, 1)
    store = Path(store).resolve()
    unique = list(dict.fromkeys(configs))
    with reporting(unique, store, watch), _stop_file(store) as stop:
        jobs = [Job(each, store, evaluation_datasets, retry, stop) for each in unique]
        ended, todo = _settled(jobs)
        if todo:
            with open_engine(engine, store, workers, options) as executor:
                ended |= run_jobs(todo, executor)
    return [ended[config] for config in configs]


def run_jobs(
    jobs: Sequence[Job],
    executor: Executor,
    train: Callable[[Job], Outcome | Unsettled] = train_run,
) -> dict[TrainingConfig, Outcome]:
    """Run jobs until each has an outcome; come back to those that others hold."""
    ended: dict[TrainingConfig, Outcome] = {}
    todo, futures = list(jobs), {}
    try:
        while todo:
            busy = [job for job in todo if is_held(job.directory)]
            free = [job for job in todo if job not in busy]
            futures.clear()
            for job in free:
                futures[executor.submit(train, job)] = job
            for future in as_completed(futures):
                job, found = futures[future], _result(future, futures[future])
                if found == "stopped":
                    raise KeyboardInterrupt
                elif found == "locked":
                    busy.append(job)
                else:
                    ended[job.config] = found
            if busy and not free:
                time.sleep(POLL)
            settled, todo = _settled(busy)
            ended |= settled
    except KeyboardInterrupt:
        jobs[0].stop.touch()
        wait([future for future in futures if not future.cancel()])
        raise SweepInterruptedError(
            "the sweep stopped; what was running is saved and goes on from there."
        ) from None
    return ended


def _settled(jobs: Sequence[Job]) -> tuple[dict[TrainingConfig, Outcome], list[Job]]:
    """Return how runs ended that need no training, and the jobs of the others."""
    ended, todo = {}, []
    for job in jobs:
        known = read_outcome(job.config, job.directory)
        if known is not None and is_settled(known, job.retry):
            ended[job.config] = known
        else:
            todo.append(job)
    return ended, todo


def _result(future: Future, job: Job) -> Outcome | Unsettled:
    """Return what became of a job; one that was lost for good is a failed run."""
    try:
        return future.result()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        with held(job.directory) as free:
            if not free:
                return "locked"
            return record_outcome(job.config, job.directory, "failed", reason)


@contextmanager
def _stop_file(store: Path) -> Iterator[Path]:
    """Yield the path of a file that this sweep makes to stop its jobs, wherever."""
    path = store / SWEEPS / f"{uuid.uuid4().hex}.stop"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
