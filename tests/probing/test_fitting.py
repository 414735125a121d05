"""Probes on fresh datasets: exact where a closed form exists, best where they learn."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from support.learners import small_learner
from support.refusals import refused

from algoscope.construction import Construction
from algoscope.construction.algorithms import GD
from algoscope.model.tokens import encode_context, example_tokens
from algoscope.probing import ProbingConfig, closed_form, probe
from algoscope.probing.fitting import Chosen, Fitted, Fitting, best_starts
from algoscope.probing.floors import fit_floors
from algoscope.probing.passes import Carry, PassState
from algoscope.probing.places import fixed_attention, seen, start_scores
from algoscope.probing.probes import Probes
from algoscope.probing.stream import TEST, TRAINING, LearnerStates
from algoscope.probing.targets import find_targets
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Dataset

TASK = LinearRegression(dim=2)
BOTH = tuple(find_targets(["moment", "w_ols"]))
SIZES = ProbingConfig(
    prefixes=(1, 2),
    inner_size=8,
    batch_size=32,
    num_training=640,
    num_learned=320,
    num_validation=128,
    num_test=128,
    block_size=32,
    repeats=1,
)


def test_fixed_places_are_the_positions_that_they_name():
    expected = {
        "last_label": [0, 0, 0, 1, 0, 0, 0],
        "query": [0, 0, 0, 0, 1, 0, 0],
        "labels": [0, 0.5, 0, 0.5, 0, 0, 0],
        "all": [0.2] * 5 + [0, 0],
    }
    for place, alpha in expected.items():
        np.testing.assert_allclose(fixed_attention(place, 2, 7), alpha)
    assert seen("learned", 2, 7).tolist() == [True] * 5 + [False] * 2
    assert seen("unmasked", 2, 7).all()


@pytest.mark.parametrize("place", ["learned", "unmasked"])
@pytest.mark.parametrize("start", ["last_label", "query", "labels", "all"])
def test_learned_attention_starts_near_a_place_and_sees_only_what_it_may(
    place: str, start: str
):
    scores = start_scores(place, start, 2, 7)
    alpha = np.exp(scores)
    allowed = seen(place, 2, 7)
    assert alpha.sum() == pytest.approx(1)
    assert np.all(alpha[allowed] > 0)  # softmax has a gradient there
    assert np.all(alpha[~allowed] == 0)
    if start != "all":
        assert alpha @ (fixed_attention(start, 2, 7) > 0) > 0.8


def drawn(fitting: Fitting, fold: int, batch: int, count: int) -> Dataset:
    """Return the datasets of a stream, as its steps draw them."""
    with jax.enable_x64(True):
        parts = [
            fitting.stream.draw(fold, jnp.asarray(step), jnp.arange(batch))
            for step in range(count // batch)
        ]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def test_linear_probes_are_the_least_squares_solution_on_the_same_stream():
    learner = small_learner()
    config = replace(SIZES, kinds=("linear",), places=("labels", "query"))
    fitting = Fitting(
        LearnerStates(learner.transformer, (1, 2)), TASK, config, BOTH, (1, 2), 3
    )
    found = fitting.fit()
    training, test = (
        drawn(fitting, fold, 32, count)
        for fold, count in ((TRAINING, config.num_training), (TEST, config.num_test))
    )
    for n, index in ((1, 0), (2, 1)):
        for place in ("labels", "query"):
            alpha = fixed_attention(place, n, config.time)
            for target in BOTH:
                known, wanted = (
                    np.asarray(jax.vmap(target.of)(data))[:, n]
                    for data in (training, test)
                )
                h, others = (read(learner, data, alpha) for data in (training, test))
                solution = np.linalg.lstsq(h, known)[0]
                expected = np.mean((others @ solution - wanted) ** 2)
                errors = found[Chosen(place, "linear", target.name)].blocks[:, 1, index]
                assert errors.mean() == pytest.approx(expected, rel=1e-3)


def read(learner, data: Dataset, alpha: np.ndarray) -> np.ndarray:
    """Return what a place shows in the last layer, and a column of ones."""
    hidden = learner.transformer(encode_context(data.x, data.y)).hidden[:, 2]
    values = np.einsum("t,bth->bh", alpha, np.asarray(hidden, np.float64))
    return np.column_stack([values, np.ones(len(values))])


class Planted(eqx.Module):
    """States that hold w at one position, and x₁ everywhere else."""

    position: int = eqx.field(static=True)
    time: int = eqx.field(static=True)

    def __call__(self, data: Dataset) -> Float[Array, "batch layers time hidden"]:
        """Return one layer of states."""
        here = jnp.arange(self.time) == self.position
        states = jnp.where(here[None, :, None], data.w[:, None], data.x[:, :1])
        return states[:, None]


def planted(position: int) -> dict[Chosen, Fitted]:
    places = ("learned", "unmasked", "last_label", "query", "labels", "all")
    config = replace(SIZES, prefixes=(1, 3), places=places, num_learned=6400)
    config = replace(config, learning_rate=5e-2)
    source = Planted(position, config.time)
    return Fitting(source, TASK, config, tuple(find_targets(["w"])), (0,), 0).fit()


@pytest.mark.optimized
def test_learned_attention_finds_a_position_that_is_no_fixed_place():
    """Position 4 is x₃: seen for n = 3, and after the query for n = 1."""
    found = planted(4)
    for kind in ("linear", "mlp"):
        learned, unmasked = (
            found[Chosen(place, kind, "w")] for place in ("learned", "unmasked")
        )
        fixed = [
            found[Chosen(place, kind, "w")]
            for place in ("last_label", "query", "labels", "all")
        ]
        relative = learned.blocks.mean(axis=0)[0] / learned.variance
        free = unmasked.blocks.mean(axis=0)[0] / unmasked.variance
        assert relative[0] > 0.8  # masked
        assert max(free[0], relative[1], free[1]) < 0.3
        assert learned.attention[0, 1].argmax() == 4
        assert unmasked.attention[0, 0].argmax() == 4
        assert np.all(learned.attention[0, 0, 3:] == 0)
        for each in fixed:  # the best is chosen on validation datasets
            assert np.all(learned.validation <= each.validation)
            assert np.all(unmasked.validation <= each.validation)


def test_every_probe_goes_on_from_its_own_best_start(rng):
    """Two places of two starts each; the best differ by layer and target."""
    errors = np.array(
        [
            [[0.1, 0.9], [0.2, 0.8], [0.5, 0.6], [0.6, 0.5]],
            [[0.4, 0.3], [0.3, 0.4], [0.7, 0.1], [0.8, 0.2]],
        ]
    )  # [layers, starts, targets]
    best = np.array([[[0, 1], [2, 3]], [[1, 0], [2, 2]]])  # [layers, places, targets]
    names = np.arange(16.0, dtype=np.float32).reshape(2, 4, 2)
    stack = Probes(
        jnp.asarray(rng.normal(size=(2, 4, 2, 1, 5))),
        jnp.asarray(names[..., None]),
        scores=jnp.asarray(rng.normal(size=(2, 4, 2, 7))),
    )
    tried = PassState(Carry.start({"linear": stack}, None), 20, ({"linear": errors},))
    found = best_starts(tried, [[0, 1], [2, 3]])
    place = (np.arange(2)[:, None, None], best, np.arange(2))
    np.testing.assert_array_equal(found.history[0]["linear"], errors[place])
    kept = found.carry.probes["linear"]
    np.testing.assert_array_equal(kept.b_out[..., 0], names[place])
    np.testing.assert_array_equal(kept.scores, np.asarray(stack.scores)[place])
    assert found.carry.adam["linear"].first["w_out"].shape == (2, 2, 2, 1, 5)
    assert found.done == 20


@pytest.mark.optimized
def test_floors_are_those_of_the_closed_form():
    """An MLP may be better than a linear map where that is not the best of all."""
    task = LinearRegression(dim=3)
    config = replace(
        SIZES,
        prefixes=(3, 6, 12),
        inner_size=32,
        batch_size=128,
        num_training=128 * 150,
        num_test=128 * 32,
        block_size=128,
    )
    found = fit_floors(task, config, BOTH, 0)
    expected = [closed_form(3, n) for n in config.prefixes]
    np.testing.assert_allclose(expected, [4 / 7, 4 / 10, 4 / 16])
    pairs = {("XᵀY alone", "w_ols"), ("w_OLS alone", "moment")}
    for name, target in pairs:
        linear, mlp = (
            found[name, Chosen("all", kind, target)] for kind in ("linear", "mlp")
        )
        errors = linear.blocks.mean(axis=0)[0] / linear.variance
        np.testing.assert_allclose(errors, expected, rtol=0.04)
        better = mlp.blocks.mean(axis=0)[0] / mlp.variance
        assert np.all(better < 1.1 * errors)
    assert {name for name, _ in found} == {"XᵀY alone", "w_OLS alone", "last pair"}
    last = found["last pair", Chosen("all", "linear", "w_ols")]
    np.testing.assert_allclose(
        last.blocks.mean(axis=0)[0] / last.variance, 1, rtol=0.02
    )
    assert np.isnan(closed_form(3, 2))


def test_moments_of_a_compiled_learner_are_read_where_they_are():
    """Gradient descent, compiled: xᵢyᵢ at each label in H⁽¹⁾, XᵀY from H⁽²⁾ on."""
    tokens = 1.5 * example_tokens(2, 3, num_datasets=4096)
    learner = Construction(GD(0.05, 1), dim=2, num_examples=3).compile(tokens)
    config = replace(
        SIZES,
        kinds=("linear",),
        prefixes=(1, 2, 3),
        places=("last_label", "query", "labels"),
    )
    found = probe(learner.learner("gd"), TASK, config, targets=["moment"], floors=False)
    relative = {
        place: found.of("moment", "linear", place=place).relative[0]
        for place in found.places
    }
    for errors in relative.values():
        assert np.all(errors[0] > 0.8)
        assert np.all(errors[2:] < 1e-10)
    assert np.all(relative["labels"][1] < 1e-10)
    assert relative["last_label"][1, 0] < 1e-10
    assert np.all(relative["last_label"][1, 1:] > 0.2)
    assert np.all(relative["query"][1] > 0.8)


def test_errors_fall_along_the_moments_that_are_saved():
    config = replace(SIZES, kinds=("mlp",), places=("labels",), inner_size=16)
    config = replace(config, num_training=32 * 100, learning_rate=2e-2)
    found = probe(small_learner(), TASK, config, targets=["w_ols"], floors=False)
    history = found.of("w_ols", "mlp").history
    assert history is not None
    assert history.shape == (1, 5, 3, 2)
    assert np.all(history[0, -1, 2] < history[0, 0, 2])
    validation = found.of("w_ols", "mlp").validation
    assert validation is not None
    np.testing.assert_allclose(history[:, -1], validation, rtol=1e-5)


def test_places_that_cannot_be_probed_are_refused():
    with refused("places", "hold a fixed place, and `all` where attention is learned"):
        replace(SIZES, places=("learned", "query"))
    with refused("place", "be one of learned, unmasked, last_label"):
        ProbingConfig(places=("labels", "label"))  # pyright: ignore
    with refused("num_test", "be a multiple of `block_size` 32, got 100"):
        replace(SIZES, num_test=100)
