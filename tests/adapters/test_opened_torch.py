"""Opened torch modules, against the same transformer in JAX, and against misuse."""

import re
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import refused, refuses
from support.torch_present import require

torch = require()

from support.torch_twin import Twin  # noqa: E402

from algoscope.adapters import OpenedModule  # noqa: E402
from algoscope.layerwise import LayersConfig, layers  # noqa: E402
from algoscope.model.layer import Block  # noqa: E402
from algoscope.model.learner import InContextLearner  # noqa: E402
from algoscope.model.opened import Add, OpenedLearner, Swap  # noqa: E402
from algoscope.model.transformer import random_transformer  # noqa: E402
from algoscope.patching import PatchingConfig, PatchingResult, patch  # noqa: E402
from algoscope.predictors import BlackBox, PredictorFailedError, Question  # noqa: E402
from algoscope.probing import ProbingConfig, probe  # noqa: E402
from algoscope.tasks.linear import LinearRegression  # noqa: E402

PROBING = ProbingConfig(
    prefixes=(1, 3),
    places=("learned", "query", "all"),
    inner_size=4,
    num_training=128,
    num_learned=64,
    repeats=1,
)
PATCHING = PatchingConfig(
    num_examples=2, num_pairs=4, num_training=64, num_edits=8, num_ablation_datasets=8
)


@cache
def ours() -> InContextLearner:
    """Return a learner in float64 for up to four examples, d = 2."""
    block = Block(pre_norm=True, attention_scale=0.5)
    model = random_transformer(
        5,
        token_size=3,
        max_time=10,
        num_layers=2,
        hidden_size=8,
        num_heads=2,
        block=block,
        dtype="float64",
    )
    return InContextLearner(model, "ours")


def opened(**choices) -> OpenedModule:
    twin = Twin(
        ours(), **{k: choices.pop(k) for k in ("all_tokens", "tuples") if k in choices}
    )
    options = {"max_examples": 4, "name": "ours"} | choices
    return OpenedModule(twin, 2, options.pop("layers", "layers"), **options)


def data(rng: np.random.Generator, count: int = 5, examples: int = 4):
    return rng.normal(size=(count, examples, 2)), rng.normal(size=(count, examples))


FORMS = [{}, {"all_tokens": True}, {"tuples": True}, {"batch_size": 2}]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_states_and_predictions_are_those_of_the_same_weights_in_jax(form, rng):
    x, y = data(rng)
    learner = opened(**form)
    assert isinstance(learner, OpenedLearner)
    assert isinstance(learner, BlackBox)
    states = ours().hidden_states(x, y)
    assert learner.hidden_size == states.shape[-1]
    np.testing.assert_allclose(learner.hidden_states(x, y), states, atol=1e-12)
    expected = jax.vmap(ours().predict_prefixes)(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(learner.predict(x, y), expected, atol=1e-12)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_every_kind_of_edit_has_the_same_effect_as_in_jax(form, layer, rng):
    x, y = data(rng)
    learner, mask = opened(**form), np.arange(7) % 3 == 0
    edits = [
        Swap(rng.normal(size=(5, 7, 8)), mask),
        Add(rng.normal(size=(5, 8)), mask),
        lambda h: h[::-1] * 2,  # mixes the datasets
    ]
    intact = learner.predict(x, y)
    for edit in edits:
        found = learner.predict_edited(x, y, layer, edit)
        expected = ours().predict_edited(x, y, layer, edit)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert np.abs(found - intact).max() > 1e-3


def assert_same_probes_and_patches(
    opened: OpenedModule,
    learner: InContextLearner,
    probing: ProbingConfig | str,
    patching: PatchingConfig | str,
) -> PatchingResult:
    """Compare both with JAX, and return the patching result of the module."""
    found, expected = (probe(each, budget=probing) for each in (opened, learner))
    for mine, theirs in zip(found.measurements, expected.measurements, strict=True):
        np.testing.assert_allclose(mine.error, theirs.error, atol=1e-5, rtol=1e-5)
    result, expected = (patch(each, budget=patching) for each in (opened, learner))
    for name, each in expected.maps.items():
        np.testing.assert_allclose(result.maps[name].mean, each.mean, atol=1e-5)
    assert result.intact.mean == pytest.approx(expected.intact.mean, abs=1e-9)
    return result


def test_probes_have_the_same_errors_and_patches_the_same_map_as_in_jax():
    result = assert_same_probes_and_patches(opened(), ours(), PROBING, PATCHING)
    assert result.ablations == ()
    assert "its heads are not known and not ablated" in result.sentence
    words = [text.get_text() for text in result.plot().axes[5].texts]
    assert "no ablations: heads are not known" in words[0]


def test_read_outs_are_the_same_as_in_jax():
    config = LayersConfig(num_training=60, num_test=20, num_implied=4)
    found, expected = (layers(each, config=config) for each in (opened(), ours()))
    np.testing.assert_allclose(found.risk, expected.risk, rtol=1e-6)
    np.testing.assert_allclose(found.spd, expected.spd, rtol=1e-6)
    for name in expected.algorithms:
        assert found.steps(name) == expected.steps(name)
    assert found.controls == ("ours, shuffled",)


@pytest.mark.slow
@pytest.mark.optimized
def test_a_trained_learner_is_the_same_in_torch_and_in_jax():
    trained = InContextLearner.from_pretrained("linear-d1")
    exact = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), trained.transformer)
    learner = InContextLearner(exact, trained.name, task=trained.task)
    room = learner.max_examples
    twin = OpenedModule(Twin(learner), 1, "layers", name="linear-d1", max_examples=room)
    assert_same_probes_and_patches(twin, learner, "smoke", "smoke")


