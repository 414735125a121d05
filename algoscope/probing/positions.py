"""Exact linear probes of single positions, for transformers that are understood.

With all attention on one position, the best linear probe is a least-squares solution.
`fit_positions` tries every position up to the query and keeps the best. Datasets and
states are stored, not streamed, and solved without forming moments, so that what a
compiled transformer holds is read to full precision.
"""

import numpy as np
from jaxtyping import Float

from algoscope.probing.fitting import Fitted
from algoscope.probing.states import StateSplit
from algoscope.probing.targets import TargetSplit

POSITION = "position"  # the place of these probes: the best single position


def variance(targets: TargetSplit) -> Float[np.ndarray, " prefixes"]:
    """Return the held-out error of predicting the mean of the training datasets."""
    errors = targets.test - targets.training.mean(axis=0)
    return np.mean(errors**2, axis=(0, 2))


def fit_positions(
    states: StateSplit,
    targets: TargetSplit,
    prefixes: tuple[int, ...],
    block_size: int = 1,
) -> Fitted:
    """Fit linear probes of single positions, and keep the best position up to 2n.

    The position is chosen on the training datasets and measured on the others; α is 1
    there.
    """
    fits = [
        _fit_layer(training, test, targets, prefixes)
        for training, test in zip(states.training, states.test, strict=True)
    ]
    held_out, fitted, attention = (np.stack(part) for part in zip(*fits, strict=True))
    layers, count = held_out.shape[:2]
    blocks = held_out.reshape(layers, count // block_size, block_size, -1).mean(axis=2)
    return Fitted(
        np.moveaxis(blocks, 1, 0), fitted, fitted[None], attention, variance(targets)
    )


def _fit_layer(
    training: Float[np.ndarray, "datasets time hidden"],
    test: Float[np.ndarray, "others time hidden"],
    targets: TargetSplit,
    prefixes: tuple[int, ...],
) -> tuple[
    Float[np.ndarray, "others prefixes"],
    Float[np.ndarray, " prefixes"],
    Float[np.ndarray, "prefixes time"],
]:
    """Return the test error of every dataset, the training error, and α."""
    time = training.shape[1]
    fitted = np.full((len(prefixes), time), np.inf)  # errors on the training datasets
    held_out = np.full((len(test), len(prefixes), time), np.inf)
    for position in range(time):
        seeing = [i for i, n in enumerate(prefixes) if 2 * n >= position]
        if not seeing:
            continue
        known, wanted = (values[:, seeing] for values in targets)
        h, others = (_with_one(s[:, position]) for s in (training, test))
        solution = np.linalg.lstsq(h, known.reshape(len(known), -1))[0]
        own, other = (
            np.mean(((rows @ solution).reshape(values.shape) - values) ** 2, axis=2)
            for rows, values in ((h, known), (others, wanted))
        )
        fitted[seeing, position] = own.mean(axis=0)
        held_out[:, seeing, position] = other
    best = np.argmin(fitted, axis=1)
    chosen = np.take_along_axis(held_out, best[None, :, None], axis=2)[..., 0]
    return chosen, fitted.min(axis=1), np.eye(time, dtype=np.float32)[best]


def _with_one(
    h: Float[np.ndarray, "datasets hidden"],
) -> Float[np.ndarray, "datasets more"]:
    """Return the states in float64 with a column of ones, for the bias."""
    return np.concatenate([h, np.ones((len(h), 1))], axis=1, dtype=np.float64)
