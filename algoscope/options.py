"""The options of each command: frozen dataclasses, whose docstrings are the help.

Nothing here imports JAX, so that help is instant.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from algoscope.configuration import (
    Activation,
    BlockKind,
    Initialization,
    Recipe,
    TaskKind,
    TrainingConfig,
    preset,
)


@dataclass(frozen=True)
class Train:
    """Train an in-context learner: a preset, with any of its choices changed."""

    preset: str = "demo"
    """Where to start from: demo, d1, d2, d4, control-d4, d8 or paper."""
    out: Path | None = None
    """The run's directory. By default runs/PRESET-ID."""
    resume: bool = False
    """Go on with the run in this directory."""
    steps: int | None = None
    """How many steps to train for."""
    seed: int | None = None
    """Seed of the initial weights and of the data."""
    task: TaskKind | None = None
    """linear: w is drawn for every dataset; control: w is always 1."""
    dim: int | None = None
    """d, the number of coordinates of x."""
    num_examples: int | None = None
    """n, the pairs (x, y) in a training sequence."""
    prior_variance: float | None = None
    """τ², the variance of w."""
    noise_variance: float | None = None
    """σ², the variance of the label noise."""
    num_layers: int | None = None
    """L, the depth."""
    hidden_size: int | None = None
    """H, the width."""
    num_heads: int | None = None
    """M, the attention heads."""
    block: BlockKind | None = None
    """The paper's block, or the modern one with a norm before attention."""
    activation: Activation | None = None
    """σ, the nonlinearity of the feed-forward part."""
    initialization: Initialization | None = None
    """How the first weights are drawn."""
    recipe: Recipe | None = None
    """fast: Muon; paper: Adam."""
    learning_rate: float | None = None
    """The highest learning rate."""
    weight_decay: float | None = None
    """Weight decay."""
    warmup: float | None = None
    """Share of the steps over which the learning rate rises."""
    clip: float | None = None
    """Largest norm of a gradient; 0: no limit."""
    batch_size: int | None = None
    """Datasets per step."""
    curriculum: bool | None = None
    """Grow the dimension and the length over the first third."""
    steps_per_call: int | None = None
    """Steps in one compiled call."""
    evaluate_every: int | None = None
    """Steps between two evaluations."""
    save_every: int | None = None
    """Steps between two saves."""
    devices: int | None = None
    """Devices to divide the batch over. By default all; on a CPU, one per core."""
    coordinator: str | None = None
    """HOST:PORT of process 0, to train over several processes."""
    num_processes: int | None = None
    """How many processes train together."""
    process_id: int | None = None
    """Which of them this is, from 0."""
    evaluation_datasets: int = 10_000
    """Held-out datasets for the table in the finished model's card."""
    name: str | None = None
    """The model's name in its card and in figures. By default the preset's."""
    json: bool = False
    """Print the result as JSON."""

    @property
    def config(self) -> TrainingConfig:
        """The preset with the changes."""
        changes = {
            name: value
            for name in TrainingConfig.__dataclass_fields__
            if (value := getattr(self, name)) is not None
        }
        return replace(preset(self.preset), **changes)


@dataclass(frozen=True)
class Evaluate:
    """Compare a model with the textbook algorithms of figure 1."""

    model: tyro.conf.Positional[str]
    """A shipped model's name, or a directory."""
    num_datasets: int = 10_000
    """Held-out datasets."""
    num_examples: int | None = None
    """The most examples before a query. By default all there is room for."""
    noise_variance: float | None = None
    """σ² of the test data. By default as in training."""
    prior_variance: float | None = None
    """τ² of the test data. By default as in training."""
    seed: int = 0
    """Seed of the test data."""
    out: Path | None = None
    """Write the comparison to this file."""
    figure: Path | None = None
    """Draw the comparison to this .png, .svg or .pdf file."""
    json: bool = False
    """Print the comparison as JSON."""


TARGET = (
    "A shipped model's name, a directory, a textbook algorithm such as ridge(0.1), "
    "sklearn:Ridge(alpha=0.3), python:module:function, or cmd:COMMAND, a program that "
    "answers JSON lines."
)
Target = Annotated[
    tyro.conf.Positional[str], tyro.conf.arg(help=TARGET, metavar="TARGET")
]


@dataclass(frozen=True)
class Compare:
    """Compare any predictor with textbook algorithms, by every metric."""

    target: Target
    references: Annotated[tuple[str, ...], tyro.conf.arg(name="with")] = ()
    """Algorithms, such as ols ridge(0.1) newton(4). By default those of figure 1."""
    metrics: tuple[str, ...] = ("spd", "ilwd", "r2")
    """What is measured, or all."""
    dim: int | None = None
    """d of the test data. By default the model's, otherwise 4."""
    num_examples: int | None = None
    """The most examples before a query. By default the model's, otherwise 20."""
    num_datasets: int | None = None
    """Held-out datasets. By default 10,000, and 200 for what is not run by JAX."""
    noise_variance: float = 0.0
    """σ² of the test data."""
    prior_variance: float = 1.0
    """τ² of the test data."""
    seed: int = 0
    """Seed of the test data."""
    timeout: float = 60.0
    """Seconds after which an answer counts as missing."""
    out: Path | None = None
    """Write the comparison to this file."""
    figure: Path | None = None
    """Draw SPD and ILWD (figure 1) to this .png, .svg or .pdf file."""
    linearity_figure: Path | None = None
    """Draw R² of the linear fit (figure 6) to this file."""
    json: bool = False
    """Print the comparison as JSON."""


