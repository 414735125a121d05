"""Linear probes that need no training: least squares at every position.

Given attention on one position, the best linear probe is a least-squares fit. Hidden
states are causal, so one fit at a position serves all prefixes that see it; for each
prefix the position with the best fit is taken. This misses what is spread over several
positions, which a trained probe can add up, but leaves no doubt whether training
converged.
"""

import numpy as np
from jaxtyping import Float

from algoscope.probing.fitting import Fitted
from algoscope.probing.states import StateSplit
from algoscope.probing.targets import TargetSplit


def fit_least_squares(
    states: StateSplit, targets: TargetSplit, prefixes: tuple[int, ...]
) -> Fitted:
    """Return the errors of the best single position up to 2n, and α that is 1 there.

    The position is chosen on the training datasets, the error is that on the others.
    """
    fits = [
        _fit_layer(training, test, targets, prefixes)
        for training, test in zip(states.training, states.test, strict=True)
    ]
    errors, attention = zip(*fits, strict=True)
    return Fitted(np.stack(errors), np.stack(attention))


def _fit_layer(
    training: Float[np.ndarray, "datasets time hidden"],
    test: Float[np.ndarray, "others time hidden"],
    targets: TargetSplit,
    prefixes: tuple[int, ...],
) -> tuple[Float[np.ndarray, " prefixes"], Float[np.ndarray, "prefixes time"]]:
    time = training.shape[1]
    fitted = np.full((len(prefixes), time), np.inf)  # errors on the training datasets
    held_out = np.full((len(prefixes), time), np.inf)
    for position in range(time):
        seeing = [i for i, n in enumerate(prefixes) if 2 * n >= position]
        if not seeing:
            continue
        known, wanted = (values[:, seeing] for values in targets)
        h, others = (_with_one(s[:, position]) for s in (training, test))
        solution = np.linalg.lstsq(h, known.reshape(len(known), -1))[0]
        for table, rows, values in ((fitted, h, known), (held_out, others, wanted)):
            errors = (rows @ solution).reshape(values.shape) - values
            table[seeing, position] = np.mean(errors**2, axis=(0, 2))
    best = np.argmin(fitted, axis=1)
    chosen = np.take_along_axis(held_out, best[:, None], axis=1)[:, 0]
    return chosen, np.eye(time, dtype=np.float32)[best]


def _with_one(
    h: Float[np.ndarray, "datasets hidden"],
) -> Float[np.ndarray, "datasets more"]:
    """Return the states in float64 with a constant beside them: the bias."""
    return np.concatenate([h, np.ones((len(h), 1))], axis=1, dtype=np.float64)
