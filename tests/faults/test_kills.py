"""Whichever command is killed, at whichever file event: the next one ends the same.

Nothing that was there before is harmed, and no half of a file is taken for a whole.
"""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compiling import QUICKLY, SHARED
from support.forking import Forker
from support.results import save_identification, save_patching, save_run

from algoscope.foundation.files import load_arrays

TINY = "--dim 1 --num-layers 1 --hidden-size 8 --num-heads 1 --num-examples 3 "
TINY += "--batch-size 4 --steps 40 --steps-per-call 10 --save-every 20 "
TINY += "--evaluate-every 20 --evaluation-datasets 20 --recipe paper "
# What is killed, and with what it is resumed; without the second, by itself.
COMMANDS: dict[str, tuple[str, str]] = {
    "train": (f"train --preset demo {TINY} --devices 1 --out run", "--resume"),
    "sweep": (
        f"sweep run --preset d1 {TINY} --seed 0 1 --store store --engine inline",
        "",
    ),
    "probe": ("probe linear-d1 --budget smoke --num-training 64 --out probing", ""),
    "patch": ("patch linear-d1 --budget smoke --num-examples 2 --out patching", ""),
    "identify": ("identify ols --dim 1 --num-examples 3 --out found.json", ""),
    "reproduce": ("reproduce fig7 --budget smoke --out results --store runs", ""),
    "build": ("build sgd --dim 1 --num-examples 2 --out built", ""),
    "report": ("report input --out page.html", ""),
    "play": ("play linear-d1 --out page.html", ""),
}
FAST = ("train", "train", "train", "sweep", "sweep", "build", "build")
FAST += ("identify", "reproduce", "report")
PER_COMMAND = 12  # kills in the slow job: 108 of all
UNEQUAL = ("seconds", "created", "wall_seconds")  # the only fields that may differ


@pytest.fixture(scope="module")
def forker():
    with Forker(QUICKLY | SHARED) as started:
        yield started


def prepare(place: Path) -> None:
    """Write what was there before: inputs, and files that nobody may touch."""
    place.mkdir()
    save_run(place / "input" / "run")
    save_patching(place / "input" / "patching")
    save_identification(place / "input" / "found.json")
    (place / "mine.txt").write_text("mine")


def before(place: Path) -> dict[str, bytes]:
    """Return the files that were there before."""
    every = [*(place / "input").rglob("*"), place / "mine.txt"]
    return {str(path): path.read_bytes() for path in every if path.is_file()}


def contents(place: Path) -> dict[str, Any]:
    """Return what is in all files: bits of arrays, and JSON without its durations."""
    found: dict[str, Any] = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if not path.is_file() or path.name == "lock":
            continue
        if path.suffix == ".safetensors":
            arrays, about = load_arrays(path)
            bits = {key: (a.tobytes(), a.shape) for key, a in arrays.items()}
            found[name] = bits, {k: v for k, v in about.items() if k not in UNEQUAL}
        elif path.suffix == ".json":
            found[name] = _timeless(json.loads(path.read_text()))
        elif path.suffix == ".jsonl":
            lines = path.read_text().splitlines()
            found[name] = [_timeless(json.loads(line)) for line in lines]
        elif path.name not in ("README.md", "page.html"):  # which tell the duration
            found[name] = path.read_bytes()
        else:
            found[name] = path.stat().st_size > 0
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(each) for k, each in value.items() if k not in UNEQUAL}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def whole(forker: Forker, tmp_path_factory) -> Callable[[str], tuple[int, dict]]:
    """Return a function: how many file events a command has, and what it writes."""
    known: dict[str, tuple[int, dict]] = {}

    def run(name: str) -> tuple[int, dict]:
        if name not in known:
            place = tmp_path_factory.mktemp("whole") / "place"
            prepare(place)
            count = place.parent / "count"
            setup = f"from faults.killer import *; count_events({str(place)!r}, "
            done = forker.run(
                COMMANDS[name][0].split(), place, f"{setup}{str(count)!r})"
            )
            assert done.returncode == 0, done.stderr
            known[name] = int(count.read_text()), contents(place)
        return known[name]

    return run


def kill_and_resume(
    forker: Forker, name: str, event: int, place: Path, expected: dict
) -> None:
    """Kill a command at a file event, run it again, and compare with the whole one."""
    prepare(place)
    good = before(place)
    words, resume = COMMANDS[name]
    setup = f"from faults.killer import *; kill_at({str(place)!r}, {event})"
    killed = forker.run(words.split(), place, setup)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert before(place) == good
    begun = (place / "run" / "config.json").exists() or not resume
    again = f"{words} {resume}" if begun else words
    done = forker.run(again.split(), place)
    assert done.returncode == 0, done.stderr
    assert before(place) == good
    found = contents(place)
    left = {path for path in found if path.endswith(".partial")}
    assert all(str(os.getpid()) not in path for path in left)
    assert {path: found[path] for path in expected} == expected
    assert set(found) - left == set(expected)


@pytest.mark.parametrize("name", FAST)
def test_a_killed_command_ends_the_same_when_it_is_run_again(
    forker, whole, name, rng, tmp_path
):
    events, expected = whole(name)
    event = int(rng.integers(1, events + 1))
    kill_and_resume(forker, name, event, tmp_path / "place", expected)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", COMMANDS)
def test_so_it_does_at_many_events(forker, whole, name, tmp_path, capsys):
    events, expected = whole(name)
    chosen = np.linspace(1, events, PER_COMMAND).round().astype(int).tolist()
    for index, event in enumerate(chosen):
        kill_and_resume(forker, name, event, tmp_path / str(index), expected)
    with capsys.disabled():
        print(f"\n{name}: {len(chosen)} kills at {events} file events")
