"""Theorems 1 and 2 as transformers: how many layers, how wide, how exact (paper §3).

The paper's constructions, line by line, and the compiler's shorter programs are run on
random datasets and compared with the closed forms. Sizes are those of the weights.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from algoscope.construction import build
from algoscope.construction.algorithms import SGD, Algorithm, OneExampleRidge
from algoscope.construction.paper.chain import Chain, theorem_1, theorem_2
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import Place, Spent
from algoscope.experiments.record import Claim, Difference, Table
from algoscope.foundation.files import read_json, reading, write_json
from algoscope.foundation.plotting import COLORS, MARKERS, save_picture
from algoscope.foundation.text import listed, number
from algoscope.model.tokens import example_tokens
from algoscope.model.transformer import Transformer

FILE = "sizes.json"
EXACT = 1e-6  # an error below this counts as exact
RATE, PENALTY = 0.05, 0.1
DEGREES = {"Theorem 1": 1, "Theorem 2": 2}  # hidden size O(d) and O(d²)
LAYERS = {"Theorem 1": 9, "Theorem 2": 14}  # lines of appendices A and B

Tokens = Float[np.ndarray, "datasets time token"]
Predictions = Float[np.ndarray, " datasets"]


@dataclass(frozen=True)
class Theorems:
    """The dimensions, in equal steps, and the datasets to run on."""

    dims: tuple[int, ...] = (2, 3, 4, 5, 6)
    num_datasets: int = 100
    seed: int = 1


@dataclass(frozen=True)
class Size:
    """One construction for one d."""

    theorem: str
    form: str  # as printed, or compiled
    dim: int
    layers: int
    hidden_size: int
    error: float  # the largest, over datasets


@eqx.filter_jit
def _last(
    transformer: Transformer,
    tokens: Float[np.ndarray | jax.Array, "datasets time token"],
) -> Float[jax.Array, " datasets"]:
    return transformer(jnp.asarray(tokens)).output[..., -1]


def _step(tokens: Tokens, w: Float[np.ndarray, " dim"]) -> Predictions:
    """Return w′ᵀx₂ for w′ = w − 2α(x₁(wᵀx₁ − y₁) + λw)."""
    x, y, query = tokens[:, 0, 1:], tokens[:, 1, 0], tokens[:, 2, 1:]
    gradient = x * (x @ w - y)[:, None] + PENALTY * w
    return np.sum((w - 2 * RATE * gradient) * query, axis=1)


def _ridge(tokens: Tokens) -> Predictions:
    """Return w′ᵀx₂ for w′ = (x₁x₁ᵀ + λI)⁻¹x₁y₁."""
    predictions = []
    for x, y, query in zip(
        tokens[:, 0, 1:], tokens[:, 1, 0], tokens[:, 2, 1:], strict=True
    ):
        gram = np.outer(x, x) + PENALTY * np.eye(len(x))
        predictions.append(np.linalg.solve(gram, x * y) @ query)
    return np.array(predictions)


def _sizes(config: Theorems) -> list[Size]:
    """Build and run every construction, in double precision."""
    found = []
    for dim in config.dims:
        tokens = example_tokens(dim, 1, config.num_datasets, config.seed)
        w = np.random.default_rng(config.seed).normal(size=dim)
        start = np.zeros(dim)
        printed: dict[str, tuple[Chain, Predictions]] = {
            "Theorem 1": (theorem_1(dim, w, RATE, PENALTY), _step(tokens, w)),
            "Theorem 2": (theorem_2(dim, PENALTY), _ridge(tokens)),
        }
        compiled: dict[str, tuple[Algorithm, Predictions]] = {
            "Theorem 1": (SGD(RATE, PENALTY), _step(tokens, start)),
            "Theorem 2": (OneExampleRidge(PENALTY), _ridge(tokens)),
        }
        made = [(t, "as printed", c.compile(), p) for t, (c, p) in printed.items()]
        made += [
            (t, "compiled", build(a, dim, 1).transformer, p)
            for t, (a, p) in compiled.items()
        ]
        for theorem, form, transformer, exact in made:
            error = np.max(np.abs(np.asarray(_last(transformer, tokens)) - exact))
            hidden = transformer.w_e.shape[0]
            depth = transformer.num_layers
            found.append(Size(theorem, form, dim, depth, hidden, float(error)))
    return found


def measure(config: Theorems, place: Place) -> Spent:
    """Build, run and measure."""

    def save() -> None:
        place.note("building the transformers of Theorems 1 and 2")
        with jax.enable_x64(True):
            sizes = [asdict(each) for each in _sizes(config)]
        write_json(place.directory / FILE, {"sizes": sizes})

    return place.measure_once(FILE, {"config": asdict(config)}, save)


def _load(directory: Path) -> list[Size]:
    saved = read_json(directory / FILE)
    with reading(directory / FILE, "does not hold the sizes of the theorems"):
        return [Size(**each) for each in saved["sizes"]]


def judge(config: Theorems, directory: Path) -> Judgment:
    """Say the sizes and errors of both theorems."""
    sizes = _load(directory)
    rows = tuple(
        (
            each.theorem,
            each.form,
            str(each.dim),
            str(each.layers),
            str(each.hidden_size),
            number(each.error),
        )
        for each in sizes
    )
    header = ("theorem", "form", "d", "layers", "hidden size", "largest error")
    claims = tuple(_claim(sizes, theorem, config) for theorem in DEGREES)
    return Judgment(
        tuple(claim.measured for claim in claims),
        (Table("Constructions for one example", header, rows),),
        claims,
    )


def degree(sizes: list[int]) -> int:
    """Return the degree of the polynomial through values at equal steps.

    Example:
        >>> degree([5, 7, 9, 11]), degree([1, 4, 9, 16]), degree([3, 3, 3])
        (1, 2, 0)
    """
    values, found = np.array(sizes), 0
    while len(values) > 1 and np.any(np.diff(values)):
        values, found = np.diff(values), found + 1
    return found


def _claim(sizes: list[Size], theorem: str, config: Theorems) -> Claim:
    texts, holds, errors = [], [], []
    for form in ("as printed", "compiled"):
        own = [each for each in sizes if (each.theorem, each.form) == (theorem, form)]
        depths = sorted({each.layers for each in own})
        grows = degree([each.hidden_size for each in own])
        error = max(each.error for each in own)
        errors.append(error)
        holds.append(len(depths) == 1 and grows <= DEGREES[theorem] and error < EXACT)
        if form == "as printed":
            holds[-1] = holds[-1] and depths == [LAYERS[theorem]]
        widths = f"{own[0].hidden_size} to {own[-1].hidden_size}"
        where = " in the paper" if form == "as printed" else ""
        texts.append(
            f"{form}{where}: {listed(depths)} layers, hidden size {widths}, a "
            f"polynomial of degree {grows} in d, largest error {number(error)}"
        )
    power = "d" if DEGREES[theorem] == 1 else "d²"
    what = "a step of SGD" if DEGREES[theorem] == 1 else "a ridge update"
    return Claim.of_parts(
        f"{theorem}: sizes",
        f"A transformer computes {what} on one example with a constant number of "
        f"layers, {LAYERS[theorem]} in the paper, and O({power}) hidden space (§3).",
        f"d = {listed(config.dims)}, {config.num_datasets} datasets each, float64; "
        f"{'; '.join(texts)}.",
        holds,
        difference=Difference.exact(f"largest error − {EXACT:g}", max(errors) - EXACT),
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw hidden sizes against d."""
    sizes = _load(directory)
    figure = Figure(figsize=(4.8, 3.6))
    axes = figure.subplots()
    kinds = dict.fromkeys((each.theorem, each.form) for each in sizes)
    for color, marker, (theorem, form) in zip(COLORS, MARKERS, kinds, strict=False):
        own = [each for each in sizes if (each.theorem, each.form) == (theorem, form)]
        axes.plot(
            [each.dim for each in own],
            [each.hidden_size for each in own],
            marker=marker,
            color=color,
            label=f"{theorem}, {form}: {own[0].layers} layers",
        )
    axes.set(xlabel="d", ylabel="hidden size")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return (save_picture(figure, directory, "theorems"),)


EXPERIMENT = Experiment(
    name="theorems",
    title="How large are the transformers of Theorems 1 and 2?",
    budgets={
        "smoke": Theorems((2,), 4),
        "cpu": Theorems(),
        "paper": Theorems(),
    },
    trainings=lambda config: [],
    measuring=lambda config: 8.0 * len(config.dims),
    measure=measure,
    judge=judge,
    draw=draw,
)
