"""Learners for other programs: PyTorch, GPT-2 of `transformers`, and ONNX.

`torch` writes any learner, trained or written by hand, with one standalone file of
PyTorch that computes the same. It is also an ordinary saved learner. `gpt2` writes
those that a `GPT2Model` computes exactly, and `onnx` any learner, through PyTorch.
"""

import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import numpy as np

from algoscope.exchange.gpt2 import READS, gpt2_config, require_gpt2, to_gpt2
from algoscope.exchange.outputs import require_free, task_facts
from algoscope.foundation.files import (
    read_json,
    save_arrays,
    write_atomically,
    write_json,
)
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.model.checkpoints import CARD, CONFIG, WEIGHTS, locate
from algoscope.model.learner import InContextLearner

Format = Literal["torch", "gpt2", "onnx"]

CODE, GRAPH = "model.py", "model.onnx"
FILES: dict[str, tuple[str, ...]] = {
    "torch": (CODE, WEIGHTS, CONFIG, CARD),
    "gpt2": (WEIGHTS, READS, CONFIG, CARD),
    "onnx": (GRAPH, CONFIG, CARD),
}
EXPORTED = "exported"  # the field of config.json that names the format
OPSET = 20

TEXT = """# {name}

An in-context learner for d = {dim}, with room for {room} examples and a query, \
exported from algoscope{where}.

```python
{usage}
```

{more}
"""
USAGE = {
    "torch": """from model import load  # in this directory; needs PyTorch alone

model = load(".")
predictions = model.predict_prefixes(x, y)  # x [B, N, {dim}], y [B, N] -> [B, N]
run = model(tokens)  # its output, hidden [B, {depth}, T, {hidden}] and attention""",
    "gpt2": """from safetensors.torch import load_file
from transformers import GPT2Model

reads, model = load_file("reads.safetensors"), GPT2Model.from_pretrained(".")
states = model(inputs_embeds=tokens @ reads["read_in.weight"].T).last_hidden_state
output = states @ reads["read_out.weight"].T + reads["read_out.bias"]
predictions = output[:, ::2, 0]""",
    "onnx": """import onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
output, hidden, attention = session.run(None, {{"tokens": tokens}})
predictions = output[:, ::2]""",
}
MORE = {
    "torch": "The tokens are [0, x₁], [y₁, 0], [0, x₂], …: `model.encode(x, y)`. "
    "`asc.import_model` reads the directory back, bit for bit.",
    "gpt2": "The tokens [B, T, {size}] are [0, x₁], [y₁, 0], [0, x₂], …; the "
    "prediction of y stands at x.",
    "onnx": "The tokens [B, T, {size}], in {dtype}, are [0, x₁], [y₁, 0], [0, x₂], …; "
    "the prediction of y stands at x. There may be any number of datasets, and at most "
    "{most} tokens.",
}


def export(
    model: InContextLearner | str | Path, directory: str | Path, to: Format = "torch"
) -> Path:
    """Write a learner for another program, and return the directory.

    `model` is a learner, the name of a shipped one, or the directory of a saved one.
    The directory must be new, empty, or an earlier export to the same format.

    Example:
        >>> import tempfile
        >>> out = export("linear-d2", tempfile.mkdtemp())
        >>> sorted(path.name for path in out.iterdir())
        ['README.md', 'config.json', 'model.py', 'model.safetensors']
    """
    out = Path(directory)
    if isinstance(model, InContextLearner):
        _require_format(out, to)
        _write(model, out, to, task_facts(model))
    else:
        export_saved(model, out, to)
    return out


def export_saved(model: str | Path, out: Path, to: Format) -> InContextLearner:
    """Write a saved learner for another program, and return the learner."""
    _require_format(out, to)
    learner = InContextLearner.from_pretrained(model)
    _write(learner, out, to, read_json(locate(model) / CONFIG))
    return learner


