"""Probes find what is there and where it is, and say so with controls (paper §5)."""

import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.learners import small_learner
from support.progress import Reports
from support.refusals import refused, refuses

from algoscope.comparison.predict import draw_datasets
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError
from algoscope.model.tokens import encode_context
from algoscope.predictors import sgd
from algoscope.probing import (
    BUDGETS,
    ProbeTarget,
    ProbingConfig,
    ProbingResult,
    estimate_cost,
    find_budget,
    probe,
    untrained,
    weights_of,
)
from algoscope.probing.config import Kind
from algoscope.probing.probes import (
    Fitted,
    fit_least_squares,
    initial_probes,
    random_probe,
    scales,
    train_probes,
    variance,
)
from algoscope.probing.states import StateSplit, hidden_states, standardize
from algoscope.probing.targets import TargetSplit, find_targets, target_values
from algoscope.tasks.linear import LinearRegression

TASK = LinearRegression(dim=2)

TINY = ProbingConfig(
    kinds=("linear",),
    prefixes=(1, 2),
    value_size=4,
    inner_size=4,
    learning_rate=1e-2,
    steps=20,
    batch_size=8,
    num_training=32,
    num_test=16,
    repeats=2,
    layers_per_call=1,
)


def numpy_targets(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> dict:
    """Return every named target after n examples, from its definition."""
    dim = x.shape[1]
    before = np.linalg.pinv(x[:-1]) @ y[:-1]
    return {
        "moment": x.T @ y,
        "gram": (x.T @ x).ravel(),
        "w_ols": np.linalg.pinv(x) @ y,
        "w_ridge": np.linalg.solve(x.T @ x + 0.1 * np.eye(dim), x.T @ y),
        "residual": [y[-1] - before @ x[-1]],
        "w": w,
    }


@pytest.mark.parametrize(
    "name", ["moment", "gram", "w_ols", "w_ridge", "residual", "w"]
)
def test_targets_are_those_of_numpy_after_every_prefix(name: str):
    task = LinearRegression(dim=3, noise_variance=0.25)
    data = draw_datasets(task, num_datasets=2, num_examples=6, seed=0, fold=1)
    prefixes = (1, 2, 3, 4, 5, 6)
    values = target_values(find_targets([name])[0], data, prefixes)
    assert values.dtype == np.float64
    x, y, w = (np.asarray(part, np.float64) for part in (data.x, data.y, data.w))
    for i in range(2):
        for k, n in enumerate(prefixes):
            exact = numpy_targets(x[i, :n], y[i, :n], w[i])[name]
            np.testing.assert_allclose(values[i, k], exact, rtol=1e-7, atol=1e-9)


def test_a_user_names_a_function_or_a_linear_algorithm():
    data = draw_datasets(TASK, num_datasets=3, num_examples=4, seed=0, fold=1)
    total = ProbeTarget.of_examples(
        "Σy", lambda x, y: jnp.cumsum(jnp.concatenate([jnp.zeros(1), y]))[:, None]
    )
    values = target_values(total, data, (3,))
    np.testing.assert_allclose(values[:, 0, 0], np.sum(data.y[:, :3], axis=1), 1e-6)
    assert weights_of(sgd(0.05)).name == "w of SGD(0.05)"


def test_unfit_targets_are_refused():
    data = draw_datasets(TASK, num_datasets=1, num_examples=4, seed=0, fold=1)
    with refuses(
        InvalidValueError,
        "`target` must be one of moment, w_ols, gram, w_ridge, residual, w, "
        "got 'w_old'. Did you mean 'w_ols'?",
    ):
        find_targets(["w_old"])
    assert find_targets(["sgd(0.05)"])[0].name == weights_of(sgd(0.05)).name
    with refuses(
        InvalidValueError,
        "`target` must be the name of a target or a linear algorithm such as "
        "sgd(0.05), got knn(3).",
    ):
        find_targets(["knn(3)"])
    with refused("targets", "name at least one target, and no target twice, got w, w"):
        find_targets(["w", "w"])
    with refused("targets", "name at least one target, and no target twice, got none"):
        find_targets([])
    short = ProbeTarget.of_examples("x", lambda x, y: x)
    with pytest.raises(InvalidValueError, match="must give 5 rows from 4 examples"):
        target_values(short, data, (1,))
    endless = ProbeTarget("∞", lambda data: jnp.full((5, 1), jnp.inf))
    with pytest.raises(InvalidValueError, match="must be finite after every prefix"):
        target_values(endless, data, (1,))


def test_hidden_states_are_the_forward_pass_of_the_layers_asked():
    learner = small_learner()
    data = draw_datasets(TASK, num_datasets=5, num_examples=3, seed=0, fold=1)
    found = hidden_states(learner, data, (0, 2))
    exact = learner.transformer(encode_context(data.x, data.y)).hidden
    assert found.shape == (2, 5, 5, 4)
    np.testing.assert_allclose(found[1], exact[:, 2], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[0], exact[:, 0], rtol=1e-5, atol=1e-6)


def test_units_are_standardized_and_constant_ones_vanish(rng):
    raw = rng.normal(3, 5, (1, 200, 4, 3))
    raw[..., 1] = 2.0**31 + 1e-7 * rng.normal(size=(1, 200, 4))  # rounds to a few ulps
    raw[..., 2] = 7
    other = rng.normal(3, 5, (1, 50, 4, 3))
    scaled = standardize(raw, other)
    assert scaled.training.dtype == np.float32
    assert np.all(scaled.training[..., 1:] == 0)
    assert np.all(scaled.test[..., 1:] == 0)
    assert abs(scaled.training[..., 0].mean()) < 1e-6
    assert abs(scaled.training[..., 0].std() - 1) < 1e-6
    mean, deviation = raw[..., 0].mean(), raw[..., 0].std()
    np.testing.assert_allclose(
        scaled.test[..., 0], (other[..., 0] - mean) / deviation, rtol=1e-4, atol=1e-6
    )


def test_training_and_test_datasets_differ_and_repeat():
    same = {"num_datasets": 2, "num_examples": 2, "seed": 1}
    one, two, again = (draw_datasets(TASK, **same, fold=f) for f in (1, 2, 1))
    assert not np.any(one.x == two.x)
    assert np.array_equal(one.x, again.x)


def planted(rng: np.random.Generator, layers: int = 1, time: int = 5):
    """Return states, and targets that are linear in position 3, unseen before."""
    h = rng.normal(size=(layers, 640, time, 4)).astype(np.float32)
    matrix = rng.normal(size=(4, 2))
    values = (h[-1, :, 3] @ matrix).astype(np.float64)
    both = np.stack([values, values], axis=1)
    states = StateSplit(h[:, :512], h[:, 512:])
    return states, TargetSplit(both[:512], both[512:])


def fit(
    states: StateSplit,
    targets: TargetSplit,
    config: ProbingConfig,
    kind: Kind = "linear",
) -> Fitted:
    layers = tuple(range(len(states.training)))
    sizes = {"hidden_size": 4, "target_size": targets.training.shape[2]}
    probes = initial_probes(kind, config, layers=layers, **sizes, seed=0)
    return train_probes(probes, states, targets, config, seed=0)


LONGER = replace(TINY, steps=100, batch_size=64, inner_size=32, value_size=8)


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_a_probe_recovers_what_was_planted_and_looks_there(kind: Kind, rng):
    states, targets = planted(rng)
    error, alpha = fit(states, targets, replace(LONGER, steps=600), kind)
    relative = error / variance(targets)
    assert relative[0, 1] < 0.02  # n = 2 sees the positions 0, …, 4
    assert alpha[0, 1, 3] > 0.85
    assert np.argmax(alpha[0, 1]) == 3
    assert relative[0, 0] > 0.9  # n = 1 sees 0, 1, 2: nothing is there
    np.testing.assert_allclose(alpha.sum(axis=2), 1, rtol=1e-5)
    assert np.all(alpha[0, 0, 3:] == 0)


def test_the_average_may_be_taken_before_or_after_w_v(rng):
    sizes = {"hidden_size": 3, "value_size": 6, "inner_size": 5, "target_size": 2}
    made = random_probe(rng, "mlp", time=5, **sizes)
    h = jnp.asarray(rng.normal(size=(2, 5, 3)).astype(np.float32))
    alpha = np.exp(np.asarray(made.scores))[:3] / 3
    read = np.einsum("t,btv->bv", alpha, np.asarray(h[:, :3] @ made.w_v.T))
    assert made.w_inner is not None
    inner = jax.nn.gelu(jnp.asarray(read) @ made.w_inner.T, approximate=False)
    found = made(h, jnp.asarray(2))
    np.testing.assert_allclose(found, inner @ made.w_out.T, rtol=1e-4, atol=1e-6)


def test_later_positions_are_masked(rng):
    states, targets = planted(rng)
    before = fit(states, targets, LONGER)
    changed = StateSplit(states.training.copy(), states.test.copy())
    for part in changed:
        part[:, :, 3:] = rng.normal(size=part[:, :, 3:].shape)
    after = fit(changed, targets, LONGER)
    assert np.array_equal(before.error[:, 0], after.error[:, 0])  # n = 1
    assert np.array_equal(before.attention[:, 0], after.attention[:, 0])
    assert not np.array_equal(before.error[:, 1], after.error[:, 1])


def test_probes_trained_together_are_those_trained_alone(rng):
    kind: Kind = "mlp"
    states, targets = planted(rng, layers=2)
    together = fit(states, targets, LONGER, kind)
    layer, prefix = 1, 1
    alone_config = replace(LONGER, prefixes=(2,))
    probes = initial_probes(
        kind, alone_config, layers=(layer,), hidden_size=4, target_size=2, seed=0
    )
    alone = train_probes(
        probes,
        StateSplit(*(part[layer : layer + 1] for part in states)),
        TargetSplit(*(part[:, 1:] for part in targets)),
        alone_config,
        seed=0,
    )
    np.testing.assert_allclose(
        alone.error[0, 0], together.error[layer, prefix], rtol=1e-3
    )
    np.testing.assert_allclose(
        alone.attention[0, 0], together.attention[layer, prefix], atol=1e-4
    )


def test_least_squares_is_exact_and_of_one_position(rng):
    states, targets = planted(rng, layers=2)
    error, alpha = fit_least_squares(states, targets, TINY.prefixes)
    relative = error / variance(targets)
    assert relative[1, 1] < 1e-12
    assert alpha[1, 1].tolist() == [0, 0, 0, 1, 0]
    assert np.all(np.abs(relative[0] - 1) < 0.2)  # layer 0 holds none of it
    assert abs(relative[1, 0] - 1) < 0.2  # nor does anything up to position 2
    assert np.all(alpha[:, 0, 3:] == 0)


def test_errors_are_in_the_units_of_the_target(rng):
    states, targets = planted(rng)
    one = fit(states, targets, LONGER)
    larger = fit(states, TargetSplit(*(8 * part + 3 for part in targets)), LONGER)
    np.testing.assert_allclose(larger.error, 64 * one.error, rtol=1e-4)
    assert np.all(scales(np.ones((4, 2, 1))) == 1)  # a constant target divides by 1


def files_of(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in directory.iterdir()}


def same(one: ProbingResult, two: ProbingResult) -> bool:
    pairs = zip(one.measurements, two.measurements, strict=True)
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for a, b in pairs
        for name in ("error", "variance", "attention")
    )


