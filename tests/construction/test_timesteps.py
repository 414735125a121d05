"""Heads follow timestep maps without error: weights are 1/|K(i)| and 0."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.forward import weights_of_attention
from support.refusals import refuses

from algoscope.construction.language.timesteps import (
    PREVIOUS,
    SELF,
    Code,
    Compact,
    Earlier,
    Labels,
    OneHot,
    Sets,
    Single,
    Timesteps,
)
from algoscope.foundation.validation import InvalidValueError

LONGEST = 81  # 40 examples and a query
GAPS = {"float32": 2.0**8, "float64": 2.0**11}


def simple_maps(time: int) -> list[Timesteps]:
    """Return all maps that three units can express, for a length."""
    return [
        *(Earlier(steps) for steps in range(time + 2)),
        *(Single(token, later) for token in range(time + 2) for later in (False, True)),
        Labels(),
    ]


# K(i) for every timestep i, as the bits of a number each.
written_out = st.lists(st.integers(0, 2**12 - 1), min_size=1, max_size=12)


def write_out(bits: list[int]) -> tuple[int, Sets]:
    """Return a length and any map."""
    sets = (
        tuple(j for j in range(i + 1) if number >> j & 1)
        for i, number in enumerate(bits)
    )
    return len(bits), Sets(tuple(sets))


def members(at: Timesteps, time: int) -> list[set[int]]:
    return [set(np.flatnonzero(row).tolist()) for row in at.average(time)]


def test_maps_read_what_they_say():
    assert members(SELF, 4) == [{0}, {1}, {2}, {3}]
    assert members(PREVIOUS, 4) == [set(), {0}, {1}, {2}]
    assert members(Earlier(2), 4) == [set(), set(), {0}, {1}]
    assert members(Earlier(9), 2) == [set(), set()]
    assert members(Single(1), 4) == [set(), {1}, {1}, {1}]
    assert members(Single(1, later=True), 4) == [set(), set(), {1}, {1}]
    assert members(Single(5), 2) == [set(), set()]
    assert members(Labels(), 6) == [set(), {1}, {1}, {1, 3}, {1, 3}, {1, 3, 5}]
    assert members(Sets(((), (0, 1), (0, 2))), 3) == [set(), {0, 1}, {0, 2}]
    assert members(Sets(((0,), (0,), (0, 2))), 2) == [{0}, {0}]


def check_average(at: Timesteps, time: int) -> None:
    average = at.average(time)
    assert average.shape == (time, time)
    assert not np.triu(average, 1).any(), "attention is causal"
    sums = average.sum(axis=1)
    assert np.all((sums == 0) | (np.abs(sums - 1) < 1e-15 * time))
    for row in average:
        assert len(set(row[row > 0].tolist())) <= 1, "all are read alike"


@pytest.mark.parametrize("time", [1, 2, 3, 8, 17])
def test_averages_are_causal_and_sum_to_one_or_zero(time):
    for at in simple_maps(time):
        check_average(at, time)


@given(written_out)
def test_averages_over_any_sets_are_causal_and_sum_to_one_or_zero(bits):
    time, at = write_out(bits)
    check_average(at, time)
    assert members(at, time) == [set(each) for each in at.sets]
    assert at.quadratic(time) is None


@given(written_out, st.integers(1, 12))
def test_a_shorter_sequence_reads_the_same(bits, shorter):
    time, at = write_out(bits)
    shorter = min(shorter, time)
    for each in (at, Labels(), PREVIOUS, Single(2, later=True)):
        whole = each.average(time)[:shorter, :shorter]
        np.testing.assert_array_equal(each.average(shorter), whole)


@pytest.mark.parametrize("time", [*range(1, 13), 27, 40])
def test_quadratic_scores_tell_what_is_read_from_the_rest(time):
    i = np.arange(time)
    features = np.stack([np.ones(time), i, i**2, i % 2])
    causal = np.tri(time, dtype=bool)
    for at in simple_maps(time):
        quadratic = at.quadratic(time)
        assert quadratic is not None
        scores = (features.T @ quadratic @ features).T  # row i, column j
        inside = at.average(time) > 0
        assert np.all(scores[inside] >= 0.5), at
        assert np.all(scores[causal & ~inside] <= -0.5), at


def attention(code: Code, at: Timesteps, dtype: str, content=None) -> np.ndarray:
    """Return the weights of a head that follows a map, computed in a precision."""
    units = code.units.astype(dtype)
    scoring = code.scoring(at, GAPS[dtype], content=content is not None)
    query, key = (
        units @ form[:, :-1].T.astype(dtype) + form[:, -1].astype(dtype)
        for form in scoring
    )
    scores = query @ key.T
    if content is not None:
        scores = scores + content.astype(dtype)
    assert scores.dtype == dtype
    with np.errstate(under="ignore"):
        return weights_of_attention(scores, imaginary=True)


def check_weights(code: Code, at: Timesteps, time: int, dtype: str) -> None:
    found, expected = attention(code, at, dtype), at.average(time)
    exact = np.isin(expected, (0, 1))
    np.testing.assert_array_equal(found[exact], expected[exact])
    np.testing.assert_allclose(found, expected, rtol=float(2 * np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", GAPS)
@pytest.mark.parametrize("code", [Compact, OneHot])
@pytest.mark.parametrize("time", [1, 2, 5, 16, 33])
def test_heads_follow_maps_without_error(code, time, dtype):
    for at in simple_maps(time):
        check_weights(code(time), at, time, dtype)


@pytest.mark.parametrize("dtype", GAPS)
@pytest.mark.parametrize("code", [Compact, OneHot])
def test_heads_follow_maps_without_error_over_forty_examples(code, dtype):
    for at in (
        Labels(),
        *(Earlier(steps) for steps in (0, 1, 2, 4, 32, 64, 80)),
        *(Single(t, later) for t in (0, 1, 40, 79, 80) for later in (False, True)),
    ):
        check_weights(code(LONGEST), at, LONGEST, dtype)


@pytest.mark.parametrize("dtype", GAPS)
def test_three_units_are_exact_up_to_the_length_that_they_say(dtype):
    digits = 1 + np.finfo(dtype).nmant
    assert Compact(128).exact(24)
    assert not Compact(129).exact(24)
    assert Compact(LONGEST).exact(24)
    assert Compact(2**17).exact(53)
    assert not Compact(2**17 + 1).exact(53)
    assert Compact(128).exact(digits)
    for at in (SELF, PREVIOUS, Single(127), Single(126, later=True), Single(3, True)):
        check_weights(Compact(128), at, 128, dtype)


@given(written_out, st.sampled_from(sorted(GAPS)))
@settings(max_examples=40)
def test_one_unit_per_timestep_follows_any_sets(bits, dtype):
    time, at = write_out(bits)
    check_weights(OneHot(time), at, time, dtype)


@given(written_out, st.integers(0, 2**32 - 1), st.sampled_from(sorted(GAPS)))
@settings(max_examples=40)
def test_content_decides_among_what_is_read(bits, seed, dtype):
    time, at = write_out(bits)
    content = np.random.default_rng(seed).normal(size=(time, time)).astype(dtype)
    found = attention(OneHot(time), at, dtype, content)
    inside = at.average(time) > 0
    powers = np.where(inside, np.exp(content.astype(np.float64)), 0)
    expected = powers / (1 + powers.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(found[~inside], 0)
    np.testing.assert_allclose(found, expected, rtol=float(20 * np.finfo(dtype).eps))


@pytest.mark.parametrize("time", [1, 2, 3, 64, 65, LONGEST])
def test_codes_tell_timesteps_apart(time):
    for code, size in ((OneHot(time), time), (Compact(time), 3)):
        units = code.units
        assert units.shape == (time, size)
        assert len({tuple(row) for row in units.tolist()}) == time
        assert np.abs(units).max() <= 1, "large units would compete with the pads"
        np.testing.assert_array_equal(units, units.astype(np.float32))
    assert Compact(time).period in (2 ** np.arange(8)).tolist()
    assert time <= Compact(time).period < 2 * time


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (SELF, "{i}"),
        (Earlier(2), "{i-2}"),
        (Single(3), "{3}"),
        (Single(3, later=True), "{3} if i>3"),
        (Labels(), "{y}"),
        (Sets(((0,), (0, 1), ())), "K 1:{0,1} 2:{}"),
    ],
)
def test_maps_are_shown_in_listings(at, shown):
    assert str(at) == shown


def test_maps_are_refused():
    with refuses(
        InvalidValueError,
        "`steps` must be at least 0, got -1. A timestep sees itself and what is "
        "before it.",
    ):
        Earlier(-1)
    with refuses(InvalidValueError, "`token` must be at least 0, got -1."):
        Single(-1)
    for later in (2, -1):
        with refuses(
            InvalidValueError,
            f"`sets` must hold timesteps from 0 to 1 for timestep 1, got (0, {later}). "
            "Attention is causal: nothing later can be read.",
        ):
            Sets(((0,), (0, later)))
    with refuses(
        InvalidValueError,
        "`sets` must say what each of the 3 timesteps reads, got 2 sets.",
    ):
        Sets(((0,), (1,))).average(3)


@pytest.mark.parametrize(("at", "content"), [(Sets(((0,),)), False), (SELF, True)])
def test_three_units_refuse_what_they_cannot_express(at, content):
    with refuses(
        InvalidValueError,
        f"`timesteps` must be a map that three units can express, got {at}. "
        "Use the one-hot code.",
    ):
        Compact(1).scoring(at, 8.0, content=content)
