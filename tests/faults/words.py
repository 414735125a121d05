"""Everything that reads what a user types: texts that mean something, and commands.

A new text is one line in `TEXTS`, and a new command one in `LINES`. Commands do all but
their work: the functions that measure, train or write are replaced.
"""

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest import mock

from hypothesis import strategies as st

from algoscope.adapters.targets import load_target
from algoscope.cli.main import COMMANDS, main
from algoscope.predictors import parse_predictor

PIECES = ("(", ")", ",", "=", ":", "++", "-", "--", "[", "{", "'", '"', "\\", "/", ".")
PIECES += (" ", "\t", "\n", "\x00", "\x1b[2J", "\ud800", "\u202e", "é", "√", "𝒳", "~")
PIECES += (
    "0",
    "1",
    "-1",
    "0.1",
    "1e400",
    "nan",
    "inf",
    "1_000",
    "0x10",
    "1j",
    "9" * 30,
)
PIECES += ("None", "True", "lambda: 0", "*a", "**a", "steps", "penalty", "x" * 300)
PIECES += ("(" * 300, "-" * 3000, "1+" * 3000 + "1", "[" * 3000, "a." * 3000 + "b")


@dataclass(frozen=True)
class Text:
    """A function of what a user types, and texts that it understands."""

    name: str
    parse: Callable[[str], object]
    examples: tuple[str, ...]
    share: float = 3.0  # of inputs, next to readers of files


TEXTS: tuple[Text, ...] = (
    Text(
        "predictor",
        lambda text: parse_predictor(text).name,
        ("ols", "ridge(0.1)", "gd(0.02, steps=8, penalty=0.1)", "KNN(3, weighted)")
        + ("bayes(noise_variance=0.25)", "gd++(0.02, 0.01, 3)", "newton(4)", "zero"),
    ),
    Text(
        "target",
        lambda text: load_target(text).name,
        ("linear-d2", "ridge(0.1)", "sklearn:Ridge(alpha=0.3)", "python:math:sqrt")
        + ("cmd:python3 -c 'pass'", "torch:nothing:here", "./here", "python:a.py:b"),
    ),
)

LINE = 0.1  # the share of a command: its parser is slow
OUT = "OUT"  # stands for a path in a directory of the test
LINES: dict[str, tuple[str, ...]] = {
    "train": (
        f"--preset d1 --dim 2 --steps 10 --out {OUT}/run --name mine --seed 3",
        f"--from linear-d1 --random-layers 1 --out {OUT}/run --resume --devices 1",
    ),
    "compare": (
        f"linear-d1 --with ridge(0.1) --metrics spd --seed 1 --out {OUT}/c.json",
        "ols --with ridge(0.1) --dim 2 --num-examples 3 --noise-variance 0.5 --json",
    ),
    "evaluate": (f"linear-d1 --num-datasets 10 --figure {OUT}/c.png --seed 1",),
    "identify": (f"ols --dim 2 --num-examples 3 --out {OUT}/i.json --timeout 3",),
    "build": (
        f"sgd --dim 1 --num-examples 1 --learning-rate 0.1 --out {OUT}/m --overwrite",
        "--list --json",
    ),
    "trace": ("sgd --dim 1", "theorem_1 --dim 2 --json"),
    "probe": (f"linear-d1 --out {OUT}/p --budget smoke --json",),
    "patch": (f"linear-d1 --out {OUT}/p --budget smoke --num-examples 2",),
    "layers": (f"linear-d1 --out {OUT}/l --num-training 100",),
    "export": (f"linear-d1 --out {OUT}/e --to torch",),
    "import": (f"{OUT} --out {OUT}/i --any-task",),
    "ground-truth": (f"--out {OUT}/g",),
    "sweep": (
        f"run --preset d1 --num-layers 1 2 --hidden-size 8 --store {OUT}/s --retry",
        f"status {OUT}/s --json",
        f"resume {OUT}/s --engine inline --workers 1",
    ),
    "reproduce": (f"fig7 fig1 --budget smoke --out {OUT}/r --store {OUT}/s",),
    "report": (f"{OUT} --out {OUT}/r.html",),
    "play": (f"linear-d1 --out {OUT}/p.html",),
    "models": ("--json",),
    "presets": ("",),
    "plugins": ("",),
    "demo": ("--steps 10",),
}
assert set(LINES) == set(COMMANDS), "a command without a line here is not fuzzed"
WORK = (
    "algoscope.comparison.compare.compare",
    "algoscope.construction.build.Construction.compile",
    "algoscope.construction.trace.trace_chain",
    "algoscope.exchange.export.export_saved",
    "algoscope.experiments.experiment.reproduce",
    "algoscope.ground_truth.score",
    "algoscope.ground_truth.write_ground_truth",
    "algoscope.identification.identify",
    "algoscope.layerwise.layers",
    "algoscope.patching.patch",
    "algoscope.playground.play",
    "algoscope.probing.probe",
    "algoscope.training.run.execute",
    "algoscope.training.run.train",
    "algoscope.training.sweeps.train_all",
)


