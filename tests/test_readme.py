"""What the README shows works: its Python runs, and its commands exist.

The commands of all guides are accepted by the parser, but not run.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from algoscope.cli.main import _parse

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GUIDES = (ROOT / "docs").glob("*.md")
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
NOT_OURS = {"cd", "git", "pip"}  # programs whose arguments are not looked at


def blocks(*languages: str, page: Path = README) -> list[tuple[int, str]]:
    """Return the fenced blocks in these languages, each after the lines above it."""
    text = page.read_text()
    fences = re.finditer(r"^```([^\n]+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [
        (text.count("\n", 0, fence.start(2)), fence[2])
        for fence in fences
        if fence[1] in languages
    ]


def commands(page: Path = README) -> list[list[str]]:
    """Return the words of each command; in a console block these follow a `$`."""
    shown = "".join(body for _, body in blocks("sh", "bash", "shell", page=page))
    for _, body in blocks("console", page=page):
        shown += "".join(re.findall(r"^\$ ((?:.*\\\n)*.*\n)", body, re.MULTILINE))
    lines = shown.replace("\\\n", " ").replace("&&", "\n").splitlines()
    words = (shlex.split(line, comments=True) for line in lines)
    return [command for command in words if command]


@pytest.mark.usefixtures("default_settings")
def test_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shown = blocks("python")
    assert shown, "README.md must show Python code in a ```python block"
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for line, body in shown:
        code = compile("\n" * line + body, README, "exec")  # errors name README's lines
        exec(code, namespace)


def subcommands() -> set[str]:
    """Return the first word of each line of `algoscope --help`."""
    command = [sys.executable, "-m", "algoscope.cli", "--help"]
    shown = subprocess.check_output(command, text=True)
    return set(re.findall(r"^\W*([\w-]+)", shown, re.MULTILINE))


def test_commands_exist():
    shown = commands()
    assert shown, "README.md must show commands in a ```console or ```sh block"
    known = subcommands()
    for program, *arguments in shown:
        words = [word for word in arguments if word[0] != "-" and "=" not in word]
        if program == "make":
            assert set(words) <= TARGETS, f"Makefile has no target {words}"
        elif Path(program).name == "algoscope":
            assert set(words[:1]) <= known, f"algoscope has no command {words[0]}"
        else:
            assert program in NOT_OURS, f"`{program}` is not known: see {__file__}"


@pytest.mark.parametrize("page", [README, *sorted(GUIDES)], ids=lambda page: page.stem)
def test_commands_are_accepted_by_the_parser(page: Path):
    for program, *arguments in commands(page):
        if program == "algoscope" and arguments[:1] != ["--tyro-print-completion"]:
            assert _parse(arguments) is not None
