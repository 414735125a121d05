"""The collection of labelled learners, and how each is written and loaded.

Every learner is an ordinary saved model with two more files:

    truth.json           what is where, `Truths`, and how exact it is
    values.safetensors   datasets, and the exact value of every quantity on them

`index.json` beside the learners lists them. Plain learners are compiled with the
constants that are most exact; rotated ones with smaller pads, since a rotation spreads
the rounding errors of the largest number over all rows. Trained ones start from a
trainable construction: their labels are those of the start, and `errors` say how far
each quantity is from what the program computes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from algoscope.construction.algorithms import (
    GD,
    RLS,
    SGD,
    Algorithm,
    AttentionGD,
    Chebyshev,
    ConjugateGradients,
    HeavyBall,
    Kaczmarz,
    LoopedSGD,
    MinimumNorm,
    NadarayaWatson,
    Newton,
    Ridge,
    ScanSGD,
)
from algoscope.construction.build import Construction
from algoscope.construction.compiler.compile import Compiled, compile_program
from algoscope.construction.language.interpreter import evaluate, interpret
from algoscope.construction.language.storage import PROGRAM, save_program
from algoscope.foundation.files import (
    load_arrays,
    read_saved,
    save_arrays,
    write_saved,
)
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import InvalidValueError
from algoscope.ground_truth.exact import ExactLearner
from algoscope.ground_truth.labels import Labeller, Quantity, Truths, read_rows
from algoscope.ground_truth.rotation import Rotation, random_rotation, rotate
from algoscope.model.learner import InContextLearner, OperandRange
from algoscope.model.transformer import run_compiled
from algoscope.training.config import PRESETS
from algoscope.training.loop import data_mesh, initial_state, task_of, train_steps
from algoscope.training.start import starting_from

TRUTH, VALUES, INDEX = "truth.json", "values.safetensors", "index.json"
KIND = "ground truth"
DATASETS = 64  # whose exact values are saved
SEED = 1  # of these datasets; calibration uses another
ROTATED_PAD = 2.0**18  # where rounding and LayerNorm's error are about the same

TRAINED_STEPS = 50

Form = Literal["plain", "rotated", "trained"]
Values = dict[str, Float[np.ndarray, "datasets time _"]]


@dataclass(frozen=True)
class Specimen:
    """One learner of the collection."""

    algorithm: Algorithm
    dim: int = 2
    num_examples: int = 4
    form: Form = "plain"

    @property
    def name(self) -> str:
        """For example `sgd-d2-n4-rotated`."""
        size = f"{self.algorithm.name}-d{self.dim}-n{self.num_examples}"
        return size if self.form == "plain" else f"{size}-{self.form}"

    @property
    def construction(self) -> Construction:
        """What is compiled."""
        size = (self.dim, self.num_examples)
        if self.form == "trained":
            return Construction(self.algorithm, *size, "float32", trainable=True)
        return Construction(self.algorithm, *size)


_SMALL = (
    SGD(),
    LoopedSGD(),
    ScanSGD(),
    Ridge(),
    RLS(),
    GD(steps=3),
    HeavyBall(steps=3),
    Chebyshev(steps=3),
    Newton(steps=3),
    ConjugateGradients(steps=2),
    Kaczmarz(),
    AttentionGD(steps=3),
    NadarayaWatson(),
)
_LARGE = (SGD(), ScanSGD(), Ridge(), GD(steps=4))
_TRAINED = (GD(learning_rate=0.05, steps=1), SGD(), LoopedSGD())
_ROTATED = (SGD(), LoopedSGD(), ScanSGD(), Ridge(), GD(steps=3), Kaczmarz())

COLLECTION: tuple[Specimen, ...] = (
    *(Specimen(each) for each in _SMALL),
    Specimen(MinimumNorm(), 4, 3),
    *(Specimen(each, 4, 8) for each in _LARGE),
    *(Specimen(each, form="rotated") for each in _ROTATED),
    *(Specimen(each, 4, 8, "rotated") for each in _LARGE),
    *(Specimen(each, form="trained") for each in _TRAINED),
)


@dataclass(frozen=True, eq=False)
class LabelledLearner:
    """A learner and the truth about it.

    Example:
        >>> import tempfile
        >>> out = tempfile.mkdtemp()
        >>> names = write_ground_truth(out, only=["sgd-d2-n4"], progress=False)
        >>> found = LabelledLearner.load(Path(out) / names[0])
        >>> [each.name for each in found.labels.held(1)]
        ['token', 'x1', 'y1', 'w1']
    """

    learner: InContextLearner
    construction: Construction
    labels: Truths
    tokens: Float[np.ndarray, "datasets time token"]
    values: Values  # of every quantity, by name
    prediction: Float[np.ndarray, "datasets queries"]  # exact
    rotation: Rotation | None
    errors: dict[str, Any] = field(default_factory=dict)  # see `_errors`

    @property
    def name(self) -> str:
        """The learner's name."""
        return self.learner.name

    @property
    def exact(self) -> ExactLearner:
        """The program as an opened learner."""
        return ExactLearner(self.construction.arrange(), f"{self.name}, exactly")

    def quantity(self, name: str) -> Quantity:
        """Return a quantity by name."""
        for each in self.labels.quantities:
            if each.name == name:
                return each
        names = ", ".join(each.name for each in self.labels.quantities)
        raise InvalidValueError("quantity", f"be one of {names}", repr(name))

    @classmethod
    def load(cls, directory: str | Path) -> "LabelledLearner":
        """Return the learner that `write_ground_truth` wrote to a directory."""
        place = Path(directory)
        if not (place / TRUTH).is_file():
            rule = "be a directory of a ground truth, with truth.json"
            raise InvalidValueError("directory", rule, f"'{place}'")
        arrays, _ = load_arrays(place / VALUES)
        learner = InContextLearner.from_pretrained(place)

        def build(saved: dict[str, Any]) -> LabelledLearner:
            labels = Truths.from_dict(saved["labels"])
            return cls(
                learner,
                Construction.from_dict(saved["construction"]),
                labels,
                arrays["tokens"],
                {each.name: arrays[_key(each)] for each in labels.quantities},
                arrays["prediction"],
                arrays.get("rotation"),
                saved["errors"],
            )

        return read_saved(place / TRUTH, KIND, build)


