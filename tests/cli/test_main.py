"""The command line: help, one-line errors, exit codes, JSON."""

import subprocess
import sys
import time

import pytest
from support.commands import rejected, run

from algoscope.cli import main as cli


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_explains_itself(capsys, command):
    status, out, _ = run(capsys, command, "--help")
    assert status == 0
    assert f"usage: algoscope {command}" in out


def test_the_overview_says_of_every_command_what_its_own_help_says(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    for name, about in cli.COMMANDS.items():
        assert f"  {name} " in out
        assert about in out
        assert about in " ".join(
            run(capsys, name, "--help")[1].replace("│", " ").split()
        )


def test_help_is_also_a_word(capsys):
    assert run(capsys, "help") == run(capsys, "--help")
    assert run(capsys, "help", "sweep", "run") == run(capsys, "sweep", "run", "--help")


def test_shells_can_complete_every_command(capsys):
    status, out, _ = run(capsys, "--tyro-print-completion", "bash")
    assert status == 0
    assert all(name in out for name in cli.COMMANDS)


def test_help_does_not_wait_for_jax():
    program = (
        "import sys, contextlib\n"
        "from algoscope.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "heavy = {'jax', 'equinox', 'numpy', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_help_answers_within_a_third_of_a_second():
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "algoscope.cli", "--help"],
            check=True,
            capture_output=True,
        )
        times.append(time.perf_counter() - start)
    assert min(times) < 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", "--stepz", "3"],
            "There is no option --stepz. Did you mean --steps?",
        ),
        (["train", "--steps", "many"], "--steps"),
        (["train", "--preset", "d9"], "`preset` must be one of demo, d1,"),
        (["train", "--steps", "0"], "`steps` must be at least 1, got 0."),
        (["train", "--hidden-size", "65"], "`num_heads` must divide `hidden_size` 65"),
        (["train", "--devices", "0"], "`devices` must be at least 1, got 0."),
        (["train", "--activation", "glu"], "--activation"),
        (["train", "--num-processes", "2"], "`coordinator` must come together with"),
        (
            ["train", "--evaluation-datasets", "0"],
            "`evaluation_datasets` must be at least 1, got 0.",
        ),
        (["evaluate"], "evaluate needs TARGET. Try `algoscope evaluate --help`."),
        (["evaluate", "linear-d88"], "Did you mean 'linear-d8'?"),
        (["evaluate", "linear-d2", "--num-datasets", "0"], "`num_datasets` must be at"),
        (
            ["evaluate", "linear-d2", "--num-examples", "99"],
            "`num_examples` must be at",
        ),
        (
            ["demo", "--num-datasets", "-1"],
            "`num_datasets` must be at least 1, got -1.",
        ),
        (["tran"], "`command` must be one of train, compare, "),
        (["tran"], "got 'tran'. Did you mean 'train'?"),
        (["--fly"], "There is no option --fly. Try `algoscope --help`."),
        (["build"], "No algorithm given. `algoscope build --list` shows them."),
        (
            ["trace", "theorem1"],
            "`target` must be a directory that `algoscope build` wrote, or one of "
            "theorem_1, theorem_2, sgd_chain, ridge_chain, got 'theorem1'. "
            "Did you mean 'theorem_1'?",
        ),
        ([], "No command given. Try `algoscope --help`."),
    ],
    ids=" ".join,
)
def test_a_bad_option_costs_one_line_and_status_2(
    capsys, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert message in rejected(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []
