"""Transformers written by hand that the page steps through, prepared for some α and λ.

Their weights depend on the learning rate α and the penalty λ, so a small grid of both
is embedded: the paper's Theorems 1 and 2, line by line, SGD and recursive ridge
regression.
"""

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import jax
import numpy as np

from algoscope.construction.algorithms import SGD, Ridge
from algoscope.construction.build import Construction
from algoscope.construction.paper.chain import Chain, theorem_1, theorem_2
from algoscope.model.checkpoints import shape_facts
from algoscope.model.transformer import Transformer
from algoscope.playground.models import packed_weights
from algoscope.playground.programs import Data, chain_data, program_data

DIMS = (1, 2)  # the numbers of inputs that the page can draw
RATES = (0.02, 0.05, 0.1, 0.2)
DECAYS = (0.0, 0.1)  # λ beside a rate
PENALTIES = (0.01, 0.1, 1.0)  # λ of ridge regression
EXAMPLES = 4  # that SGD and ridge regression take
START = 0.5  # every component of the w that Theorem 1 starts from
USUAL = {"α": 0.05, "λ": 0.1}  # to show first; SGD without a decay


@cache
def constructions(dim: int) -> list[dict[str, Any]]:
    """Return the prepared transformers for one number of inputs, as plain values.

    Example:
        >>> found = constructions(1)
        >>> sorted({each["family"] for each in found})
        ['ridge', 'sgd', 'theorem 1', 'theorem 2']
        >>> found[0]["title"], found[0]["parameters"]
        ('Theorem 1: one step of SGD', {'α': 0.02, 'λ': 0.0})
    """
    with jax.enable_x64(True):
        return [*_first(dim), *_second(dim), *_sgd(dim), *_ridge(dim)]


def _first(dim: int) -> Iterator[dict[str, Any]]:
    for rate, decay in itertools.product(RATES, DECAYS):
        chain = theorem_1(dim, np.full(dim, START), rate, decay)
        says = (
            "The nine lines of the paper's appendix A: one step of SGD on one "
            f"example, from w = {START:g} in every component."
        )
        yield _of_chain(
            chain, "theorem 1", "one step of SGD", says, {"α": rate, "λ": decay}
        )


def _second(dim: int) -> Iterator[dict[str, Any]]:
    for penalty in PENALTIES:
        says = (
            "The lines of the paper's appendix B: ridge regression on one example, "
            "by the Sherman-Morrison formula."
        )
        yield _of_chain(
            theorem_2(dim, penalty),
            "theorem 2",
            "ridge regression",
            says,
            {"λ": penalty},
        )


def _sgd(dim: int) -> Iterator[dict[str, Any]]:
    for rate, decay in itertools.product(RATES, DECAYS):
        yield _of_program(
            Construction(SGD(rate, decay), dim, EXAMPLES),
            "SGD over the examples",
            "Every column runs SGD: one step for each example that it has seen.",
            {"α": rate, "λ": decay},
        )


def _ridge(dim: int) -> Iterator[dict[str, Any]]:
    for penalty in PENALTIES:
        yield _of_program(
            Construction(Ridge(penalty), dim, EXAMPLES),
            "Ridge regression, recursively",
            "Ridge regression takes in one example after the other; LayerNorm divides.",
            {"λ": penalty},
        )


def _of_chain(
    chain: Chain, family: str, what: str, says: str, parameters: dict[str, float]
) -> dict[str, Any]:
    title = f"{family.capitalize()}: {what}"
    found = _payload(chain.compile(), chain_data(chain), chain.dim, family, parameters)
    return found | {"title": title, "says": says, "whole": True}


def _of_program(
    construction: Construction, title: str, says: str, parameters: dict[str, float]
) -> dict[str, Any]:
    compiled = construction.compile()
    family = construction.algorithm.name
    data = program_data(compiled)
    found = _payload(compiled.transformer, data, construction.dim, family, parameters)
    return found | {"title": title, "says": says, "whole": False}


def _payload(
    transformer: Transformer,
    data: Data,
    dim: int,
    family: str,
    parameters: dict[str, float],
) -> dict[str, Any]:
    settings = ", ".join(f"{name}={value:g}" for name, value in parameters.items())
    return {
        "name": f"{family} ({settings}), d = {dim}",
        "kind": "compiled",
        "family": family,
        "dim": dim,
        "parameters": parameters,
        "usual": USUAL | ({"λ": 0.0} if family == "sgd" else {}),
        "config": shape_facts(transformer),
        "weights": packed_weights(transformer),
        "program": data,
    }
