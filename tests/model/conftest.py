"""Two transformers that the tests of this folder share."""

from dataclasses import replace

import numpy as np
import pytest
from support.transformers import MODERN, PAPER, draw_transformer

from algoscope.model.transformer import Transformer


@pytest.fixture(scope="session")
def model() -> Transformer:
    """The paper's block with weights that no test has chosen."""
    return draw_transformer(np.random.default_rng(0))


@pytest.fixture(scope="session", params=[PAPER, MODERN], ids=["paper", "modern"])
def any_model(request, model) -> Transformer:
    """The same weights in the paper's block, and in one that differs in most fields."""
    return replace(model, block=request.param)
