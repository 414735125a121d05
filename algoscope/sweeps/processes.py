"""The engine `processes`: worker processes of this machine, one XLA thread each."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from algoscope.machine import num_cores
from algoscope.sweeps.engines import EngineOptions, Slots, WorkerLostError
from algoscope.sweeps.workers import prepare_process


class Worker:
    """One process, in a pool of its own, so that its end breaks no other's."""

    def __init__(self, cpus: int):
        # spawn: a fork of a process in which JAX runs would dead-lock.
        context = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(1, mp_context=context)
        self.process = self.pool.submit(prepare_process, cpus).result()

    def kill(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)


class Processes(Slots):
    """As many workers as there are cores, or `workers`; started when first needed."""

    def __init__(self, workers: int | None, options: EngineOptions):
        self.cpus = options.cpus_per_run
        slots = workers or max(1, num_cores() // self.cpus)
        super().__init__(slots)
        self.idle: SimpleQueue[Worker | None] = SimpleQueue()
        for _ in range(slots):
            self.idle.put(None)
        self.alive: set[Worker] = set()

    def run(self, fn: Callable, *args: Any) -> Any:
        """Run a job in a worker that has nothing to do."""
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
        """End the workers when they have done what they were given."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        for worker in list(self.alive):
            worker.pool.shutdown(wait)
