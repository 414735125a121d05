"""Grids expand to runs, and a store keeps them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refuses
from support.sweeping import TINY

from algoscope.foundation.files import DamagedFileError, write_json
from algoscope.foundation.validation import InvalidValueError
from algoscope.training.config import preset
from algoscope.training.sweeps import GRIDS, Grid, SavedSweep
from algoscope.training.sweeps.grid import saved_sweeps


def test_the_paper_trained_2016_runs():
    grid = GRIDS["paper"]
    assert len(set(grid.configs)) == len({c.run_id for c in grid.configs}) == 2016
    assert grid.left_out == ()
    assert grid.configs[0] == replace(
        preset("paper"), dim=1, num_layers=1, hidden_size=16, num_heads=1
    )


numbers = st.sets(st.integers(1, 12), max_size=3)


@given(numbers, numbers)
def test_a_grid_holds_each_combination_that_can_be_trained(sizes, heads):
    axes = {"num_heads": (*heads - {1}, 1), "hidden_size": tuple(sizes | {6})}
    grid = Grid(TINY, axes)
    found = [(config.hidden_size, config.num_heads) for config in grid.configs]
    every = [(h, m) for h in axes["hidden_size"] for m in axes["num_heads"]]
    assert found == [(h, m) for h, m in every if h % m == 0]
    assert len(found) + len(grid.left_out) == len(every)


def test_equal_grids_have_equal_ids_however_they_are_written():
    one = Grid(TINY, {"noise_variance": (0, 1), "num_layers": (1, 2)})
    other = Grid(TINY, {"num_layers": (1, 2), "noise_variance": (0.0, 1.0)})
    assert one == other
    assert one.sweep_id == other.sweep_id
    assert one.configs == other.configs
    assert one.sweep_id != Grid(TINY, {"num_layers": (1, 2)}).sweep_id


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (
            {"num_layer": (1,)},
            "`axis` must be one of task, dim, prior_variance, noise_variance, "
            "num_examples, num_layers, hidden_size, num_heads, block, activation, "
            "initialization, recipe, learning_rate, weight_decay, warmup, decay, clip, "
            "loss_weights, steps, batch_size, curriculum, seed, steps_per_call, "
            "evaluate_every, save_every, "
            "got 'num_layer'. Did you mean 'num_layers'?",
        ),
        ({"seed": ()}, "`seed` must have at least one value, got none."),
        ({"seed": (1, 1)}, "`seed` must have each value once, got 1, 1."),
        (
            {"hidden_size": (5,), "num_heads": (2, 3)},
            "`grid` must leave at least one run, got none: num_heads=2: `num_heads` "
            "must divide `hidden_size` 5, got 2.",
        ),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(axes, message):
    with refuses(InvalidValueError, message):
        Grid(TINY, axes)


def test_a_saved_sweep_is_read_back(tmp_path):
    sweep = SavedSweep(Grid(TINY, {"learning_rate": (1e-4, 2.5e-4)}), 20)
    sweep.save(tmp_path)
    assert saved_sweeps(tmp_path) == {sweep.grid.sweep_id: sweep}


def test_a_damaged_sweep_and_an_empty_store_are_refused(tmp_path):
    message = f"`store` must hold a saved sweep, got {tmp_path}."
    with refuses(InvalidValueError, message):
        saved_sweeps(tmp_path)
    path = tmp_path / "sweeps" / "x.json"
    write_json(path, {"format": "algoscope sweep", "grid": 3})
    with refuses(
        DamagedFileError,
        f"{path} is not a saved sweep (`grid` must be an object of base and axes, got "
        "3.).",
    ):
        saved_sweeps(tmp_path)
