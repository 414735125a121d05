"""`algoscope <command>`: finding the command and the exit status.

Exit status: 0 done, 1 failed, 2 bad input (one line), 130 interrupted and saved.
The list of commands needs no parser, and a command only its own, so that help is
instant.
"""

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from functools import reduce
from importlib import import_module
from operator import or_
from types import ModuleType
from typing import Annotated, Any, cast

from algoscope.cli import UsageError, complain
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_choice,
)

ABOUT = "See which learning algorithm an in-context learner runs."
# Name: what it does. A command is a file of the same name, but for those in `FILES`.
COMMANDS = {
    "train": "Train an in-context learner: a preset, with any of its choices changed.",
    "compare": "Compare any predictor with textbook algorithms, by every metric.",
    "evaluate": "The same as `compare --metrics spd`.",
    "identify": "Say which learning algorithm a predictor runs.",
    "build": "Write a transformer by hand that runs a learning algorithm.",
    "trace": "Show step by step what a transformer that was written by hand computes.",
    "probe": "Read intermediate quantities out of a model's hidden states, with "
    "controls.",
    "patch": "Test causally where a model holds its weights: swap states, edit, "
    "ablate.",
    "layers": "Read an answer out of every layer, and match it with steps of "
    "algorithms.",
    "export": "Write a model for PyTorch, for transformers (gpt2), or as ONNX.",
    "import": "Turn a run of dtsip/in-context-learning, or an export, into a saved "
    "model.",
    "sweep": "Train a grid of learners, show its status, or resume it.",
    "reproduce": "Run the paper's experiments: train, measure, draw, and judge its "
    "claims.",
    "report": "Write results and runs as one page: HTML that needs nothing else, or "
    "Markdown.",
    "play": "Write the playground: a page in which learners are seen from inside.",
    "models": "List the models that come with algoscope.",
    "presets": "List the training presets and what they cost.",
    "demo": "Train a small learner and ask which algorithm the shipped d = 8 model "
    "runs.",
}
FILES = {
    "evaluate": "compare",
    "export": "exchange",
    "import": "exchange",
    "presets": "models",
}


def _module(name: str) -> ModuleType:
    return import_module(f"algoscope.cli.{FILES.get(name, name)}")


def _options(name: str) -> type:
    return getattr(_module(name), name.capitalize())


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(
        [
            "usage: algoscope [-h] COMMAND …",
            "",
            ABOUT,
            "",
            "commands:",
            *lines,
            "",
            "algoscope COMMAND --help explains a command.",
        ]
    )


def _parse(arguments: Sequence[str]) -> Any:
    """Return the command, turning the parser's boxed errors into one line."""
    name, *rest = arguments
    if not name.startswith("-"):
        require_choice("command", name, COMMANDS)
    import tyro

    if name in COMMANDS:  # building the parsers of the others would take longer
        kind, prog = _options(name), f"algoscope {name}"
    else:  # shell completion knows all of them
        every = [
            Annotated[_options(name), tyro.conf.subcommand(name)] for name in COMMANDS
        ]
        kind, prog, rest = reduce(or_, every), "algoscope", arguments
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                cast(Any, kind),
                prog=prog,
                args=list(rest),
                config=(tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone),
            )
    except SystemExit as stop:
        if stop.code:
            complain(_one_line(complaint.getvalue()))
        raise


def _one_line(boxed: str) -> str:
    """Return the text of a boxed message without its frame and its advice on help.

    Example:
        >>> _one_line("╭─ Error ─╮\\n│ bad --steps │\\n│ ───── │\\n╰───╯")
        'bad --steps'
    """
    lines = [line.strip(" │") for line in boxed.splitlines()]
    words = [line for line in lines if line and not re.match(r"[╭╰]", line)]
    ends = [i for i, line in enumerate(words) if line.startswith("For full help")]
    kept = words[: ends[0]] if ends else words
    return " ".join(line for line in kept if set(line) != {"─"})


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["-h"], ["--help"]):
        print(_overview())
        return
    try:
        if not given:
            raise UsageError("No command given. Try `algoscope --help`.")
        command = _parse(given)
        name = type(command).__name__.lower()
        getattr(_module(name), f"run_{name}")(command)
    except (InvalidValueError, InvalidTypeError, UsageError) as error:
        complain(error)
        sys.exit(2)
    except KeyboardInterrupt as interrupt:
        complain(str(interrupt) or "interrupted.")
        sys.exit(130)
