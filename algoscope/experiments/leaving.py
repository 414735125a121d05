"""Does training leave the construction? Weights written by hand, trained on the task.

A learner starts as a compiled algorithm, with some of its layers redrawn, or with all
of them random at equal size, and is trained. On the way its distances are measured to
the algorithm that it was, to least squares, and to the Bayes predictor of the task; so
are the loss, how far the weights have moved, and what `identify` says.

Distances are medians over datasets of (difference)²/d, averaged over n ≥ 1: with label
noise the mean to least squares is decided by a few datasets with n near d.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from algoscope.comparison.predict import held_out, predict_all, predict_exactly
from algoscope.construction import build
from algoscope.construction.algorithms import GD, SGD, Algorithm, Ridge
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import (
    UNFINISHED,
    NoLearnerError,
    Place,
    Spent,
)
from algoscope.experiments.record import OURS, Claim, Difference, Table
from algoscope.foundation import provenance
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import parse_number, read_json, reading, write_json
from algoscope.foundation.plotting import looks, save_picture
from algoscope.foundation.text import number
from algoscope.identification import identify
from algoscope.model.learner import InContextLearner
from algoscope.model.transformer import Transformer
from algoscope.predictors import bayes, ols
from algoscope.training.config import PRESETS, TrainingConfig
from algoscope.training.loop import data_mesh, initial_state, task_of, train_steps
from algoscope.training.start import redraw, starting_from

STARTS: dict[str, Algorithm] = {
    "one step of GD": GD(learning_rate=0.05, steps=1),
    "SGD": SGD(learning_rate=0.05),
    "ridge": Ridge(penalty=2.0),
}
WRITTEN, PARTLY, RANDOM = "written", "half random", "random"
REFERENCES = ("construction", "ols", "bayes")
LABELS = {"construction": "the construction", "ols": "OLS", "bayes": "Bayes"}
LINES = {WRITTEN: "-", PARTLY: "--", RANDOM: ":"}

Predictions = Float[np.ndarray, "datasets examples"]


@dataclass(frozen=True)
class Leaving:
    """The task, the length of training, and when to measure."""

    starts: tuple[str, ...] = tuple(STARTS)
    dim: int = 2
    num_examples: int = 4  # before a query
    noise_variance: float = 0.25
    snapshots: tuple[int, ...] = (0, 25, 100, 250, 500, 1000)  # steps; the last ends
    steps_per_call: int = 25
    rates: tuple[float, float, float] = (1e-5, 3e-4, 1e-3)  # written, half, random
    num_datasets: int = 1000  # held out
    num_identified: int = 96  # datasets that `identify` asks about; 0: not at all
    seed: int = 0

    @property
    def variants(self) -> dict[str, float]:
        """How a run starts, and its learning rate."""
        return dict(zip((WRITTEN, PARTLY, RANDOM), self.rates, strict=True))


@dataclass(frozen=True)
class Snapshot:
    """What was measured after some steps."""

    step: int
    loss: float  # on held-out datasets
    construction: float  # distances
    ols: float
    bayes: float
    moved: float  # ‖weights − weights at the start‖ / ‖weights at the start‖
    verdict: str  # of `identify`
    nearest: str
    nearest_distance: float


def start_of(config: Leaving, name: str, variant: str) -> InContextLearner:
    """Return the learner that a run starts from."""
    written = build(STARTS[name], config.dim, config.num_examples, trainable=True)
    if variant == WRITTEN:
        return written
    if variant == RANDOM:
        return redraw(written, seed=config.seed)
    depth = written.num_layers
    return redraw(written, range(depth // 2 + 1, depth + 1), config.seed)


def training_of(
    config: Leaving, start: InContextLearner, rate: float
) -> TrainingConfig:
    """Return how a run is trained."""
    calls = ("steps_per_call", "evaluate_every", "save_every")
    base = replace(
        PRESETS["tune"],
        noise_variance=config.noise_variance,
        steps=config.snapshots[-1],
        learning_rate=rate,
        seed=config.seed,
        **dict.fromkeys(calls, config.steps_per_call),
    )
    return starting_from(base, start)


def _follow(config: Leaving, name: str, variant: str) -> Iterator[Snapshot]:
    """Train one run, and measure it at every snapshot."""
    start = start_of(config, name, variant)
    training = training_of(config, start, config.variants[variant])
    measure = _measuring(config, STARTS[name], training, start.transformer)
    yield measure(0, start.transformer)
    begun = initial_state(training, start=start.transformer)
    for state, _ in train_steps(training, begun, data_mesh(1)):
        if int(state.step) in config.snapshots:
            trained = jax.tree.map(jnp.asarray, state.transformer)
            yield measure(int(state.step), trained)


def _measuring(
    config: Leaving,
    algorithm: Algorithm,
    training: TrainingConfig,
    start: Transformer,
) -> Callable[[int, Transformer], Snapshot]:
    task = task_of(training)
    x, y = held_out(
        task,
        num_datasets=config.num_datasets,
        num_examples=training.num_examples,
        seed=config.seed,
    )
    best = bayes(noise_variance=config.noise_variance, prior_variance=1.0)
    exact: Any = algorithm.reference
    references = zip(REFERENCES, (exact, ols, best), strict=True)
    known = {name: predict_exactly(each, x, y) for name, each in references}
    before = jax.tree.leaves(start)
    length = np.sqrt(sum(float(jnp.sum(leaf**2)) for leaf in before))

    def measure(step: int, transformer: Transformer) -> Snapshot:
        learner = InContextLearner(transformer, "learner", task=task)
        found = np.asarray(predict_all(learner, x, y), np.float64)
        pairs = zip(jax.tree.leaves(transformer), before, strict=True)
        change = np.sqrt(sum(float(jnp.sum((a - b) ** 2)) for a, b in pairs))
        distances = {k: distance(found, each, config.dim) for k, each in known.items()}
        return Snapshot(
            step=step,
            loss=float(np.mean((found - y) ** 2)),
            moved=float(change / length),
            **distances,
            **_identified(config, learner),
        )

    return measure


def distance(found: Predictions, reference: Predictions, dim: int) -> float:
    """Return the median over datasets of (difference)²/d, averaged over n ≥ 1.

    Example:
        >>> distance(np.ones((3, 2)), np.array([[0.0, 1], [5, 1], [9, 4]]), 1)
        0.0
    """
    squares = (found - reference) ** 2 / dim
    return float(np.median(squares[:, 1:], axis=0).mean())


def _identified(config: Leaving, learner: InContextLearner) -> dict[str, Any]:
    if not config.num_identified:
        return {"verdict": "–", "nearest": "–", "nearest_distance": float("nan")}
    found = identify(
        learner,
        num_datasets=config.num_identified,
        domain="task",
        with_evidence=False,
        progress=False,
    )
    nearest = found.candidates[0]
    return {
        "verdict": found.verdict,
        "nearest": nearest.name,
        "nearest_distance": nearest.distance,
    }


def _file(name: str, variant: str) -> str:
    return f"{name} {variant}".replace(" ", "-").lower() + ".json"


def measure(config: Leaving, place: Place) -> Spent:
    """Train and measure every run; finished runs are cached."""
    cache, seconds, names = Cache(place.directory), 0.0, []
    runs = [(name, variant) for name in config.starts for variant in config.variants]
    for done, (name, variant) in enumerate(runs):
        place.progress("training", done, len(runs), f"{name}, {variant}")
        file = _file(name, variant)
        identity = {"config": asdict(config), "run": file, "versions": provenance()}

        def save(file: str = file, name: str = name, variant: str = variant) -> None:
            found = [asdict(each) for each in _follow(config, name, variant)]
            write_json(place.directory / file, {"snapshots": found})

        if place.finished and cache.seconds(file, identity) is None:
            raise NoLearnerError({f"{name}, {variant}": UNFINISHED})
        seconds += cache.file(file, identity, save)
        names.append(file)
    cache.keep_only(names)
    return Spent(seconds)


def load(directory: Path, name: str, variant: str) -> list[Snapshot]:
    """Return the snapshots of one run."""
    path = directory / _file(name, variant)
    saved = read_json(path)
    name = "nearest_distance"  # NaN where nothing was asked
    with reading(path, "does not hold snapshots"):
        return [
            Snapshot(**each | {name: parse_number(each[name])})
            for each in saved["snapshots"]
        ]


def judge(config: Leaving, directory: Path) -> Judgment:
    """Say what training did to every start."""
    runs = {
        (name, variant): load(directory, name, variant)
        for name in config.starts
        for variant in config.variants
    }
    header = ("start", "weights", "step", "loss", "to the construction", "to OLS")
    header += ("to Bayes", "weights moved by", "`identify`")
    rows = tuple(
        (name, variant, f"{each.step:,}", *_cells(each))
        for (name, variant), found in runs.items()
        for each in (found[0], found[-1])
    )
    claims = tuple(
        claim
        for name in config.starts
        for claim in _claims(config, name, {v: runs[name, v] for v in config.variants})
    )
    return Judgment(
        tuple(claim.measured for claim in claims),
        (Table("Before and after training", header, rows),),
        claims,
    )


def _cells(each: Snapshot) -> tuple[str, ...]:
    said = each.verdict if each.verdict in ("none", "–") else each.nearest
    numbers = (each.loss, each.construction, each.ols, each.bayes, each.moved)
    return (*(number(value) for value in numbers), said)


def _claims(
    config: Leaving, name: str, found: dict[str, list[Snapshot]]
) -> tuple[Claim, Claim]:
    first, last = found[WRITTEN][0], found[WRITTEN][-1]
    random = found[RANDOM][-1]
    leaves = Claim.of_parts(
        f"training leaves the construction: {name}",
        f"{OURS} trained on the task, a learner that starts as {name} ends nearer to "
        "the Bayes predictor than to the algorithm that it was.",
        f"{name}, {last.step:,} steps, {config.num_datasets:,} datasets: the distance "
        f"to the construction goes from {number(first.construction)} to "
        f"{number(last.construction)}, that to Bayes from {number(first.bayes)} to "
        f"{number(last.bayes)}; the weights move by {number(100 * last.moved)} %.",
        [last.bayes < last.construction, last.bayes < first.bayes],
        seeds=1,
        difference=Difference.exact(
            "distance to the construction − to Bayes", last.construction - last.bayes
        ),
    )
    ahead = Claim.of_parts(
        f"a construction is a head start: {name}",
        f"{OURS} after the same steps, a learner that starts as {name} has a lower "
        "loss than one of equal size that starts at random.",
        f"{name}: loss {number(first.loss)} → {number(last.loss)} written, "
        f"{number(found[PARTLY][0].loss)} → {number(found[PARTLY][-1].loss)} with half "
        f"of the layers random, {number(found[RANDOM][0].loss)} → "
        f"{number(random.loss)} all random.",
        [last.loss < random.loss],
        seeds=1,
        difference=Difference.exact(
            "loss at random − written", random.loss - last.loss
        ),
    )
    return leaves, ahead


def _few_digits(value: float, _: int) -> str:
    """Label 2 and 5 between the powers of ten of a logarithmic axis, and no others."""
    return f"{value:g}" if f"{value:.0e}"[0] in "25" else ""


def draw(directory: Path) -> tuple[str, ...]:
    """Draw distances and losses over training, one column per start."""
    names = [name for name in STARTS if (directory / _file(name, WRITTEN)).exists()]
    figure = Figure(figsize=(3.6 * len(names) + 0.6, 5.6))
    panels = figure.subplots(2, len(names), sharex=True, squeeze=False)
    for column, name in enumerate(names):
        above, below = panels[:, column]
        for variant, line in LINES.items():
            found = load(directory, name, variant)
            steps = [each.step for each in found]
            for reference, look in looks(REFERENCES).items():
                values = [getattr(each, reference) for each in found]
                label = f"to {LABELS[reference]}" if variant == WRITTEN else None
                above.plot(
                    steps, values, line, marker=".", color=look.color, label=label
                )
            losses = [each.loss for each in found]
            below.plot(steps, losses, line, marker=".", color="black", label=variant)
        above.set(title=name, yscale="log", xscale="symlog")
        below.set(xlabel="steps of training", yscale="log", xscale="symlog")
        below.yaxis.set(major_formatter="{x:g}", minor_formatter=_few_digits)
        for panel in (above, below):
            panel.spines[["top", "right"]].set_visible(False)
        above.set_ylabel("distance, median SPD/d")
        below.set_ylabel("loss")
        above.legend(fontsize=7)
        below.legend(fontsize=7, title="weights at the start", title_fontsize=7)
    figure.tight_layout()
    return (save_picture(figure, directory, "leaving"),)


EXPERIMENT = Experiment(
    name="leaving",
    title="Does training leave the construction?",
    budgets={
        "smoke": Leaving(
            ("one step of GD",),
            1,
            2,
            0.25,
            (0, 2),
            2,
            num_datasets=16,
            num_identified=0,
        ),
        "cpu": Leaving(),
        "paper": Leaving(
            dim=8,
            num_examples=20,
            snapshots=(0, 100, 1000, 10_000, 100_000),
            steps_per_call=100,
        ),
    },
    trainings=lambda config: [],
    measuring=lambda config: len(config.starts) * (40 + 0.06 * config.snapshots[-1]),
    measure=measure,
    judge=judge,
    draw=draw,
)
