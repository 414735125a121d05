"""Versions and cores of the machine."""

import os
import platform
from importlib.metadata import version

import pytest

from algoscope import foundation
from algoscope.foundation import (
    cores_for_batch,
    largest_divisor,
    num_cores,
    provenance,
)


def test_versions_are_those_of_python_and_of_what_computes():
    assert provenance() == {
        "python": platform.python_version(),
        **{name: version(name) for name in ("algoscope", "jax", "jaxlib", "numpy")},
    }


def test_cores_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert num_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert num_cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert num_cores() == 1


@pytest.mark.parametrize("size", [1, 7, 12, 64])
@pytest.mark.parametrize("at_most", [1, 2, 5, 100])
def test_the_largest_divisor_divides_and_none_larger_does(size, at_most):
    found = largest_divisor(size, at_most)
    assert size % found == 0
    assert found <= at_most
    assert all(size % n for n in range(found + 1, at_most + 1))


def test_a_batch_is_shared_evenly(monkeypatch):
    monkeypatch.setattr(foundation, "num_cores", lambda: 6)
    assert [cores_for_batch(size) for size in (64, 60, 7)] == [4, 6, 1]
