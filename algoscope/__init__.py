"""algoscope: see which learning algorithm an in-context learner runs.

The verbs are `train`, `compare`, `identify`, `build`, `compile`, `probe`, `patch`,
`layers`, `readouts`, `export`, `import_model`, `reproduce`, `report` and `play`; beside
them are the nouns that they take and return, and every textbook predictor. Names are
loaded on first use, so that `algoscope --help` answers without waiting for JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from algoscope.adapters import EstimatorPredictor as EstimatorPredictor
    from algoscope.adapters import FunctionPredictor as FunctionPredictor
    from algoscope.adapters import OpenedModule as OpenedModule
    from algoscope.adapters import ProcessPredictor as ProcessPredictor
    from algoscope.adapters import causal as causal
    from algoscope.adapters import from_context as from_context
    from algoscope.adapters import from_torch as from_torch
    from algoscope.adapters import load_target as load_target
    from algoscope.comparison.compare import compare as compare
    from algoscope.comparison.result import Comparison as Comparison
    from algoscope.construction import ALGORITHMS as ALGORITHMS
    from algoscope.construction import LearningRule as LearningRule
    from algoscope.construction import Program as Program
    from algoscope.construction import build as build
    from algoscope.construction import compile as compile
    from algoscope.construction import compile_program as compile_program
    from algoscope.construction import learning_rule as learning_rule
    from algoscope.construction import load_construction as load_construction
    from algoscope.exchange import export as export
    from algoscope.exchange import import_model as import_model
    from algoscope.experiments.experiment import reproduce as reproduce
    from algoscope.experiments.record import Record as Record
    from algoscope.ground_truth import LabelledLearner as LabelledLearner
    from algoscope.ground_truth import write_ground_truth as write_ground_truth
    from algoscope.identification import Identification as Identification
    from algoscope.identification import Survival as Survival
    from algoscope.identification import identify as identify
    from algoscope.identification import survives as survives
    from algoscope.layerwise import LayersConfig as LayersConfig
    from algoscope.layerwise import LayersResult as LayersResult
    from algoscope.layerwise import layers as layers
    from algoscope.layerwise import readouts as readouts
    from algoscope.model.checkpoints import shipped_models as shipped_models
    from algoscope.model.learner import InContextLearner as InContextLearner
    from algoscope.model.opened import OpenedLearner as OpenedLearner
    from algoscope.model.operands import OutsideRangeWarning as OutsideRangeWarning
    from algoscope.model.operands import range_warnings as range_warnings
    from algoscope.model.transformer import ForwardPass as ForwardPass
    from algoscope.model.transformer import Transformer as Transformer
    from algoscope.patching import PatchingConfig as PatchingConfig
    from algoscope.patching import PatchingResult as PatchingResult
    from algoscope.patching import patch as patch
    from algoscope.playground import Playground as Playground
    from algoscope.playground import play as play
    from algoscope.predictors import BlackBox as BlackBox
    from algoscope.predictors import LinearPredictor as LinearPredictor
    from algoscope.predictors import Predictor as Predictor
    from algoscope.predictors import average as average
    from algoscope.predictors import bayes as bayes
    from algoscope.predictors import chebyshev as chebyshev
    from algoscope.predictors import conjugate_gradients as conjugate_gradients
    from algoscope.predictors import discrete_bayes as discrete_bayes
    from algoscope.predictors import figure_1_references as figure_1_references
    from algoscope.predictors import gd as gd
    from algoscope.predictors import gd_growing as gd_growing
    from algoscope.predictors import gd_plus_plus as gd_plus_plus
    from algoscope.predictors import heavy_ball as heavy_ball
    from algoscope.predictors import kaczmarz as kaczmarz
    from algoscope.predictors import knn as knn
    from algoscope.predictors import lasso as lasso
    from algoscope.predictors import nadaraya_watson as nadaraya_watson
    from algoscope.predictors import newton as newton
    from algoscope.predictors import ols as ols
    from algoscope.predictors import optimal_gd as optimal_gd
    from algoscope.predictors import (
        optimal_preconditioned_gd as optimal_preconditioned_gd,
    )
    from algoscope.predictors import parse_predictor as parse_predictor
    from algoscope.predictors import preconditioned_gd as preconditioned_gd
    from algoscope.predictors import ridge as ridge
    from algoscope.predictors import rls as rls
    from algoscope.predictors import sgd as sgd
    from algoscope.predictors import tuned_gd as tuned_gd
    from algoscope.predictors import zero as zero
    from algoscope.probing import ProbingConfig as ProbingConfig
    from algoscope.probing import ProbingResult as ProbingResult
    from algoscope.probing import probe as probe
    from algoscope.probing import untrained as untrained
    from algoscope.reporting import report as report
    from algoscope.sklearn import ICLRegressor as ICLRegressor
    from algoscope.tasks.broad import BroadRegression as BroadRegression
    from algoscope.tasks.linear import FixedWeights as FixedWeights
    from algoscope.tasks.linear import LinearRegression as LinearRegression
    from algoscope.tasks.task import Dataset as Dataset
    from algoscope.tasks.task import Task as Task
    from algoscope.training.config import PRESETS as PRESETS
    from algoscope.training.config import TrainingConfig as TrainingConfig
    from algoscope.training.config import preset as preset
    from algoscope.training.run import train as train
    from algoscope.training.sweeps import Grid as Grid
    from algoscope.training.sweeps import train_all as train_all

_HOMES = {
    "adapters": (
        "EstimatorPredictor FunctionPredictor OpenedModule ProcessPredictor causal "
        "from_context from_torch load_target"
    ),
    "comparison.compare": "compare",
    "comparison.result": "Comparison",
    "construction": (
        "ALGORITHMS LearningRule Program build compile compile_program learning_rule "
        "load_construction"
    ),
    "exchange": "export import_model",
    "experiments.experiment": "reproduce",
    "experiments.record": "Record",
    "ground_truth": "LabelledLearner write_ground_truth",
    "identification": "Identification Survival identify survives",
    "layerwise": "LayersConfig LayersResult layers readouts",
    "model.checkpoints": "shipped_models",
    "model.learner": "InContextLearner",
    "model.opened": "OpenedLearner",
    "model.operands": "OutsideRangeWarning range_warnings",
    "model.transformer": "ForwardPass Transformer",
    "patching": "PatchingConfig PatchingResult patch",
    "playground": "Playground play",
    "predictors": (
        "BlackBox LinearPredictor Predictor average bayes chebyshev "
        "conjugate_gradients discrete_bayes figure_1_references gd gd_growing "
        "gd_plus_plus heavy_ball kaczmarz knn lasso nadaraya_watson newton ols "
        "optimal_gd optimal_preconditioned_gd parse_predictor preconditioned_gd "
        "ridge rls sgd tuned_gd zero"
    ),
    "probing": "ProbingConfig ProbingResult probe untrained",
    "reporting": "report",
    "sklearn": "ICLRegressor",
    "tasks.broad": "BroadRegression",
    "tasks.linear": "FixedWeights LinearRegression",
    "tasks.task": "Dataset Task",
    "training.config": "PRESETS TrainingConfig preset",
    "training.run": "train",
    "training.sweeps": "Grid train_all",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = list(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name not in _HOME_OF:
        raise AttributeError(f"module 'algoscope' has no attribute '{name}'")
    return getattr(import_module(f"algoscope.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME_OF, "__version__"])
