"""Causal tests: laws that hold for any transformer, and compiled ones as the truth."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.progress import Reports
from support.refusals import refuses

from algoscope.comparison.linearization import implied_weights
from algoscope.comparison.predict import draw_datasets
from algoscope.construction import Construction
from algoscope.construction.algorithms import SGD
from algoscope.model.layer import Block
from algoscope.model.learner import InContextLearner
from algoscope.model.tokens import encode_context
from algoscope.model.transformer import random_transformer
from algoscope.patching import (
    Part,
    PatchingConfig,
    PatchingResult,
    ablate,
    find_budget,
    parts_of,
    patch,
)
from algoscope.patching.edits import READ, LinearReading, interchange, places
from algoscope.predictors import sgd
from algoscope.probing import weights_of
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Dataset

ALPHA = 0.05
TASK = LinearRegression(dim=2)
NOISY = LinearRegression(dim=2, noise_variance=0.25)
N = 2
SMALL = PatchingConfig(
    num_examples=N, num_pairs=6, num_training=128, num_edits=16, num_ablation_datasets=8
)


@cache
def compiled() -> InContextLearner:
    """Return two steps of SGD: w₁ is written by layer 1, w₂ by layer 3 of 4."""
    data = draw_datasets(TASK, num_datasets=2048, num_examples=N + 1, seed=9, fold=0)
    tokens = 1.5 * np.asarray(encode_context(data.x, data.y), np.float64)
    return Construction(SGD(ALPHA), 2, N).compile(tokens).learner("sgd")


@cache
def random_learner(pre_norm: bool = True) -> InContextLearner:
    block = Block(pre_norm=pre_norm, attention_scale=0.5)
    model = random_transformer(
        3,
        token_size=3,
        max_time=7,
        num_layers=2,
        hidden_size=8,
        num_heads=2,
        block=block,
        dtype="float64",
    )
    return InContextLearner(model, "random", task=NOISY)


@cache
def patched() -> PatchingResult:
    return patch(compiled(), TASK, SMALL, target=weights_of(sgd(ALPHA)))


def draw(seed: int, count: int = 6, examples: int = N) -> Dataset:
    return draw_datasets(
        TASK, num_datasets=count, num_examples=examples, seed=seed, fold=1
    )


def draw_queries(count: int = 6) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, 8, 2)).astype(np.float32)


def tokens_of(seed: int) -> jnp.ndarray:
    data = draw(seed, examples=3)
    return encode_context(data.x, data.y).astype(jnp.float64)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_an_edit_that_changes_nothing_changes_nothing(pre_norm):
    transformer = random_learner(pre_norm).transformer
    tokens = tokens_of(0)
    edited = transformer.edited(tokens, lambda depth, h: h)
    np.testing.assert_allclose(edited, transformer(tokens).output, rtol=1e-12)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_all_states_of_another_run_give_its_outputs(layer):
    transformer = random_learner().transformer
    tokens, others = tokens_of(0), tokens_of(1)
    donated = transformer(others)

    def edit(depth, h):
        return jnp.where(depth == layer, donated.hidden[:, layer], h)

    edited = transformer.edited(tokens, edit)
    np.testing.assert_allclose(edited, donated.output, rtol=1e-12)
    assert np.abs(edited - transformer(tokens).output).max() > 1e-3


def test_an_edit_sees_every_layer_once_and_in_order():
    transformer = random_learner().transformer
    tokens = tokens_of(0)
    hidden = transformer(tokens).hidden

    def edit(depth, h):
        return h + jnp.where(jnp.allclose(h, hidden[:, depth]), 0.0, jnp.nan)

    assert np.all(np.isfinite(transformer.edited(tokens, edit)))


@pytest.mark.parametrize("pre_norm", [True, False])
def test_swapping_before_the_first_layer_or_after_the_last_is_all_or_nothing(pre_norm):
    """The query is the same in both: its embedding carries nothing of the examples."""
    found = interchange(random_learner(pre_norm), draw(1), draw(2), draw_queries())
    moved = found.shift / found.apart[:, None, None]
    *positions, query, examples = range(len(places(N)))
    np.testing.assert_allclose(moved[:, 0, examples], 1, rtol=1e-6)
    np.testing.assert_allclose(moved[:, 0, query], 0, atol=1e-9)
    np.testing.assert_allclose(moved[:, -1, query], 1, rtol=1e-6)
    np.testing.assert_allclose(moved[:, -1, [*positions, examples]], 0, atol=1e-9)
    np.testing.assert_allclose(found.ilwd[:, 0, examples], 0, atol=1e-9)
    unmoved = found.ilwd[:, 0, query]
    np.testing.assert_allclose(unmoved, found.apart, rtol=1e-6)


def test_swapped_weights_are_implied_by_what_is_answered_then():
    """One cell of the map, the slow way: a sequence at a time."""
    learner, layer, position = random_learner(), 1, 3
    data, donors, queries = draw(1), draw(2), draw_queries()
    found = interchange(learner, data, donors, queries)
    run = learner.transformer
    pair = 4
    answers = np.zeros((3, queries.shape[1]))
    for index, query in enumerate(queries[pair]):
        sequences = [
            encode_context(
                jnp.concatenate([each.x[pair], query[None]]).astype(jnp.float64),
                jnp.append(each.y[pair], 0.0).astype(jnp.float64),
            )[None]
            for each in (data, donors)
        ]
        own, other = (run(tokens) for tokens in sequences)
        state = np.array(own.hidden[:, layer])
        state[:, position] = other.hidden[:, layer, position]

        def replaced(depth, h, state=state):
            return jnp.where(depth == layer, state, h)

        answers[:, index] = (
            own.output[0, -1],
            other.output[0, -1],
            run.edited(sequences[0], replaced)[0, -1],
        )
    own, other, swapped = implied_weights(queries[[pair]], answers[None])[0]
    expected = (swapped - own) @ (other - own) / 2
    assert found.shift[pair, layer, position] == pytest.approx(expected, rel=1e-6)
    distance = np.sum((swapped - other) ** 2) / 2
    assert found.ilwd[pair, layer, position] == pytest.approx(distance, rel=1e-6)


def sgd_from(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    for each, label in zip(x, y, strict=True):
        w = w + 2 * ALPHA * (label - w @ each) * each
    return w


def test_swapping_compiled_weights_goes_on_from_the_others_weights():
    """At the query, H⁽¹⁾ and H⁽²⁾ hold w₁, H⁽³⁾ and H⁽⁴⁾ hold w₂."""
    data, donors = draw(1), draw(2)
    found = interchange(compiled(), data, donors, draw_queries())
    query = 2 * N
    for pair in range(6):
        x, y, x_other, y_other = (
            np.asarray(each[pair], np.float64)
            for each in (data.x, data.y, donors.x, donors.y)
        )
        target = sgd_from(np.zeros(2), x_other, y_other)
        for steps, layers in ((1, [1]), (2, [3, 4])):
            start = sgd_from(np.zeros(2), x_other[:steps], y_other[:steps])
            expected = np.sum((sgd_from(start, x[steps:], y[steps:]) - target) ** 2) / 2
            np.testing.assert_allclose(
                found.ilwd[pair, layers, query], expected, atol=1e-7
            )


def test_a_compiled_map_is_dark_where_nothing_is_read_any_more():
    """Layers 1 and 2 read x₁, y₁ and x₂; layer 3 reads y₂ into w₂."""
    moved = patched().maps["moved"].mean
    lit = np.abs(moved) > 1e-6
    x1, y1, x2, y2, query, examples = lit.T
    assert x1.tolist() == y1.tolist() == [True, False, False, False, False]
    assert x2.tolist() == [True, True, False, False, False]
    assert y2.tolist() == [True, True, True, False, False]
    assert query.tolist() == [False, True, True, True, True]
    assert examples.tolist() == [True, True, True, False, False]
    np.testing.assert_allclose(moved[3:, 4], 1, atol=1e-6)
    low, high = (patched().at("moved", 4, "query")[i] for i in (1, 2))
    assert high - low < 1e-6  # a ratio that is 1 in every pair is 1 for sure


def test_a_compiled_answer_follows_what_the_probe_reads():
    result = patched()
    query = 2 * N
    assert np.all(result.maps["error"].mean[3:, query] < 1e-9)
    error = result.maps["error"].mean
    assert np.all(error[0] > 0.5)
    # `pattern` moves the query's own rows too, a little: they correlate by chance.
    for name, near in (("weights", 1e-4), ("pattern", 0.1)):
        slope = result.maps[name].mean
        assert slope[3, query] == pytest.approx(1, abs=near)
        # Nothing to move where nothing is read.
        np.testing.assert_array_equal(np.isnan(slope), error >= READ)
    # y₂ holds w₂ as well, but its copy is not what the query's answer comes from.
    assert result.maps["error"].mean[3, 2 * N - 1] < 1e-9
    assert result.maps["weights"].mean[3, 2 * N - 1] == pytest.approx(0, abs=1e-6)


def test_every_head_and_mlp_is_ablated_once():
    names = [each.first for each in patched().ablations]
    heads = compiled().transformer.layers.w_q.shape[1]
    assert len(set(names)) == len(names) == 4 * (heads + 1)
    assert str(parts_of(compiled())[0]) == names[0] == "layer 1, head 1"
    assert patched().intact.first == "nothing"


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(3, 6))
def test_edits_change_the_reading_by_delta(seed, size, hidden):
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(50, hidden)) * rng.uniform(0.1, 9, hidden) + 3
    values = h @ rng.normal(size=(hidden, size)) + rng.normal(size=(50, size))
    reading = LinearReading.fit(h, values)
    fitted, *_ = np.linalg.lstsq(np.column_stack([h, np.ones(50)]), values)
    expected = np.column_stack([h, np.ones(50)]) @ fitted
    np.testing.assert_allclose(reading(h), expected, atol=1e-8)
    delta = rng.normal(size=(50, size))
    changes = reading.changes(delta, rng)
    for name in ("weights", "pattern"):
        moved = reading(h + changes[name]) - reading(h)
        np.testing.assert_allclose(moved, delta, atol=1e-6)
    lengths = [
        np.linalg.norm(changes[name] / reading.spread, axis=1)
        for name in ("weights", "pattern", "random")
    ]
    np.testing.assert_allclose(lengths[2], lengths[0], rtol=1e-9)
    assert np.all(lengths[0] <= lengths[1] * (1 + 1e-9))  # the smallest


def test_constant_units_are_neither_read_nor_edited():
    rng = np.random.default_rng(0)
    h = np.column_stack([rng.normal(size=(50, 2)), np.full(50, 2.0**31)])
    reading = LinearReading.fit(h, h[:, :1] * 3)
    assert reading.weights[0, 2] == 0
    for change in reading.changes(np.ones((50, 1)), rng).values():
        assert np.all(change[:, 2] == 0)


@pytest.mark.parametrize("part", [Part(1, 0), Part(2, 1), Part(1), Part(2)], ids=str)
@pytest.mark.parametrize("pre_norm", [True, False])
def test_an_ablated_part_gives_its_mean(part, pre_norm):
    """The slow way: the layer's equations, with what the part adds averaged."""
    learner = random_learner(pre_norm)
    data = draw(3, count=5, examples=3)
    x, y = np.asarray(data.x, np.float64), np.asarray(data.y, np.float64)
    left = ablate(learner, part, x, y)
    run = learner.transformer
    hidden = np.asarray(run(encode_context(jnp.asarray(x), jnp.asarray(y))).hidden)
    h = hidden[:, part.layer - 1]
    layer = jax.tree.map(lambda leaf: leaf[part.layer - 1], run.layers)
    block = run.block

    def norm(h):
        centered = h - h.mean(axis=-1, keepdims=True)
        return centered / np.sqrt(centered.var(axis=-1, keepdims=True) + 1e-5)

    read = norm(h) if pre_norm else h
    whole = np.asarray(layer.attention(jnp.asarray(read), block)[0])
    if part.head is None:
        middle = h + whole
        added = np.asarray(layer.feed_forward(jnp.asarray(middle), block)) - middle
        expected = middle + added.mean(axis=(0, 1))
    else:
        without = replace(layer, w_f=layer.w_f.at[part.head].set(0))
        others = np.asarray(without.attention(jnp.asarray(read), block)[0])
        middle = h + others + (whole - others).mean(axis=(0, 1))
        expected = np.asarray(layer.feed_forward(jnp.asarray(middle), block))
    tokens = encode_context(jnp.asarray(x), jnp.asarray(y))
    found = np.asarray(left.transformer(tokens).hidden)
    np.testing.assert_allclose(found[:, part.layer], expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(
        found[:, : part.layer - 1], hidden[:, : part.layer - 1]
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_pairs": 1}, "`num_pairs` must be at least 2, got 1."),
        ({"num_examples": 0}, "`num_examples` must be at least 1, got 0."),
        ({"edit_size": 0.0}, "`edit_size` must be positive, got 0.0."),
        ({"seed": -1}, "`seed` must be at least 0, got -1."),
    ],
    ids=str,
)
def test_unfit_sizes_are_refused(changes, message):
    with refuses(ValueError, message):
        replace(SMALL, **changes)


