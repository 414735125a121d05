"""Shifts change the training distribution in the way that their names say."""

from typing import Any

import numpy as np
import pytest
from support.refusals import refuses

from algoscope.experiments.shifted_data import (
    IN_DISTRIBUTION,
    NOISE,
    SHIFTS,
    Shift,
    draw_shifted,
    find_shift,
)
from algoscope.foundation.validation import InvalidValueError

DIM, EXAMPLES, DATASETS = 4, 9, 400
SIZES: Any = {"num_datasets": DATASETS, "num_examples": EXAMPLES, "seed": 3}

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def drawn() -> dict[str, Drawn]:
    return {shift.name: draw_shifted(shift, DIM, **SIZES) for shift in SHIFTS}


@pytest.mark.parametrize("shift", SHIFTS, ids=lambda shift: shift.name)
def test_labels_are_linear_and_the_signal_is_what_the_shift_says(shift: Shift, drawn):
    x, y, w = drawn[shift.name]
    clean = np.einsum("bnd,bd->bn", x, w)
    noise = y - clean
    if shift.ols_is_best:
        np.testing.assert_array_equal(noise, 0)
    else:
        assert noise.var() == pytest.approx(NOISE, rel=0.1)
    # Given x, E[(wᵀx)²] is |x|² E[wᵢ²]: less noisy than the mean of clean².
    signal = np.mean(x[:, 1:] ** 2) * shift.weight_scale**2
    assert signal == pytest.approx(shift.signal, rel=0.15)


@pytest.mark.parametrize("shift", SHIFTS, ids=lambda shift: shift.name)
def test_a_seed_determines_the_datasets(shift: Shift, drawn):
    for mine, again in zip(
        drawn[shift.name], draw_shifted(shift, DIM, **SIZES), strict=True
    ):
        np.testing.assert_array_equal(mine, again)
    other = draw_shifted(shift, DIM, **SIZES | {"seed": 4})
    assert not np.any(other[0] == drawn[shift.name][0])


def test_all_shifts_change_the_same_inputs_and_weights(drawn):
    x, _, w = drawn[IN_DISTRIBUTION]
    for shift in SHIFTS:
        own_x, _, own_w = drawn[shift.name]
        np.testing.assert_array_equal(own_w, shift.weight_scale * w)
        first = np.sum(own_x[:, 0] * x[:, 0], axis=1)
        if shift.name not in ("skewed", "subspace"):  # which are rotated
            assert first.mean() > 0.5
    np.testing.assert_array_equal(drawn["x × 2"][0], 2 * x)
    np.testing.assert_array_equal(drawn["x × 1/2"][0], x / 2)
    np.testing.assert_array_equal(drawn["w × 3"][0], x)
    np.testing.assert_array_equal(drawn["label noise"][0], x)


def test_only_the_first_example_is_scaled(drawn):
    x, y, _ = drawn[IN_DISTRIBUTION]
    scaled, labels, _ = drawn["first x × 3"]
    np.testing.assert_array_equal(scaled[:, 0], 3 * x[:, 0])
    np.testing.assert_array_equal(scaled[:, 1:], x[:, 1:])
    np.testing.assert_allclose(labels[:, 0], 3 * y[:, 0], rtol=1e-12)


def test_skewed_inputs_have_deviations_of_one_over_i(drawn):
    spread = 1 / np.arange(1, DIM + 1)
    spread *= np.sqrt(DIM / np.sum(spread**2))
    found, expected = (
        np.linalg.svd(x, compute_uv=False)
        for x in (drawn["skewed"][0], drawn[IN_DISTRIBUTION][0] * spread)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # but for a rotation
    x = drawn["skewed"][0].reshape(-1, DIM)
    np.testing.assert_allclose(np.mean(x**2, axis=0), 1.0, rtol=0.2)


def test_each_input_occurs_twice_in_a_row(drawn):
    x = drawn["each x twice"][0]
    np.testing.assert_array_equal(x[:, 0:-1:2], x[:, 1::2])
    np.testing.assert_array_equal(x[:, ::2], drawn[IN_DISTRIBUTION][0][:, :5])


def test_a_subspace_has_half_the_dimensions(drawn):
    ranks = np.linalg.matrix_rank(drawn["subspace"][0], tol=1e-9)
    assert set(ranks.tolist()) == {DIM // 2}
    # Each in its own: many datasets together span everything.
    together = drawn["subspace"][0].reshape(-1, DIM)
    assert np.linalg.matrix_rank(together) == DIM


def test_blocks_of_d_inputs_are_orthogonal_and_of_one_length(drawn):
    x = drawn["orthogonal"][0]
    for start in (0, DIM):
        block = x[:, start : start + DIM]
        gram = block @ np.swapaxes(block, 1, 2)
        expected = np.broadcast_to(DIM * np.eye(DIM), gram.shape)
        np.testing.assert_allclose(gram, expected, atol=1e-9)
    np.testing.assert_allclose(np.sum(x**2, axis=2), DIM)


def test_heavy_tails_are_heavy():
    sizes = {"num_datasets": 3000, "num_examples": 10, "seed": 0}
    laplace = draw_shifted(find_shift("Laplace"), DIM, **sizes)[0].ravel()
    student = draw_shifted(find_shift("Student t"), DIM, **sizes)[0].ravel()
    # P(|x| > t) = exp(−√2 t) for Laplace's law of variance 1.
    for bound in (0.5, 2.0, 3.0):
        share = np.mean(np.abs(laplace) > bound)
        assert share == pytest.approx(np.exp(-np.sqrt(2) * bound), rel=0.1)
    # Student's t with 3 degrees of freedom exceeds 3.182 with probability 0.025.
    share = np.mean(np.abs(student) * np.sqrt(3) > 3.182446)
    assert share == pytest.approx(0.05, rel=0.1)


def test_the_mean_of_each_dataset_is_moved(drawn):
    move = drawn["mean not 0"][0] - drawn[IN_DISTRIBUTION][0]
    np.testing.assert_allclose(move, move[:, :1] * np.ones((EXAMPLES, 1)), atol=1e-12)
    assert move[:, 0].std() == pytest.approx(1, rel=0.1)


def test_least_squares_is_best_except_with_noise():
    assert [s.name for s in SHIFTS if not s.ols_is_best] == ["label noise"]
    assert len({shift.name for shift in SHIFTS}) == len(SHIFTS)
    assert SHIFTS[0].name == IN_DISTRIBUTION


def test_an_unknown_shift_is_rejected():
    known = ", ".join(shift.name for shift in SHIFTS)
    with refuses(InvalidValueError, f"`shift` must be one of {known}, got 'rotated'."):
        find_shift("rotated")