@dataclass(frozen=True)
class Identify:
    """Say which learning algorithm a predictor runs."""

    target: Target
    dim: int | None = None
    """d of the test data. By default the model's, otherwise 4."""
    num_examples: int | None = None
    """The most examples before a query. By default 20, or what a model has room for."""
    num_datasets: int | None = None
    """Datasets to ask about. By default 192, and 96 for what is not run by JAX."""
    domain: Literal["task", "everywhere"] | None = None
    """Where the answer must hold. By default a model's task, everywhere for others."""
    noise_variance: float = 0.0
    """σ² of the task."""
    prior_variance: float = 1.0
    """τ² of the task."""
    seed: int = 0
    """Seed of the test data."""
    timeout: float = 60.0
    """Seconds after which an answer counts as missing."""
    out: Path | None = None
    """Write the identification to this file."""
    json: bool = False
    """Print the identification as JSON."""


@dataclass(frozen=True)
class Build:
    """Write a transformer by hand that runs a learning algorithm."""

    algorithm: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="ALGORITHM", help="Its name; --list shows all of them."),
    ] = ""
    dim: int = 4
    """d, the number of coordinates of x."""
    examples: int = 20
    """n, the most examples before a query."""
    learning_rate: float | None = None
    """α, the step size."""
    penalty: float | None = None
    """λ, the weight of ‖w‖²."""
    steps: int | None = None
    """K, the steps of a batch method."""
    momentum: float | None = None
    """β of the heavy ball."""
    forgetting: float | None = None
    """β of recursive least squares: what an example is worth one example later."""
    low: float | None = None
    """The smallest eigenvalue of XᵀX/n that Chebyshev's method is made for."""
    high: float | None = None
    """The largest of them."""
    bandwidth: float | None = None
    """h, the width of a kernel."""
    dtype: Literal["float64", "float32"] = "float64"
    """The precision of the weights."""
    activation: Literal["gelu", "gelu_tanh", "silu"] = "gelu"
    """σ of the feed-forward part."""
    layer_norm_epsilon: float = 0.0
    """ε of LayerNorm."""
    pre_norm: bool = False
    """Use the modern block, for algorithms that do not divide."""
    out: Path | None = None
    """The directory to write the learner to. By default only the listing is shown."""
    list: bool = False
    """List the algorithms and stop."""
    json: bool = False
    """Print the result as JSON."""

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the algorithm that were given."""
        given = {name: getattr(self, name) for name in ALGORITHM_PARAMETERS}
        return {name: value for name, value in given.items() if value is not None}


ALGORITHM_PARAMETERS = (
    "learning_rate",
    "penalty",
    "steps",
    "momentum",
    "forgetting",
    "low",
    "high",
    "bandwidth",
)


@dataclass(frozen=True)
class Trace:
    """Show step by step what a transformer that was written by hand computes."""

    target: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(
            metavar="TARGET",
            help="A directory that `algoscope build` wrote, or one of the paper's "
            "chains: theorem_1, theorem_2, sgd_chain, ridge_chain.",
        ),
    ]
    examples: int | None = None
    """How many examples to show. By default three, or all that there is room for."""
    dim: int = 2
    """d of a chain."""
    learning_rate: float = 0.05
    """α of a chain."""
    penalty: float = 0.1
    """λ of a chain."""
    paper: bool = False
    """Run a chain with the paper's own approximations."""
    show: Literal["computed", "exact", "difference"] = "computed"
    """What is shown of every register; --json holds all three."""
    layer: int | None = None
    """Show this layer only, counted from 1."""
    seed: int = 0
    """Seed of the dataset that is shown."""
    json: bool = False
    """Print the matrices as JSON."""


@dataclass(frozen=True)
class Models:
    """List the models that come with algoscope."""

    json: bool = False
    """Print the list as JSON."""


@dataclass(frozen=True)
class Presets:
    """List the training presets and what they cost."""

    json: bool = False
    """Print the list as JSON."""


@dataclass(frozen=True)
class Demo:
    """Train a small learner and ask which algorithm the shipped d = 8 model runs."""

    out: Path = Path("demo")
    """Where results go."""
    num_datasets: int = 10_000
    """Held-out datasets."""


Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[Identify, tyro.conf.subcommand("identify")]
    | Annotated[Build, tyro.conf.subcommand("build")]
    | Annotated[Trace, tyro.conf.subcommand("trace")]
    | Annotated[Models, tyro.conf.subcommand("models")]
    | Annotated[Presets, tyro.conf.subcommand("presets")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
)
