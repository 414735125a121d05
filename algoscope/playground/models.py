"""Models for the page: weights as text, and what else its views show of a model.

A model is named as users name it: a shipped model, a directory, or an algorithm of
`ALGORITHMS`, which is then compiled for one and for two inputs.
"""

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.numpy

from algoscope.construction.algorithms import ALGORITHMS
from algoscope.construction.build import (
    Construction,
    find_algorithm,
    read_construction,
)
from algoscope.foundation.files import read_json
from algoscope.layerwise.read_outs import ReadOuts
from algoscope.model.checkpoints import (
    CONFIG,
    locate,
    named_leaves,
    shape_facts,
    shipped_models,
)
from algoscope.model.learner import InContextLearner
from algoscope.model.transformer import Transformer
from algoscope.playground.programs import program_data

DEFAULT_MODELS = ("linear-d1", "linear-d2", "sgd", "ridge")
COMPILED_DIMS = (1, 2)  # the numbers of inputs that the page can draw
COMPILED_EXAMPLES = 20  # as many as the shipped models take
# Where the algorithm's usual parameters would hardly show: ridge(0.1) is near OLS.
PARAMETERS: dict[str, dict[str, float]] = {"ridge": {"penalty": 0.5}}


@dataclass(frozen=True)
class PageModel:
    """One model of the page: the learner, and the facts that its config.json holds."""

    name: str
    learner: InContextLearner
    config: dict[str, Any]
    construction: Construction | None = None  # of a compiled learner, if known
    directory: Path | None = None  # that it was loaded from

    @property
    def is_compiled(self) -> bool:
        """Whether the weights were written by hand."""
        return self.construction is not None or self.learner.operands is not None

    def payload(self) -> dict[str, Any]:
        """Return plain values for `parts/models.js`."""
        return {
            "name": self.name,
            "kind": "compiled" if self.is_compiled else "trained",
            "config": self.config,
            "weights": packed_weights(self.learner.transformer),
            "readouts": self._read_outs(),
            "program": self._program(),
        }

    def _read_outs(self) -> dict[str, Any] | None:
        """Return a read-out of every layer, saved with the model or fitted now.

        A compiled learner has none: it writes its answer in the last layer.
        """
        if self.is_compiled or self.directory is None:
            return None
        found = ReadOuts.load(self.directory, self.learner) or self.learner.readouts()
        weights, center = found.weights.tolist(), found.center.tolist()
        return {"center": center, "weights": weights, "offset": found.offset}

    def _program(self) -> dict[str, Any] | None:
        if self.construction is None:
            return None
        return program_data(self.construction.arrange())


def packed_weights(transformer: Transformer) -> str:
    """Return the weights of a transformer as text, for `loadEmbedded`."""
    arrays = named_leaves(transformer)
    content = safetensors.numpy.save(
        {name: np.asarray(each, order="C") for name, each in arrays.items()}
    )
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def find_models(names: Sequence[str | Path]) -> list[PageModel]:
    """Return the models of these names, each under a name of its own."""
    found = [model for name in names for model in _named(name)]
    taken: set[str] = set()
    unique = []
    for model in found:
        name, copy = model.name, 2
        while name in taken:
            name, copy = f"{model.name} ({copy})", copy + 1
        taken.add(name)
        unique.append(replace(model, name=name))
    return unique


def _named(name: str | Path) -> list[PageModel]:
    is_algorithm = isinstance(name, str) and name in ALGORITHMS
    if is_algorithm and not Path(name).is_dir() and name not in shipped_models():
        return [compiled_model(str(name), dim) for dim in COMPILED_DIMS]
    directory = locate(name)
    learner = InContextLearner.from_pretrained(directory)
    config = read_json(directory / CONFIG)
    written = config.get("construction") is not None
    construction = read_construction(directory) if written else None
    return [PageModel(learner.name, learner, config, construction, directory)]


def compiled_model(algorithm: str, dim: int) -> PageModel:
    """Return an algorithm compiled with the parameters that the page starts with."""
    with jax.enable_x64(True):
        written = find_algorithm(algorithm, PARAMETERS.get(algorithm, {}))
        construction = Construction(written, dim, COMPILED_EXAMPLES)
        learner = construction.compile().learner(construction.name)
    config = {
        "format": "algoscope",
        "name": construction.name,
        **shape_facts(learner.transformer),
        "construction": construction.as_dict(),
    }
    return PageModel(f"{algorithm}-d{dim}", learner, config, construction)
