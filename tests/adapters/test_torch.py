"""PyTorch modules as predictors: precision, modes, devices, and what is rejected."""

import numpy as np
import pytest

from algoscope.adapters import from_torch, load_target
from algoscope.comparison.predict import predict_all, predict_exactly, predict_queries
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError
from algoscope.predictors import PredictorFailedError, gd, ridge
from algoscope.tasks.linear import LinearRegression
from tests.support.refusals import refuses
from tests.support.torch_present import require

torch = require()
RATE = 0.02


class OneStep(torch.nn.Module):
    """One step of gradient descent from zero, with its rate as the only weight."""

    def __init__(self, n_dims=2, dropout=0.0):
        super().__init__()
        self.n_dims = n_dims
        self.rate = torch.nn.Parameter(torch.tensor(2 * RATE))
        self.dropout = torch.nn.Dropout(dropout)
        self.seen = []

    def forward(self, xs, ys):
        self.seen.append((xs.dtype, xs.device.type, torch.is_grad_enabled()))
        steps = xs * ys[..., None]
        sums = torch.cumsum(steps, dim=1).roll(1, dims=1)
        sums[:, 0] = 0
        return self.dropout(self.rate * (sums * xs).sum(-1))


class ContextRidge(torch.nn.Module):
    """Ridge regression from all examples, for several queries."""

    def forward(self, x, y, queries):
        gram = x.mT @ x + 0.5 * torch.eye(x.shape[-1], dtype=x.dtype)
        return queries @ torch.linalg.solve(gram, x.mT @ y[..., None])


@pytest.fixture
def examples():
    rng = np.random.default_rng(0)
    return rng.standard_normal((6, 5, 2)), rng.standard_normal((6, 5))


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-6), ("float64", 1e-7)])
def test_it_predicts_as_the_same_algorithm_in_jax(examples, dtype, error):
    found = predict_all(from_torch(OneStep(), dtype=dtype), *examples)
    expected = predict_exactly(gd(RATE), *examples)
    np.testing.assert_allclose(found, expected, atol=error)
    assert found.dtype == np.float64


def test_a_context_model_answers_all_queries_at_once(examples):
    box = from_torch(ContextRidge(), form="context", dtype="float64")
    (x, y), queries = examples, np.random.default_rng(1).standard_normal((6, 7, 2))
    np.testing.assert_allclose(
        predict_queries(box, x, y, queries, after=3),
        predict_queries(ridge(0.5), x, y, queries, after=3),
        atol=1e-10,
    )


def test_the_module_tells_its_dimension_and_its_class_names_it():
    box = from_torch(OneStep(n_dims=3))
    assert (box.name, box.dim, box.task) == ("OneStep", 3, LinearRegression(3))


def test_it_runs_in_evaluation_mode_and_leaves_the_mode_as_it_was(examples):
    module = OneStep(dropout=0.9)
    module.dropout.train()
    module.train()
    found = predict_all(from_torch(module), *examples)
    np.testing.assert_allclose(found, predict_exactly(gd(RATE), *examples), atol=1e-6)
    assert module.training
    assert module.dropout.training
    assert {(str(dtype), grad) for dtype, _, grad in module.seen} == {
        ("torch.float32", False)
    }


def test_a_part_that_trains_is_evaluated_and_trains_again(examples):
    module = OneStep(dropout=0.9).eval()
    module.dropout.train()
    found = predict_all(from_torch(module), *examples)
    np.testing.assert_allclose(found, predict_exactly(gd(RATE), *examples), atol=1e-6)
    assert (module.training, module.dropout.training) == (False, True)


def test_the_mode_of_a_module_that_evaluates_is_not_set_again(examples):
    class Counted(OneStep):
        def train(self, mode=True):
            sets.append(mode)
            return super().train(mode)

    sets: list[bool] = []
    predict_all(from_torch(Counted().eval()), *examples)
    assert sets == [False]


def test_another_precision_leaves_the_module_as_it_was(examples):
    module = OneStep()
    box = from_torch(module, dtype="bfloat16")
    assert module.rate.dtype == torch.float32
    found = predict_all(box, *examples)
    np.testing.assert_allclose(found, predict_exactly(gd(RATE), *examples), atol=0.05)


def test_a_model_that_is_called_otherwise_gets_a_forward(examples):
    class Named(torch.nn.Module):
        def forward(self, batch):
            steps = batch["x"] * batch["y"][..., None]
            return 2 * RATE * ((torch.cumsum(steps, 1) - steps) * batch["x"]).sum(-1)

    box = from_torch(Named(), 2, forward=lambda module, x, y: module({"x": x, "y": y}))
    np.testing.assert_allclose(
        predict_all(box, *examples), predict_exactly(gd(RATE), *examples), atol=1e-6
    )


