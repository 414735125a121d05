"""Telling somebody, every second or so, where the runs of a sweep are."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from algoscope.configuration import TrainingConfig
from algoscope.sweeps.progress import RunProgress, SweepProgress, read_run

INTERVAL = 1.0  # seconds between two looks, or more when looking takes long
SHARE = 0.05  # of the time that may go into looking


class Watcher:
    """Reads a store again and again, and remembers what cannot change any more."""

    def __init__(self, configs: Sequence[TrainingConfig], store: Path):
        self.configs = configs
        self.store = store
        self.finished: dict[str, RunProgress] = {}
        self.work = sum(self.read_run(config).work_left for config in configs)
        self.start: float | None = None  # when steps were first seen

    def read(self) -> SweepProgress:
        """Return where the runs are now, and how long they will take at this pace.

        The pace counts from the first new steps: before them programs are compiled.
        """
        runs = tuple(map(self.read_run, self.configs))
        now, left = time.monotonic(), sum(run.work_left for run in runs)
        if left >= self.work:  # more when runs go on from before their last steps
            return SweepProgress(runs)
        if self.start is None:
            self.start, self.work = now, left
            return SweepProgress(runs)
        pace = (now - self.start) / (self.work - left)
        return SweepProgress(runs, pace * left)

    def read_run(self, config: TrainingConfig) -> RunProgress:
        """Return where one run is now."""
        found = self.finished.get(config.run_id) or read_run(config, self.store)
        if found.state == "finished":
            self.finished[config.run_id] = found
        return found


@contextmanager
def reporting(
    configs: Sequence[TrainingConfig],
    store: Path,
    watch: Callable[[SweepProgress], None] | None,
) -> Iterator[None]:
    """Call `watch` now and then while inside, from a thread, and once at the end."""
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
