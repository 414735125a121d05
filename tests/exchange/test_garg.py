"""Runs of dtsip/in-context-learning predict here what they predict there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml
from support.commands import rejected, run
from support.refusals import refuses
from support.torch_present import require

import algoscope as asc
from algoscope.foundation.files import DamagedFileError

torch = require()
transformers = require("transformers")

SMALL = {"n_dims": 3, "n_positions": 6, "n_embd": 16, "n_layer": 2, "n_head": 2}
FULL = {"n_dims": 20, "n_positions": 41, "n_embd": 256, "n_layer": 12, "n_head": 8}


class Theirs(torch.nn.Module):
    """A learner with the wiring and the names of that repository."""

    def __init__(self, sizes: dict[str, int]):
        super().__init__()
        hidden = sizes["n_embd"]
        config = transformers.GPT2Config(
            n_positions=2 * sizes["n_positions"],
            n_embd=hidden,
            n_layer=sizes["n_layer"],
            n_head=sizes["n_head"],
            vocab_size=7,  # of words, which are never read
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            use_cache=False,
        )
        self._read_in = torch.nn.Linear(sizes["n_dims"], hidden)
        self._backbone = transformers.GPT2Model(config)
        self._read_out = torch.nn.Linear(hidden, 1)

    def forward(self, x: Any, y: Any) -> Any:
        labels = torch.nn.functional.pad(y[..., None], (0, x.shape[-1] - 1))
        tokens = torch.stack([x, labels], 2).flatten(1, 2)
        states = self._backbone(inputs_embeds=self._read_in(tokens)).last_hidden_state
        return self._read_out(states)[:, ::2, 0]


def draw(sizes: dict[str, int], seed: int = 0) -> Theirs:
    """Return a learner whose gains, shifts and biases all matter."""
    torch.manual_seed(seed)
    model = Theirs(sizes).eval()
    for name, weight in model.named_parameters():
        if name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight")):
            torch.nn.init.uniform_(weight, 0.5, 1.5)
        elif name.endswith("bias"):
            torch.nn.init.normal_(weight, std=0.2)
        elif "wpe" in name:
            torch.nn.init.normal_(weight, std=0.5)
    return model


def write_run(
    directory: Path,
    model: Theirs,
    sizes: dict[str, int],
    change: Callable[[dict], None] = lambda config: None,
) -> Path:
    """Write a run as their training does, with the masks of older versions."""
    directory.mkdir(parents=True, exist_ok=True)
    config = {
        "model": {"family": "gpt2", **sizes},
        "training": {
            "task": "linear_regression",
            "data": "gaussian",
            "task_kwargs": {},
        },
        "wandb": {"name": "linear_regression_standard"},
    }
    change(config)
    (directory / "config.yaml").write_text(yaml.safe_dump(config))
    state = model.state_dict()
    for index in range(sizes["n_layer"]):
        mask = torch.ones(1, 1, 8, 8, dtype=torch.uint8).tril()
        state[f"_backbone.h.{index}.attn.bias"] = mask
        state[f"_backbone.h.{index}.attn.masked_bias"] = torch.tensor(-1e4)
    adam = torch.optim.Adam(model.parameters()).state_dict()
    saved = {"model_state_dict": state, "optimizer_state_dict": adam, "train_step": 9}
    torch.save(saved, directory / "state.pt")
    torch.save(state, directory / "model_500.pt")
    return directory


def predictions(learner: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    inputs = jnp.asarray(x), jnp.asarray(y)
    return np.asarray(jax.jit(jax.vmap(learner.predict_prefixes))(*inputs))


@pytest.mark.parametrize("sizes", [SMALL, FULL], ids=["small", "as published"])
def test_predictions_are_theirs(rng, tmp_path, sizes):
    model = draw(sizes)
    learner = asc.import_model(write_run(tmp_path, model, sizes))
    shape = (2, sizes["n_positions"], sizes["n_dims"])
    x = rng.standard_normal(shape, np.float32)
    y = rng.standard_normal(shape[:2], np.float32)
    with torch.no_grad():
        expected = model(torch.tensor(x), torch.tensor(y)).numpy()
    found = predictions(learner, x, y)
    assert found.dtype == np.float32
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert learner.name == "linear_regression_standard"
    assert learner.task == asc.LinearRegression(sizes["n_dims"])
    assert learner.max_examples == sizes["n_positions"] - 1


@pytest.fixture(scope="module")
def model() -> Theirs:
    return draw(SMALL)


def test_the_command_writes_a_learner_that_loads(capsys, tmp_path, model):
    source = write_run(tmp_path / "run", model, SMALL)
    out = tmp_path / "out"
    status, printed, _ = run(capsys, "import", str(source), "--out", str(out))
    assert status == 0
    assert printed.startswith(
        "linear_regression_standard: d = 3, up to 5 examples, L = 2, H = 16, M = 2, "
    )
    loaded = asc.InContextLearner.from_pretrained(out)
    assert loaded.digest == asc.import_model(source).digest
    arguments = ("import", str(source), "--out", str(out), "--json")
    assert run(capsys, *arguments)[0] == 0  # an earlier import is replaced
    (out / "notes.txt").write_text("mine")
    assert rejected(capsys, *arguments) == (
        "`out` must be a new or empty directory, or an earlier one of the same kind, "
        f"got '{out}' with other files in it."
    )


def test_other_states_prefixes_and_priors_are_understood(tmp_path, model):
    def scale(config: dict) -> None:
        config["training"]["task_kwargs"] = {"scale": 2}
        del config["wandb"]

    source = write_run(tmp_path / "run", model, SMALL, scale)
    learner = asc.import_model(source)
    assert learner.name == "run"
    assert learner.task == asc.LinearRegression(3, prior_variance=4.0)
    assert asc.import_model(source, state="model_500.pt").digest == learner.digest
    renamed = {
        name.replace("_backbone.", "module.net.gpt.").replace(
            "_read", "module.net.read"
        ): w
        for name, w in model.state_dict().items()
    }
    torch.save(renamed, source / "renamed.pt")
    assert asc.import_model(source, state="renamed.pt").digest == learner.digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"family": "lstm"},
            "describes a model of the family 'lstm'; only 'gpt2' is imported. Ask any "
            "other model as a function, through `asc.from_torch`.",
        ),
        ({"family": None}, "describes a model of the family NoneType; only 'gpt2'"),
        ({"n_dims": "three"}, "has no positive integer model.n_dims."),
        ({"n_head": 0}, "has no positive integer model.n_head."),
        ({"n_layer": True}, "has no positive integer model.n_layer."),
        (
            {"n_layer": 3},
            "does not fit the model in config.yaml: it has 2 layers, not 3.",
        ),
        (
            {"n_embd": 8},
            "does not fit the model in config.yaml: read_in has shape [16, 3], not "
            "[8, 3].",
        ),
        (
            {"n_head": 3},
            "does not fit the model in config.yaml: 3 heads for 16 hidden units.",
        ),
    ],
)
def test_configurations_that_do_not_fit_are_refused(tmp_path, model, changes, message):
    source = write_run(tmp_path, model, SMALL, lambda c: c["model"].update(changes))
    with pytest.raises(DamagedFileError) as caught:
        asc.import_model(source)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2", "is not a readable YAML file (ParserError)."),
        ("!!python/object/apply:os.system ['true']", "is not a readable YAML file ("),
        ("when: 2024-99-99", "is not a readable YAML file (ValueError)."),
        ("[" * 10_000, "is not a readable YAML file ("),
        ("\x00", "is not a readable YAML file ("),
        ("a: " + "x" * 2**20, "is not a readable YAML file (ValueError)."),
        (
            "training: {}",
            "is not the configuration of a run (it has no section 'model').",
        ),
        ("3", "is not the configuration of a run (it has no section 'model')."),
    ],
)
def test_other_yaml_files_are_refused(tmp_path, content, message):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(DamagedFileError) as caught:
        asc.import_model(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'config.yaml'} {message}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda state: state.pop("_read_in.weight"),
            "0 of its weights end with read_in.weight",
        ),
        (lambda state: state.pop("_read_out.bias"), "read_out has no bias of size 1"),
        (
            lambda state: state.pop("_backbone.h.1.mlp.c_fc.weight"),
            "it has no h.1.mlp.c_fc.weight",
        ),
        (
            lambda state: state.update({"_backbone.ln_f.bias": torch.zeros(5)}),
            "ln_f.bias has shape [5], not [16]",
        ),
        (
            lambda state: state.update({"_read_out.weight": torch.zeros(3, 16)}),
            "read_out has shape [3, 16], not [1, 16]",
        ),
        (
            lambda state: state.update({"_backbone.wpe.weight": torch.zeros(4)}),
            "wpe.weight has shape [4], not ['any', 16]",
        ),
    ],
)
def test_missing_and_misshapen_weights_are_refused(tmp_path, model, change, message):
    source = write_run(tmp_path, model, SMALL)
    state = model.state_dict()
    change(state)
    torch.save(state, source / "state.pt")
    path = source / "state.pt"
    expected = f"{path} does not fit the model in config.yaml: {message}."
    with refuses(DamagedFileError, expected):
        asc.import_model(source)


def test_other_contents_of_a_state_are_refused(capsys, tmp_path, model):
    source = write_run(tmp_path, model, SMALL)
    state = model.state_dict()
    state["_backbone.wpe.weight"] = state["_backbone.wpe.weight"].clone()
    state["_backbone.wpe.weight"][0, 0] = torch.nan
    torch.save(state, source / "nan.pt")
    torch.save([1, 2], source / "list.pt")
    (source / "damaged.pt").write_bytes((source / "state.pt").read_bytes()[:-900])
    out = tmp_path / "out"

    def refusal(name: str) -> str:
        arguments = ("import", str(source), "--out", str(out), "--state", name)
        message = rejected(capsys, *arguments)
        assert not out.exists()
        return message.removeprefix(f"{source / name} ")

    assert refusal("nan.pt") == "holds NaN or infinity in _backbone.wpe.weight."
    assert refusal("list.pt") == "does not hold a dictionary of weights."
    assert refusal("damaged.pt").startswith("is not a file of torch.save")
    assert refusal("none.pt") == (
        "`directory` must hold config.yaml and the weights, none.pt, got "
        f"'{source}' without none.pt."
    )
    assert refusal("../state.pt") == (
        "`state` must be the name of a file, got '../state.pt'."
    )


def test_a_directory_of_nothing_known_is_refused(capsys, tmp_path):
    arguments = ("import", str(tmp_path), "--out", str(tmp_path / "out"))
    assert rejected(capsys, *arguments) == (
        "`directory` must hold config.yaml and state.pt of a run, or what `algoscope "
        f"export` wrote, got '{tmp_path}'."
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"task": "relu_2nn_regression"},
            "describes a run of the task 'relu_2nn_regression', not of "
            "linear_regression.",
        ),
        ({"task": None}, "describes a run of the task none, not of linear_regression."),
        ({"data": "skewed"}, "describes a run whose data are not Gaussian, or are"),
        ({"task_kwargs": {"scale": "much"}}, "has no numbers training.task_kwargs.sca"),
        ({"task_kwargs": {"scale": 0}}, "has no numbers training.task_kwargs.scale"),
    ],
)
def test_a_run_of_another_task_is_refused_unless_any_is_allowed(
    capsys, tmp_path, model, changes, message
):
    source = write_run(
        tmp_path / "run",
        model,
        SMALL,
        lambda config: config["training"].update(changes),
    )
    words = ("import", str(source), "--out", str(tmp_path / "out"))
    shown = rejected(capsys, *words)
    assert shown.startswith(f"{source / 'config.yaml'} {message}")
    assert shown.endswith("on linear regression all the same: --any-task.")
    assert not (tmp_path / "out").exists()
    assert run(capsys, *words, "--any-task")[0] == 0
    assert asc.InContextLearner.from_pretrained(tmp_path / "out").dim == 3


def test_noise_is_part_of_the_task(tmp_path, model):
    def noisy(config: dict) -> None:
        config["training"] |= {
            "task": "noisy_linear_regression",
            "task_kwargs": {"noise_std": 0.5},
        }

    learner = asc.import_model(write_run(tmp_path, model, SMALL, noisy))
    assert learner.task == asc.LinearRegression(3, noise_variance=0.25)