def _key(quantity: Quantity) -> str:
    return f"quantity {quantity.name}"


def write_ground_truth(
    out: str | Path,
    *,
    only: Sequence[str] = (),
    progress: Progress | bool = True,
) -> list[str]:
    """Write the collection, or only some learners of it; return their names.

    Example:
        >>> import tempfile
        >>> write_ground_truth(tempfile.mkdtemp(), only=["gd-d2-n4"], progress=False)
        ['gd-d2-n4']
    """
    names = [specimen.name for specimen in COLLECTION]
    for name in only:
        if name not in names:
            rule = f"name learners of the collection: {', '.join(names)}"
            raise InvalidValueError("only", rule, repr(name))
    chosen = [each for each in COLLECTION if not only or each.name in only]
    rows = []
    with shown(progress) as report, jax.enable_x64(True):
        steps = Steps(report, "writing learners", len(chosen))
        for specimen in chosen:
            rows.append(_write(specimen, Path(out) / specimen.name))
            steps.add()
    write_saved(Path(out) / INDEX, f"{KIND} index", {"learners": rows})
    return [specimen.name for specimen in chosen]


def _write(specimen: Specimen, place: Path) -> dict[str, Any]:
    """Write one learner with its truth; return its line of the index."""
    construction = specimen.construction
    compiled, learner, rotation = _learner(specimen)
    algorithm = construction.suited
    size = (specimen.dim, specimen.num_examples)
    tokens = algorithm.examples(*size, DATASETS, SEED)
    state = interpret(compiled.program, tokens)
    labeller = Labeller(compiled)
    labels = labeller.labels(state)
    registers = labeller.registers()
    values = {each.name: state[registers[each.name]] for each in labels.quantities}
    prediction = evaluate(compiled.program.prediction, state)[:, ::2, 0]
    errors = _errors(learner, labels, tokens, values, prediction, rotation)
    arrays = {f"quantity {name}": np.array(each) for name, each in values.items()}
    arrays |= {"tokens": tokens, "prediction": np.array(prediction)}
    if rotation is not None:
        arrays["rotation"] = rotation
    about = {
        "name": specimen.name,
        "algorithm": specimen.algorithm.name,
        "parameters": specimen.algorithm.parameters,
        "dim": specimen.dim,
        "num_examples": specimen.num_examples,
        "num_layers": learner.num_layers,
        "hidden_size": learner.hidden_size,
        "form": specimen.form,
    }
    # What `trace` shows is read off rows, which a rotated stream does not have.
    written = {"construction": construction.as_dict()}
    traceable = written if rotation is None else {}
    save_program(compiled.program, place / PROGRAM)
    learner.save_pretrained(
        place,
        card=_card(specimen, learner, errors["prediction"]),
        about={"ground_truth": specimen.form, **traceable},
    )
    save_arrays(place / VALUES, arrays, {"format": f"algoscope {KIND}"})
    truth = {**about, **written, "labels": labels.as_dict(), "errors": errors}
    write_saved(place / TRUTH, KIND, truth)
    return {**about, "error": errors["prediction"]}


