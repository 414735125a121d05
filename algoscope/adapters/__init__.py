"""Learning algorithms that JAX cannot trace, asked as black boxes (paper §4.1)."""

from algoscope.adapters.estimator import EstimatorPredictor as EstimatorPredictor
from algoscope.adapters.failures import Failures as Failures
from algoscope.adapters.failures import PredictorFailedError as PredictorFailedError
from algoscope.adapters.function import FunctionPredictor as FunctionPredictor
from algoscope.adapters.process import ProcessPredictor as ProcessPredictor
from algoscope.adapters.target import load_target as load_target
