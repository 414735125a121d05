"""Rotations of the residual stream that change no prediction.

With h′ = R h for an orthogonal R, every matrix that reads the stream is multiplied by
Rᵀ and every one that writes to it by R. LayerNorm permits this if R keeps the vector of
ones: then mean and variance stay the same, and λ(R h) = R λ(h).

No row of a rotated stream means anything by itself; R turns it back.
"""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
)
from algoscope.model.transformer import Transformer

TOLERANCE = 1e-9  # of R Rᵀ = I and R 1 = 1

Rotation = Float[np.ndarray, "hidden hidden"]


def random_rotation(size: int, seed: int = 0) -> Rotation:
    """Return a random rotation of the space orthogonal to the ones, which it keeps.

    Example:
        >>> rotation = random_rotation(4)
        >>> np.allclose(rotation @ rotation.T, np.eye(4)), rotation.sum(1).round(9)
        (True, array([1., 1., 1., 1.]))
    """
    require_at_least("size", size, 2)
    rng = np.random.default_rng(seed)
    ones = np.ones((size, 1))
    frame, _ = np.linalg.qr(np.hstack([ones, rng.normal(size=(size, size - 1))]))
    others = frame[:, 1:]
    turned, signs = np.linalg.qr(rng.normal(size=(size - 1, size - 1)))
    turned *= np.sign(np.diag(signs))  # so that all rotations are equally likely
    return ones @ ones.T / size + others @ turned @ others.T


def rotate(transformer: Transformer, rotation: Rotation) -> Transformer:
    """Return the transformer with the residual stream R h in the place of h.

    Its predictions differ by rounding errors, which are as large as those of the
    largest number in the stream: rotated, all rows hold a part of it.
    """
    size = transformer.w_e.shape[0]
    if rotation.shape != (size, size):
        rule = f"have shape ({size}, {size}), the width of the stream"
        raise InvalidValueError("rotation", rule, f"shape {rotation.shape}")
    kept = np.abs(rotation.sum(axis=1) - 1).max()
    if max(np.abs(rotation @ rotation.T - np.eye(size)).max(), kept) > TOLERANCE:
        rule = "be orthogonal and keep the vector of ones"
        raise InvalidValueError("rotation", rule, "another matrix")
    layers = transformer.layers

    def typed(array: Float[np.ndarray, "..."]):
        return jnp.asarray(array, transformer.w_e.dtype)

    def exact(name: str) -> Float[np.ndarray, "..."]:
        return np.asarray(getattr(layers, name), np.float64)

    reading = {name: exact(name) @ rotation.T for name in ("w_q", "w_k", "w_v", "w_2")}
    writing = {name: rotation @ exact(name) for name in ("w_f", "w_1")}
    biases = {name: exact(name) @ rotation.T for name in ("b_f", "b_1")}
    turned = {k: typed(v) for k, v in {**reading, **writing, **biases}.items()}
    return replace(
        transformer,
        w_e=typed(rotation @ np.asarray(transformer.w_e, np.float64)),
        positions=typed(np.asarray(transformer.positions, np.float64) @ rotation.T),
        layers=replace(layers, **turned),
        w_o=typed(rotation @ np.asarray(transformer.w_o, np.float64)),
    )
