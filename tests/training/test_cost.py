"""The cost of a run grows with its steps, layers, width and tokens."""

from dataclasses import replace

import pytest

from algoscope.foundation import slowness
from algoscope.training.config import (
    RUN_SECONDS,
    core_seconds,
    estimated_seconds,
    preset,
)


@pytest.mark.parametrize(
    ("hidden_size", "milliseconds"), [(16, 1.9), (32, 3.5), (64, 6.6), (128, 20)]
)
def test_a_layer_of_a_step_takes_what_was_measured(hidden_size, milliseconds):
    config = replace(preset("d8"), hidden_size=hidden_size)
    step = (core_seconds(config) - RUN_SECONDS) / config.steps / config.num_layers
    assert step == pytest.approx(milliseconds / 1e3, rel=0.2)


def test_twice_the_steps_take_twice_as_long_but_for_compiling():
    config = preset("d4")
    twice = core_seconds(replace(config, steps=2 * config.steps)) - RUN_SECONDS
    assert twice == pytest.approx(2 * (core_seconds(config) - RUN_SECONDS))


def test_all_cores_share_a_run_and_slow_ones_take_longer(monkeypatch):
    monkeypatch.setattr("algoscope.training.config.num_cores", lambda: 4)
    monkeypatch.setattr("algoscope.training.config.slowness", lambda: 3.0)
    config = preset("demo")
    assert estimated_seconds(config) == core_seconds(config) * 3 / 4


def test_the_speed_of_a_core_is_measured():
    first = slowness()
    assert 0.2 < first < 50
    slowness.cache_clear()
    assert slowness() == pytest.approx(first, rel=0.5)
