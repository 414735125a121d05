"""Two transformers and a learner that the tests of this folder share."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from support.transformers import DIM, MODERN, PAPER, ROOM, draw_transformer

from algoscope.model.layer import Block
from algoscope.model.learner import InContextLearner
from algoscope.model.transformer import Transformer, random_transformer


@pytest.fixture(scope="session")
def model() -> Transformer:
    """The paper's block with weights that no test has chosen."""
    return draw_transformer(np.random.default_rng(0))


@pytest.fixture(scope="session", params=[PAPER, MODERN], ids=["paper", "modern"])
def any_model(request, model) -> Transformer:
    """The same weights in the paper's block, and in one that differs in most fields."""
    return replace(model, block=request.param)


@pytest.fixture(scope="module")
def learner() -> InContextLearner:
    """A learner for d = DIM with room for ROOM examples."""
    transformer = random_transformer(
        0,
        token_size=DIM + 1,
        max_time=2 * ROOM + 1,
        num_layers=2,
        hidden_size=8,
        num_heads=2,
        block=Block(pre_norm=True, attention_scale=0.5),
        dtype="float64",
    )
    return InContextLearner(transformer, "small")


@pytest.fixture
def data(rng):
    """Examples that fill the learner, and a query."""
    x = rng.standard_normal((ROOM + 1, DIM))
    return jnp.asarray(x), jnp.asarray(x @ rng.standard_normal(DIM))
