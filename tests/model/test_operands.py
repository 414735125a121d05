"""The range of a constructed learner: it warns of what it cannot compute precisely."""

import json
import re
import warnings
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import refuses

import algoscope as asc
from algoscope import InContextLearner, OutsideRangeWarning
from algoscope.foundation.files import DamagedFileError
from algoscope.model.checkpoints import CONFIG
from algoscope.model.layer import layer_norm
from algoscope.model.operands import OperandRange
from algoscope.model.tokens import QUERIES, encode_context, example_tokens


def in_range(learner, factor: float) -> InContextLearner:
    """Return the learner with a range in which the data are `factor` times too large.

    The products of layer 1 have no units, so only layer 2 can leave the range.
    """
    return InContextLearner(
        learner.transformer, "built", OperandRange(1 / factor, (0, 5))
    )


def test_a_learner_warns_of_operands_outside_its_range(learner, data):
    x, y = data
    built = in_range(learner, 1e3)
    match = "built: operands in layer 2 are .* times the largest that it multiplies"
    with pytest.warns(OutsideRangeWarning, match=match):
        built(x[:2], y[:2], x[2])
    with pytest.warns(OutsideRangeWarning, match=match):
        built.predict_prefixes(x, y)
    with pytest.warns(OutsideRangeWarning, match=match):
        built.warn_outside_range(np.asarray(x)[None], np.asarray(y)[None])


def test_the_warning_names_the_largest_operand_of_the_units_that_multiply(
    learner, data
):
    x, y = data
    with pytest.warns(OutsideRangeWarning) as caught:
        in_range(learner, 1e3).predict_prefixes(x, y)
    found = float(str(caught[0].message).split(" are ")[1].split(" ")[0]) / 1e3
    layer = jax.tree.map(lambda leaf: leaf[1], learner.transformer.layers)
    tokens = encode_context(x, y)[None]
    before = learner.transformer(tokens).hidden[:, 1]
    block = learner.transformer.block
    a, _ = layer.attention(layer_norm(before, block.layer_norm_epsilon), block)
    rows = layer_norm(a + before, block.layer_norm_epsilon)[0]
    units = rows @ layer.w_2.T + layer.b_2[None]
    assert found == pytest.approx(float(jnp.abs(units[:, :5]).max()), rel=0.05)


def test_inside_its_range_a_learner_does_not_warn(learner, data):
    x, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_range(learner, 1e-3).predict_prefixes(x, y)
        learner.predict_prefixes(x, y)


@cache
def sgd() -> InContextLearner:
    return asc.build("sgd", 2, 3, learning_rate=0.1)


X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 2.0]])
Y = np.array([1.0, -1.0, 0.5, 0.0])