def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path):
    learner, control = small_learner(), small_learner(1, "control")
    whole = probe(learner, TASK, TINY, controls=[control])

    def interrupt(stage: str, done: int, total: int | None, note: str = "") -> None:
        assert stage == "probing small"
        if total is not None and done > total // 3:
            raise KeyboardInterrupt

    both = {"controls": [control], "directory": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        probe(learner, TASK, TINY, **both, progress=interrupt)
    finished = files_of(tmp_path)
    assert 0 < len(finished) < 2 * 2 * 2 * 3  # learners, repeats, targets, layers
    reports = Reports()
    resumed = probe(learner, TASK, TINY, **both, progress=reports)
    assert same(whole, resumed)
    assert {**files_of(tmp_path), **finished} == files_of(tmp_path)  # none rewritten
    parts = 2 * 2 * 2 * 3  # learners, repeats, targets, layers
    assert reports.counts == [
        ("probing small", part * TINY.steps, parts * TINY.steps)
        for part in range(1, parts + 1)
    ]
    written = files_of(tmp_path)
    assert same(whole, probe(learner, TASK, TINY, **both))
    assert files_of(tmp_path) == written


def test_other_choices_and_other_weights_are_cached_apart(tmp_path):
    config = replace(TINY, repeats=1, layers=(1,))
    asked = {"targets": ["moment"], "directory": tmp_path}
    probe(small_learner(), TASK, config, **asked)
    assert len(files_of(tmp_path)) == 1
    probe(small_learner(), TASK, replace(config, learning_rate=0.02), **asked)
    assert len(files_of(tmp_path)) == 2
    probe(small_learner(seed=1), TASK, config, **asked)
    assert len(files_of(tmp_path)) == 3
    noisy = LinearRegression(2, noise_variance=0.25)
    probe(small_learner(), noisy, config, **asked)
    assert len(files_of(tmp_path)) == 4
    probe(small_learner(), TASK, replace(config, repeats=2), **asked)
    assert len(files_of(tmp_path)) == 5  # the first repeat was there


def test_a_damaged_part_is_noticed(tmp_path):
    config = replace(TINY, repeats=1, layers=(0,))
    asked = {"targets": ["moment"], "directory": tmp_path}
    probe(small_learner(), TASK, config, **asked)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DamagedFileError, match="is not a whole safetensors file"):
        probe(small_learner(), TASK, config, **asked)


