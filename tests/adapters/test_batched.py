"""Functions of batches: both forms, their checks, and what happens when they fail."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algoscope.adapters import (
    CausalPredictor,
    ContextPredictor,
    FunctionPredictor,
    causal,
    from_context,
)
from algoscope.comparison.compare import compare
from algoscope.comparison.linearization import influences, sensitivities
from algoscope.comparison.predict import (
    counted,
    is_slow,
    predict_all,
    predict_exactly,
    predict_queries,
)
from algoscope.comparison.symmetries import symmetries
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError
from algoscope.identification import identify
from algoscope.predictors import (
    BatchedBox,
    BlackBox,
    PredictorFailedError,
    Question,
    ridge,
)
from algoscope.tasks.linear import LinearRegression
from tests.support.boxes import ridge_answers
from tests.support.refusals import refuses

PENALTY = 0.5


def context_ridge(x, y, queries):
    gram = np.swapaxes(x, 1, 2) @ x + PENALTY * np.eye(x.shape[2])
    w = np.linalg.solve(gram, np.swapaxes(x, 1, 2) @ y[..., None])
    return (queries @ w)[..., 0]


def causal_ridge(x, y):
    columns = [
        context_ridge(x[:, :n], y[:, :n], x[:, n : n + 1])[:, 0]
        for n in range(x.shape[1])
    ]
    return np.stack(columns, axis=1)


WRAPPED = {
    "causal": causal(causal_ridge, name="batched"),
    "context": from_context(context_ridge, name="batched"),
}
each_form = pytest.mark.parametrize("box", WRAPPED.values(), ids=list(WRAPPED))


def data(datasets: int, examples: int, dim: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((datasets, examples, dim))
    return x, rng.standard_normal((datasets, examples))


@each_form
def test_it_is_a_black_box_that_answers_in_batches(box):
    assert isinstance(box, BlackBox)
    assert isinstance(box, BatchedBox)
    assert not is_slow(box)
    assert is_slow(FunctionPredictor(lambda x, y, query: 0.0))


@each_form
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 7), st.integers(2, 6), st.integers(1, 4), st.integers(1, 5))
def test_batches_of_any_size_give_the_same_predictions(box, datasets, last, dim, size):
    x, y = data(datasets, last, dim, seed=last)
    wrap = causal if box is WRAPPED["causal"] else from_context
    function = causal_ridge if box is WRAPPED["causal"] else context_ridge
    found = predict_all(wrap(function, batch_size=size), x, y)
    for i, n in itertools.product(range(datasets), range(1, last)):
        (expected,) = ridge_answers(x[i, :n], y[i, :n], x[i, n : n + 1], PENALTY)
        assert found[i, n] == pytest.approx(expected, abs=1e-10)


def test_only_a_causal_model_answers_without_examples():
    x, y = data(3, 4, 2)
    assert np.all(predict_all(WRAPPED["causal"], x, y)[:, 0] == 0)
    assert np.all(np.isnan(predict_all(WRAPPED["context"], x, y)[:, 0]))


@each_form
def test_questions_of_mixed_lengths_are_answered_in_their_order(box):
    x, y = data(5, 6, 2)
    questions = [
        Question(x[i, :n], y[i, :n], x[i, n : n + q])
        for i, (n, q) in itertools.product(range(5), [(1, 2), (4, 1), (2, 3)])
    ]
    expected = [ridge_answers(*each, PENALTY) for each in questions]
    found = list(box.answers(iter(questions)))
    assert [len(each) for each in found] == [len(each) for each in expected]
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(expected))


@each_form
def test_everything_that_asks_gets_what_the_reference_gives(box):
    x, y = data(4, 5, 2)
    reference = ridge(PENALTY)
    queries = np.random.default_rng(1).standard_normal((4, 3, 2))
    np.testing.assert_allclose(
        predict_queries(box, x, y, queries, after=3),
        predict_queries(reference, x, y, queries, after=3),
        atol=1e-10,
    )
    for slopes in (sensitivities, influences):
        np.testing.assert_allclose(
            slopes(box, x, y)[:, 1:], slopes(reference, x, y)[:, 1:], atol=1e-6
        )
    kept = symmetries(box, x, y)
    for name, values in symmetries(reference, x, y).items():
        np.testing.assert_allclose(kept[name][:, 1:], values[:, 1:], atol=1e-6)


def test_it_is_identified_with_its_parameter():
    box = causal(causal_ridge, dim=2)
    found = identify(box, num_examples=8, num_datasets=32, progress=False)
    assert (found.relation, found.domain) == ("is", "everywhere")
    assert found.verdict == "ridge"
    assert found.parameters["penalty"] == pytest.approx(PENALTY, rel=1e-3)


def test_a_model_that_knows_its_dimension_needs_no_task():
    box = causal(causal_ridge, dim=3, max_examples=6)
    assert box.task == LinearRegression(3)
    found = compare(box, ["ridge(0.5)", "ols"], num_datasets=20, progress=False)
    assert found.num_examples == 6
    assert found.nearest(1, 6)[0][0] == "Ridge(0.5)"
    with refuses(
        InvalidValueError,
        "`task` must be given for causal_ridge, which does not know its task, got "
        "None. For example `LinearRegression(dim=4)`.",
    ):
        compare(causal(causal_ridge), ["ols"])
    with refuses(
        InvalidValueError,
        "`num_examples` must be at most 6, the context length of causal_ridge, got 7.",
    ):
        compare(box, ["ols"], num_examples=7)


def test_progress_counts_every_answer():
    seen = []
    box = counted(
        causal(causal_ridge, batch_size=2, name="box"),
        lambda stage, done, total, note="": seen.append((stage, done, total)),
    )
    predict_all(box, *data(5, 4, 2))
    assert [done for _, done, _ in seen] == [6, 12, 15]
    assert {(stage, total) for stage, _, total in seen} == {("asking box", 15)}


def test_arrays_have_the_precision_that_was_asked_for():
    seen = set()

    def watched(x, y):
        seen.update({x.dtype, y.dtype})
        x[:] = np.nan  # its own copy
        return np.zeros(y.shape)

    x, y = data(3, 4, 2)
    predict_all(causal(watched, dtype="float32"), x, y)
    assert seen == {np.dtype("float32")}
    assert np.all(np.isfinite(x))


LEAKS = {  # and the first position at which it shows
    1: lambda x, y: y,
    2: lambda x, y: np.where(np.arange(y.shape[1]) == 1, y, 0),
    3: lambda x, y: np.where(np.arange(y.shape[1]) == 2, np.roll(x[..., 0], -1, 1), 0),
    4: lambda x, y: np.where(np.arange(y.shape[1]) == 3, y.mean(1)[:, None], 0),
}


@pytest.mark.parametrize(("position", "leak"), LEAKS.items())
def test_a_function_that_looks_ahead_is_not_causal(position, leak):
    with refuses(
        InvalidValueError,
        "`leaky` must be causal: what comes after a query must not change its answer, "
        f"got a prediction at position {position} that later labels change. "
        f"{CausalPredictor.other_form}",
    ):
        predict_all(causal(leak, name="leaky"), *data(3, 4, 2))


def test_a_noisy_function_may_still_be_causal():
    rng = np.random.default_rng(0)
    noisy = causal(lambda x, y: causal_ridge(x, y) + 0.1 * rng.standard_normal(y.shape))
    assert np.all(np.isfinite(predict_all(noisy, *data(3, 4, 2))))


@pytest.mark.parametrize(
    ("wrap", "function", "rule", "got"),
    [
        (causal, lambda x, y: y[:, 0], "3 × 5", "(3,)"),
        (from_context, lambda x, y, q: y, "3 × 2", "(3, 3)"),
    ],
)
def test_other_shapes_are_rejected_with_the_other_form(wrap, function, rule, got):
    form = CausalPredictor if wrap is causal else ContextPredictor
    with refuses(
        InvalidValueError,
        f"`f` must return {rule} predictions {form.takes}, got shape {got}. "
        f"{form.other_form}",
    ):
        predict_all(wrap(function, name="f"), *data(3, 6, 2))


def test_a_function_of_other_arguments_says_how_it_is_called():
    with pytest.raises(PredictorFailedError, match="failed on its first batch"):
        predict_all(causal(context_ridge), *data(3, 4, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "`dim` must be at least 1, got 0."),
        ({"batch_size": 0}, "`batch_size` must be at least 1, got 0."),
        (
            {"dtype": "float16"},
            "`dtype` must be one of float32, float64, got 'float16'. Did you mean "
            "'float64'?",
        ),
        ({"timeout": 0}, "`timeout` must be positive, got 0."),
        (
            {"dim": 2, "task": LinearRegression(3)},
            "`task` must have the dimension 2, got 3.",
        ),
    ],
)
def test_options_that_cannot_be_are_rejected(options, message):
    with refuses(InvalidValueError, message):
        causal(causal_ridge, **options)


@pytest.mark.parametrize("function", [3, "f", dict])
def test_what_is_no_function_is_rejected(function):
    message = "`function` must be a function of x [B, N, d] and y [B, N], got "
    with refuses(InvalidTypeError, f"{message}{function!r}."):
        causal(function)


def test_data_of_another_dimension_or_length_are_rejected():
    box = causal(causal_ridge, dim=2, max_examples=3)
    message = "`x` must have the dimension 2 of causal_ridge, got 3."
    with refuses(InvalidValueError, message):
        predict_all(box, *data(2, 4, 3))
    message = "`x` must hold at most 3 examples before a query, got 4."
    with refuses(InvalidValueError, message):
        predict_all(box, *data(2, 5, 2))


def fails_for_large(x, y):
    """Raise if any dataset of the batch has a large first input."""
    if np.any(np.abs(x[:, 0, 0]) > 50):
        raise RuntimeError("too large")
    return causal_ridge(x, y)


def test_datasets_that_raise_are_left_out_and_all_others_kept():
    x, y = data(40, 4, 2)
    x[[7, 30], 0, 0] = 99
    box = causal(fails_for_large, batch_size=16)
    found = predict_all(box, x, y)
    assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [7, 30]
    expected = predict_exactly(ridge(PENALTY), x, y)
    kept = ~np.isnan(found)
    np.testing.assert_allclose(found[kept], expected[kept], atol=1e-10)
    assert box.failures.count == 8
    assert box.failures.total == y.size
    assert box.failures.first.startswith("RuntimeError: too large")


def test_predictions_that_are_not_finite_are_counted():
    def overflows(x, y):
        found = causal_ridge(x, y)
        found[:, -1] = np.where(np.abs(x[:, 0, 0]) > 50, np.inf, found[:, -1])
        return found

    x, y = data(6, 4, 2)
    x[2, 0, 0] = 99
    box = causal(overflows)
    found = predict_all(box, x, y)
    assert np.argwhere(np.isnan(found)).tolist() == [[2, 3]]
    assert box.failures.first == "a prediction that is NaN or infinite"


def test_a_model_that_stops_working_keeps_what_it_answered():
    calls = itertools.count()

    def tires(x, y):
        if next(calls) > 12:
            raise RuntimeError("out of memory")
        return causal_ridge(x, y)

    x, y = data(400, 4, 2)
    with pytest.warns(UserWarning, match="answers are kept"):
        found = predict_all(causal(tires, batch_size=4), x, y)
    assert 0 < np.isfinite(found).all(axis=1).sum() < 100


def test_a_model_that_never_works_is_given_up():
    def never(x, y):
        if x.shape[1] != 5:  # not the batch that checks the form
            raise RuntimeError("no")
        return causal_ridge(x, y)

    with pytest.raises(PredictorFailedError, match="first with RuntimeError: no"):
        predict_all(causal(never), *data(50, 4, 2))


@pytest.mark.timeout(20)
def test_a_batch_that_hangs_is_left_out():
    def hangs(x, y):
        while np.any(np.abs(x[:, 0, 0]) > 50):
            pass
        return causal_ridge(x, y)

    x, y = data(3, 3, 2)
    x[1, 0, 0] = 99
    box = causal(hangs, timeout=0.2)
    found = predict_all(box, x, y)
    assert np.isnan(found).all(axis=1).tolist() == [False, True, False]
    assert box.failures.first == "no answer within 0.2 s"