def _require_format(out: Path, to: Format) -> None:
    require_choice("to", to, get_args(Format))
    require_free(out, FILES[to], EXPORTED, to)


def _write(
    learner: InContextLearner, out: Path, to: Format, about: dict[str, Any]
) -> None:
    WRITERS[to](learner, out, about)
    write_atomically(out / CARD, _card(learner, to).encode())


def _card(learner: InContextLearner, to: str) -> str:
    transformer = learner.transformer
    precision = transformer.block.precision
    facts = {
        "dim": learner.dim,
        "size": transformer.token_size,
        "depth": transformer.num_layers + 1,
        "hidden": transformer.w_e.shape[0],
        "most": transformer.max_time,
        "dtype": transformer.w_e.dtype,
    }
    return TEXT.format(
        name=learner.name,
        dim=learner.dim,
        room=learner.max_examples,
        where="" if precision == "any" else f"; its weights need {precision}",
        usage=USAGE[to].format(**facts),
        more=MORE[to].format(**facts),
    )


def _write_torch(learner: InContextLearner, out: Path, about: dict[str, Any]) -> None:
    code = Path(__file__).with_name("torch_model.py").read_bytes()
    write_atomically(out / CODE, code)
    own = ("format", "name", "block")  # that `save_pretrained` writes itself
    facts = {name: value for name, value in about.items() if name not in own}
    # Of a compiled rule too, only what PyTorch reads: no program.
    InContextLearner.save_pretrained(learner, out, about={**facts, EXPORTED: "torch"})


def _write_gpt2(learner: InContextLearner, out: Path, about: dict[str, Any]) -> None:
    transformer = learner.transformer
    require_gpt2(transformer)
    metadata = {"format": "pt"}  # which `transformers` asks for
    save_arrays(out / WEIGHTS, to_gpt2(transformer), metadata)
    reads = {
        "read_in.weight": np.asarray(transformer.w_e),
        "read_in.bias": np.zeros_like(transformer.w_o),  # the positions hold it
        "read_out.weight": np.asarray(transformer.w_o)[None],
        "read_out.bias": np.asarray(transformer.b_o)[None],
    }
    save_arrays(out / READS, reads, metadata)
    config = {**gpt2_config(transformer), "name": learner.name, EXPORTED: "gpt2"}
    write_json(out / CONFIG, config)


def _write_onnx(learner: InContextLearner, out: Path, about: dict[str, Any]) -> None:
    try:
        import onnxscript  # noqa: F401  # pyright: ignore[reportMissingImports]
        import torch  # pyright: ignore[reportMissingImports]

        from algoscope.exchange.torch_model import load
    except ImportError as error:
        rule = "be a format whose packages are installed"
        remedy = "Install torch, onnx and onnxscript: pip install 'algoscope[onnx]'."
        raise InvalidValueError(
            "to", rule, f"onnx without {error.name}", remedy
        ) from error
    with TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of PyTorch's own code
        learner.save_pretrained(place)
        model = load(place).eval()
        tokens = torch.zeros(2, min(3, learner.transformer.max_time), learner.dim + 1)
        any_size = torch.export.Dim.DYNAMIC
        graph: Any = torch.onnx.export(
            model,
            (tokens.to(next(model.parameters()).dtype),),
            input_names=["tokens"],
            output_names=["output", "hidden", "attention"],
            dynamic_shapes={"tokens": {0: any_size, 1: any_size}},
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
        graph.save(Path(place) / GRAPH)
        write_atomically(out / GRAPH, (Path(place) / GRAPH).read_bytes())
    block = asdict(learner.transformer.block)
    config = {"name": learner.name, "dim": learner.dim, "block": block}
    write_json(out / CONFIG, {**config, EXPORTED: "onnx"})


WRITERS: dict[str, Callable[[InContextLearner, Path, dict[str, Any]], None]] = {
    "torch": _write_torch,
    "gpt2": _write_gpt2,
    "onnx": _write_onnx,
}
