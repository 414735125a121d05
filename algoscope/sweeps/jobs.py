"""One run of a sweep, in whatever process an engine chose for it.

A run is trained on one device and in float32 whatever the process is set to, so its
weights depend on its configuration alone: every engine ends with the same bits.
"""

import _thread
import traceback
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from typing import Literal

from algoscope.configuration import TrainingConfig
from algoscope.sweeps.locks import held
from algoscope.sweeps.outcomes import OUTCOME, Outcome, read_outcome, record_outcome

Unsettled = Literal["locked", "stopped"]  # another trains it; stopped on request, saved


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


def is_settled(known: Outcome | None, retry: bool) -> bool:
    """Return whether nothing is left to do: a failed run is always tried again."""
    if known is None or known.status == "failed":
        return False
    return known.status == "finished" or not retry


def train_run(job: Job) -> Outcome | Unsettled:
    """Train a run from wherever it is, unless it has ended or another trains it."""
    if job.stop.exists():
        return "stopped"
    with held(job.directory) as free:
        if not free:
            return "locked"
        known = read_outcome(job.config, job.directory)
        if known is not None and is_settled(known, job.retry):
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

    from algoscope.runs import METRICS, STATE, InterruptedRunError, Run, execute
    from algoscope.training import TrainingDivergedError, data_mesh

    forgotten = (OUTCOME, STATE, METRICS) if start_over else (OUTCOME,)
    for name in forgotten:
        (job.directory / name).unlink(missing_ok=True)
    run = Run.open(job.directory, job.config, resume=True)

    noted = False

    def stop_on_request(progress: object) -> None:
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
                watch=stop_on_request,
                evaluation_datasets=job.evaluation_datasets,
            )
    except InterruptedRunError:
        job.stop.touch()  # Ctrl-C, wherever it is pressed, stops the whole sweep
        return "stopped"
    except TrainingDivergedError as error:
        return record_outcome(job.config, job.directory, "diverged", str(error))
    ended = read_outcome(job.config, job.directory)
    assert ended is not None
    return ended
