"""Learners that JAX cannot trace: functions, regressors, programs, torch (§4.1)."""

from algoscope.adapters.batched import CausalPredictor as CausalPredictor
from algoscope.adapters.batched import ContextPredictor as ContextPredictor
from algoscope.adapters.batched import causal as causal
from algoscope.adapters.batched import from_context as from_context
from algoscope.adapters.black_box import EstimatorPredictor as EstimatorPredictor
from algoscope.adapters.black_box import Failures as Failures
from algoscope.adapters.black_box import FunctionPredictor as FunctionPredictor
from algoscope.adapters.black_box import PredictorFailedError as PredictorFailedError
from algoscope.adapters.opened_torch import OpenedModule as OpenedModule
from algoscope.adapters.process import ProcessPredictor as ProcessPredictor
from algoscope.adapters.targets import load_target as load_target
from algoscope.adapters.torch import from_torch as from_torch
