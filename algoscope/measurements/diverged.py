"""The one rule about numbers that are none."""

import numpy as np
from jaxtyping import Float

from algoscope.predictors import BlackBox, Predictor


def diverged_is_infinite(
    predictor: Predictor | BlackBox, values: Float[np.ndarray, " *shape"]
) -> Float[np.ndarray, " *shape"]:
    """Return the values with infinity for the NaN of a predictor that JAX runs.

    A black box that answers NaN abstains, and is not judged there. Anyone else was
    asked, computed, and diverged: leaving that out would flatter it.
    """
    if isinstance(predictor, BlackBox):
        return values
    return np.where(np.isnan(values), np.asarray(np.inf, values.dtype), values)
