"""A configuration refuses bad values at once and names itself."""

import hashlib
import json
from dataclasses import asdict, fields, replace

import pytest
from support.refusals import refuses

from algoscope.foundation.files import read_json
from algoscope.model.checkpoints import locate
from algoscope.model.transformer import random_transformer
from algoscope.training.config import ADDED, PRESETS, TrainingConfig, preset


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"task": "logistic"},
            "`task` must be one of linear, control, broad, got 'logistic'.",
        ),
        (
            {"block": "pre_nrom"},
            "`block` must be one of pre_norm, paper, got 'pre_nrom'. "
            "Did you mean 'pre_norm'?",
        ),
        (
            {"activation": "gelu_tan"},
            "`activation` must be one of gelu, gelu_tanh, relu, tanh, silu, softplus, "
            "sigmoid, squared_relu, got 'gelu_tan'. Did you mean 'gelu_tanh'?",
        ),
        (
            {"initialization": "zeros"},
            "`initialization` must be one of uniform_scaling, normal, got 'zeros'.",
        ),
        ({"recipe": "adam"}, "`recipe` must be one of fast, paper, got 'adam'."),
        ({"dim": 0}, "`dim` must be at least 1, got 0."),
        (
            {"num_examples": 1},
            "`num_examples` must be at least 2, got 1. "
            "The first has no examples before it.",
        ),
        ({"steps": 0}, "`steps` must be at least 1, got 0."),
        (
            {"hidden_size": 10**6, "num_heads": 1, "num_layers": 2, "num_examples": 2},
            "`hidden_size` must leave at most 10,000,000,000 parameters, got 1000000, "
            "which makes 24,000,031,000,001.",
        ),
        ({"seed": -1}, "`seed` must be at least 0, got -1."),
        ({"prior_variance": 0.0}, "`prior_variance` must be positive, got 0.0."),
        ({"noise_variance": -0.1}, "`noise_variance` must not be negative, got -0.1."),
        ({"learning_rate": float("nan")}, "`learning_rate` must be positive, got nan."),
        ({"warmup": 1.0}, "`warmup` must be below 1, got 1.0."),
        ({"num_heads": 3}, "`num_heads` must divide `hidden_size` 64, got 3."),
        (
            {"save_every": 70},
            "`save_every` must be a multiple of `steps_per_call` 50, got 70.",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_values_are_refused(change, message):
    with refuses(ValueError, message):
        TrainingConfig(**change)


def test_the_run_id_depends_on_every_field_and_on_nothing_else():
    config = TrainingConfig()
    assert TrainingConfig().run_id == config.run_id
    changes = {
        "task": "control",
        "block": "paper",
        "activation": "relu",
        "initialization": "normal",
        "recipe": "paper",
        "loss_weights": "risk",
        "decay": "linear",
        "curriculum": True,
        "clip": 0.5,
        "warmup": 0.1,
        "start": "0123456789abcdef",
    }
    ids = {config.run_id}
    for name, value in asdict(config).items():
        other = changes.get(name, 0.5 if isinstance(value, float) else 2 * (value or 1))
        if name in ("steps_per_call", "evaluate_every", "save_every"):
            other = {"steps_per_call": 25}.get(name, 1000)
        ids.add(replace(config, **{name: other}).run_id)
    assert len(ids) == 1 + len(asdict(config))


def test_a_configuration_survives_a_dictionary_and_foreign_ones_are_refused():
    config = preset("d4")
    assert TrainingConfig.from_dict(asdict(config)) == config
    with pytest.raises(ValueError, match="must hold the fields of a TrainingConfig"):
        TrainingConfig.from_dict({**asdict(config), "depth": 3})
    with pytest.raises(TypeError, match="`training` must be an object, got None"):
        TrainingConfig.from_dict(None)


def test_a_configuration_without_an_added_field_is_the_run_that_it_was():
    saved = read_json(locate("control-d4") / "config.json")
    old = {k: v for k, v in saved["training"].items() if k not in ADDED}
    config = TrainingConfig.from_dict(old)
    assert (config.loss_weights, config.decay) == ("equal", "cosine")
    assert config.run_id == saved["run_id"]
    text = json.dumps(old, sort_keys=True)
    assert config.run_id == hashlib.sha256(text.encode()).hexdigest()[:12]
    assert replace(config, loss_weights="risk").run_id != config.run_id


def test_every_field_has_a_sentence_for_the_command_line():
    for each in fields(TrainingConfig):
        assert each.metadata["help"].endswith("."), each.name


def test_an_unknown_preset_suggests_the_nearest():
    with pytest.raises(ValueError, match="got 'dmeo'. Did you mean 'demo'?"):
        preset("dmeo")


@pytest.mark.parametrize("name", ["demo", "d1", "d8"])
def test_the_number_of_parameters_is_what_the_transformer_has(name):
    config = PRESETS[name]
    transformer = random_transformer(
        0,
        token_size=config.dim + 1,
        max_time=config.num_tokens,
        num_layers=config.num_layers,
        hidden_size=config.hidden_size,
        num_heads=config.num_heads,
    )
    assert transformer.num_parameters == config.num_parameters


def test_the_paper_preset_is_the_papers():
    paper = preset("paper")
    assert (paper.num_layers, paper.hidden_size, paper.num_heads) == (16, 512, 4)
    assert (paper.steps, paper.batch_size, paper.num_examples) == (500_000, 64, 40)
    assert (paper.recipe, paper.block, paper.warmup) == ("paper", "paper", 0.2)
