"""Programs for tests to run and kill, without loading JAX each time.

A process that has imported the package, and computed nothing, forks a child for each
command. A child is a program like any other: it has its own JAX, and dies alone.

    with Forker(environment) as forker:
        done = forker.run(["train", "--out", "run"], place, setup="import os")
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

MODULES = (
    "algoscope.cli.build",
    "algoscope.cli.identify",
    "algoscope.cli.patch",
    "algoscope.cli.play",
    "algoscope.cli.probe",
    "algoscope.cli.report",
    "algoscope.cli.reproduce",
    "algoscope.cli.sweep",
    "algoscope.cli.train",
    "algoscope.adapters.targets",
    "algoscope.comparison.compare",
    "algoscope.construction.build",
    "algoscope.experiments.figure_7",
    "algoscope.experiments.experiment",
    "algoscope.identification",
    "algoscope.patching",
    "algoscope.playground",
    "algoscope.probing",
    "algoscope.reporting",
    "algoscope.training.run",
    "algoscope.training.sweeps",
    "algoscope.foundation.plotting",
    "faults.killer",
)


class Done(NamedTuple):
    """How a command ended: negative if by a signal."""

    returncode: int
    stdout: str
    stderr: str


class Forker:
    """The process that has loaded everything."""

    def __init__(self, environment: Mapping[str, str] | None = None):
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {}), "PYTHONPATH": paths},
        )

    def run(self, words: list[str], place: Path, setup: str = "") -> Done:
        """Run a command in a directory; `setup` is Python that runs before it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        outs = [place / ".stdout", place / ".stderr"]
        job = {"words": words, "place": str(place), "setup": setup}
        self._process.stdin.write(json.dumps(job | {"outs": list(map(str, outs))}))
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        assert reply, "the process that forks has ended"
        texts = [path.read_text(errors="replace") for path in outs]
        for path in outs:
            path.unlink()
        return Done(int(reply), *texts)

    def __enter__(self) -> "Forker":
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)


def _serve() -> None:
    replies = os.fdopen(os.dup(1), "w")
    for name in MODULES:
        import_module(name)
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if not child:
            _become(job)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=replies, flush=True)


def _become(job: dict[str, Any]) -> None:
    """Run the command as a process of its own would, and end."""
    for number, path in enumerate(job["outs"], start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(job["place"])
    sys.argv = ["algoscope", *job["words"]]
    status = 0
    try:
        exec(job["setup"], {})
        from algoscope.cli.main import main

        main()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 99
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve()
