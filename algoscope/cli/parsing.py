"""Options as a user types them: help that reads well, and one line about a mistake.

The options of a command are dataclasses, of which tyro makes a parser. Here their help
loses what says nothing, such as "(default: None)", and gets examples at its end. What
the parser says about a mistake is worded as all other messages are.
"""

import ast
import contextlib
import inspect
import io
import re
import textwrap
from collections.abc import Sequence
from dataclasses import MISSING, is_dataclass
from functools import cache
from typing import Annotated, Any, cast

import tyro

from algoscope.cli import complain
from algoscope.foundation.user_code import did_you_mean
from algoscope.foundation.validation import InvalidValueError

HELP = ("-h", "--help")
COLOR = re.compile(r"\x1b\[[\d;]*m")  # which the parser writes for terminals


def parse(
    kind: Any,
    prog: str,
    arguments: Sequence[str],
    examples: str = "",
    subcommands: Sequence[str] = (),
) -> Any:
    """Return the options that were typed, or exit: after help, or with one line."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                cast(Any, kind),
                prog=prog,
                args=list(arguments),
                config=(tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone),
            )
    except SystemExit as stop:
        if stop.code:
            complain(mistake(complaint.getvalue(), prog))
        elif set(HELP) & set(arguments):
            typed = [word for word in arguments[:1] if word in subcommands]
            print(shown_examples(examples, " ".join([prog, *typed])))
        raise


def shown_examples(examples: str, prog: str) -> str:
    """Return those examples that run `prog`, as the last part of its help.

    Example:
        >>> print(shown_examples("algoscope models\\nalgoscope play", "algoscope play"))
        examples:
          algoscope play
    """
    lines = [
        f"  {line}"
        for line in examples.splitlines()
        if f"{line} ".startswith(f"{prog} ")
    ]
    return "\n".join(["examples:", *lines])


@cache
def polish(options: type) -> None:
    """Make the help of options, and of those they inherit, readable.

    Help is one paragraph, wherever the source breaks lines. A default that says nothing
    (None, nothing, no) is not shown. `-o` is short for `--out` everywhere.
    """
    for kind in options.__mro__[1:]:
        if is_dataclass(kind):
            polish(kind)
    hints, about = options.__dict__.get("__annotations__", {}), _documented(options)
    for name, hint in hints.items():
        default = options.__dataclass_fields__[name].default
        is_list = default is MISSING and "tuple[" in str(hint)
        says_nothing = is_list or any(default is each for each in (None, (), False, ""))
        told = any(
            getattr(each, "help_behavior_hint", None) is not None
            for each in getattr(hint, "__metadata__", ())
        )
        hints[name] = Annotated[
            hint,
            tyro.conf.arg(
                help=about.get(name),
                help_behavior_hint="" if says_nothing and not told else None,
                aliases=["-o"] if name == "out" else None,
            ),
        ]


def _documented(options: type) -> dict[str, str]:
    """Return the docstrings of fields by name: the strings below them in the source."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(options))).body
    except (OSError, TypeError):  # made without source, by a function
        return {}
    found, field = {}, ""
    for node in cast(ast.ClassDef, tree).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                field = name
            case ast.Expr(value=ast.Constant(value=str(text))) if field:
                found[field] = " ".join(text.split())
                field = ""
            case _:
                field = ""
    return found


def mistake(boxed: str, prog: str) -> str:
    """Return in one sentence what the parser says in a box.

    Example:
        >>> mistake("│ Missing value for argument '--steps'. Expected 1 values. │", "")
        '--steps needs a value.'
    """
    boxed = COLOR.sub("", boxed).translate(str.maketrans("│╭╮╰╯─", "|++++-"))
    lines = [line.strip(" |+") for line in boxed.splitlines()]
    is_rule = [line.endswith("---") or line.startswith("---") for line in lines]
    whole = " ".join(
        "§" if rule else line for line, rule in zip(lines, is_rule, strict=True) if line
    )
    if match := re.search(r"Unrecognized options: (.*)", whole):
        return _unknown(match[1].partition(" ")[0].rstrip(","), whole)
    if match := re.search(r"Missing value for argument [^-]*(-[\w/-]+)", whole):
        return f"{match[1]} needs a value."
    if match := re.search(r"Expected one of \{(.*)\}", whole):
        return f"{prog.removeprefix('algoscope ')} needs one of {match[1]}."
    if match := re.search(r"choice '(.*)' for argument '(\S+)'\..*?\((.*?)\)", whole):
        known = sorted(set(re.findall(r"'(.*?)'", match[3])) - {"None"})
        rule, remedy = f"be one of {', '.join(known)}", did_you_mean(match[1], known)
        return str(InvalidValueError(match[2], rule, f"'{match[1]}'", remedy))
    if match := re.search(r"Missing from (algoscope[\w -]*):", whole):
        before = boxed.partition("Missing from")[2].partition("---")[0]
        missing = re.findall(r"^(?:\|| ) {5}(\S.*?) *\|?$", before, re.MULTILINE)
        names = [each.rpartition(", ")[2].partition(" ")[0] for each in missing]
        command = match[1].removeprefix("algoscope ")
        return f"{command} needs {' and '.join(names)}. Try `{match[1]} --help`."
    if match := re.search(r"Error parsing (\S+): (.*)", whole):
        return _unreadable(match[1], match[2], whole)
    parts = [part.strip() for part in whole.split("§")]
    return next((part for part in parts[1:] if part), whole)


def _unknown(first: str, rest: str) -> str:
    """Return what is wrong with a word that is no option of a command."""
    if subcommands := re.search(r"Available subcommands: ([^§]*)", rest):
        known = subcommands[1].strip().split(", ")
        rule = f"be one of {', '.join(known)}"
        remedy = did_you_mean(first, known)
        return str(InvalidValueError("command", rule, f"'{first}'", remedy))
    if not first.startswith("-"):
        return (
            f"There is no place for '{first}'. Is an option's name or a quote missing?"
        )
    near = re.search(r"Perhaps you meant: (?:-\w \S+, )?(--[\w-]+)", rest)
    return f"There is no option {first}." + (
        f" Did you mean {near[1]}?" if near else ""
    )


def _unreadable(option: str, why: str, rest: str) -> str:
    """Return what is wrong with a value that is no number."""
    metavar = re.search(
        rf"Argument helptext: (?:-o \S+, )?{re.escape(option)} (.*)", rest
    )
    kind = metavar[1].partition(" ")[0] if metavar else ""
    article, noun = ("a", "number") if "FLOAT" in kind else ("an", "integer")
    rule = f"be {noun}s" if "[" in kind else f"be {article} {noun}"
    got = re.search(r"(?:from|arguments:) \[(.*?)\]", why) or re.search(r"('.*')", why)
    return str(InvalidValueError(option, rule, got[1] if got else "another value"))
