"""Options as a user types them: help, its examples, and mistakes in one line."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from support.commands import rejected, run

from algoscope.cli import main as cli
from algoscope.cli.parsing import mistake
from algoscope.cli.sweep import SUBCOMMANDS
from algoscope.comparison.metrics import ALL_METRICS

HELPED = [[name] for name in cli.COMMANDS] + [["sweep", each] for each in SUBCOMMANDS]


def examples_of(help_text: str) -> list[str]:
    """Return the lines below "examples:", which is the end of every help."""
    return [line.strip() for line in help_text.partition("examples:\n")[2].splitlines()]


@pytest.mark.parametrize("words", HELPED, ids=" ".join)
def test_help_ends_with_examples_that_the_parser_accepts(capsys, words):
    shown = examples_of(run(capsys, *words, "--help")[1])
    assert shown
    for example in shown:
        program, *arguments = shlex.split(example, comments=True)
        assert [program, *arguments[: len(words)]] == ["algoscope", *words]
        cli._parse(arguments)


def test_the_overview_ends_with_examples_that_the_parser_accepts(capsys):
    shown = examples_of(run(capsys, "--help")[1])
    assert len(shown) >= 3
    for example in shown:
        cli._parse(shlex.split(example, comments=True)[1:])


@pytest.mark.parametrize("words", HELPED, ids=" ".join)
def test_help_says_no_default_that_says_nothing(capsys, words):
    text = run(capsys, *words, "--help")[1].partition("examples:")[0]
    assert not re.search(r"\(default: *(None|False|''|\(\))?\)", text)
    assert "--out" not in text or "-o PATH, --out PATH" in text


def test_help_is_one_paragraph_wherever_the_source_breaks_lines(capsys):
    text = " ".join(run(capsys, "train", "--help")[1].replace("│", " ").split())
    assert "or tune. By default demo, and tune with --from." in text
    assert "By  " not in run(capsys, "train", "--help")[1].replace("By default", "")


def test_help_names_every_metric(capsys):
    text = " ".join(run(capsys, "compare", "--help")[1].replace("│", " ").split())
    assert f"What is measured: {', '.join(ALL_METRICS)}; or all." in text


def test_the_same_things_have_the_same_words(capsys):
    """An option that counts examples, names an output or a seed is called so."""
    for words in HELPED:
        text = run(capsys, *words, "--help")[1]
        options = set(
            re.findall(r"(?<![\w-])--[a-z-]+", text.partition("examples:")[0])
        )
        assert not options & {"--examples", "--output", "--n", "--datasets", "--rng"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--resum"], "There is no option --resum. Did you mean --resume?"),
        (["train", "--steps"], "--steps needs a value."),
        (["train", "--steps", "x"], "`--steps` must be an integer, got 'x'."),
        (["compare", "a", "--seed", "1.5"], "`--seed` must be an integer, got '1.5'."),
        (["compare", "a", "--timeout", "x"], "`--timeout` must be a number, got 'x'."),
        (
            ["probe", "linear-d4", "--layers", "1", "b"],
            "`--layers` must be integers, got '1', 'b'.",
        ),
        (
            ["patch", "linear-d4", "--budget", "smke"],
            "`--budget` must be one of cpu, smoke, got 'smke'. Did you mean 'smoke'?",
        ),
        (
            ["probe", "linear-d4", "--kinds", "cubic"],
            "`--kinds` must be one of linear, mlp, got 'cubic'.",
        ),
        (["import"], "import needs DIR and --out. Try `algoscope import --help`."),
        (["sweep"], "sweep needs one of run, status, resume."),
        (
            ["sweep", "statu"],
            "`command` must be one of run, status, resume, got 'statu'. "
            "Did you mean 'status'?",
        ),
        (
            ["sweep", "status"],
            "sweep status needs STORE. Try `algoscope sweep status --help`.",
        ),
        (
            ["compare", "linear-d2", "linear-d4"],
            "There is no place for 'linear-d4'. "
            "Is an option's name or a quote missing?",
        ),
        (
            ["train", "--task", "linaer"],
            "`task` must be one of linear, control, broad, got 'linaer'. "
            "Did you mean 'linear'?",
        ),
    ],
    ids=str,
)
def test_a_mistake_is_told_in_plain_words(capsys, arguments, message):
    assert rejected(capsys, *arguments) == message


@pytest.mark.parametrize(
    "box",
    [
        "╭─ Odd ───╮\n│ Something │\n│ went wrong │\n│ ────── │\n│ For help │\n╰────╯",
        " Odd  \n ------ \n  Something \n  went wrong \n  ------\n  For help \n",
    ],
    ids=["drawn", "plain"],
)
def test_what_is_not_known_of_the_parser_is_told_as_it_says_it(box):
    assert mistake(box, "algoscope train") == "Something went wrong"


def test_a_mistake_is_told_alike_by_a_terminal_that_draws_no_lines():
    program = [sys.executable, "-m", "algoscope", "import"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii:replace"}
    told = {
        subprocess.run(program, env=each, capture_output=True).stderr
        for each in (plain, {**os.environ, "PYTHONIOENCODING": "utf-8"})
    }
    assert told == {
        b"algoscope: import needs DIR and --out. Try `algoscope import --help`.\n"
    }


def test_a_mistake_is_told_alike_by_a_terminal_that_draws_colors(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    message = rejected(capsys, "compare", "linear-d2", "--nosuch", "3")
    assert message == "There is no option --nosuch."
    box = "\x1b[31m+---\x1b[0m\n\x1b[31;1mUnrecognized\x1b[0m options: --nosuch\n"
    assert mistake(box, "algoscope compare") == "There is no option --nosuch."
