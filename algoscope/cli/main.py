"""`algoscope <command>`: finding the command and the exit status.

Exit status: 0 done, 1 failed, 2 bad input (one line each), 130 interrupted and saved.
The list of commands needs no parser, and a command only its own, so that help is
instant.
"""

import contextlib
import io
import os
import re
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import reduce
from importlib import import_module
from importlib.metadata import version
from operator import or_
from types import ModuleType
from typing import Annotated, Any, cast

from algoscope.cli import UsageError, complain
from algoscope.cli.failures import FAILED, explain
from algoscope.cli.interrupts import INTERRUPTED, Requests, leave, stopping_on_request
from algoscope.foundation.validation import require_choice

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
    "ground-truth": "Write learners whose insides are labelled, to score probes and "
    "patching on.",
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
DEBUG = "--debug"  # shows the traceback of a failure
FILES = {
    "evaluate": "compare",
    "export": "exchange",
    "ground-truth": "ground_truth",
    "import": "exchange",
    "presets": "models",
}


def _module(name: str) -> ModuleType:
    return import_module(f"algoscope.cli.{FILES.get(name, name)}")


def _options(name: str) -> type:
    module = _module(name)
    for each in list(vars(module).values()):
        if isinstance(each, type) and is_dataclass(each):
            _say_no_empty_defaults(each)
    return getattr(module, name.title().replace("-", ""))


def _say_no_empty_defaults(options: type) -> None:
    """Keep help from ending in "(default: None)": its sentence says what None means."""
    import tyro

    silent = tyro.conf.arg(help_behavior_hint="")
    for each in fields(options):
        hints = next(
            kind.__annotations__
            for kind in options.__mro__
            if each.name in kind.__dict__.get("__annotations__", {})
        )
        said = getattr(hints[each.name], "__metadata__", ())
        told = any(
            getattr(item, "help_behavior_hint", None) is not None for item in said
        )
        is_list = each.default is MISSING and "tuple[" in str(hints[each.name])
        if (is_list or each.default in (None, ())) and not told:
            hints[each.name] = Annotated[hints[each.name], silent]


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(
        [
            "usage: algoscope [-h] [--version] [--debug] COMMAND …",
            "",
            ABOUT,
            "",
            "commands:",
            *lines,
            "",
            "algoscope COMMAND --help explains a command; --debug shows the traceback "
            "of a failure.",
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
    """Run one command and exit with its status.

    Without `arguments` this is the program itself, with those that it was given.
    """
    with stopping_on_request(is_process=arguments is None) as requests:
        try:
            given = sys.argv[1:] if arguments is None else arguments
            status = _run(list(given), requests)
        except KeyboardInterrupt as interrupt:
            requests.end()
            complain(str(interrupt) or "interrupted.")
            status = INTERRUPTED
        if requests.made and not status:  # lost so late that the work is done
            status = INTERRUPTED
    if arguments is None and status == INTERRUPTED:
        leave(status)
    if status:
        sys.exit(status)


def _run(given: list[str], requests: Requests) -> int:
    """Run a command and return its exit status; every failure is told in one line."""
    if given in (["-h"], ["--help"]):
        print(_overview())
        return 0
    if given == ["--version"]:
        print(f"algoscope {version('algoscope')}")
        return 0
    debugging = DEBUG in given
    try:
        _call([each for each in given if each != DEBUG])
    except SystemExit as stop:  # of the parser, and of commands that failed
        code = 0 if stop.code is None else stop.code
        return code if isinstance(code, int) else FAILED
    except BrokenPipeError:  # whoever read the output has closed it, as `head` does
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if requests.made:  # libraries turn an interrupt into errors of their own
            raise KeyboardInterrupt from error
        if debugging:
            traceback.print_exc()
        failure = explain(error)
        complain(failure.message)
        return failure.status
    return 0


def _call(given: list[str]) -> None:
    if not given:
        raise UsageError("No command given. Try `algoscope --help`.")
    command = _parse(given)
    kind = type(command).__name__
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower()
    getattr(_module(name), f"run_{name.replace('-', '_')}")(command)
