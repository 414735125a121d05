"""Black boxes: learners that JAX cannot trace, asked question by question (§4.1)."""

from algoscope.adapters.black_box import EstimatorPredictor as EstimatorPredictor
from algoscope.adapters.black_box import Failures as Failures
from algoscope.adapters.black_box import FunctionPredictor as FunctionPredictor
from algoscope.adapters.black_box import PredictorFailedError as PredictorFailedError
from algoscope.adapters.opened_torch import OpenedModule as OpenedModule
from algoscope.adapters.process import ProcessPredictor as ProcessPredictor
from algoscope.adapters.targets import load_target as load_target
