"""Every costly metric of a learner and its references, on the same datasets."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from algoscope.evaluation import Inputs, Labels, predict_all
from algoscope.measurements.diverged import diverged_is_infinite
from algoscope.measurements.gradients import STEP, influences, sensitivities
from algoscope.measurements.implied import implied
from algoscope.measurements.symmetries import symmetries
from algoscope.metrics import cosine_similarity, linearity, squared_distance
from algoscope.predictors import BlackBox, Predictor

LINEAR_FIT = "linear fit"  # what R² compares a predictor with

# The costly metrics, and what has to be measured of each predictor for them.
COSTLY = {
    "ilwd": "implied",
    "r2": "implied",
    "sim_w": "implied",
    "sensitivity": "sensitivities",
    "influence": "influences",
    "symmetry": "symmetries",
}

Samples = dict[tuple[str, str], Float[np.ndarray, "datasets prefixes"]]


@dataclass(frozen=True)
class Trial:
    """The datasets and queries that every predictor is asked about."""

    x: Inputs
    y: Labels
    queries: Float[np.ndarray, "datasets queries dim"]
    seed: int = 0
    step: float = STEP

    def exact(self) -> "Trial":
        """Return the same trial in double precision: for references."""
        parts = {
            name: getattr(self, name).astype(np.float64)
            for name in ("x", "y", "queries")
        }
        return replace(self, **parts)


def kinds_for(metrics: tuple[str, ...]) -> list[str]:
    """Return what has to be measured for these metrics, each once."""
    return list(dict.fromkeys(COSTLY[name] for name in metrics if name in COSTLY))


def measure(
    kind: str, predictor: Predictor | BlackBox, trial: Trial, *, exactly: bool = False
) -> Any:
    """Return one kind of measurement of one predictor."""
    if exactly:
        with jax.enable_x64(True):
            return measure(kind, predictor, trial.exact())
    x, y = trial.x, trial.y
    if kind == "predictions":
        return diverged_is_infinite(predictor, predict_all(predictor, x, y))
    if kind == "implied":
        return implied(predictor, x, y, trial.queries)
    if kind == "sensitivities":
        return sensitivities(predictor, x, y, step=trial.step)
    if kind == "influences":
        return influences(predictor, x, y, step=trial.step)
    return symmetries(predictor, x, y, seed=trial.seed)


def costly_samples(
    metrics: tuple[str, ...],
    learner: str,
    measured: dict[str, dict[str, Any]],
    trial: Trial,
) -> dict[str, Samples]:
    """Return the metrics, by pair, from measurements by kind and predictor.

    ILWD and the squared distances of sensitivities and influences are divided by d.
    """
    dim = trial.x.shape[2]
    vectors = dict(measured)
    if "implied" in measured:
        each = measured["implied"]
        vectors["implied"] = {name: found.weights for name, found in each.items()}

    def between(kind: str, metric: Any, *arguments: int) -> Samples:
        own, *others = vectors[kind].items()
        assert own[0] == learner
        return {
            (learner, name): metric(own[1], other, *arguments) for name, other in others
        }

    samples: dict[str, Samples] = {}
    if "ilwd" in metrics:
        samples["ilwd"] = between("implied", squared_distance, dim)
    if "sim_w" in metrics:
        samples["sim_w"] = between("implied", cosine_similarity)
    if "r2" in metrics:
        samples["r2"] = {
            (name, LINEAR_FIT): linearity(trial.queries, found.answers, found.weights)
            for name, found in measured["implied"].items()
        }
    for metric in ("sensitivity", "influence"):
        if metric in metrics:
            kind = COSTLY[metric]
            samples[f"{metric}_cosine"] = between(kind, cosine_similarity)
            samples[f"{metric}_distance"] = between(kind, squared_distance, dim)
    if "symmetry" in metrics:
        samples["symmetry"] = {
            (name, symmetry): change
            for name, changes in measured["symmetries"].items()
            for symmetry, change in changes.items()
        }
    return samples
