"""Probes find what is there and where it is, and say so with controls (paper §5)."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.learners import small_learner
from support.progress import Reports
from support.refusals import refused, refuses

from algoscope.comparison.predict import draw_datasets
from algoscope.foundation import cache
from algoscope.foundation.files import DamagedFileError, save_arrays
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
    passes,
    probe,
    untrained,
    weights_of,
)
from algoscope.probing.positions import fit_positions, variance
from algoscope.probing.states import StateSplit, hidden_states, standardize
from algoscope.probing.targets import TargetSplit, find_targets, target_values
from algoscope.tasks.linear import LinearRegression

TASK = LinearRegression(dim=2)

TINY = ProbingConfig(
    kinds=("linear",),
    prefixes=(1, 2),
    places=("last_label", "query"),
    inner_size=4,
    batch_size=8,
    num_training=160,
    num_validation=8,
    num_test=16,
    block_size=8,
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


def test_single_positions_are_solved_exactly(rng):
    states, targets = planted(rng, layers=2)
    found = fit_positions(states, targets, TINY.prefixes)
    relative = found.blocks.mean(axis=0) / variance(targets)
    alpha = found.attention
    assert relative[1, 1] < 1e-12
    assert alpha[1, 1].tolist() == [0, 0, 0, 1, 0]
    assert np.all(np.abs(relative[0] - 1) < 0.2)  # layer 0 holds none of it
    assert abs(relative[1, 0] - 1) < 0.2  # nor does anything up to position 2
    assert np.all(alpha[:, 0, 3:] == 0)


def files_of(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in directory.iterdir()}


def same(one: ProbingResult, two: ProbingResult) -> bool:
    found = [(*result.measurements, *result.floors) for result in (one, two)]
    pairs = zip(*found, strict=True)
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for a, b in pairs
        for name in ("error", "variance", "attention", "blocks", "history")
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
    finished = {
        name: when
        for name, when in files_of(tmp_path).items()
        if not name.startswith("unfinished")
    }
    assert 0 < len(finished) < 1 + 2 * 2 * 3  # floors; learners, repeats, layers
    reports = Reports()
    resumed = probe(learner, TASK, TINY, **both, progress=reports)
    assert same(whole, resumed)
    assert {**files_of(tmp_path), **finished} == files_of(tmp_path)  # none rewritten
    assert not list(tmp_path.glob("unfinished*"))
    total = 2 * 2 * 3 * TINY.steps  # learners, repeats, layers
    assert reports.counts[-1] == ("probing small", total, total)
    written = files_of(tmp_path)
    assert same(whole, probe(learner, TASK, TINY, **both))
    assert files_of(tmp_path) == written


def test_a_part_resumes_in_the_middle_to_the_same_bits(tmp_path):
    """Both kinds, fixed and learned: stopped after each moment that saves a state."""
    learner = small_learner()
    config = replace(
        TINY, kinds=("linear", "mlp"), places=("learned", "all"), repeats=1, layers=(2,)
    )
    config = replace(config, num_training=8 * 60, num_learned=8 * 60)
    asked = {"targets": ["w_ols", "residual"], "floors": False}
    whole = probe(learner, TASK, config, **asked)

    for share in (0.4, 0.8):

        def interrupt(stage: str, done: int, total: int | None, note: str = "") -> None:
            if total is not None and done > share * total:  # noqa: B023
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            probe(
                learner, TASK, config, **asked, directory=tmp_path, progress=interrupt
            )
        assert list(tmp_path.glob("unfinished*"))
    resumed = probe(learner, TASK, config, **asked, directory=tmp_path)
    assert same(whole, resumed)
    assert len(files_of(tmp_path)) == 1


def test_a_run_that_is_stopped_at_all_it_writes_ends_with_the_same_bits(
    tmp_path, monkeypatch
):
    """Every state, every part: also what is summed up, in the same order."""
    config = replace(TINY, num_training=8, num_test=8 * 8, repeats=1, layers=(1,))
    whole = probe(small_learner(), TASK, config)
    stopped = []

    def stop_after(file: Path, *written: Any) -> None:
        save_arrays(file, *written)
        stopped.append(file.name)
        raise KeyboardInterrupt

    for module in (passes, cache):
        monkeypatch.setattr(module, "save_arrays", stop_after)
    resumed = None
    while resumed is None and len(stopped) < 50:
        with suppress(KeyboardInterrupt):
            resumed = probe(small_learner(), TASK, config, directory=tmp_path)
    assert resumed is not None
    assert same(whole, resumed)
    assert sum(name.startswith("unfinished") for name in stopped) == 2 * 5
    assert len(stopped) == 2 * 5 + 2  # floors, and a learner


def test_other_choices_and_other_weights_are_cached_apart(tmp_path):
    config = replace(TINY, repeats=1, layers=(1,))
    asked = {"targets": ["moment"], "directory": tmp_path, "floors": False}
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
    asked = {"targets": ["moment"], "directory": tmp_path, "floors": False}
    probe(small_learner(), TASK, config, **asked)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DamagedFileError, match="is not a whole safetensors file"):
        probe(small_learner(), TASK, config, **asked)


def test_layers_are_probed_together_or_in_groups():
    config = replace(TINY, repeats=1, kinds=("linear", "mlp"))
    asked = {"targets": ["w"], "floors": False}
    alone = probe(small_learner(), TASK, config, **asked)
    together = probe(small_learner(), TASK, replace(config, layers_per_call=9), **asked)
    assert together.measurements[0].error.shape == (1, 3, 2)
    for one, other in zip(alone.measurements, together.measurements, strict=True):
        np.testing.assert_allclose(one.error, other.error, rtol=1e-4)


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
        ({"inner_size": 0}, "`inner_size` must be at least 1, got 0."),
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


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_budget_fits_the_context_of_the_learner(budget):
    learner = small_learner()
    config = find_budget(budget, learner.max_examples)
    assert max(config.prefixes) <= learner.max_examples
    assert set(config.prefixes) < set(find_budget("paper").prefixes)
    estimate_cost(learner, config, target_sizes=(2,))


def test_the_cost_counts_the_forward_pass_and_the_weights_of_probes():
    learner = small_learner()
    config = replace(TINY, kinds=("linear", "mlp"))
    cost = estimate_cost(learner, config, target_sizes=(2, 1))
    assert cost.num_probes == 2 * 3 * 2 * 2 * 2 * 2  # repeats, layers, prefixes, …
    assert str(cost).startswith("96 probes, ")
    per_layer = sum(
        leaf[0].size for leaf in jax.tree.leaves(learner.transformer.layers)
    )
    token = 2 * 4 * 3 + 2 * (2 * per_layer + 4 * 4 * 5)
    datasets = 160 + 2 * 160 + 16 + 5 * 8  # training, pilot, test, validation
    assert cost.forward_flops == 2 * token * 5 * datasets
    wider = estimate_cost(learner, replace(config, inner_size=8), target_sizes=(2, 1))
    assert wider.probe_flops > cost.probe_flops
    costs = [
        estimate_cost(learner, replace(each, prefixes=(1, 2, 3)), target_sizes=(2,))
        for each in BUDGETS.values()
    ]
    assert costs[0].seconds < costs[1].seconds < costs[2].seconds


def test_controls_may_be_probed_at_fewer_places():
    config = replace(
        TINY, repeats=1, layers=(1,), control_places=("query",), num_training=32
    )
    control = small_learner(1, "control")
    found = probe(small_learner(), TASK, config, targets=["w"], controls=[control])
    places = [(each.learner, each.place) for each in found.measurements]
    assert places == [
        ("small", "last_label"),
        ("small", "query"),
        ("control", "query"),
    ]
    with refused("result", "hold linear probes of control for w at last_label"):
        found.of("w", "linear", "control")
    only = probe(small_learner(), TASK, config, targets=["w"], places=["labels"])
    assert only.places == ("labels",)
