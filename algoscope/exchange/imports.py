"""Learners that come from elsewhere, recognized by the files of their directory."""

from pathlib import Path
from typing import Any

from algoscope.exchange.garg import RUN_CONFIG, STATE, read_garg
from algoscope.exchange.gpt2 import ACTIVATIONS, READS, from_gpt2
from algoscope.exchange.outputs import require_free, task_facts
from algoscope.foundation.files import load_arrays, read_json, reading
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.checkpoints import CARD, CONFIG, WEIGHTS
from algoscope.model.learner import InContextLearner

IMPORTED = "imported_from"  # the field of config.json that names the source


def import_model(
    directory: str | Path, state: str = STATE, *, any_task: bool = False
) -> InContextLearner:
    """Return the learner in a directory that another program wrote, or `export` did.

    A run of dtsip/in-context-learning has config.yaml and `state`, by default state.pt.
    If it was trained on another task than linear regression, it is refused unless
    `any_task`; its learner is then measured on linear regression all the same. Nothing
    in a file is executed, and PyTorch is not needed.

    Example:
        >>> import tempfile
        >>> import algoscope as asc
        >>> out = asc.export("linear-d1", tempfile.mkdtemp(), to="gpt2")
        >>> learner = asc.import_model(out)
        >>> learner.dim, learner.max_examples
        (1, 20)
    """
    place = Path(directory)
    if (place / RUN_CONFIG).is_file():
        if Path(state).name != state:
            raise InvalidValueError("state", "be the name of a file", repr(state))
        return read_garg(place, state, any_task=any_task)
    if not (place / CONFIG).is_file():
        rule = (
            f"hold {RUN_CONFIG} and {STATE} of a run, or what `algoscope export` wrote"
        )
        raise InvalidValueError("directory", rule, f"'{directory}'")
    if read_json(place / CONFIG).get("model_type") == "gpt2":
        return _read_gpt2(place)
    return InContextLearner.from_pretrained(place, signed=False)


def import_to(
    directory: Path, out: Path, state: str = STATE, *, any_task: bool = False
) -> InContextLearner:
    """Write an imported learner as an ordinary saved one, and return it."""
    require_free(out, (WEIGHTS, CONFIG, CARD), IMPORTED)
    learner = import_model(directory, state, any_task=any_task)
    about = {**task_facts(learner), IMPORTED: str(directory)}
    learner.save_pretrained(out, about=about)
    return learner


def _read_gpt2(directory: Path) -> InContextLearner:
    """Return the learner that `export` wrote as a GPT-2."""
    config = read_json(directory / CONFIG)
    for part in (WEIGHTS, READS):
        if not (directory / part).is_file():
            rule = f"hold {CONFIG}, {WEIGHTS} and {READS}, as `export` writes them"
            found = f"'{directory}' without {part}"
            raise InvalidValueError("directory", rule, found)
    (state, _), (reads, _) = (
        load_arrays(directory / WEIGHTS, signed=False),
        load_arrays(directory / READS, signed=False),
    )
    names: dict[str, Any] = {theirs: ours for ours, theirs in ACTIVATIONS.items()}
    with reading(directory, "does not hold a GPT-2"):
        transformer = from_gpt2(
            state,
            reads,
            num_layers=int(config["n_layer"]),
            num_heads=int(config["n_head"]),
            activation=names[config["activation_function"]],
            epsilon=float(config["layer_norm_epsilon"]),
        )
    return InContextLearner(transformer, str(config.get("name", directory.name)))
