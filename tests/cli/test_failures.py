"""Every failure costs one line: of a disk, a machine, a file, or of this package."""

import errno
import os
import re
import stat
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from support.commands import rejected, run

from algoscope.cli import main as cli
from algoscope.cli import models
from algoscope.cli.destinations import write_or_rescue
from algoscope.cli.failures import explain
from algoscope.foundation.text import visible

XLA = type("XlaRuntimeError", (RuntimeError,), {})


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (OSError(errno.ENOSPC, "", "a/b"), 1, "a/b: the disk is full. Free some space"),
        (PermissionError(errno.EACCES, "", "a"), 2, "a: permission is denied. Choose"),
        (OSError(errno.EROFS, "", "a"), 2, "a: the file system is read-only. Choose"),
        (OSError(errno.EIO, "I/O error"), 1, "A file: I/O error."),
        (MemoryError(), 1, "There is not enough memory. Use smaller sizes, such as"),
        (XLA("RESOURCE_EXHAUSTED: 9 bytes"), 1, "There is not enough memory. Use "),
        (RecursionError("deep"), 2, "The input is nested too deeply to be read."),
        (OverflowError("too big"), 2, "A number is too large: too big. Use smaller"),
        (BrokenProcessPool("x"), 1, "A worker process ended unexpectedly, perhaps"),
        (ModuleNotFoundError("no", name="ray"), 1, "The package ray is not installed"),
        (ImportError("map"), 1, "A package cannot be loaded: ImportError: map"),
        (ImportError("x", name="algoscope"), 1, "This is an error of algoscope: Impor"),
        (KeyError("step"), 1, "This is an error of algoscope: KeyError: 'step' (test_"),
        (XLA("INTERNAL: odd"), 1, "This is an error of algoscope: XlaRuntimeError: "),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failure_is_one_line_and_a_status(
    capsys, monkeypatch, error, status, message
):
    def fail(command) -> None:
        raise error

    monkeypatch.setattr(models, "run_models", fail)
    found, out, err = run(capsys, "models")
    assert (found, out) == (status, "")
    assert err.startswith(f"algoscope: {message}")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    _, _, err = run(capsys, "models", "--debug")
    assert "Traceback" in err
    assert f"algoscope: {message}" in err


def test_a_directory_that_was_deleted_is_named(tmp_path, monkeypatch):
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    found = explain(FileNotFoundError(errno.ENOENT, "No such file"))
    assert found == (2, "The current directory was deleted. Go to another.")


def test_no_message_is_long_whatever_it_shows():
    shown = visible("\x1b[2J" * 500, longest=500)
    assert len(shown) == 500
    assert shown.isprintable()


def test_an_error_of_ours_names_the_versions(capsys):
    message = explain(KeyError("x")).message
    assert re.search(r"Python 3\.\d+\.\d+, .*jax \d", message)
    assert message.endswith("--debug shows where it happened.")


def test_the_version_is_told(capsys):
    status, out, _ = run(capsys, "--version")
    assert status == 0
    assert re.fullmatch(r"algoscope \d+\.\d+\.\d+\n", out)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_no_help_ends_in_an_empty_default(capsys, command):
    words = [command, "run"] if command == "sweep" else [command]
    _, out, _ = run(capsys, *words, "--help")
    plain = " ".join(out.replace("│", " ").split())
    assert "(default: None)" not in plain
    assert "(default: )" not in plain


def test_a_closed_pipe_is_no_error():
    words = [sys.executable, "-m", "algoscope", "build", "--list"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, timeout=240)
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 1


# Outputs are checked before the work.

WRITERS = {
    "compare": ["compare", "ols", "--out"],
    "figure": ["compare", "ols", "--figure"],
    "patch": ["patch", "linear-d1", "--out"],
    "probe": ["probe", "linear-d1", "--out"],
    "layers": ["layers", "linear-d1", "--out"],
    "train": ["train", "--out"],
    "sweep": ["sweep", "run", "--store"],
    "reproduce": ["reproduce", "fig1", "--out"],
    "build": ["build", "sgd", "--dim", "1", "--num-examples", "1", "--out"],
    "report": ["report", ".", "--out"],
}


@pytest.fixture
def no_work(monkeypatch):
    """Fail if anything is measured."""

    def fail(*arguments, **options):
        pytest.fail("work was done before the output was checked")

    for name in (
        "algoscope.comparison.compare.compare",
        "algoscope.patching.patch",
        "algoscope.probing.probe",
        "algoscope.layerwise.layers",
        "algoscope.training.run.execute",
        "algoscope.reporting.report",
    ):
        monkeypatch.setattr(name, fail)


