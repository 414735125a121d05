"""`algoscope <command>`: finding the command and the exit status.

Exit status: 0 done, 1 failed, 2 bad input (one line each), 130 interrupted and saved.
The list of commands needs no parser, and a command only its own, so that help is
instant.
"""

import os
import re
import sys
import textwrap
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from functools import reduce
from importlib import import_module
from importlib.metadata import version
from operator import or_
from types import ModuleType
from typing import Annotated, Any

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
    "plugins": "List what installed packages add: predictors, tasks and families.",
    "demo": "Train a small learner and ask which algorithm the shipped d = 8 model "
    "runs.",
}
DEBUG = "--debug"  # shows the traceback of a failure
FILES = {
    "evaluate": "compare",
    "export": "exchange",
    "ground-truth": "ground_truth",
    "import": "exchange",
    "plugins": "models",
    "presets": "models",
}
EXAMPLES = """
algoscope demo                            # a minute: train, compare, draw
algoscope identify linear-d8              # which algorithm is it?
algoscope compare linear-d8 --figure figure.png
algoscope play --open                     # see it think, in the browser
"""


def _module(name: str) -> ModuleType:
    return import_module(f"algoscope.cli.{FILES.get(name, name)}")


def _options(name: str) -> type:
    from algoscope.cli.parsing import polish

    module = _module(name)
    for each in list(vars(module).values()):
        if isinstance(each, type) and is_dataclass(each):
            polish(each)
    return getattr(module, name.title().replace("-", ""))


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
            "",
            "examples:",
            textwrap.indent(EXAMPLES.strip(), "  "),
        ]
    )


def _parse(arguments: Sequence[str]) -> Any:
    """Return the options of the command that was typed."""
    name, *rest = arguments
    if not name.startswith("-"):
        require_choice("command", name, COMMANDS)
    elif not name.startswith("--tyro-"):  # of shell completion
        raise UsageError(f"There is no option {name}. Try `algoscope --help`.")
    import tyro

    from algoscope.cli.parsing import parse

    if name in COMMANDS:  # building the parsers of the others would take longer
        module, prog = _module(name), f"algoscope {name}"
        subcommands = getattr(module, "SUBCOMMANDS", ())
        return parse(_options(name), prog, rest, module.EXAMPLES, subcommands)
    every = [  # shell completion knows all of them
        Annotated[_options(name), tyro.conf.subcommand(name)] for name in COMMANDS
    ]
    return parse(reduce(or_, every), "algoscope", arguments)


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
    """Run a command and return its exit status; a failure prints one line."""
    if given[:1] == ["help"]:  # algoscope help COMMAND
        given = [*given[1:], "--help"]
    if given in (["-h"], ["--help"]):
        print(_overview())
        return 0
    if given == ["--version"]:
        print(f"algoscope {version('algoscope')}")
        return 0
    debugging = DEBUG in given
    try:
        _call([each for each in given if each != DEBUG])
        sys.stdout.flush()  # while a reader that has gone is still noticed
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
