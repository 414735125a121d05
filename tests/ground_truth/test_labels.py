"""Labels agree with what the weights compute, and say what every part does."""

import json

import jax.numpy as jnp
import numpy as np
from support.forward import layer_weights

from algoscope.ground_truth import LabelledLearner
from algoscope.ground_truth.labels import Truths, read_rows
from algoscope.model.transformer import run_compiled


def test_rows_hold_the_exact_value_of_every_quantity_at_every_layer(labelled):
    run = run_compiled(labelled.learner.transformer, jnp.asarray(labelled.tokens))
    hidden = np.asarray(run.hidden)
    for each in labelled.labels.quantities:
        for layer in range(each.first_layer, each.last_layer + 1):
            found = read_rows(hidden[:, layer], each, labelled.rotation)
            exact = labelled.values[each.name]
            np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6)
    answers = np.asarray(run.output)[:, ::2]
    np.testing.assert_allclose(answers, labelled.prediction, rtol=1e-6, atol=1e-6)
    assert labelled.errors["quantities"] < 1e-6


def test_quantities_have_names_of_their_own_and_never_share_a_row(labelled):
    names = [each.name for each in labelled.labels.quantities]
    assert len(set(names)) == len(names)
    frame = [row for rows in labelled.labels.frame.values() for row in rows]
    for layer in range(labelled.learner.num_layers + 1):
        rows = [r for each in labelled.labels.held(layer) for r in each.rows] + frame
        assert len(set(rows)) == len(rows)


def test_a_quantity_is_gone_after_its_last_layer(plain: LabelledLearner):
    """Here the weights are overwritten in place by those after one example more."""
    w1, w2 = plain.quantity("w1"), plain.quantity("w2")
    assert (w1.first_layer, w1.last_layer, w2.first_layer) == (1, 2, 3)
    assert w1.rows == w2.rows
    assert w1.written_by == "MLP"
    assert w1.operation == "0.1 · x1 · y1"
    assert w1.tokens == (1, 2, 3, 4, 5, 6, 7, 8)  # all that see the first label
    assert w2.tokens == w1.tokens  # before the second label they hold w1


def test_heads_and_units_are_those_that_have_weights(plain: LabelledLearner):
    layers = plain.learner.transformer.layers
    works = np.asarray(layers.w_f).any(axis=(2, 3)) & np.asarray(layers.w_v).any(
        axis=(2, 3)
    )
    labelled = {(each.layer - 1, each.head) for each in plain.labels.heads}
    assert set(zip(*map(list, np.nonzero(works)), strict=True)) <= labelled
    for layer in range(plain.learner.num_layers):
        own = [each for each in plain.labels.units if each.layer == layer + 1]
        units = sorted(unit for each in own for unit in each.units)
        w_1 = layer_weights(layers, layer)["w_1"]
        assert units == np.flatnonzero(w_1.any(axis=0)).tolist()
    first = plain.labels.heads[0]
    assert first.attends == "{0} if i>0"
    assert (first.reads, first.writes) == (("token",), ("x1",))
    assert {each.writes for each in plain.labels.units if each.layer == 1} == {("w1",)}


def test_pads_are_labelled_with_what_a_layer_divides_by(labelled):
    divides = "kaczmarz" in labelled.name
    assert bool(labelled.labels.norms) == divides


def test_labels_survive_json(labelled):
    text = json.dumps(labelled.labels.as_dict())
    assert Truths.from_dict(json.loads(text)) == labelled.labels