def test_a_batch_that_raises_for_one_dataset_keeps_the_others(examples):
    class Fragile(OneStep):
        def forward(self, xs, ys):
            if (xs.abs() > 50).any():
                raise RuntimeError("outlier")
            return super().forward(xs, ys)

    x, y = examples[0].copy(), examples[1]
    x[3, 0, 0] = 99
    box = from_torch(Fragile())
    found = predict_all(box, x, y)
    assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [3]
    assert box.failures.first.startswith("RuntimeError: outlier")


@pytest.mark.parametrize(
    ("value", "shown", "remedy"),
    [
        (3, "3", ""),
        (OneStep, "<class 'tests.adapters.test_torch.OneStep'>", " Create one first, "),
    ],
)
def test_what_is_no_module_is_rejected(value, shown, remedy):
    remedy = f"{remedy}if this is a class." if remedy else ""
    message = f"`module` must be a torch.nn.Module, got {shown}.{remedy}"
    with refuses(InvalidTypeError, message):
        from_torch(value)


def test_a_device_that_is_not_there_is_rejected():
    with pytest.raises(InvalidValueError, match="`device` must name a device that can"):
        from_torch(OneStep(), device="cuda:7")
    with pytest.raises(InvalidValueError, match="`device` must name a device that can"):
        from_torch(OneStep(), device="toaster")


def test_an_unknown_precision_or_form_is_rejected():
    with pytest.raises(InvalidValueError, match="`dtype` must be one of float32"):
        from_torch(OneStep(), dtype="int8")
    message = "`form` must be one of causal, context, got 'both'."
    with refuses(InvalidValueError, message):
        from_torch(OneStep(), form="both")  # pyright: ignore[reportArgumentType]
    message = "`form` must be causal for a model that is opened, got 'context'. "
    with refuses(InvalidValueError, f"{message}Leave out `layers`."):
        from_torch(OneStep(), form="context", layers="dropout")
    message = (
        "`dim` must be given with `layers`, got None. The module does not tell it."
    )
    with refuses(InvalidValueError, message):
        from_torch(ContextRidge(), layers="blocks")


def test_a_model_that_cannot_run_says_why():
    with pytest.raises(PredictorFailedError, match="failed on its first batch with"):
        predict_all(from_torch(ContextRidge(), 2), np.ones((2, 3, 2)), np.ones((2, 3)))


MODULE = """
import numpy as np
import torch
import algoscope as asc

class Zero(torch.nn.Module):
    dim = 3
    def forward(self, x, y):
        return torch.zeros_like(y)

def make():
    return Zero()

def broken():
    raise RuntimeError("no weights")

def number():
    return 3

def two(x, y):
    return np.zeros(y.shape)

zero = Zero()
wrapped = asc.causal(two, dim=5)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torch_zoo.py").write_text(MODULE)
    return "torch_zoo"


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("torch:torch_zoo:make", 3),
        ("torch:torch_zoo:Zero", 3),
        ("torch:torch_zoo:zero", 3),
        ("torch:torch_zoo.py:zero", 3),
        ("python:torch_zoo:zero", 3),
        ("python:torch_zoo:wrapped", 5),
        ("python:torch_zoo.py:two", None),
    ],
)
def test_models_are_found_by_what_a_user_types(module, text, dim):
    box = load_target(text)
    assert getattr(box, "dim") == dim  # noqa: B009
    found = predict_all(box, np.ones((2, 3, dim or 2)), np.ones((2, 3)))
    assert np.all(found == 0)


def test_targets_that_make_no_model_are_rejected(module):
    with pytest.raises(InvalidValueError, match="It raised RuntimeError: no weights"):
        load_target(f"torch:{module}:broken")
    with pytest.raises(
        InvalidTypeError, match="a function that returns one, got torch"
    ):
        load_target(f"torch:{module}:number")
    with pytest.raises(InvalidValueError, match="be torch:module:function"):
        load_target("torch:somewhere")


@pytest.mark.parametrize("name", ["model.pt", "weights.pth", "program.pt2"])
def test_files_that_could_hold_code_are_not_loaded(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"not looked at")
    with pytest.raises(InvalidValueError, match="can run code that is hidden in it"):
        load_target(f"torch:{path}")