class WorkedError(KeyboardInterrupt):
    """The command has come to its work; it ends there, as if by Ctrl-C."""


def edited(examples: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Return texts near the examples."""
    pieces = st.one_of(st.sampled_from(PIECES), st.text(max_size=4))
    edits = st.lists(
        st.tuples(st.floats(0, 1), pieces, st.integers(0, 6)), min_size=1, max_size=3
    )

    def apply(drawn: tuple[str, list[tuple[float, str, int]]]) -> str:
        text, changes = drawn
        for where, piece, dropped in changes:
            place = int(where * len(text))
            text = text[:place] + piece + text[place + dropped :]
        return text

    return st.tuples(st.sampled_from(examples), edits).map(apply)


def lines_of(command: str) -> st.SearchStrategy[list[str]]:
    """Return command lines near those of a command: words left out, added, changed."""
    word = st.one_of(
        st.sampled_from(
            [*PIECES, "--json", "--debug", "--help", "--dim", "--out", OUT]
        ),
        st.sampled_from(
            [word for line in LINES[command] for word in line.split()] or [""]
        ),
        st.text(max_size=4),
        st.integers().map(str),
        st.floats().map(str),
    )
    edits = st.lists(
        st.tuples(
            st.sampled_from(["put", "drop", "add", "edit"]), st.floats(0, 1), word
        ),
        min_size=1,
        max_size=3,
    )

    def apply(drawn: tuple[str, list[tuple[str, float, str]]]) -> list[str]:
        words = drawn[0].split()
        for verb, where, new in drawn[1]:
            place = int(where * max(len(words) - 1, 0))
            if verb == "add" or not words:
                words.insert(place, new)
            elif verb == "drop":
                del words[place]
            elif verb == "put":
                words[place] = new
            else:
                words[place] = words[place][:3] + new + words[place][3:]
        return [command, *words]

    return st.tuples(st.sampled_from(LINES[command]), edits).map(apply)


@contextlib.contextmanager
def without_work() -> Iterator[None]:
    """Replace what takes long by an end of the command."""
    with contextlib.ExitStack() as stack:
        for name in WORK:
            stack.enter_context(mock.patch(name, side_effect=WorkedError))
        yield


def _below(word: str, place: str) -> str:
    """Return the word with the paths in it below a directory."""
    if word.startswith("/"):
        return place + word
    return word.replace("=/", f"={place}/").replace("..", "").replace(OUT, place)


def say(words: list[str], place: str) -> tuple[int, str, str]:
    """Return the status of a command line, and what it printed to which stream."""
    out, err = io.StringIO(), io.StringIO()
    given = [_below(word, place) for word in words]
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(given)
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 1
    return status, out.getvalue(), err.getvalue()