@pytest.mark.parametrize(
    ("task", "changes", "target", "message"),
    [
        (
            LinearRegression(3),
            {},
            "w_ols",
            "`task` must have the dimension 2 of sgd, got 3.",
        ),
        (
            TASK,
            {"num_examples": 3},
            "w_ols",
            "`num_examples` must be at most 2, the context length of sgd, got 3.",
        ),
        (
            TASK,
            {"num_queries": 1},
            "w_ols",
            "`num_queries` must be at least 2, got 1.",
        ),
    ],
)
def test_what_does_not_fit_the_learner_is_refused(task, changes, target, message):
    with refuses(ValueError, message):
        patch(compiled(), task, replace(SMALL, **changes), target=target)


def test_by_default_a_learner_is_patched_on_its_task_at_the_smoke_budget():
    reports = Reports()
    found = patch(random_learner(), progress=reports)
    assert found.task == repr(NOISY)
    assert found.config == find_budget("smoke").as_dict()
    assert found.num_examples == 3  # 2d do not fit
    assert found.target == "w_ols"
    layers, places, parts = 3, 8, 2 * 3
    assert list(dict.fromkeys(report[0] for report in reports.counts)) == [
        "interchange",
        "edits",
        "ablations",
    ]
    assert reports.of("interchange")[-1] == (8 * 8 * layers, 8 * 8 * layers)
    steps = layers * places
    assert reports.of("edits") == [(n, steps) for n in range(1, steps + 1)]
    assert reports.of("ablations") == [(n, parts + 1) for n in range(1, parts + 2)]


def test_an_unknown_budget_is_refused():
    with refuses(ValueError, "`budget` must be one of smoke, cpu, got 'paper'."):
        patch(random_learner(), budget="paper")


def test_a_target_that_is_not_weights_is_refused():
    with refuses(
        ValueError,
        "`target gram` must have one component per dimension of x, 2, got 4.",
    ):
        patch(random_learner(), TASK, SMALL, target="gram")
