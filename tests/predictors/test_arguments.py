"""Hyper-parameters out of range are rejected, with the rule and the value."""

import numpy as np
import pytest
from support.refusals import refuses
from support.textbook import POOL

from algoscope.predictors import (
    bayes,
    chebyshev,
    conjugate_gradients,
    discrete_bayes,
    gd,
    gd_growing,
    gd_plus_plus,
    heavy_ball,
    kaczmarz,
    knn,
    lasso,
    nadaraya_watson,
    newton,
    optimal_gd,
    optimal_preconditioned_gd,
    preconditioned_gd,
    ridge,
    rls,
    sgd,
    tuned_gd,
)
from algoscope.tasks.linear import LinearRegression


@pytest.mark.parametrize("kind", [gd, sgd])
def test_a_learning_rate_that_is_not_positive_is_rejected(kind):
    with refuses(ValueError, "`learning_rate` must be positive, got 0.0."):
        kind(0.0)
    with refuses(ValueError, "`learning_rate` must be positive, got -0.1."):
        kind(-0.1)
    with refuses(TypeError, "`learning_rate` must be a number, got '0.1'."):
        kind("0.1")


def test_a_negative_penalty_of_gradient_descent_is_rejected():
    with refuses(ValueError, "`penalty` must not be negative, got -0.5."):
        sgd(0.01, penalty=-0.5)
    with refuses(TypeError, "`penalty` must be a number, got None."):
        sgd(0.01, penalty=None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("penalty", [0, 0.0, -1.0, float("nan")])
def test_ridge_regression_without_a_penalty_is_rejected_in_favor_of_ols(penalty):
    message = f"`penalty` must be positive, got {penalty}. For no penalty, use `ols`."
    with refuses(ValueError, message):
        ridge(penalty)


def test_a_penalty_that_is_no_number_is_rejected():
    with refuses(TypeError, "`penalty` must be a number, got True."):
        ridge(True)


def test_impossible_variances_are_rejected():
    with refuses(ValueError, "`noise_variance` must not be negative, got -0.1."):
        bayes(noise_variance=-0.1, prior_variance=1.0)
    with refuses(ValueError, "`prior_variance` must be positive, got 0.0."):
        bayes(noise_variance=0.1, prior_variance=0.0)
    with refuses(TypeError, "`noise_variance` must be a number, got '1'."):
        bayes(noise_variance="1", prior_variance=1.0)  # pyright: ignore[reportArgumentType]
    with refuses(TypeError, "`prior_variance` must be a number, got None."):
        bayes(noise_variance=0.1, prior_variance=None)  # pyright: ignore[reportArgumentType]


def test_fewer_than_one_neighbor_are_rejected():
    with refuses(ValueError, "`num_neighbors` must be at least 1, got 0."):
        knn(0)
    with refuses(TypeError, "`num_neighbors` must be an integer, got 3.0."):
        knn(3.0)  # pyright: ignore[reportArgumentType]


def test_an_unknown_weighting_is_rejected():
    message = "`weighting` must be one of uniform, weighted, got 'weigthed'."
    with refuses(ValueError, f"{message} Did you mean 'weighted'?"):
        knn(3, "weigthed")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: gd(0.1, 0), "`steps` must be at least 1, got 0."),
        (lambda: gd(0.1, 2, -1.0), "`penalty` must not be negative, got -1.0."),
        (lambda: gd_growing(0.1, 0.0), "`clip` must be positive, got 0.0."),
        (lambda: gd_growing(-0.1), "`learning_rate` must be positive, got -0.1."),
        (lambda: sgd(0.1, clip=-1.0), "`clip` must be positive, got -1.0."),
        (lambda: kaczmarz(0.0), "`learning_rate` must be positive, got 0.0."),
        (lambda: gd_plus_plus(0.0, 0.1), "`learning_rate` must be positive, got 0.0."),
        (
            lambda: gd_plus_plus(0.1, -0.1),
            "`curvature` must not be negative, got -0.1.",
        ),
        (lambda: preconditioned_gd(0.1, 0), "`steps` must be at least 1, got 0."),
        (
            lambda: preconditioned_gd(0.1, 1, np.array([[1.0, 2.0], [2.0, 1.0]])),
            "`covariance` must be a positive definite matrix, "
            "got [[1.0, 2.0], [2.0, 1.0]].",
        ),
        (
            lambda: optimal_gd(-1.0),
            "`noise_to_prior` must not be negative, got -1.0.",
        ),
        (
            lambda: optimal_preconditioned_gd(np.array([1.0, 0.0])),
            "`variances` must be one positive number per coordinate, got [1.0, 0.0].",
        ),
        (
            lambda: tuned_gd(LinearRegression(2), 0, 4),
            "`steps` must be at least 1, got 0.",
        ),
        (
            lambda: tuned_gd(LinearRegression(2), 1, 0),
            "`num_examples` must be at least 1, got 0.",
        ),
        (lambda: heavy_ball(0.1, 1.0, 2), "`momentum` must be below 1, got 1.0."),
        (
            lambda: heavy_ball(0.1, -0.5, 2),
            "`momentum` must not be negative, got -0.5.",
        ),
        (
            lambda: chebyshev(2, 3.0, 2.0),
            "`low` must be at most `high`, which is 2.0, got 3.0.",
        ),
        (lambda: chebyshev(2, 0.0, 2.0), "`low` must be positive, got 0.0."),
        (lambda: conjugate_gradients(0), "`steps` must be at least 1, got 0."),
        (lambda: newton(-1), "`steps` must be at least 0, got -1."),
        (
            lambda: lasso(0.0),
            "`penalty` must be positive, got 0.0. For no penalty, use `ols`.",
        ),
        (lambda: rls(1.5, 0.1), "`forgetting` must be at most 1, got 1.5."),
        (lambda: rls(0.0, 0.1), "`forgetting` must be positive, got 0.0."),
        (lambda: rls(0.9, 0.0), "`penalty` must be positive, got 0.0."),
        (lambda: nadaraya_watson(0.0), "`bandwidth` must be positive, got 0.0."),
        (
            lambda: knn(3, "weighted", power=-1.0),
            "`power` must be positive, got -1.0.",
        ),
        (
            lambda: discrete_bayes(np.zeros((0, 2)), 0.1),
            "`pool` must have shape (tasks, dim), with one task or more, "
            "got shape (0, 2).",
        ),
        (
            lambda: discrete_bayes(POOL, 0.0),
            "`noise_variance` must be positive, got 0.0.",
        ),
    ],
)
def test_parameters_out_of_range_are_rejected(build, message):
    with refuses(ValueError, message):
        build()
