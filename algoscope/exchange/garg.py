"""Runs of dtsip/in-context-learning (Garg et al., 2022): config.yaml and state.pt.

Many later papers train with it. Its learner is a `GPT2Model` of `transformers` between
two linear maps, fed with the tokens x₁, (y₁, 0, …, 0), x₂, …; predictions stand at the
inputs. Our tokens keep x and y in coordinates of their own, so W_E is W_in with its
first column once more in front, and the bias of W_in is part of the positions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.exchange.gpt2 import WrongWeightsError, from_gpt2
from algoscope.exchange.pickles import read_pickled
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner
from algoscope.tasks.linear import LinearRegression

RUN_CONFIG, STATE = "config.yaml", "state.pt"
MAX_CONFIG = 2**20  # bytes
NOISY = "noisy_linear_regression"
TASKS = ("linear_regression", NOISY)


def read_garg(
    directory: Path, state: str = STATE, *, any_task: bool = False
) -> InContextLearner:
    """Return the learner of a run; `state` names one of its .pt files.

    Only linear regression has a task here. With `any_task`, a learner of another task
    is returned with linear regression as its task.
    """
    config = _read_config(directory / RUN_CONFIG)
    sizes = _sizes(config, directory / RUN_CONFIG)
    task = None if any_task else _task(config, directory / RUN_CONFIG)
    path = directory / state
    if not path.is_file():
        rule = f"hold {RUN_CONFIG} and the weights, {state}"
        raise InvalidValueError("directory", rule, f"'{directory}' without {state}")
    weights = _weights(read_pickled(path), path)
    hidden, dim = sizes["n_embd"], sizes["n_dims"]
    try:
        w_in, b_in = _linear(weights, "read_in", (hidden, dim))
        w_out, b_out = _linear(weights, "read_out", (1, hidden))
        backbone = _behind_prefix(weights, "wpe.weight")
        depth = sum(name.endswith("ln_1.weight") for name in backbone)
        if depth != sizes["n_layer"]:
            raise WrongWeightsError(f"it has {depth} layers, not {sizes['n_layer']}")
        transformer = from_gpt2(
            backbone,
            {
                "read_in.weight": np.concatenate([w_in[:, :1], w_in], axis=1),
                "read_in.bias": b_in,
                "read_out.weight": w_out,
                "read_out.bias": b_out,
            },
            num_layers=depth,
            num_heads=sizes["n_head"],
        )
    except WrongWeightsError as error:
        problem = f"does not fit the model in {RUN_CONFIG}: {error}"
        raise DamagedFileError(path, problem) from error
    run = config.get("wandb")
    name = run.get("name") if isinstance(run, dict) else None
    name = name if isinstance(name, str) else directory.resolve().name
    return InContextLearner(transformer, name, task=task)


def _read_config(path: Path) -> dict[str, Any]:
    """Return the fields of a config.yaml; only plain values are read."""
    import yaml

    content = path.read_bytes()
    try:
        if len(content) > MAX_CONFIG:
            raise ValueError("it is too long")
        config = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = f"is not a readable YAML file ({type(error).__name__})"
        raise DamagedFileError(path, problem) from error
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        problem = "is not the configuration of a run (it has no section 'model')"
        raise DamagedFileError(path, problem)
    return config


def _sizes(config: dict[str, Any], path: Path) -> dict[str, int]:
    """Return the sizes of the model, which must be a GPT-2."""
    model = config["model"]
    family = model.get("family")
    if family != "gpt2":
        shown = repr(family) if isinstance(family, str) else type(family).__name__
        problem = f"describes a model of the family {shown}; only 'gpt2' is imported"
        remedy = "Ask any other model as a function, through `asc.from_torch`."
        raise DamagedFileError(path, problem, remedy)
    sizes = {}
    for name in ("n_dims", "n_embd", "n_layer", "n_head"):
        size = model.get(name)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise DamagedFileError(path, f"has no positive integer model.{name}")
        sizes[name] = size
    return sizes


def _weights(saved: Any, path: Path) -> dict[str, np.ndarray]:
    """Return the floating-point arrays of a state, or of the run that it is part of."""
    if isinstance(saved, dict):
        saved = saved.get("model_state_dict", saved)
    if not isinstance(saved, dict):
        raise DamagedFileError(path, "does not hold a dictionary of weights")
    arrays = {
        name: array
        for name, array in saved.items()  # masks are not weights, and not floats
        if isinstance(name, str)
        and isinstance(array, np.ndarray)
        and array.dtype.kind == "f"
    }
    for name, array in arrays.items():
        if not name.endswith("masked_bias") and not np.isfinite(array).all():
            raise DamagedFileError(path, f"holds NaN or infinity in {name}")
    return arrays


def _behind_prefix(
    weights: Mapping[str, np.ndarray], name: str
) -> dict[str, np.ndarray]:
    """Return the weights of the one module that has a weight of this name, by name."""
    prefixes = [each.removesuffix(name) for each in weights if each.endswith(name)]
    if len(prefixes) != 1:
        raise WrongWeightsError(f"{len(prefixes)} of its weights end with {name}")
    (prefix,) = prefixes
    return {
        each.removeprefix(prefix): array
        for each, array in weights.items()
        if each.startswith(prefix)
    }


def _linear(
    weights: Mapping[str, np.ndarray], name: str, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return weight and bias of the linear map whose name ends so."""
    found = _behind_prefix(weights, f"{name}.weight")
    w, b = found[f"{name}.weight"], found.get(f"{name}.bias")
    if w.shape != shape:
        raise WrongWeightsError(f"{name} has shape {list(w.shape)}, not {list(shape)}")
    if b is None or b.shape != shape[:1]:
        raise WrongWeightsError(f"{name} has no bias of size {shape[0]}")
    return w, b


def _task(config: dict[str, Any], path: Path) -> LinearRegression:
    """Return the linear regression that a run was trained on; reject other tasks."""
    training = config.get("training")
    training = training if isinstance(training, dict) else {}
    kind, data = training.get("task"), training.get("data", "gaussian")
    options = training.get("task_kwargs")
    options = options if isinstance(options, dict) else {}
    scale, noise = options.get("scale", 1), options.get("noise_std", 0)
    remedy = "To measure its learner on linear regression all the same: --any-task."
    if kind not in TASKS:
        shown = repr(kind) if isinstance(kind, str) else "none"
        problem = f"describes a run of the task {shown}, not of linear_regression"
    elif data != "gaussian" or options.get("renormalize_ys"):
        problem = "describes a run whose data are not Gaussian, or are renormalized"
    elif not (_is_scale(scale) and scale > 0 and _is_scale(noise)):
        problem = "has no numbers training.task_kwargs.scale and noise_std"
    else:
        dim, noise = config["model"]["n_dims"], noise if kind == NOISY else 0
        return LinearRegression(
            dim, prior_variance=float(scale) ** 2, noise_variance=float(noise) ** 2
        )
    raise DamagedFileError(path, problem, remedy)


def _is_scale(value: Any) -> bool:
    """Return whether a value is a standard deviation of a sensible size."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= value < 1e6
