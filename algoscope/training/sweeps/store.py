"""The store of a sweep: how each run ended, and how far the others are.

Everything is read from the runs' directories, so every process sees the same. A
finished run is one with a finished model; `outcome.json` is written for runs that end
otherwise:

    {"status": "diverged" or "failed", "reason": "…", "traceback": "…"}
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Literal

from algoscope.foundation.files import DamagedFileError, read_json, write_json
from algoscope.foundation.locks import is_held
from algoscope.foundation.text import duration
from algoscope.foundation.validation import InvalidValueError
from algoscope.training.config import TrainingConfig, core_seconds
from algoscope.training.log import TrainingLog

OUTCOME = "outcome.json"
RunState = Literal["pending", "running", "finished", "diverged", "failed"]
# What a user wants to see first.
ORDER: tuple[RunState, ...] = ("running", "failed", "diverged", "pending", "finished")
INTERVAL = 1.0  # seconds between two reads of a store, or more if reading takes long
SHARE = 0.05  # of the time that may be spent on reading


@dataclass(frozen=True)
class Outcome:
    """How one run of a sweep ended."""

    config: TrainingConfig
    directory: Path
    status: Literal["finished", "diverged", "failed"]
    reason: str = ""  # why not finished
    seconds: float = 0.0  # of training, without interruptions


def read_outcome(config: TrainingConfig, directory: Path) -> Outcome | None:
    """Return how the run in this directory ended, or None if it has not."""
    from algoscope.training.run import Run

    seconds = _trained_seconds(directory)
    try:
        if Run(directory, config).finished:
            return Outcome(config, directory, "finished", seconds=seconds)
        record = read_json(directory / OUTCOME)
    except FileNotFoundError:
        return None
    except (OSError, DamagedFileError) as error:
        return Outcome(config, directory, "failed", str(error), seconds)
    status = "diverged" if record.get("status") == "diverged" else "failed"
    return Outcome(config, directory, status, str(record.get("reason", "")), seconds)


def record_outcome(
    config: TrainingConfig,
    directory: Path,
    status: Literal["diverged", "failed"],
    reason: str,
    traceback: str = "",
) -> Outcome:
    """Write why a run did not finish, if that is possible, and return it."""
    record = {"status": status, "reason": reason, "traceback": traceback}
    try:
        write_json(directory / OUTCOME, record)
    except (OSError, DamagedFileError) as error:  # the sweep must not end for it
        reason = f"{reason} (which could not be written: {error})"
    return Outcome(config, directory, status, reason, _trained_seconds(directory))


@dataclass(frozen=True)
class RunStatus:
    """How far one run is. A pending run with steps was interrupted."""

    config: TrainingConfig
    state: RunState
    reason: str = ""  # why it diverged or failed
    step: int = 0
    loss: float | None = None
    spd_ols: float | None = None  # when it was last measured
    seconds: float = 0.0  # of training, without interruptions

    @property
    def ended(self) -> bool:
        """Whether the run finished, diverged or failed."""
        return self.state not in ("pending", "running")

    @property
    def work_left(self) -> float:
        """About how many seconds one core still has to train."""
        share = 0.0 if self.ended else 1 - self.step / self.config.steps
        return share * core_seconds(self.config)


@dataclass(frozen=True)
class SweepStatus:
    """How far all runs of a sweep are."""

    runs: tuple[RunStatus, ...]
    seconds_left: float | None = None  # at the pace so far

    @property
    def counts(self) -> Counter[RunState]:
        """How many runs are in each state."""
        return Counter(run.state for run in self.runs)

    @property
    def headline(self) -> str:
        """The counts, and how long the rest will take."""
        counts = self.counts
        parts = [f"{counts[state]} {state}" for state in ORDER if counts[state]]
        ending = f"; left {duration(self.seconds_left)}" if self.seconds_left else ""
        return f"{', '.join(parts)}{ending}"


def read_sweep(configs: Sequence[TrainingConfig], store: Path) -> SweepStatus:
    """Return how far runs are now."""
    return SweepStatus(tuple(read_run(config, store) for config in configs))


def read_run(config: TrainingConfig, store: Path) -> RunStatus:
    """Return how far a run is now."""
    directory = store / config.run_id
    if not os.path.lexists(directory):
        return RunStatus(config, "pending")
    try:
        if not directory.is_dir():
            raise DamagedFileError(directory, "is not a directory")
        # The lock comes first: a run that ends between the two reads has an outcome.
        running = is_held(directory)
        known = read_outcome(config, directory)
        latest = TrainingLog(directory).latest()
    except (OSError, InvalidValueError) as error:
        return RunStatus(config, "failed", str(error))
    state: RunState = known.status if known else "running" if running else "pending"
    return RunStatus(
        config,
        state,
        known.reason if known else "",
        step=latest.get("step", 0),
        loss=latest.get("loss"),
        spd_ols=latest.get("spd_ols"),
        seconds=latest.get("seconds", 0.0),
    )


def _trained_seconds(directory: Path) -> float:
    try:
        return float(TrainingLog(directory).latest().get("seconds", 0.0))
    except (OSError, DamagedFileError):
        return 0.0


class Watcher:
    """Reads a store repeatedly, finished runs once, and estimates the time left."""

    def __init__(self, configs: Sequence[TrainingConfig], store: Path):
        self.configs = configs
        self.store = store
        self.finished: dict[str, RunStatus] = {}
        self.work = sum(self.read_run(config).work_left for config in configs)
        self.start: float | None = None  # when steps were first seen

    def read(self) -> SweepStatus:
        """Return how far the runs are now, and how long they will take at this pace.

        The pace counts from the first new steps: before them, programs are compiled.
        """
        runs = tuple(map(self.read_run, self.configs))
        now, left = time.monotonic(), sum(run.work_left for run in runs)
        if left >= self.work:  # more if runs are resumed from before their last steps
            return SweepStatus(runs)
        if self.start is None:
            self.start, self.work = now, left
            return SweepStatus(runs)
        pace = (now - self.start) / (self.work - left)
        return SweepStatus(runs, pace * left)

    def read_run(self, config: TrainingConfig) -> RunStatus:
        """Return how far one run is now."""
        found = self.finished.get(config.run_id) or read_run(config, self.store)
        if found.state == "finished":
            self.finished[config.run_id] = found
        return found


@contextmanager
def watching(
    configs: Sequence[TrainingConfig],
    store: Path,
    watch: Callable[[SweepStatus], None] | None,
) -> Iterator[None]:
    """Call `watch` about every second while inside, from a thread, and at the end."""
    if watch is None:
        yield
        return
    watcher, over = Watcher(configs, store), Event()

    def report() -> None:
        pause = 0.0
        while not over.wait(pause):
            start = time.monotonic()
            watch(watcher.read())
            pause = max(INTERVAL, (time.monotonic() - start) / SHARE)

    thread = Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        watch(watcher.read())