def test_it_answers_questions_as_a_black_box(rng):
    x, y = data(rng, 1)
    queries = rng.normal(size=(3, 2))
    (answers,) = opened().answers([Question(x[0], y[0], queries)])
    known = jnp.asarray(x[0]), jnp.asarray(y[0])
    expected = [ours()(*known, jnp.asarray(query)) for query in queries]
    np.testing.assert_allclose(answers, expected, atol=1e-12)


def test_the_mode_and_the_hooks_are_as_before_whatever_happens(rng):
    learner = opened()
    learner.module.train()
    learner.module.layers[0].eval()
    modes = [part.training for part in learner.module.modules()]
    x, y = data(rng)

    def fail(h):
        raise RuntimeError("no")

    learner.hidden_states(x, y)
    with pytest.raises(PredictorFailedError, match="failed on 3 examples with Runtime"):
        learner.predict_edited(x, y, 1, fail)
    assert [part.training for part in learner.module.modules()] == modes
    for part in learner.module.modules():
        assert not part._forward_hooks
        assert not part._forward_pre_hooks


def test_the_digest_differs_where_weights_do():
    first, second = opened(), opened()
    assert first.digest == second.digest
    with torch.no_grad():
        second.module.w_o[0] += 1e-12
    assert first.digest != second.digest


def test_a_shuffled_control_has_the_same_weights_in_another_order(rng):
    learner = opened()
    other = learner.shuffled(1)
    assert other.name == "ours, shuffled"
    pairs = zip(learner.module.parameters(), other.module.parameters(), strict=True)
    for mine, theirs in pairs:
        assert torch.equal(mine.flatten().sort()[0], theirs.flatten().sort()[0])
    x, y = data(rng)
    assert np.abs(other.predict(x, y) - learner.predict(x, y)).max() > 1e-3
    np.testing.assert_array_equal(learner.predict(x, y), opened().predict(x, y))


# Misuse.


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"layers": "layer"},
            "`layers` must be the path of a part of Twin, got 'layer'. Did you mean "
            "'layers'?",
        ),
        (
            {"layers": "layers.0"},
            "`layers` must be the path of a ModuleList or Sequential, or a list of "
            "paths, got 'layers.0', which is a TwinLayer. Did you mean 'layers'?",
        ),
        ({"layers": []}, "`layers` must name at least one block, got []."),
        (
            {"layers": ["layers.0", "layers.0"]},
            "`layers` must name no block twice, got layers.0.",
        ),
        (
            {"dtype": "int32"},
            "`dtype` must be one of float32, float64, bfloat16, float16, got 'int32'.",
        ),
        ({"task": LinearRegression(3)}, "`task` must have the dimension 2, got 3."),
        ({"max_examples": 0}, "`max_examples` must be at least 1, got 0."),
        ({"batch_size": 0}, "`batch_size` must be at least 1, got 0."),
    ],
    ids=str,
)
def test_unfit_choices_are_refused(choices, message):
    with refuses(ValueError, message):
        opened(**choices)