TRANSFORMED = {
    "jit": lambda f: jax.jit(f),
    "vmap": lambda f: lambda x, y: jax.vmap(f)(x[None], y[None]),
    "jit of vmap": lambda f: lambda x, y: jax.jit(jax.vmap(f))(x[None], y[None]),
    "grad": lambda f: jax.grad(lambda x, y: f(x, y).sum()),
    "a closed-over dataset": lambda f: lambda x, y: jax.jit(lambda: f(x, y))(),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_it_warns_under_transformations_too(name):
    run = TRANSFORMED[name](sgd().predict_prefixes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.block_until_ready(run(jnp.asarray(X), jnp.asarray(Y)))
        jax.effects_barrier()
    match = r"sgd\(0.1, 0\), compiled: operands in layer . are .* times the largest"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.block_until_ready(run(jnp.asarray(300 * X), jnp.asarray(Y)))
        jax.effects_barrier()
    assert [each.category for each in caught] == [OutsideRangeWarning]
    assert re.match(match, str(caught[0].message))


@pytest.mark.parametrize("name", TRANSFORMED)
def test_the_switch_leaves_the_callback_out(name):
    run = TRANSFORMED[name](sgd().predict_prefixes)
    with warnings.catch_warnings(), asc.range_warnings(False):
        warnings.simplefilter("error")
        text = str(jax.make_jaxpr(run)(jnp.asarray(300 * X), jnp.asarray(Y)))
        jax.block_until_ready(run(jnp.asarray(300 * X), jnp.asarray(Y)))
        jax.effects_barrier()
    assert "callback" not in text


def test_methods_of_a_learner_can_be_compiled():
    learner, x, y = sgd(), jnp.asarray(X), jnp.asarray(Y)
    expected = learner.predict_prefixes(x, y)

    @jax.jit
    def twice(x, y):
        once = jax.jit(learner.predict_prefixes)(x, y)
        return (
            once,
            jax.jit(learner.predict_prefixes)(x, y),
            jax.jit(learner)(x, y, x[0]),
        )

    first, second, _ = twice(x[:3], y[:3])
    np.testing.assert_allclose(first, expected[:3], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(first, second)
    asked = jax.jit(learner)(x[:3], y[:3], x[3])
    np.testing.assert_allclose(asked, expected[3], rtol=0, atol=1e-12)


# Rounding is the matter: one is compiled as users have it, and any other order of
# operations rounds as much.
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("sgd", {}),
        pytest.param("ridge", {"penalty": 1e-3}, marks=pytest.mark.optimized),
        ("newton", {}),
        ("conjugate_gradients", {}),
        ("gd_attention", {}),
    ],
)
def test_the_error_of_predictions_is_estimated(name, parameters, dtype):
    learner = asc.build(name, 3, 6, dtype=dtype, **parameters)
    reference, limits = asc.ALGORITHMS[name](**parameters).reference, learner.operands
    assert reference is not None
    assert limits is not None
    assert limits.tolerance is not None
    tokens = example_tokens(3, 6, 12, seed=5).astype(dtype)
    textbook = jax.jit(reference.predict_prefixes)
    answers = jax.jit(lambda tokens: learner.transformer.outputs(tokens, QUERIES))
    estimates, errors = [], []
    for each in tokens:
        x, y = jnp.asarray(each[::2, 1:]), jnp.append(each[1::2, 0], 0.0)
        expected = textbook(jnp.asarray(x, jnp.float64), jnp.asarray(y, jnp.float64))
        context = encode_context(x, y)
        found = limits.check(learner.transformer, context[None])
        estimates.append(float(found.error) * limits.tolerance)
        off = np.abs(answers(context) - expected)
        errors.append(float(off.max()) / max(1.0, float(jnp.abs(expected).max())))
    # On average it is a little above the error, and it follows it over magnitudes. It
    # may be far too large for a dataset on which rounding happens to cancel.
    ratios = np.log10(estimates) - np.log10(errors)
    assert -0.3 < np.median(ratios) < 1.0
    assert (ratios - np.median(ratios)).min() > -1.3
    assert (ratios - np.median(ratios)).max() < 2.5


def test_the_range_is_saved_with_the_learner(learner, tmp_path):
    built = in_range(learner, 2.0)
    built.save_pretrained(tmp_path)
    config = json.loads((tmp_path / CONFIG).read_text())
    known = {"largest": 0.5, "products": [0, 5], "pads": [], "share": 1.0}
    assert known.items() <= config["operands"].items()
    assert InContextLearner.from_pretrained(tmp_path).operands == built.operands


@pytest.mark.parametrize(
    "saved",
    [
        3,
        {"largest": 1.0},
        {"largest": "x", "products": []},
        {"largest": 1.0, "products": [], "tolerance": "x"},
    ],
)
def test_a_damaged_range_is_rejected(learner, tmp_path, saved):
    learner.save_pretrained(tmp_path, about={"operands": saved})
    message = (
        f"{tmp_path} has a damaged range of operands in its configuration: {saved!r}."
    )
    with refuses(DamagedFileError, message):
        InContextLearner.from_pretrained(tmp_path)