@pytest.mark.parametrize("command", WRITERS)
def test_an_output_below_a_file_is_refused_before_the_work(
    capsys, tmp_path, no_work, command
):
    (tmp_path / "file").write_text("mine")
    ending = {"figure": ".png", "report": ".html"}.get(command, "")
    message = rejected(capsys, *WRITERS[command], f"{tmp_path}/file/out{ending}")
    assert "be where files can be written" in message
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("command", ["compare", "report"])
def test_the_null_device_is_refused_and_stays(capsys, tmp_path, no_work, command):
    (tmp_path / "null.html").symlink_to("/dev/null")
    target = {"compare": "/dev/null", "report": str(tmp_path / "null.html")}[command]
    assert "not a regular file" in rejected(capsys, *WRITERS[command], target)
    assert stat.S_ISCHR(os.lstat("/dev/null").st_mode)


def test_a_name_that_is_too_long_is_refused(capsys, no_work):
    assert rejected(capsys, "compare", "ols", "--out", "x" * 300).endswith(
        "the name is too long. Choose another path."
    )
    message = rejected(capsys, "compare", "x" * 300)
    assert message.startswith("`target` must be a model, a reference, or start with")
    assert len(message) <= 500


def test_a_result_that_cannot_be_written_is_saved_elsewhere(tmp_path):
    def write(path: Path) -> None:
        if path.parent == tmp_path:
            raise OSError(errno.ENOSPC, "No space left", str(path))
        path.write_text("measured")

    with pytest.raises(Exception, match="the disk is full.* The result was saved to"):
        write_or_rescue(tmp_path / "x.json", write)
    with pytest.raises(Exception, match="saved to") as caught:
        write_or_rescue(tmp_path / "x.json", write)
    (place,) = re.findall(r"saved to (\S+) instead", str(caught.value))
    assert Path(place).read_text() == "measured"


def test_another_model_is_replaced_only_on_request(capsys, tmp_path):
    words = ["--dim", "1", "--num-examples", "1", "--dtype", "float32"]
    words += ["--out", str(tmp_path / "model")]
    assert run(capsys, "build", "sgd", *words)[0] == 0
    assert run(capsys, "build", "sgd", *words)[0] == 0  # the same again
    other = ["build", "sgd", *words, "--learning-rate", "0.1"]
    assert rejected(capsys, *other) == (
        f"`out` must be a new directory, got '{tmp_path / 'model'}', which holds "
        "another model. Add --overwrite to replace it."
    )
    assert run(capsys, *other, "--overwrite")[0] == 0


def test_a_run_that_is_not_there_is_not_resumed(capsys, tmp_path):
    out = tmp_path / "run"
    assert rejected(capsys, "train", "--out", str(out), "--resume") == (
        f"`out` must hold a run to resume it, got '{out}' without one. Leave out "
        "--resume to start it there."
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--name", "a\udc80"], "`name` must hold printable characters"),
        (["train", "--name", "a\nb"], "`name` must hold printable characters"),
        (
            ["compare", "ols", "--seed", "99999999999999999999"],
            "`seed` must be at most",
        ),
        (["train", "--seed", "99999999999999999999"], "`seed` must be at most 2147483"),
        (["compare", "ols", "--dim", "100000000"], "`dim` must be at most 10000, got"),
        (["identify", "ols", "--dim", "100000000"], "`dim` must be at most 10000, got"),
        (["train", "--dim", "100000000"], "`dim` must be at most 10000, got 100000000"),
        (
            ["compare", "newton(99999999999999999999)"],
            "`steps` must be at most 1000000",
        ),
        (["compare", "sklearn:" + "-" * 9999], "`target` must be a class with literal"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_numbers_and_names_beyond_all_bounds_are_refused(capsys, words, message):
    assert rejected(capsys, *words).startswith(message)


def test_control_characters_are_made_visible(capsys, tmp_path):
    evil = "\x1b]0;mine\x07\x1b[2J\n"
    message = rejected(capsys, "compare", f"no{evil}model")
    assert r"\x1b]0;mine\x07\x1b[2J\n" in message
    assert visible("ü – ‖x‖² …") == "ü – ‖x‖² …"
    assert visible("\u202egnp") == r"\u202egnp"


def test_a_result_that_can_be_written_nowhere_is_printed(tmp_path, capsys):
    def write(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left", str(path))

    with pytest.raises(OSError, match="No space left"):
        write_or_rescue(tmp_path / "x.json", write, "It is least squares.")
    assert capsys.readouterr().out == "It is least squares.\n"
