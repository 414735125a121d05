"""Scores of probes: do they read what is held, and nothing that is not?

The targets are all quantities of a learner's program, with the value that they have at
the query, and quantities that most programs never compute. Whether H⁽ˡ⁾ holds a target
is decided by the program: it does where the target is an exact linear function of the
exact rows at some token. A quantity that is not held is `not yet` computed, already
`gone`, or `never` there.

A method says 1 − error, the share of the target's variance that its probe explains on
held-out datasets. `fit_positions` is the exact linear probe of the best position; an
MLP reads that position too, and is trained as those of `probing` are.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from algoscope.ground_truth.collection import LabelledLearner
from algoscope.ground_truth.findings import Finding
from algoscope.model.tokens import QUERIES
from algoscope.probing.positions import POSITION, fit_positions
from algoscope.probing.probes import (
    AdamState,
    Probes,
    Weights,
    adam_step,
    learning_rate,
    random_mlps,
)
from algoscope.probing.states import StateSplit, hidden_states, standardize
from algoscope.probing.targets import (
    TargetSplit,
    find_targets,
    target_values,
)
from algoscope.tasks.task import Dataset

LINEAR, MLP = "linear probe", "MLP probe"
OTHERS = ("moment", "gram", "w_ols", "w_ridge", "sgd(0.05)", "gd(0.01, 3)")
EXACT = 1e-8  # relative error of an exact linear function, in float64
SEEDS = (2, 3)  # of the datasets that probes are fitted on and tested on
INNER, BATCH, RATE = 32, 64, 1e-2  # of the MLPs: units, datasets a step, learning rate

States = Float[np.ndarray, "layers _ time hidden"]
Values = Float[np.ndarray, "_ _"]


def datasets(labelled: LabelledLearner, num_datasets: int, seed: int) -> Dataset:
    """Return datasets of the kind that the learner is for; the last x is the query."""
    built = labelled.construction
    tokens = built.suited.examples(built.dim, built.num_examples, num_datasets, seed)
    x, y = tokens[:, QUERIES, 1:], tokens[:, 1::2, 0]
    y = np.concatenate([y, np.zeros((len(y), 1))], axis=1)
    return Dataset(jnp.asarray(x), jnp.asarray(y), jnp.zeros_like(x[:, 0]))


def probe_states(
    labelled: LabelledLearner, num_training: int, num_test: int, mlp_steps: int
) -> Iterator[Finding]:
    """Yield a finding of each kind of probe for every target and layer."""
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
    chosen = fitted.attention.argmax(axis=2)
    errors = {
        LINEAR: fitted.blocks.mean(axis=0) / fitted.variance,
        MLP: _mlp_errors(states, wanted, chosen, n, mlp_steps) / fitted.variance,
    }
    tokens = exact.token_names(n)
    for index, name in enumerate(names):
        ever = np.flatnonzero(held[:, :, index].any(axis=1))
        for layer in layers:
            here, place = held[layer, :, index], chosen[layer, index]
            missed = here.any() and not here[place]
            for method, error in errors.items():
                yield Finding(
                    labelled.name,
                    method,
                    name,
                    layer,
                    bool(here.any()),
                    _reason(layer, ever.tolist(), bool(here.any())),
                    1 - float(error[layer, index]),
                    tokens[place] + (", wrong" if missed else ""),
                )


def _mlp_errors(
    states: StateSplit,
    wanted: TargetSplit,
    chosen: Int[np.ndarray, "layers targets"],
    n: int,
    steps: int,
) -> Float[np.ndarray, "layers targets"]:
    """Return the held-out squared errors of an MLP for every layer and target.

    They are means over all components, as those of `fit_positions`.
    """
    mean, scale = wanted.training.mean(axis=0), wanted.training.std(axis=0)
    used = scale > 0
    scale = np.where(used, scale, 1)
    known, others = (
        jnp.asarray(np.moveaxis((each - mean) / scale, 1, 0), jnp.float32)
        for each in wanted
    )
    weights = jnp.asarray(np.where(used, scale, 0), jnp.float32)
    found = []
    for layer, places in enumerate(chosen):
        whitened = {
            place: _whitened(
                states.training[layer, :, place], states.test[layer, :, place]
            )
            for place in set(places.tolist())
        }
        read = [whitened[place] for place in places.tolist()]
        training, test = (np.stack(each) for each in zip(*read, strict=True))
        stack = random_mlps(
            layer,
            layers=(layer,),
            columns=[(n, POSITION)],
            num_targets=len(places),
            hidden_size=training.shape[-1],
            inner_size=INNER,
            size=scale.shape[-1],
        )
        probes = jax.tree.map(lambda leaf: leaf[0, 0], stack)
        trained = _trained(probes, training, known, used, steps)
        answers = jax.vmap(Probes.__call__)(trained, jnp.asarray(test))
        left = (answers - others) * weights[:, None]
        found.append(np.mean(np.square(np.asarray(left, np.float64)), axis=(1, 2)))
    return np.stack(found)


def _whitened(
    training: Float[np.ndarray, "datasets hidden"],
    test: Float[np.ndarray, "others hidden"],
) -> tuple[Float[np.ndarray, "datasets hidden"], Float[np.ndarray, "others hidden"]]:
    """Return both with mean 0 and the identity as covariance on `training`."""
    mean = training.mean(axis=0, dtype=np.float64)
    _, lengths, axes = np.linalg.svd(training - mean, full_matrices=False)
    kept = lengths > 1e-5 * lengths.max(initial=0)  # of what float32 resolves
    scale = np.where(kept, np.sqrt(len(training)) / np.where(kept, lengths, 1), 0)
    turned = (((each - mean) @ axes.T * scale) for each in (training, test))
    return tuple(each.astype(np.float32) for each in turned)  # pyright: ignore


@partial(jax.jit, static_argnums=4)
def _trained(
    probes: Probes,
    read: Float[Array, "targets datasets hidden"],
    known: Float[Array, "targets datasets size"],
    used: Bool[Array, "targets size"],
    steps: int,
) -> Probes:
    """Return the probes after some steps of Adam, each on the next datasets."""
    batches = known.shape[1] // BATCH

    def loss(weights: Weights, first: Int[Array, ""]) -> Float[Array, ""]:
        part = partial(
            jax.lax.dynamic_slice_in_dim, start_index=first, slice_size=BATCH, axis=1
        )
        stack = replace(probes, **weights)
        return jnp.sum(jax.vmap(Probes.error)(stack, part(read), part(known), used))

    def step(number: Int[Array, ""], carry: tuple[Weights, AdamState]):
        weights, state = carry
        gradient = jax.grad(loss)(weights, number % batches * BATCH)
        rate = learning_rate(number, steps, RATE)
        return adam_step(weights, state, gradient, number, rate)

    begun = (probes.trained, AdamState.zeros(probes))
    return replace(probes, **jax.lax.fori_loop(0, steps, step, begun)[0])


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
