"""Textbook learning algorithms, one file per family (paper §4.3)."""

from algoscope.predictors.accelerated import chebyshev as chebyshev
from algoscope.predictors.accelerated import conjugate_gradients as conjugate_gradients
from algoscope.predictors.accelerated import heavy_ball as heavy_ball
from algoscope.predictors.accelerated import newton as newton
from algoscope.predictors.catalog import CATALOG as CATALOG
from algoscope.predictors.catalog import example_predictors as example_predictors
from algoscope.predictors.catalog import figure_1_references as figure_1_references
from algoscope.predictors.catalog import parse_predictor as parse_predictor
from algoscope.predictors.gradient_descent import average as average
from algoscope.predictors.gradient_descent import gd as gd
from algoscope.predictors.gradient_descent import gd_growing as gd_growing
from algoscope.predictors.gradient_descent import gd_plus_plus as gd_plus_plus
from algoscope.predictors.gradient_descent import preconditioned_gd as preconditioned_gd
from algoscope.predictors.gradient_descent import zero as zero
from algoscope.predictors.lasso import lasso as lasso
from algoscope.predictors.least_squares import bayes as bayes
from algoscope.predictors.least_squares import discrete_bayes as discrete_bayes
from algoscope.predictors.least_squares import ols as ols
from algoscope.predictors.least_squares import ridge as ridge
from algoscope.predictors.least_squares import rls as rls
from algoscope.predictors.neighbors import knn as knn
from algoscope.predictors.neighbors import nadaraya_watson as nadaraya_watson
from algoscope.predictors.optimal_rates import optimal_gd as optimal_gd
from algoscope.predictors.optimal_rates import (
    optimal_preconditioned_gd as optimal_preconditioned_gd,
)
from algoscope.predictors.optimal_rates import tuned_gd as tuned_gd
from algoscope.predictors.protocols import BatchedBox as BatchedBox
from algoscope.predictors.protocols import BlackBox as BlackBox
from algoscope.predictors.protocols import LinearPredictor as LinearPredictor
from algoscope.predictors.protocols import Predictor as Predictor
from algoscope.predictors.protocols import PredictorFailedError as PredictorFailedError
from algoscope.predictors.protocols import Question as Question
from algoscope.predictors.protocols import RangeAware as RangeAware
from algoscope.predictors.stochastic import kaczmarz as kaczmarz
from algoscope.predictors.stochastic import sgd as sgd