def test_what_is_no_module_is_refused_and_so_are_weights_without_values():
    with refuses(TypeError, "`module` must be a torch.nn.Module, got 3."):
        OpenedModule(3, 2, "layers")  # pyright: ignore[reportArgumentType]
    with refused("module", "hold weights, on a device that computes, got weights on"):
        OpenedModule(Twin(ours()).to("meta"), 2, "layers")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((2, 6, 2), (2, 6), "`x` must hold at most 4 examples before a query, got 5."),
        (
            (2, 3, 1),
            (2, 3),
            "`x` must have shape (datasets, examples, 2), none of them "
            "0, got shape (2, 3, 1).",
        ),
        (
            (2, 3, 2),
            (2, 4),
            "`y` must have shape (2, 3), one label per example, got shape (2, 4).",
        ),
    ],
    ids=str,
)
def test_unfit_datasets_are_refused(x, y, message):
    for learner in (opened(), ours()):
        with refuses(ValueError, message):
            learner.hidden_states(np.zeros(x), np.zeros(y))
        with refuses(ValueError, message):
            learner.predict_edited(np.zeros(x), np.zeros(y), 1, lambda h: h)


@pytest.mark.parametrize("kind", ["torch", "jax"])
def test_unfit_edits_and_layers_are_refused(kind, rng):
    learner = opened() if kind == "torch" else ours()
    x, y = data(rng)
    with refused("edit", "keep the shape (5, 7, 8) and the dtype float64 of the"):
        learner.predict_edited(x, y, 1, lambda h: h[:, :-1])
    with refused("edit", "keep the shape (5, 7, 8) and the dtype float64 of the"):
        learner.predict_edited(x, y, 1, lambda h: h.astype(np.float32))
    with refuses(ValueError, "`layer` must be at most 2, the depth, got 3."):
        learner.predict_edited(x, y, 3, lambda h: h)
    with refuses(ValueError, "`y` must be finite, got NaN or infinity."):
        learner.hidden_states(x, np.full(y.shape, np.nan))


def broken(change) -> OpenedModule:
    """Return a learner whose second block returns something else."""
    learner = opened()
    block = learner.module.layers[1]
    block.forward = lambda h, run=block.forward: change(run(h))
    return learner


@pytest.mark.parametrize(
    ("change", "name", "text"),
    [
        (lambda h: h[:, :, 0], "layers", "name blocks that return a residual stream"),
        (lambda h: h.transpose(0, 1), "layers", "name blocks that return a residual"),
        (
            lambda h: h[..., :4],
            "layers",
            "name blocks that all keep the shape (5, 7, 8)",
        ),
        (lambda h: {"h": h}, "layers", "name blocks that return a residual stream"),
        (lambda h: h * np.nan, "hidden states after 'layers.1", "be finite, got NaN"),
    ],
)
def test_blocks_that_return_no_residual_stream_are_refused(change, name, text, rng):
    start = re.escape(f"`{name}") + r"'?` must " + re.escape(text)
    with pytest.raises(ValueError, match=start):
        broken(change).hidden_states(*data(rng))


def test_blocks_that_run_twice_or_never_or_in_another_order_are_refused(rng):
    x, y = data(rng)
    twice = opened(forward=lambda module, x, y: module(x, y) + module(x, y))
    with refused("layers", "name blocks that run once per prediction, in their order"):
        twice.hidden_states(x, y)
    turned = opened(layers=["layers.1", "layers.0"])
    with refused("layers", "name blocks that run once per prediction, in their order"):
        turned.hidden_states(x, y)
    never = opened(forward=lambda module, x, y: y)
    with refused("layers", "name blocks that every prediction runs through"):
        never.predict_edited(x, y, 1, lambda h: h)


def test_predictions_of_another_shape_and_failures_are_told(rng):
    x, y = data(rng)
    with refuses(
        ValueError,
        "`forward` must return a tensor of shape (5, 4), a prediction for every x, got "
        "shape (5,).",
    ):
        opened(forward=lambda module, x, y: module(x, y)[:, 0]).hidden_states(x, y)
    longer = opened(max_examples=9)  # than its positions
    with pytest.raises(PredictorFailedError, match="`max_examples` says how many"):
        longer.hidden_states(*data(rng, 2, 9))


def test_a_failure_in_the_middle_of_probing_is_raised_not_waited_for():
    calls = []

    def predict(module, x, y):
        calls.append(len(x))
        if len(calls) > 3:
            raise RuntimeError("out of memory")
        return module(x, y)

    with pytest.raises(PredictorFailedError, match="RuntimeError: out of memory"):
        probe(opened(forward=predict), budget=PROBING, floors=False)


