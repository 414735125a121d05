"""Textbook learning algorithms, one file per family (paper §4.3)."""

from algoscope.predictors.gradient_descent import gd as gd
from algoscope.predictors.gradient_descent import sgd as sgd
from algoscope.predictors.interface import BlackBox as BlackBox
from algoscope.predictors.interface import LinearPredictor as LinearPredictor
from algoscope.predictors.interface import Predictor as Predictor
from algoscope.predictors.interface import Question as Question
from algoscope.predictors.least_squares import ols as ols
from algoscope.predictors.nearest_neighbors import knn as knn
from algoscope.predictors.ridge import bayes as bayes
from algoscope.predictors.ridge import ridge as ridge


def figure_1_references() -> tuple[Predictor, ...]:
    """Return the references of figure 1, in the order of its legend."""
    return (
        ols,
        ridge(0.1),
        ridge(0.5),
        gd(0.01),
        gd(0.02),
        sgd(0.01),
        sgd(0.03),
        knn(3, "uniform"),
        knn(3, "weighted"),
    )
