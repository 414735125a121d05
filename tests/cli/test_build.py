"""`algoscope build` and `algoscope trace`, as a user types them."""

import json
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from support.commands import rejected

from algoscope.cli.main import main
from algoscope.construction.algorithms import ALGORITHMS

SMALL = ("--dim", "1", "--num-examples", "2")


@pytest.fixture(autouse=True)
def _precision_stays() -> Iterator[None]:
    """The commands set the precision of the whole program."""
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("built")
    main(["build", "sgd", *SMALL, "--penalty", "0.1", "--out", str(out)])
    return out


def test_build_lists_what_each_layer_does(capsys):
    main(["build", "ridge_one", "--dim", "2", "--num-examples", "1"])
    *lines, last = capsys.readouterr().out.splitlines()
    assert last.startswith("ridge_one(0.1), compiled: 2 layers, 17 rows, ")
    assert lines[1].endswith("rows 15..16    = x1 · y / ‖(0.316228, x1)‖²")
    legend = lines[lines.index("How to read it:") :]
    assert any(line.startswith("  / ‖v‖ ") for line in legend)


def test_build_as_json_tells_the_sizes(capsys):
    main(["build", "sgd", *SMALL, "--dtype", "float32", "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert facts["num_layers"] == 4
    assert facts["hidden_size"] == 12
    assert facts["dtype"] == "float32"
    assert facts["listing"][-1]["register"] == "prediction"


def test_the_list_has_every_algorithm(capsys):
    main(["build", "--list", "--json"])
    entries = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in entries] == list(ALGORITHMS)
    main(["build", "--list"])
    shown = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in shown if not line.startswith(" ")]
    assert names == [*ALGORITHMS, "FILE.py:NAME"]
    options = shown[shown.index(next(s for s in shown if s.startswith("rls "))) + 1]
    assert options.split() == ["--penalty", "0.1", "--forgetting", "0.95"]


def test_what_was_built_is_evaluated_like_any_learner(built, capsys):
    main(["evaluate", str(built), "--num-datasets", "20", "--json"])
    comparison = json.loads(capsys.readouterr().out)
    assert comparison["learner"] == "sgd(0.05, 0.1), compiled"


def test_trace_shows_every_register_and_how_far_it_is_off(built, capsys):
    main(["trace", str(built), "--json"])
    steps = json.loads(capsys.readouterr().out)
    assert [step["label"] for step in steps] == [
        "input",
        *map("layer {}".format, "1234"),
    ]
    last = steps[-1]["registers"]["prediction"]
    for exact, computed, difference in zip(
        last["exact"], last["computed"], last["difference"], strict=True
    ):
        assert computed[0] - exact[0] == difference[0]
        assert abs(difference[0]) < 1e-12
    main(["trace", str(built), "--layer", "3"])
    shown = capsys.readouterr().out
    title, _, layer, *_ = shown.splitlines()
    assert title == "sgd(0.05, 0.1), compiled. 4 layers, d = 1, 2 examples."
    assert layer == "3. layer 3"
    assert "w2 = w1 − 0.1 · x2 · (w·x2 − y2) − 0.01 · w1 · seen2" in shown
    assert "→ w2" in shown
    assert "How to read it. Shown is what the weights compute." in shown
    assert steps[3]["tokens"] == ["x₁", "y₁", "x₂", "y₂", "query"]
    assert steps[3]["lines"][-1]["register"] == "w2"


def test_a_trace_is_written_as_a_page(built, tmp_path, capsys):
    page = tmp_path / "trace.html"
    main(["trace", str(built), "--html", str(page)])
    assert capsys.readouterr().out == (
        f"{page}: sgd(0.05, 0.1), compiled. Open it in a browser.\n"
    )
    assert "w2 = w1 − 0.1 · x2" in page.read_text()
    main(["trace", str(built), "--html", str(page), "--layer", "2", "--json"])
    (step,) = json.loads(capsys.readouterr().out)
    assert step["label"] == "layer 2"
    assert page.read_text().count("<table") == 1