def test_all_layers_fit_or_they_are_probed_in_several_passes(monkeypatch):
    config = replace(TINY, repeats=1)
    at_once = probe(small_learner(), TASK, config, targets=["w"])
    module = sys.modules["algoscope.probing.probe"]  # not the function
    monkeypatch.setattr(module, "STATES_BYTES", 1)
    assert same(at_once, probe(small_learner(), TASK, config, targets=["w"]))
    assert at_once.measurements[0].error.shape == (1, 3, 2)


def test_an_untrained_control_has_the_shape_and_the_task_and_not_the_weights():
    learner = small_learner(task=LinearRegression(2, noise_variance=0.25))
    control = untrained(learner, seed=5)
    shapes = [
        [leaf.shape for leaf in jax.tree.leaves(each.transformer)]
        for each in (learner, control)
    ]
    assert shapes[0] == shapes[1]
    assert control.name == "small, untrained"
    assert control.task == learner.task
    assert not np.any(control.transformer.w_e == learner.transformer.w_e)


def test_by_default_a_learner_is_probed_on_its_task_at_the_smoke_budget(tmp_path):
    task = LinearRegression(2, noise_variance=0.25)
    learner = small_learner(task=task)
    found = probe(learner, targets=["w_ols"], directory=str(tmp_path))
    assert found.task == repr(task)
    assert found.config == find_budget("smoke").as_dict() == ProbingConfig().as_dict()
    assert same(found, probe(learner, task, ProbingConfig(), targets=["w_ols"]))
    named = probe(learner, budget="smoke", targets=["w_ols"], directory=tmp_path)
    assert same(found, named)


