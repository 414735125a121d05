"""What does a sweep cost besides training?

    python benchmarks/sweep_overhead.py

Schedules the 2,016 runs of the paper's grid on worker processes, with a job that
writes the files of a finished run and trains nothing, and reads them back. Then times
what the engine itself does for a run, with training left out, and trains the same few
runs by a bare loop and through the engine `inline`, in turns, in one process.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tyro
from report import RESULTS, markdown, note, note_load, write

from algoscope.foundation.files import write_atomically
from algoscope.foundation.locks import held
from algoscope.model.checkpoints import CARD, EVALUATION, WEIGHTS
from algoscope.training import run as runs
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.loop import data_mesh
from algoscope.training.run import Run
from algoscope.training.sweeps import GRIDS, Outcome, train_all
from algoscope.training.sweeps.engines import open_engine
from algoscope.training.sweeps.store import Watcher
from algoscope.training.sweeps.sweep import Job, run_jobs


@dataclass(frozen=True)
class Options:
    """Measure what a sweep costs besides training."""

    runs: int = 2016
    """Runs that are scheduled, recorded and read back."""
    trained: int = 2
    """Runs that are trained, by the loop and by the engine."""
    steps: int = 300
    """Steps of each of them."""
    repeats: int = 3
    """How often the loop and the engine take turns."""
    out: Path = RESULTS / "sweep_overhead.json"
    """Where the results go."""


def pretend(job: Job) -> Outcome:
    """Write what a finished run leaves, as safely as a run does, and train nothing."""
    with held(job.directory) as free:
        assert free
        run = Run.open(job.directory, job.config, resume=True)
        row = {"step": job.config.steps, "loss": 1.0, "spd_ols": 0.5}
        run.log.add({**row, "seconds": 0.0})
        for name in (WEIGHTS, EVALUATION, CARD):
            write_atomically(job.directory / name, b"nothing")
        return Outcome(job.config, job.directory, "finished")


def time_scheduling(num_runs: int, store: Path) -> dict[str, float]:
    configs = GRIDS["paper"].configs[:num_runs]
    jobs = [Job(config, store, 1, False, store / "stop") for config in configs]
    start = time.perf_counter()
    with open_engine("processes", store) as executor:
        outcomes = run_jobs(jobs, executor, pretend)
    recorded = time.perf_counter()
    status = Watcher(configs, store).read()
    read = time.perf_counter()
    assert len(outcomes) == status.counts["finished"] == num_runs
    again = train_all(configs, store, engine="processes", progress=False)
    assert [outcome.status for outcome in again] == ["finished"] * num_runs
    return {
        "record": recorded - start,
        "read": read - recorded,
        "resume": time.perf_counter() - read,
    }


def time_own_work(num_runs: int, store: Path) -> float:
    """Return the seconds per run that the engine spends on its own."""

    def skip(run: Run, **how: Any) -> None:
        for name in (WEIGHTS, EVALUATION, CARD):
            (run.directory / name).touch()

    trained, runs.execute = runs.execute, skip
    try:
        configs = [replace(preset("d1"), seed=seed) for seed in range(num_runs)]
        engine(configs[:1], store / "first")  # starts JAX
        start = time.perf_counter()
        engine(configs, store / "own")
        return (time.perf_counter() - start) / num_runs
    finally:
        runs.execute = trained


def bare_loop(configs: Sequence[TrainingConfig], store: Path) -> None:
    for config in configs:
        run = Run.open(store / config.run_id, config)
        runs.execute(
            run, name=config.run_id, mesh=data_mesh(1), evaluation_datasets=100
        )


def engine(configs: Sequence[TrainingConfig], store: Path) -> None:
    train_all(
        configs,
        store,
        engine="inline",
        evaluation_datasets=100,
        watch=lambda status: None,
    )


def time_training(options: Options, store: Path) -> dict[str, Any]:
    base = replace(
        preset("d1"),
        num_layers=2,
        steps=options.steps,
        evaluate_every=100,
        save_every=100,
    )
    configs = [replace(base, seed=seed) for seed in range(options.trained)]
    ways: dict[str, Callable] = {"loop": bare_loop, "engine": engine}
    found: dict[str, Any] = {way: {"wall": [], "cpu": []} for way in ways}
    for repeat in range(options.repeats + 1):
        for way, train in ways.items():
            wall, cpu = time.perf_counter(), time.process_time()
            train(configs, store / f"{way}-{repeat}")
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            note(f"{way}: {wall:.1f} s, {cpu:.1f} s of CPU")
            if repeat:  # the first turn compiles what both share
                found[way]["wall"].append(wall)
                found[way]["cpu"].append(cpu)
    return found


def main(options: Options) -> None:
    note_load()
    store = Path(tempfile.mkdtemp(prefix="sweep-"))
    try:
        scheduling = time_scheduling(options.runs, store / "pretended")
        note(f"{options.runs} runs: {scheduling}")
        own_work = time_own_work(200, store / "own")
        training = time_training(options, store / "trained")
    finally:
        shutil.rmtree(store)
    rows = [
        [f"{name} {options.runs:,} runs", f"{scheduling[name]:.1f} s"]
        for name in scheduling
    ]
    rows.append(["the engine's own work for a run", f"{own_work * 1e3:.1f} ms"])
    for clock in ("wall", "cpu"):
        loop, swept = (min(training[way][clock]) for way in ("loop", "engine"))
        training[f"{clock}_ratio"] = swept / loop
        rows.append([f"{clock} time, engine / loop", f"{swept / loop:.3f}"])
    print(markdown(["what", "value"], rows))
    settings = {**asdict(options), "out": str(options.out)}
    write(
        options.out,
        settings,
        {"scheduling": scheduling, "own_work": own_work, "training": training},
    )


if __name__ == "__main__":
    main(tyro.cli(Options))
