"""Saved programs are the programs: the same events, numbers and models."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import algoscope as asc
from algoscope.construction.algorithms import ALGORITHMS
from algoscope.construction.build import Construction, load_construction
from algoscope.construction.compiler.compile import arrange
from algoscope.construction.compiler.numerics import numerics
from algoscope.construction.language.interpreter import predictions
from algoscope.construction.language.program import Program
from algoscope.construction.language.storage import (
    PROGRAM,
    load_program,
    save_program,
)
from algoscope.construction.language.timesteps import Sets
from algoscope.foundation.files import DamagedFileError, load_arrays, save_arrays
from algoscope.model.tokens import example_tokens


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_saved_program_means_the_same(name, tmp_path):
    n = 1 if name == "ridge_one" else 2
    program = ALGORITHMS[name]().program(2, n)
    save_program(program, tmp_path / PROGRAM)
    loaded = load_program(tmp_path / PROGRAM)
    tokens = example_tokens(2, n, 3, seed=1)
    np.testing.assert_array_equal(
        predictions(loaded, tokens), predictions(program, tokens)
    )
    before, after = (arrange(each, numerics()) for each in (program, loaded))
    assert list(map(str, before.listing)) == list(map(str, after.listing))


def test_any_map_and_several_outputs_are_saved(tmp_path):
    program = Program(1, 1)
    read = program.read(program.x, Sets(((), (0,), (0, 1))))
    program.predict(read, read + 1.0)
    save_program(program, tmp_path / PROGRAM)
    loaded = load_program(tmp_path / PROGRAM)
    assert loaded.outputs.size == 2
    assert loaded.events[0].at == Sets(((), (0,), (0, 1)))  # pyright: ignore


def rule():
    return asc.LearningRule(
        lambda w, x, y: w + 0.1 * x * (y - w @ x), lambda w, x: w @ x, np.zeros, "lms"
    )


def test_a_learner_of_ones_own_is_saved_with_its_program(tmp_path):
    learner = asc.compile(rule(), dim=2, num_examples=2)
    learner.save_pretrained(tmp_path)
    loaded, construction = load_construction(tmp_path)
    assert construction.name == loaded.name == learner.name == "lms, compiled"
    x, y = jnp.array([[1.0, 2.0], [0.5, -1.0]]), jnp.array([1.0, -1.0])
    np.testing.assert_array_equal(
        loaded.predict_prefixes(x, y), learner.predict_prefixes(x, y)
    )
    again = construction.arrange()
    assert list(map(str, again.listing)) == list(map(str, learner.compiled.listing))
    assert (
        Construction.from_dict(
            construction.as_dict(), learner.compiled.program
        ).as_dict()
        == construction.as_dict()
    )


def damaged(path: Path, change) -> None:
    arrays, metadata = load_arrays(path)
    about = json.loads(metadata["program"])
    change(about, arrays)
    save_arrays(path, arrays, {**metadata, "program": json.dumps(about)})


def set_event(**values):
    return lambda about, arrays: about["events"][0].update(values)


DAMAGES = {
    "kind": set_event(kind="Explode"),
    "register": set_event(out=99),
    "map": set_event(at={"kind": "Earlier", "steps": -1}),
    "no map": set_event(at={"kind": "os.system"}),
    "shape": lambda about, arrays: arrays.update(a0=np.zeros((7, 7))),
    "size": lambda about, arrays: about.update(dim=5),
    "not finite": lambda about, arrays: arrays["a0"].fill(np.nan),
    "missing": lambda about, arrays: about.pop("output"),
    "list": lambda about, arrays: about.update(events={"a": 1}),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_programs_are_refused(name, tmp_path):
    path = tmp_path / PROGRAM
    save_program(ALGORITHMS["sgd"]().program(2, 2), path)
    damaged(path, DAMAGES[name])
    with pytest.raises(DamagedFileError, match="is not a saved program"):
        load_program(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / PROGRAM
    with pytest.raises(DamagedFileError, match="cannot be read"):
        load_program(path)
    save_arrays(path, {"a": np.zeros(1)}, {"format": "other"})
    with pytest.raises(DamagedFileError, match="is not a saved program"):
        load_program(path)
    path.write_bytes(b"nothing")
    with pytest.raises(DamagedFileError, match="is not a whole safetensors file"):
        load_program(path)
