"""algoscope: see which learning algorithm an in-context learner runs.

The public names are loaded on first use, so that `algoscope --help` answers without
waiting for JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from algoscope.adapters import EstimatorPredictor as EstimatorPredictor
    from algoscope.adapters import FunctionPredictor as FunctionPredictor
    from algoscope.adapters import ProcessPredictor as ProcessPredictor
    from algoscope.adapters import load_target as load_target
    from algoscope.comparison import Comparison as Comparison
    from algoscope.comparison import compare as compare
    from algoscope.configuration import PRESETS as PRESETS
    from algoscope.configuration import TrainingConfig as TrainingConfig
    from algoscope.configuration import preset as preset
    from algoscope.estimator import ICLRegressor as ICLRegressor
    from algoscope.identification import Identification as Identification
    from algoscope.identification import identify as identify
    from algoscope.initialization import random_transformer as random_transformer
    from algoscope.layer import Block as Block
    from algoscope.layer import TransformerLayer as TransformerLayer
    from algoscope.learner import InContextLearner as InContextLearner
    from algoscope.patching import PatchingConfig as PatchingConfig
    from algoscope.patching import PatchingResult as PatchingResult
    from algoscope.patching import patch as patch
    from algoscope.predictors import LinearPredictor as LinearPredictor
    from algoscope.predictors import Predictor as Predictor
    from algoscope.predictors import bayes as bayes
    from algoscope.predictors import figure_1_references as figure_1_references
    from algoscope.predictors import gd as gd
    from algoscope.predictors import knn as knn
    from algoscope.predictors import ols as ols
    from algoscope.predictors import parse_predictor as parse_predictor
    from algoscope.predictors import ridge as ridge
    from algoscope.predictors import sgd as sgd
    from algoscope.pretrained import shipped_models as shipped_models
    from algoscope.probing import ProbingConfig as ProbingConfig
    from algoscope.probing import ProbingResult as ProbingResult
    from algoscope.probing import probe as probe
    from algoscope.sweeps import Grid as Grid
    from algoscope.sweeps import train_all as train_all
    from algoscope.tasks import Dataset as Dataset
    from algoscope.tasks import FixedWeights as FixedWeights
    from algoscope.tasks import LinearRegression as LinearRegression
    from algoscope.transformer import ForwardPass as ForwardPass
    from algoscope.transformer import Transformer as Transformer

_HOMES = {
    "adapters": (
        "EstimatorPredictor",
        "FunctionPredictor",
        "ProcessPredictor",
        "load_target",
    ),
    "comparison": ("Comparison", "compare"),
    "configuration": ("PRESETS", "TrainingConfig", "preset"),
    "estimator": ("ICLRegressor",),
    "identification": ("Identification", "identify"),
    "initialization": ("random_transformer",),
    "layer": ("Block", "TransformerLayer"),
    "learner": ("InContextLearner",),
    "patching": ("PatchingConfig", "PatchingResult", "patch"),
    "predictors": (
        "LinearPredictor",
        "Predictor",
        "bayes",
        "figure_1_references",
        "gd",
        "knn",
        "ols",
        "parse_predictor",
        "ridge",
        "sgd",
    ),
    "pretrained": ("shipped_models",),
    "probing": ("ProbingConfig", "ProbingResult", "probe"),
    "sweeps": ("Grid", "train_all"),
    "tasks": ("Dataset", "FixedWeights", "LinearRegression"),
    "transformer": ("ForwardPass", "Transformer"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__version__ = "0.1.0"


def __getattr__(name: str):
    if name not in _HOME_OF:
        raise AttributeError(f"module 'algoscope' has no attribute '{name}'")
    return getattr(import_module(f"algoscope.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME_OF, "__version__"])
