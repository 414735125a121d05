"""A sweep of two tiny runs, as a program that tests start and kill.

    python tests/support/sweeping.py STORE ENGINE [trainings]

The engine `ray-cluster` is a cluster of two nodes, one of which is killed while it
trains. With a file `trainings`, the id of each run that is trained is appended to it,
also by worker processes, because they load this file too.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

from support.compiling import QUICKLY, SHARED

from algoscope.foundation.files import load_arrays
from algoscope.foundation.locks import is_held, owner
from algoscope.training import run as runs
from algoscope.training.config import TrainingConfig
from algoscope.training.sweeps import EngineOptions, Grid, RunStatus, train_all
from algoscope.training.sweeps.store import read_sweep
from algoscope.training.sweeps.sweep import Job, Unsettled

TINY = TrainingConfig(
    dim=1,
    num_layers=1,
    hidden_size=8,
    num_heads=1,
    num_examples=3,
    batch_size=4,
    recipe="paper",  # compiles faster
    steps=1000,
    steps_per_call=10,
    save_every=100,
    evaluate_every=500,
)
GRID = Grid(TINY, {"seed": (0, 1)})
WORKERS = 1  # at a time: each has to load JAX
SECONDS = 240.0  # after which something hangs


def start(
    store: Path, engine: str, *more: str, cache: Path, threads: int = 1
) -> subprocess.Popen[str]:
    """Start this program."""
    return subprocess.Popen(
        [sys.executable, __file__, str(store), engine, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            **SHARED,
            **QUICKLY,
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "NPROC": str(threads),
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
    )


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    """Wait for the program to end as it should, and return what it printed."""
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == status, err
    return out


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


def statuses(store: Path) -> tuple[RunStatus, ...]:
    """Return how far the runs are."""
    return read_sweep(GRID.configs, store).runs


def caught(
    store: Path, wanted: Callable[[int], bool] = lambda worker: True
) -> tuple[TrainingConfig, int]:
    """Return a run in the middle of its training, and the process that trains it."""
    found: list[tuple[TrainingConfig, int]] = []

    def one_is_under_way() -> bool:
        for each in statuses(store):
            holder = owner(store / each.config.run_id)
            if each.state == "running" and 100 < each.step < 400 and holder:
                found.append((each.config, holder[1]))
        found[:] = [each for each in found if wanted(each[1])]
        return bool(found)

    wait_for(one_is_under_way)
    return found[0]


def bits(store: Path) -> dict[str, dict[str, bytes]]:
    """Return the weights of every run in a store; each must be finished."""
    names = {path.parent.name for path in store.glob("*/config.json")}
    assert names == {config.run_id for config in GRID.configs}
    for config in GRID.configs:
        run = runs.Run(store / config.run_id, config)
        assert run.finished
        assert not is_held(run.directory)
        assert [row["step"] for row in run.log.rows()] == list(range(10, 1001, 10))
    return {
        name: {
            leaf: array.tobytes()
            for leaf, array in load_arrays(store / name / "model.safetensors")[
                0
            ].items()
        }
        for name in names
    }


def note_trainings(path: Path) -> None:
    """Append the id of each run that is trained in this process to a file."""
    execute = runs.execute

    def noted(run: runs.Run, **how) -> None:
        with open(path, "a") as file:
            file.write(f"{run.config.run_id}\n")
        execute(run, **how)

    runs.execute = noted


def blocks_ctrl_c(cpus: int) -> bool:
    """Return whether this process blocks Ctrl-C."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def lose_worker(job: Job) -> Unsettled:
    """End the process that does this job."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "stopped"  # never


def parent_of(process: int) -> int:
    """Return the process that started another one."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def cluster_that_loses_a_node(store: Path) -> Iterator[str]:
    """Start a Ray cluster of two nodes and kill one when it is in a run's middle."""
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=size)
    doomed = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    raylet = doomed.all_processes["raylet"][0].process.pid

    def kill() -> None:
        run, _ = caught(store, lambda worker: parent_of(worker) == raylet)
        cluster.remove_node(doomed, allow_graceful=False)
        print(f"killed the node of run {run.run_id}", flush=True)

    killer = Thread(target=kill)
    killer.start()
    try:
        yield str(cluster.address)
        killer.join()
    finally:
        cluster.shutdown()


def main(store: Path, engine: str) -> None:
    """Train the grid and print how each run ended."""
    options, workers = EngineOptions(cluster="local"), WORKERS
    with ExitStack() as stack:
        if engine == "ray-cluster":
            address = stack.enter_context(cluster_that_loses_a_node(store))
            engine, options, workers = "ray", EngineOptions(address=address), None
        outcomes = train_all(
            GRID.configs,
            store,
            engine=engine,
            workers=workers,
            evaluation_datasets=20,
            options=options,
        )
    print(*(outcome.status for outcome in outcomes))


if __name__ in ("__main__", "__mp_main__") and len(sys.argv) > 3:
    note_trainings(Path(sys.argv[3]))

if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
