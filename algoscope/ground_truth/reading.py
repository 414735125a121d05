"""Scores of probes: do they read what is held, and nothing that is not?

The targets are all quantities of a learner's program, with the value that they have at
the query, and quantities that most programs never compute. Whether H⁽ˡ⁾ holds a target
is decided by the program: it does where the target is an exact linear function of the
exact rows at some token. A quantity that is not held is `not yet` computed, already
`gone`, or `never` there.

A method says 1 − error, the share of the target's variance that its probe explains on
held-out datasets: `fit_positions` is the exact linear probe of the best position.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from algoscope.ground_truth.collection import LabelledLearner
from algoscope.ground_truth.findings import Finding
from algoscope.model.tokens import QUERIES
from algoscope.probing.positions import fit_positions
from algoscope.probing.states import hidden_states, standardize
from algoscope.probing.targets import (
    TargetSplit,
    find_targets,
    target_values,
)
from algoscope.tasks.task import Dataset

METHOD = "linear probe"
OTHERS = ("moment", "gram", "w_ols", "w_ridge", "sgd(0.05)", "gd(0.01, 3)")
EXACT = 1e-8  # relative error of an exact linear function, in float64
SEEDS = (2, 3)  # of the datasets that probes are fitted on and tested on

States = Float[np.ndarray, "layers _ time hidden"]
Values = Float[np.ndarray, "_ _"]


def datasets(labelled: LabelledLearner, num_datasets: int, seed: int) -> Dataset:
    """Return datasets of the kind that the learner is for; the last x is the query."""
    built = labelled.construction
    tokens = built.suited.examples(built.dim, built.num_examples, num_datasets, seed)
    x, y = tokens[:, QUERIES, 1:], tokens[:, 1::2, 0]
    y = np.concatenate([y, np.zeros((len(y), 1))], axis=1)
    return Dataset(jnp.asarray(x), jnp.asarray(y), jnp.zeros_like(x[:, 0]))


def probe_linearly(
    labelled: LabelledLearner, num_training: int, num_test: int
) -> Iterator[Finding]:
    """Yield a finding for every target and layer."""
    splits = [
        datasets(labelled, count, seed)
        for count, seed in zip((num_training, num_test), SEEDS, strict=True)
    ]
    n = labelled.construction.num_examples
    targets = _targets(labelled, splits[0])
    others = _targets(labelled, splits[1])
    names = [name for name, values in targets.items() if values.std(axis=0).max() > 0]
    exact = labelled.exact
    rows = [np.moveaxis(exact.hidden_states(s.x, s.y), 1, 0) for s in splits]
    held = _held(rows, targets, others, names)
    layers = tuple(range(labelled.learner.num_layers + 1))
    states = standardize(*(hidden_states(labelled.learner, s, layers) for s in splits))
    wanted = TargetSplit(_padded(targets, names), _padded(others, names))
    fitted = fit_positions(states, wanted, (n,) * len(names))
    error = fitted.blocks.mean(axis=0) / fitted.variance
    tokens = exact.token_names(n)
    for index, name in enumerate(names):
        ever = np.flatnonzero(held[:, :, index].any(axis=1))
        for layer in layers:
            here = held[layer, :, index]
            chosen = int(fitted.attention[layer, index].argmax())
            yield Finding(
                labelled.name,
                METHOD,
                name,
                layer,
                bool(here.any()),
                _reason(layer, ever.tolist(), bool(here.any())),
                1 - float(error[layer, index]),
                tokens[chosen] + ("" if here[chosen] or not here.any() else ", wrong"),
            )


def _reason(layer: int, ever: list[int], here: bool) -> str:
    if here:
        return "held"
    if not ever:
        return "never"
    return "not yet" if layer < min(ever) else "gone"


def _targets(labelled: LabelledLearner, data: Dataset) -> dict[str, Values]:
    """Return what every quantity is at the query, and what others would be."""
    values = labelled.exact.named(data.x, data.y)
    own = {
        each.name: values[each.name][:, -1]
        for each in labelled.labels.quantities
        if each.written_by in ("attention", "MLP")
    }
    n = labelled.construction.num_examples
    with jax.enable_x64(True):
        for target in find_targets(OTHERS):
            own[target.name] = target_values(target, data, (n,))[:, 0]
    return own


def _padded(targets: dict[str, Values], names: list[str]) -> Float[np.ndarray, "_ _ _"]:
    """Return all targets in one array, filled up with zeros."""
    size = max(targets[name].shape[1] for name in names)
    return np.stack(
        [
            np.pad(targets[name], ((0, 0), (0, size - targets[name].shape[1])))
            for name in names
        ],
        axis=1,
    )


def _held(
    rows: list[States],
    targets: dict[str, Values],
    others: dict[str, Values],
    names: list[str],
) -> Bool[np.ndarray, "layers time targets"]:
    """Return where each target is an exact linear function of the exact rows."""
    training, test = rows
    known, wanted = (_padded(each, names) for each in (targets, others))
    variance = np.mean((wanted - known.mean(axis=0)) ** 2, axis=(0, 2))
    layers, _, time, _ = training.shape
    found = np.zeros((layers, time, len(names)), bool)
    for layer in range(layers):
        for token in range(time):
            h, other = (_with_one(each[layer, :, token]) for each in (training, test))
            scale = np.maximum(np.abs(h).max(axis=0), 1e-300)
            solution = np.linalg.lstsq(h / scale, known.reshape(len(known), -1))[0]
            guess = ((other / scale) @ solution).reshape(wanted.shape)
            error = np.mean((guess - wanted) ** 2, axis=(0, 2))
            found[layer, token] = error < EXACT * variance
    return found


def _with_one(
    h: Float[np.ndarray, "datasets hidden"],
) -> Float[np.ndarray, "datasets more"]:
    return np.concatenate([h, np.ones((len(h), 1))], axis=1)
