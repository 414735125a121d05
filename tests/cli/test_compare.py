"""`algoscope compare` and `algoscope evaluate`, from the command line to the result."""

import json
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest
from support.commands import rejected, run

from algoscope.cli.main import main
from algoscope.comparison.result import Comparison

SMALL = ["--dim", "2", "--num-examples", "5"]


SERVER = """
import json, sys
for count, line in enumerate(sys.stdin):
    if count >= {most}:
        sys.exit(3)
    print(json.dumps({{"predictions": [0.0] * len(json.loads(line)["queries"])}}),
          flush=True)
"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["compare", "--figure", "a.jpg"], "`path ending` must be one of .png, .svg"),
        (["compare", "--linearity-figure", "a.gif"], "`path ending` must be one of"),
        (
            ["compare", "--linearity-figure", "a.png", "--metrics", "spd", "ilwd"],
            "`metrics` must hold r2 for a linearity figure, got spd ilwd.",
        ),
        (["evaluate", "--figure", "a.jpg"], "`path ending` must be one of .png, .svg"),
    ],
)
def test_a_figure_is_rejected_before_anything_is_measured(
    options, message, capsys, monkeypatch
):
    compare = import_module("algoscope.comparison.compare")
    monkeypatch.setattr(compare, "compare", None)
    command, *rest = options
    assert rejected(capsys, command, "linear-d1", *rest).startswith(message)


def test_compare_measures_a_program_with_the_references_asked_for(capsys, tmp_path):
    server = tmp_path / "server.py"
    server.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    print(json.dumps({'predictions': [0.0] * len(asked['queries'])}),"
        " flush=True)\n"
    )
    out, figure = tmp_path / "out.json", tmp_path / "figure.svg"
    linearity = tmp_path / "linearity.svg"
    main(
        ["compare", f"cmd:{sys.executable} {server}", "--with", "ols", "zero", *SMALL]
        + ["--num-datasets", "4", "--out", str(out), "--figure", str(figure)]
        + ["--linearity-figure", str(linearity)]
    )
    assert "behaves most like Zero" in capsys.readouterr().out
    comparison = Comparison.load(out)
    assert comparison.against("Zero").mean[1:] == [0.0] * 5
    assert {"ilwd", "r2"} <= set(comparison.metrics)
    assert Path(figure).read_text().startswith("<?xml")
    assert Path(linearity).read_text().startswith("<?xml")


def test_what_a_program_answered_before_it_died_is_kept(capsys, tmp_path):
    server, out = tmp_path / "server.py", tmp_path / "out.json"
    server.write_text(SERVER.format(most=12))
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as for users, not as in tests
        main(
            ["compare", f"cmd:{sys.executable} {server}", "--with", "zero", *SMALL]
            + ["--metrics", "spd", "--num-datasets", "4", "--out", str(out)]
        )
    counts = Comparison.load(out).against("Zero").counts
    assert counts is not None
    assert sum(counts) == 12
    assert "answers are kept" in capsys.readouterr().err


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


def test_evaluate_is_compare_with_spd_alone(capsys):
    few = ("--num-datasets", "20", "--json")
    _, evaluated, _ = run(capsys, "evaluate", "linear-d1", *few)
    _, compared, _ = run(capsys, "compare", "linear-d1", "--metrics", "spd", *few)
    assert json.loads(evaluated) == json.loads(compared)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "ols", "--with", "olss"], "Did you mean 'ols'?"),
        (["compare", "ols", "--with", "zero", "--metrics", "spdd"], "'spdd'"),
        (
            ["compare", "ols", "--num-datasets", "0"],
            "`num_datasets` must be at least 1",
        ),
        (
            ["compare", "linear-d1", "--num-examples", "99"],
            "`num_examples` must be at most 20, the context length of linear-d1, got",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(capsys, arguments, message):
    assert message in rejected(capsys, *arguments)