def test_what_cannot_be_probed_is_refused():
    learner = small_learner()
    with refused("controls", "have names that differ from each other"):
        probe(learner, TASK, TINY, controls=[small_learner(1)])
    with refused("task", "have the dimension 2 of small, got 3"):
        probe(learner, LinearRegression(3), TINY)
    with refused("layers", "be at most 2, the depth of small, got 3"):
        probe(learner, TASK, replace(TINY, layers=(1, 3)))
    with refused("prefixes", "be at most 3, the context length of small, got 4"):
        probe(learner, TASK, replace(TINY, prefixes=(4,)))


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"prefixes": (0, 1)},
            "`prefix` must be at least 1, got 0. "
            "No target can be computed from 0 examples.",
        ),
        (
            {"prefixes": ()},
            "`prefixes` must hold at least one value, and no value twice, got none.",
        ),
        (
            {"layers": (1, 1)},
            "`layers` must hold at least one value, and no value twice, got 1, 1.",
        ),
        (
            {"kinds": ("linaer",)},
            "`kind` must be one of linear, mlp, got 'linaer'. Did you mean 'linear'?",
        ),
        ({"steps": 0}, "`steps` must be at least 1, got 0."),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive, got 0.0."),
        (
            {"solver": "least_squares"},
            "`kinds` must be linear for the solver least_squares, got linear, mlp.",
        ),
    ],
)
def test_impossible_configurations_are_refused(choice: dict, message: str):
    with refuses(InvalidValueError, message):
        ProbingConfig(**choice)


def test_numbers_must_be_numbers():
    with refuses(InvalidTypeError, "`repeats` must be an integer, got 1.5."):
        ProbingConfig(repeats=1.5)  # pyright: ignore[reportArgumentType]
    with refused("budget", "be one of smoke, cpu, paper, got 'gpu'"):
        find_budget("gpu")


def test_the_cost_counts_probes_and_their_weights():
    learner = small_learner()
    config = replace(TINY, kinds=("linear", "mlp"))
    cost = estimate_cost(learner, config, target_sizes=(2, 1))
    assert cost.num_probes == 2 * 3 * 2 * 2 * 2  # repeats, layers, prefixes, …
    linear = [4 * 5 + 4 * 4 + 4 * size for size in (2, 1)]
    mlp = [4 * 5 + 4 * 4 + 4 * 4 + 4 * size for size in (2, 1)]
    assert cost.flops == 6 * 12 * sum(linear + mlp) * 20 * 8
    assert cost.layer_bytes == 4 * 48 * 5 * 4
    assert str(cost).startswith("48 probes, ")
    flops = [
        estimate_cost(learner, replace(each, prefixes=(1, 2, 3)), target_sizes=(2,))
        for each in BUDGETS.values()
    ]
    assert flops[0].flops < flops[1].flops < flops[2].flops
