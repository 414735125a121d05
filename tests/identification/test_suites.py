"""Suites are what their names say; contested datasets tell hypotheses apart."""

import numpy as np
import pytest

from algoscope import LinearRegression
from algoscope.comparison.predict import predict_exactly
from algoscope.identification.suites import (
    SUITES,
    Questions,
    draw_questions,
    draw_suite,
    most_contested,
)
from algoscope.predictors import average, ols

TASK = LinearRegression(dim=2)


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_is_drawn_reproducibly_and_differs_from_the_others(name):
    options = {"num_datasets": 3, "num_examples": 6, "seed": 1}
    first, again = (draw_suite(name, TASK, **options) for _ in range(2))
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.y, again.y)
    assert first.x.shape == (3, 6, 2)
    others = [draw_suite(other, TASK, **options) for other in SUITES if other != name]
    assert all(not np.array_equal(first.y, other.y) for other in others)


def test_suites_are_what_their_names_say():
    task = LinearRegression(dim=3)
    options = {"num_datasets": 200, "num_examples": 6, "seed": 0}
    orthogonal = draw_suite("orthogonal", task, **options).x[:, :3]
    products = orthogonal @ orthogonal.transpose(0, 2, 1)
    np.testing.assert_allclose(products * (1 - np.eye(3)), 0, atol=1e-9)
    lengths = np.diagonal(products, axis1=1, axis2=2) / 3
    assert 0.25 <= lengths.min() < 0.5 < 1.5 < lengths.max() <= 1.96
    duplicated = draw_suite("duplicated", task, **options).x
    np.testing.assert_array_equal(duplicated[:, ::2], duplicated[:, 1::2])
    skewed = draw_suite("skewed", task, **options).x
    assert np.mean(skewed**2) == pytest.approx(1, rel=0.1)
    outlier = draw_suite("outlier", task, **options).y
    assert (
        np.median(np.abs(outlier).max(axis=1) / np.median(np.abs(outlier), axis=1)) > 5
    )


def test_contested_datasets_are_those_on_which_hypotheses_disagree(rng):
    y = np.ones((4, 3))
    questions = Questions(np.zeros((4, 3, 1)), y, list("abcd"))
    still, moved = np.zeros((4, 3)), np.zeros((4, 3))
    moved[:, 1:] = np.array([1.0, 3.0, 2.0, 1.0])[:, None]
    moved[3, 0] = 1e9  # before the first example, where nothing is learned
    assert most_contested(questions, np.stack([still, moved]), 2).suite == ["b", "c"]
    endless = np.full((4, 3), np.inf)
    assert len(most_contested(questions, np.stack([still, endless]), 3).x) == 3


def test_every_pair_of_hypotheses_is_told_apart():
    questions = Questions(np.zeros((3, 2, 1)), np.ones((3, 2)), list("abc"))
    a, b, c = np.zeros((3, 3, 2))
    b[:, 1] = [1.0, 9.0, 2.0]
    c[:, 1] = [-1.0, 9.0, -2.0]  # on the second dataset, b and c agree
    assert most_contested(questions, np.stack([a, b, c]), 1).suite == ["c"]


def test_contested_datasets_of_known_algorithms_are_few_and_far_apart():
    (pool,) = draw_questions(SUITES, TASK, sizes=(64,), num_examples=9, seed=0)
    predictions = np.stack(
        [predict_exactly(each, pool.x, pool.y) for each in (ols, average)]
    )
    chosen = most_contested(pool, predictions, 8)

    def difference(questions: Questions) -> float:
        a, b = (
            predict_exactly(each, questions.x, questions.y) for each in (ols, average)
        )
        return float(
            np.mean(np.mean((a - b) ** 2, axis=1) / np.mean(questions.y**2, axis=1))
        )

    assert len(chosen.x) == 8
    assert difference(chosen) > 2 * difference(pool)


def test_a_quarter_of_the_datasets_is_of_the_task_and_the_others_are_shared_evenly():
    first, second = draw_questions(SUITES, TASK, sizes=(56, 9), num_examples=3, seed=0)
    assert [first.suite.count(name) for name in SUITES] == [14, *[6] * 7]
    assert [second.suite.count(name) for name in SUITES] == [2, *[1] * 7]
    assert not np.isin(second.y, first.y).any()
    (alone,) = draw_questions(("task",), TASK, sizes=(16,), num_examples=3, seed=0)
    assert alone.suite == ["task"] * 16
