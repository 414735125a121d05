"""The command line: help, one-line refusals, exit codes, JSON."""

import json
import subprocess
import sys
import time

import pytest

from algoscope.cli import main as cli
from algoscope.model.checkpoints import shipped_models
from algoscope.training.config import PRESETS


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    """Run a command in this process: its status, and what it printed where."""
    status = 0
    try:
        cli.main(arguments)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    printed = capsys.readouterr()
    return status, printed.out, printed.err


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
        first = (cli._options(name).__doc__ or "").partition("\n")[0]
        assert about == first


def test_shells_can_complete_every_command(capsys):
    status, out, _ = run(capsys, "--tyro-print-completion", "bash")
    assert status == 0
    assert all(name in out for name in cli.COMMANDS)


def test_help_does_not_wait_for_jax():
    program = (
        "import sys, contextlib\n"
        "from algoscope.cli import main\n"
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
        (["train", "--stepz", "3"], "Unrecognized options: --stepz"),
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
        (["evaluate"], "Missing from algoscope evaluate"),
        (["evaluate", "linear-d88"], "Did you mean 'linear-d8'?"),
        (["evaluate", "linear-d2", "--num-datasets", "0"], "`num_datasets` must be at"),
        (["evaluate", "linear-d2", "--num-examples", "99"], "`x` must hold at most"),
        (
            ["demo", "--num-datasets", "-1"],
            "`num_datasets` must be at least 1, got -1.",
        ),
        (["tran"], "`command` must be one of train, evaluate, "),
        (["tran"], "got 'tran'. Did you mean 'train'?"),
        (["--fly"], "--fly"),
        (
            [],
            "`command` must be given, got none. `algoscope --help` lists them.",
        ),
    ],
    ids=" ".join,
)
def test_a_bad_option_costs_one_line_and_status_2(
    capsys, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("algoscope: ")
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_models_lists_what_ships(capsys):
    status, out, _ = run(capsys, "models", "--json")
    assert status == 0
    assert [fact["model"] for fact in json.loads(out)] == shipped_models()
    status, out, _ = run(capsys, "models")
    assert status == 0
    assert all(name in out for name in shipped_models())


def test_presets_show_their_cost(capsys):
    status, out, _ = run(capsys, "presets", "--json")
    assert status == 0
    assert set(json.loads(out)) == set(PRESETS)
    status, out, _ = run(capsys, "presets")
    assert "paper" in out
    assert "days" in out


def test_evaluate_prints_saves_and_draws(capsys, tmp_path):
    saved, figure = tmp_path / "c.json", tmp_path / "c.png"
    options = ("--num-datasets", "50", "--out", str(saved), "--figure", str(figure))
    status, out, _ = run(capsys, "evaluate", "linear-d1", *options)
    assert status == 0
    assert "linear-d1 behaves most like" in out
    assert figure.read_bytes().startswith(b"\x89PNG")
    status, out, _ = run(capsys, "evaluate", "linear-d1", *options[:2], "--json")
    printed, kept = json.loads(out), json.loads(saved.read_text())
    assert printed["curves"] == kept["curves"]


def test_completion_scripts_are_printed(capsys):
    status, out, _ = run(capsys, "--tyro-print-completion", "bash")
    assert status == 0
    assert "algoscope" in out
