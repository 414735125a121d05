"""A lock has one holder and ends with it, however that ends."""

import fcntl
import os
import platform
import subprocess
import sys

import pytest
from support.refusals import refuses

from algoscope.training.lock import held, is_held, locked, owner


def test_a_lock_has_one_owner_and_ends_with_it(tmp_path):
    program = (
        "import sys; from pathlib import Path\n"
        "from algoscope.training.lock import held\n"
        "with held(Path(sys.argv[1])) as free:\n"
        "    print(free, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        holder = owner(tmp_path)
        assert holder is not None
        assert holder[1] == process.pid
        assert is_held(tmp_path)
        with held(tmp_path) as free:
            assert not free
        process.kill()
    assert not is_held(tmp_path)
    with held(tmp_path) as free:
        assert free
        with held(tmp_path) as free:
            assert not free


def test_a_locked_run_is_rejected_with_the_process_that_trains_it(tmp_path):
    message = (
        f"`out` must be a run that no other process is training, got {tmp_path}, which "
        f"process {os.getpid()} on {platform.node()} is training."
    )
    with locked(tmp_path):
        assert owner(tmp_path) == (platform.node(), os.getpid())
        with refuses(ValueError, message), locked(tmp_path):
            pytest.fail("locked twice")
    assert not is_held(tmp_path)


def test_a_run_that_was_never_locked_is_free(tmp_path):
    assert not is_held(tmp_path)
    assert owner(tmp_path) is None
    (tmp_path / "lock").write_text("half a")
    assert owner(tmp_path) is None


def test_a_file_system_without_locks_is_rejected(tmp_path, monkeypatch):
    def fail(file, kind):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", fail)
    message = (
        f"`store` must be on a file system with file locks, got {tmp_path} "
        "(Operation not supported)."
    )
    with refuses(ValueError, message), held(tmp_path):
        pytest.fail("held without a lock")