def _learner(specimen: Specimen) -> tuple[Compiled, InContextLearner, Rotation | None]:
    construction = specimen.construction
    if specimen.form == "plain":
        compiled = construction.compile()
        return compiled, compiled.learner(specimen.name), None
    if specimen.form == "trained":
        compiled = construction.compile()
        return compiled, _trained(compiled.learner(specimen.name)), None
    compiled = compile_program(
        construction.program,
        replace(construction.numerics, pad=ROTATED_PAD),
        tokens=construction.suited.examples(specimen.dim, specimen.num_examples),
    )
    rotation = random_rotation(compiled.hidden_size)
    # The pads are no longer rows, so the share of the others cannot be watched.
    known = compiled.operands
    operands = known and OperandRange(known.largest, known.products)
    turned = rotate(compiled.transformer, rotation)
    return compiled, InContextLearner(turned, specimen.name, operands), rotation


def _trained(start: InContextLearner) -> InContextLearner:
    """Return a learner after some steps of training on noisy linear regression."""
    config = replace(PRESETS["tune"], steps=TRAINED_STEPS, noise_variance=0.25)
    config = starting_from(config, start)
    with jax.enable_x64(False):  # which training does not need
        state = initial_state(config, start=start.transformer)
        *_, (state, _) = train_steps(config, state, data_mesh(1))
    trained = jax.tree.map(jnp.asarray, state.transformer)
    return InContextLearner(trained, start.name, task=task_of(config))


def _errors(
    learner: InContextLearner,
    labels: Truths,
    tokens: Float[np.ndarray, "datasets time token"],
    values: Values,
    prediction: Float[np.ndarray, "datasets queries"],
    rotation: Rotation | None,
) -> dict[str, Any]:
    """Return how far weights and program differ: the largest over max(1, exact).

    `by_quantity` is the root mean square of the difference over that of the quantity.
    """
    run = run_compiled(learner.transformer, jnp.asarray(tokens))
    hidden = np.asarray(run.hidden, np.float64)
    worst, relative = 0.0, {}
    for each in labels.quantities:
        held = slice(each.first_layer, each.last_layer + 1)
        found = read_rows(hidden[:, held], each, rotation)
        exact = values[each.name][:, None]
        worst = max(worst, _difference(found, exact))
        if found.size and exact.any():
            ratio = np.mean((found - exact) ** 2) / np.mean(exact**2)
            relative[each.name] = float(np.sqrt(ratio))
    answers = np.asarray(run.output)[:, ::2]
    return {
        "prediction": _difference(answers, prediction),
        "quantities": worst,
        "by_quantity": relative,
    }


def _difference(
    found: Float[np.ndarray, "..."], exact: Float[np.ndarray, "..."]
) -> float:
    relative = np.abs(found - exact) / np.maximum(1, np.abs(exact))
    return float(np.max(relative, initial=0))


def _card(specimen: Specimen, learner: InContextLearner, error: float) -> str:
    return (
        f"# {specimen.name}\n\n{specimen.algorithm.name} with "
        f"{specimen.algorithm.parameters}, compiled for d = {specimen.dim} and up to "
        f"{specimen.num_examples} examples: {learner.num_layers} layers of width "
        f"{learner.hidden_size}, {specimen.form}. Predictions differ from the "
        f"program's by at most {error:.1e}. What is where: {TRUTH}; exact values: "
        f"{VALUES}.\n"
    )
