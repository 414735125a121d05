"""A sweep: many runs, each trained exactly once in one store.

`train_all` gives a `Job` per run to an engine. In whatever process the job is done, the
run is trained on one device and in float32, so its weights depend on its configuration
alone: all engines give the same bits. Locks keep two sweeps from training the same run;
a file in the store tells all jobs to save and stop.
"""

import _thread
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from typing import Literal

from algoscope.foundation.locks import held, is_held
from algoscope.foundation.progress import Progress, shown, silent
from algoscope.foundation.validation import InvalidValueError, require_at_least
from algoscope.training.config import TrainingConfig
from algoscope.training.sweeps.engines import (
    DEFAULT_OPTIONS,
    EngineOptions,
    open_engine,
    require_engine,
)
from algoscope.training.sweeps.grid import SWEEPS
from algoscope.training.sweeps.store import (
    OUTCOME,
    Outcome,
    SweepStatus,
    read_outcome,
    record_outcome,
    watching,
)

POLL = 0.5  # seconds between two looks at runs that another sweep trains

# Another process trains the run; or it was stopped on request, and saved.
Unsettled = Literal["locked", "stopped"]


class SweepInterruptedError(KeyboardInterrupt):
    """The sweep stopped on request (Ctrl-C); running runs were saved."""


@dataclass(frozen=True)
class Job:
    """A run to train, and how."""

    config: TrainingConfig
    store: Path
    evaluation_datasets: int
    retry: bool  # train a diverged or failed run again, from its beginning
    stop: Path  # a file: while it exists, jobs save and stop

    @property
    def directory(self) -> Path:
        """The run's own directory."""
        return self.store / self.config.run_id


def train_all(
    configs: Sequence[TrainingConfig],
    store: Path,
    *,
    engine: str = "processes",
    workers: int | None = None,
    evaluation_datasets: int = 1000,
    retry: bool = False,
    progress: Progress | bool = True,
    watch: Callable[[SweepStatus], None] | None = None,
    options: EngineOptions = DEFAULT_OPTIONS,
) -> list[Outcome]:
    """Train each run to its end in `store`, and return how each ended, in order.

    Finished runs are skipped, interrupted ones are resumed, and the sweep waits for
    those that another sweep trains. A diverged run is skipped unless `retry`, and a
    failed one is tried again; with `retry` both start from the beginning. `workers`
    runs are trained at once, by default one per core. About every second, from another
    thread, `progress` receives the steps of all runs, or `watch`, if given, the status
    of each run.

    Programs that use the engine `processes` need the usual
    `if __name__ == "__main__":` around their main part.

    Example:
        >>> import tempfile
        >>> import algoscope as asc
        >>> tiny = asc.TrainingConfig(
        ...     dim=1, num_examples=3, num_layers=1, hidden_size=8, num_heads=1,
        ...     steps=2, steps_per_call=2, evaluate_every=2, save_every=2,
        ... )
        >>> grid = asc.Grid(tiny, {"num_layers": (1,)})
        >>> store = Path(tempfile.mkdtemp())
        >>> [run.status for run in asc.train_all(grid.configs, store, engine="inline")]
        ['finished']
    """
    require_engine(engine, workers)
    require_at_least("evaluation_datasets", evaluation_datasets, 1)
    store = Path(store).resolve()
    unique = list(dict.fromkeys(configs))
    with (
        shown(progress if watch is None else False) as report,
        watching(unique, store, watch or _reporting_to(report)),
        _stop_file(store) as stop,
    ):
        jobs = [Job(each, store, evaluation_datasets, retry, stop) for each in unique]
        ended, todo = _settled(jobs)
        if todo:
            with open_engine(engine, store, workers, options) as executor:
                ended |= run_jobs(todo, executor)
    return [ended[config] for config in configs]


def _reporting_to(progress: Progress) -> Callable[[SweepStatus], None] | None:
    """Return a callback that reports the steps of all runs, or None if silent."""
    if progress is silent:
        return None

    def report(status: SweepStatus) -> None:
        runs = "1 run" if len(status.runs) == 1 else f"{len(status.runs)} runs"
        done = sum(run.step for run in status.runs)
        total = sum(run.config.steps for run in status.runs)
        progress(f"training {runs}", done, total, status.headline)

    return report