def test_a_gpt2_of_transformers_is_probed_and_patched(rng):
    transformers = require("transformers")
    config = transformers.GPT2Config(
        n_embd=16, n_layer=2, n_head=2, n_positions=16, vocab_size=2
    )

    class Learner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.read_in = torch.nn.Linear(2, 16)
            self.backbone = transformers.GPT2Model(config)
            self.read_out = torch.nn.Linear(16, 1)

        def forward(self, x, y):
            pairs = torch.stack([x, y[..., None] * torch.ones_like(x)], 2).flatten(1, 2)
            h = self.backbone(inputs_embeds=self.read_in(pairs.repeat(1, 1, 2)))
            return self.read_out(h.last_hidden_state)[:, ::2, 0]

    torch.manual_seed(0)
    learner = OpenedModule(Learner(), 1, "backbone.h", max_examples=7, name="gpt2")
    assert learner.num_layers == 2
    assert learner.hidden_size == 16
    x = rng.normal(size=(3, 4, 1)).astype(np.float32)
    states = learner.hidden_states(x, x[..., 0])
    assert states.shape == (3, 3, 7, 16)
    assert states.dtype == np.float32
    few = replace(PROBING, kinds=("linear",), places=("query", "all"))
    found = probe(learner, budget=few, targets=["w_ols"], floors=False)
    assert all(np.all(np.isfinite(each.error)) for each in found.measurements)
    result = patch(learner, budget=PATCHING)
    moved = result.maps["moved"].mean
    assert moved[0, result.places.index("examples")] == pytest.approx(1, abs=1e-3)
    assert moved[-1, result.places.index("query")] == pytest.approx(1, abs=1e-3)


def exported(learner: InContextLearner, directory) -> OpenedModule:
    """Return an exported learner, opened without a word on what it is."""
    from algoscope.adapters.torch import from_torch
    from algoscope.exchange import export
    from algoscope.foundation.user_code import import_object

    address = f"{export(learner, directory)}/model.py:load"
    return from_torch(import_object("model", "", address)(directory), layers="layers")


def test_heads_and_mlps_of_an_exported_learner_are_ablated_as_in_jax(rng, tmp_path):
    from algoscope.comparison.predict import predict_all
    from algoscope.patching.ablations import ablate_each

    learner, module = ours(), exported(ours(), tmp_path)
    assert (module.dim, module.max_examples) == (2, 4)
    x, y = rng.normal(size=(300, 4, 2)), rng.normal(size=(300, 4))
    found = dict(module.predict_without_each(x, y))
    expected = {
        part: predict_all(left, x, y) for part, left in ablate_each(learner, x, y)
    }
    assert list(found) == list(expected) == list(module.parts)
    for part, predictions in expected.items():
        np.testing.assert_allclose(found[part], predictions, rtol=0, atol=1e-9)
    intact = module.predict(x, y)
    assert all(np.abs(each - intact).max() > 1e-3 for each in found.values())
    np.testing.assert_array_equal(module.predict(x, y), intact)  # no hook is left


def test_heads_of_a_gpt2_are_known_and_those_of_other_modules_are_not(rng):
    transformers = require("transformers")

    class Gpt2(torch.nn.Module):
        def __init__(self):
            super().__init__()
            sizes = {"n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2}
            config = transformers.GPT2Config(**sizes, vocab_size=3, use_cache=False)
            self.backbone = transformers.GPT2Model(config)

        def forward(self, x, y):
            tokens = torch.stack([x.repeat(1, 1, 4), y[..., None].expand(-1, -1, 8)], 2)
            states = self.backbone(inputs_embeds=tokens.flatten(1, 2))
            return states.last_hidden_state[:, ::2, 0]

    torch.manual_seed(0)
    module = OpenedModule(Gpt2(), dim=2, layers="backbone.h", max_examples=7)
    assert [str(part) for part in module.parts[:3]] == [
        "layer 1, head 1",
        "layer 1, head 2",
        "layer 1, MLP",
    ]
    x, y = rng.normal(size=(5, 3, 2)), rng.normal(size=(5, 3))
    found = dict(module.predict_without_each(x, y))
    intact = module.predict(x, y)
    assert all(np.abs(each - intact).max() > 1e-6 for each in found.values())
    result = patch(module, budget=PATCHING, progress=False)
    assert len(result.ablations) == len(module.parts) == 6
    assert opened().parts == ()
