"""Running a command of the command line in this process."""

from collections.abc import Callable

import pytest

from algoscope.cli.main import main

Run = Callable[..., tuple[int, str, str]]


def run(capsys: pytest.CaptureFixture, *arguments: str) -> tuple[int, str, str]:
    """Return the exit status, and what was printed to which stream."""
    status = 0
    try:
        main(arguments)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def rejected(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    """Return the one line with which a command rejects its input, with status 2."""
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("algoscope: ")
    return err.removeprefix("algoscope: ").rstrip("\n")