@contextmanager
def _stop_file(store: Path) -> Iterator[Path]:
    """Yield the path of a file that this sweep creates to stop its jobs anywhere."""
    path = store / SWEEPS / f"{uuid.uuid4().hex}.stop"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _settled(jobs: Sequence[Job]) -> tuple[dict[TrainingConfig, Outcome], list[Job]]:
    """Return the outcomes of runs that need no training, and the other jobs."""
    ended, todo = {}, []
    for job in jobs:
        known = read_outcome(job.config, job.directory)
        if known is not None and _is_settled(known, job.retry):
            ended[job.config] = known
        else:
            todo.append(job)
    return ended, todo


def _is_settled(known: Outcome, retry: bool) -> bool:
    """Return whether nothing is left to do: a failed run is always tried again."""
    return known.status == "finished" or (known.status == "diverged" and not retry)


def train_run(job: Job) -> Outcome | Unsettled:
    """Train a run from its last save, unless it has ended or another trains it."""
    if job.stop.exists():
        return "stopped"
    try:
        return _train_held(job)
    except (OSError, InvalidValueError) as error:  # of its lock: a link, no permission
        return record_outcome(job.config, job.directory, "failed", str(error))


def _train_held(job: Job) -> Outcome | Unsettled:
    with held(job.directory) as free:
        if not free:
            return "locked"
        known = read_outcome(job.config, job.directory)
        if known is not None and _is_settled(known, job.retry):
            return known
        try:
            return _train(job, start_over=known is not None and job.retry)
        except Exception as error:
            return record_outcome(
                job.config,
                job.directory,
                "failed",
                f"{type(error).__name__}: {error}",
                traceback.format_exc(),
            )


def _train(job: Job, start_over: bool) -> Outcome | Unsettled:
    import jax

    from algoscope.training.log import METRICS
    from algoscope.training.loop import TrainingDivergedError, data_mesh
    from algoscope.training.run import STATE, InterruptedRunError, Run, execute

    forgotten = (OUTCOME, STATE, METRICS) if start_over else (OUTCOME,)
    for name in forgotten:
        (job.directory / name).unlink(missing_ok=True)
    run = Run.open(job.directory, job.config, resume=True)
    noted = False

    def stop_on_request(
        stage: str, done: int, total: int | None, note: str = ""
    ) -> None:
        nonlocal noted
        if not noted and job.stop.exists() and current_thread() is main_thread():
            noted = True
            _thread.interrupt_main()  # like Ctrl-C: `execute` saves and stops

    try:
        with jax.enable_x64(False):
            execute(
                run,
                name=job.config.run_id,
                mesh=data_mesh(1),
                progress=stop_on_request,
                evaluation_datasets=job.evaluation_datasets,
            )
    except InterruptedRunError:
        job.stop.touch()  # Ctrl-C in any process stops the whole sweep
        return "stopped"
    except TrainingDivergedError as error:
        return record_outcome(job.config, job.directory, "diverged", str(error))
    ended = read_outcome(job.config, job.directory)
    assert ended is not None
    return ended


def run_jobs(
    jobs: Sequence[Job],
    executor: Executor,
    train: Callable[[Job], Outcome | Unsettled] = train_run,
) -> dict[TrainingConfig, Outcome]:
    """Run jobs until each has an outcome; retry those that other processes hold."""
    ended: dict[TrainingConfig, Outcome] = {}
    todo, futures = list(jobs), {}
    try:
        while todo:
            busy = [job for job in todo if _is_busy(job)]
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
            "the sweep stopped; running runs were saved and can be resumed."
        ) from None
    return ended


def _is_busy(job: Job) -> bool:
    """Return whether another process trains the run; a damaged one nobody does."""
    try:
        return is_held(job.directory)
    except (OSError, InvalidValueError):
        return False


def _result(future: Future, job: Job) -> Outcome | Unsettled:
    """Return what a job returned; a job that lost all its workers is a failed run."""
    try:
        return future.result()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        if _is_busy(job):
            return "locked"
        return record_outcome(job.config, job.directory, "failed", reason)
