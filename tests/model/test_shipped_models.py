"""Every shipped model reloads and measures what its card says."""

import numpy as np
import pytest

from algoscope.comparison.metrics import squared_prediction_difference
from algoscope.comparison.predict import held_out, predict_all, predict_exactly
from algoscope.comparison.result import Comparison
from algoscope.foundation.files import load_arrays, read_json
from algoscope.model.checkpoints import MODELS, shipped_models
from algoscope.model.learner import InContextLearner
from algoscope.predictors import ols
from algoscope.training.config import PRESETS, TrainingConfig
from algoscope.training.loop import task_of

pytestmark = pytest.mark.optimized  # Computes for longer than it compiles.

PRESET_OF = {
    "control-d4": "control-d4",
    "linear-d1": "d1",
    "linear-d2": "d2",
    "linear-d20": "d20",
    "linear-d4": "d4",
    "linear-d8": "d8",
    "linear-d8-broad": "d8-broad",
}
QUICK = ("linear-d1", "linear-d2", "linear-d8")  # to measure; others are slow
each_model = pytest.mark.parametrize("name", shipped_models())


def test_the_promised_models_ship_and_are_small():
    assert shipped_models() == sorted(PRESET_OF)
    size = sum(path.stat().st_size for path in MODELS.rglob("*") if path.is_file())
    assert size <= 20 * 2**20


@each_model
def test_it_was_trained_by_its_preset(name):
    config = read_json(MODELS / name / "config.json")
    trained = TrainingConfig.from_dict(config["training"])
    assert trained == PRESETS[PRESET_OF[name]]
    assert config["run_id"] == trained.run_id
    last = (MODELS / name / "metrics.jsonl").read_text().splitlines()[-1]
    assert f'"step": {config["training"]["steps"]}' in last


@pytest.mark.usefixtures("default_settings")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in shipped_models()
    ],
)
def test_its_card_tells_what_it_measures_today(name):
    """On the card's own datasets, with an allowance for the rounding of others."""
    saved = Comparison.load(MODELS / name / "evaluation.json")
    config = TrainingConfig(**read_json(MODELS / name / "config.json")["training"])
    learner = InContextLearner.from_pretrained(name)
    x, y = held_out(
        task_of(config),
        num_datasets=saved.num_datasets,
        num_examples=config.num_examples,
        seed=saved.seed,
    )
    spd = squared_prediction_difference(
        predict_all(learner, x, y), predict_exactly(ols, x, y), config.dim
    )
    assert np.allclose(
        spd.mean(axis=0), saved.against("OLS").mean, rtol=0.02, atol=1e-6
    )


@each_model
def test_its_card_shows_its_evaluation(name):
    saved = Comparison.load(MODELS / name / "evaluation.json")
    assert saved.num_examples == InContextLearner.from_pretrained(name).max_examples
    card = (MODELS / name / "README.md").read_text()
    assert all(f"| {mean:.2e} |" in card for mean in saved.against("OLS").mean)


@each_model
def test_its_weights_are_whole(name):
    arrays, metadata = load_arrays(MODELS / name / "model.safetensors")
    assert metadata == {"format": "algoscope"}
    assert all(np.all(np.isfinite(array)) for array in arrays.values())


def test_the_d8_model_is_least_squares():
    """The paper's headline: SPD(OLS, ICL)/d < 0.01 for almost every n."""
    saved = Comparison.load(MODELS / "linear-d8" / "evaluation.json")
    curve = np.array(saved.against("OLS").mean)
    assert saved.num_datasets == 10_000
    assert curve[1:21].mean() <= 0.004
    assert all(curve[n] <= 0.01 for n in range(1, 21) if n != 8)
    assert all(curve[n] <= 0.001 for n in range(16, 21))


def test_the_d4_model_is_least_squares():
    saved = Comparison.load(MODELS / "linear-d4" / "evaluation.json")
    assert np.mean(saved.against("OLS").mean[1:]) <= 0.002