def test_a_page_that_cannot_be_written_is_rejected_before_the_work(tmp_path, capsys):
    there = tmp_path / "there"
    there.write_text("")
    message = rejected(capsys, "trace", "nosuch", "--html", str(there / "t.html"))
    assert message.startswith("`html` must be where files can be written, got ")


@pytest.mark.parametrize(("chain", "depth"), [("theorem_1", 9), ("theorem_2", 14)])
def test_the_chains_of_the_paper_are_traced(chain, depth, capsys):
    main(["trace", chain, "--dim", "1", "--json"])
    steps = json.loads(capsys.readouterr().out)
    assert len(steps) == depth + 1
    assert max(step["largest_difference"] for step in steps) < 1e-10


def test_the_paper_s_own_formulas_are_less_precise(capsys):
    main(
        ["trace", "sgd_chain", "--dim", "1", "--num-examples", "1", "--paper", "--json"]
    )
    steps = json.loads(capsys.readouterr().out)
    assert 1e-12 < steps[-1]["largest_difference"] < 1e-5


def test_bad_input_is_one_line_and_exit_status_2(capsys, built):
    names = ", ".join(ALGORITHMS)
    assert rejected(capsys, "build", "sdg") == (
        f"`algorithm` must be one of {names}, got 'sdg'. Did you mean 'sgd'?"
    )
    assert rejected(capsys, "build", "sgd", "--momentum", "0.5") == (
        "`momentum` must be left out for sgd, got 0.5. "
        "It has `learning_rate`, `penalty`."
    )
    assert rejected(capsys, "build", "sgd", "--dim", "0") == (
        "`dim` must be at least 1, got 0."
    )
    assert rejected(capsys, "build", "ols", "--dim", "2", "--num-examples", "3") == (
        "`num_examples` must be at most `dim`, which is 2, got 3. "
        "For more examples use ridge with a small penalty."
    )
    assert rejected(capsys, "trace", "sgd") == (
        "`target` must be a directory that `algoscope build` wrote, or one of "
        "theorem_1, theorem_2, sgd_chain, ridge_chain, got 'sgd'."
    )
    assert rejected(capsys, "trace", str(built), "--layer", "5") == (
        "`layer` must be at most 4, the depth, got 5."
    )
    assert rejected(capsys, "trace", str(built), "--num-examples", "3") == (
        "`num_examples` must be at most 2, which it was built for, got 3."
    )


RULES = """
import numpy as np

import algoscope as asc

@asc.learning_rule(predict=lambda w, x: w @ x, init=np.zeros)
def lms(w, x, y):
    return w + 0.1 * x * (y - w @ x)

@asc.learning_rule(predict=lambda w, x: w @ x, init=np.zeros)
def sorted_lms(w, x, y):
    return np.sort(x)

program = asc.Program(1, 2)
program.predict(program.dot(program.x, program.x))
number = 3
"""


@pytest.fixture(scope="module")
def rules(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("rules") / "rules.py"
    file.write_text(RULES)
    return file


def test_a_rule_of_ones_own_is_built_and_traced(rules, tmp_path, capsys):
    main(["build", f"{rules}:lms", *SMALL, "--out", str(tmp_path / "lms")])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("lms, compiled: 4 layers, ")
    main(["trace", str(tmp_path / "lms"), "--layer", "4"])
    assert "prediction" in capsys.readouterr().out


def test_a_program_of_ones_own_is_built(rules, capsys):
    main(["build", f"{rules}:program", *SMALL])
    assert "program, compiled: 1 layers" in capsys.readouterr().out


def test_what_is_no_rule_is_rejected(rules, tmp_path, capsys):
    def message(*arguments: str) -> str:
        return rejected(capsys, "build", *arguments)

    assert "name a Python file that exists" in message(f"{tmp_path}/no.py:lms")
    assert "got `number`, a int" in message(f"{rules}:number")
    assert "must name something in" in message(f"{rules}:nothing")
    assert "be left out for a rule" in message(f"{rules}:lms", "--penalty", "1")
    assert "be d = 1 and n = 2" in message(f"{rules}:program", "--dim", "2")
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0")
    assert "ZeroDivisionError" in message(f"{broken}:lms")
