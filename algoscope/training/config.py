"""What a training run is, what it costs, and the presets (paper §4.2, app. D).

Nothing here imports JAX, so the command line can show and check a configuration at
once. A run's id is a hash of the configuration: the same run has the same id
everywhere.

Costs were measured on one core of an AMD EPYC with vectors of 512 bits, for sequences
of 41 tokens: a layer takes 1.5 ms per step however narrow it is, and its arithmetic
runs at 170 GFLOP/s, so that H = 16, 32, 64 and 128 take 2, 3, 7 and 20 ms per layer.
Compiling and evaluating take half a minute per run. Older machines take up to three
times as long.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from algoscope.foundation import num_cores, slowness
from algoscope.foundation.validation import (
    MOST_DIMENSIONS,
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_choice,
    require_not_negative,
    require_positive,
)
from algoscope.model import Activation, BlockKind, Initialization
from algoscope.tasks import require_task

Recipe = Literal["fast", "paper"]
LossWeights = Literal["equal", "risk"]
Decay = Literal["cosine", "linear"]

# The best of what benchmarks/candidates.py compares.
BEST: dict[str, Any] = {"loss_weights": "risk", "decay": "linear"}

# Fields that older configurations do not have, with what these runs did: a run keeps
# its id when a field is added.
ADDED = {"loss_weights": "equal", "decay": "cosine", "start": ""}

LAYER_SECONDS = 1.5e-3  # per step, for 64 sequences of 41 tokens
FLOPS_PER_SECOND = 170e9
MOST_PARAMETERS = 10**10  # of a transformer: 40 GB in float32
RUN_SECONDS = 30.0  # compiling and evaluating


def choice(default: Any, about: str) -> Any:
    """Return a field of a configuration with the sentence that explains it."""
    return field(default=default, metadata={"help": about})


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that decides the weights a training run ends with.

    The commands `train` and `sweep` make one option of each field.

    Example:
        >>> import algoscope as asc
        >>> config = asc.TrainingConfig(dim=2, num_examples=11, num_layers=2)
        >>> config.num_tokens, config.num_parameters
        (21, 101057)
    """

    task: str = choice(
        "linear",
        "linear: w is drawn for every dataset; control: w is always 1; broad: as "
        "linear, with many laws of x; or a task of a plug-in.",
    )
    dim: int = choice(8, "d, the number of coordinates of x.")
    prior_variance: float = choice(1.0, "τ², the variance of w.")
    noise_variance: float = choice(0.0, "σ², the variance of the label noise.")
    num_examples: int = choice(21, "n, the pairs (x, y) in a training sequence.")

    num_layers: int = choice(8, "L, the depth.")
    hidden_size: int = choice(64, "H, the width.")
    num_heads: int = choice(4, "M, the attention heads.")
    block: BlockKind = choice(
        "pre_norm", "The paper's block, or the modern one with a norm before attention."
    )
    activation: Activation = choice(
        "gelu", "σ, the nonlinearity of the feed-forward part."
    )
    initialization: Initialization = choice(
        "uniform_scaling", "How the initial weights are drawn."
    )

    recipe: Recipe = choice("fast", "fast: Muon; paper: Adam.")
    learning_rate: float = choice(1e-2, "The highest learning rate.")
    weight_decay: float = choice(0.0, "Weight decay.")
    warmup: float = choice(
        0.05, "Share of the steps over which the learning rate rises."
    )
    decay: Decay = choice("cosine", "How the learning rate then falls to zero.")
    clip: float = choice(1.0, "Largest norm of a gradient; 0: no limit.")
    loss_weights: LossWeights = choice(
        "equal",
        "equal: all positions count the same; risk: a position counts less if its "
        "label is less predictable.",
    )
    steps: int = choice(14_000, "How many steps to train for.")
    batch_size: int = choice(64, "Datasets per step.")
    curriculum: bool = choice(
        False, "Grow the dimension and the length over the first third."
    )
    seed: int = choice(0, "Seed of the initial weights and of the data.")
    start: str = field(
        default="",
        metadata={"help": "Digest of the weights to start from.", "option": False},
    )

    steps_per_call: int = choice(50, "Steps in one compiled call.")
    evaluate_every: int = choice(500, "Steps between two evaluations.")
    save_every: int = choice(500, "Steps between two saves.")

    def __post_init__(self):
        require_task(self.task)
        require_choice("block", self.block, get_args(BlockKind))
        require_choice("recipe", self.recipe, get_args(Recipe))
        require_choice("decay", self.decay, get_args(Decay))
        require_choice("loss_weights", self.loss_weights, get_args(LossWeights))
        require_choice("activation", self.activation, get_args(Activation))
        require_choice("initialization", self.initialization, get_args(Initialization))
        require_at_least("dim", self.dim, 1, most=MOST_DIMENSIONS)
        for name in ("num_layers", "hidden_size", "num_heads", "batch_size"):
            require_at_least(name, getattr(self, name), 1)
        require_at_least(
            "num_examples", self.num_examples, 2, "The first has no examples before it."
        )
        if self.num_parameters > MOST_PARAMETERS:
            rule = f"leave at most {MOST_PARAMETERS:,} parameters"
            got = f"{self.hidden_size}, which makes {self.num_parameters:,}"
            raise InvalidValueError("hidden_size", rule, got)
        for name in ("steps", "steps_per_call", "evaluate_every", "save_every"):
            require_at_least(name, getattr(self, name), 1)
        require_at_least("seed", self.seed, 0)
        require_positive("prior_variance", self.prior_variance)
        require_positive("learning_rate", self.learning_rate)
        for name in ("noise_variance", "weight_decay", "warmup", "clip"):
            require_not_negative(name, getattr(self, name))
        if self.warmup >= 1:
            raise InvalidValueError("warmup", "be below 1", self.warmup)
        if not self.start and self.hidden_size % self.num_heads:
            raise InvalidValueError(
                "num_heads",
                f"divide `hidden_size` {self.hidden_size}",
                self.num_heads,
            )
        for name in ("evaluate_every", "save_every"):
            if getattr(self, name) % self.steps_per_call:
                rule = f"be a multiple of `steps_per_call` {self.steps_per_call}"
                raise InvalidValueError(name, rule, getattr(self, name))

    @property
    def num_tokens(self) -> int:
        """T: two tokens per example, without the last label, which predicts nothing."""
        return 2 * self.num_examples - 1

    @property
    def num_parameters(self) -> int:
        """How many weights the transformer has, if it starts at random."""
        h = self.hidden_size
        layer = 12 * h * h + 9 * h
        return self.num_layers * layer + h * (self.dim + self.num_tokens + 2) + 1

    @property
    def flops_per_step(self) -> float:
        """The work of one step: 6 per weight and token, and that of attention."""
        tokens = self.batch_size * self.num_tokens
        attention = 12 * self.num_layers * self.hidden_size * self.num_tokens
        return tokens * (6.0 * self.num_parameters + attention)

    @property
    def run_id(self) -> str:
        """Twelve hexadecimal digits that name this configuration."""
        values = asdict(self)
        for name, default in ADDED.items():
            if values[name] == default:
                del values[name]
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @classmethod
    def from_dict(cls, values: Any) -> "TrainingConfig":
        """Return the configuration that `asdict` wrote."""
        if not isinstance(values, dict):
            raise InvalidTypeError("training", "be an object", repr(values))
        values = ADDED | values
        names = {each.name for each in fields(cls)}
        if set(values) != names:
            odd = ", ".join(sorted(set(values) ^ names))
            raise InvalidValueError(
                "training", "hold the fields of a TrainingConfig", odd
            )
        return cls(**values)


PRESETS: dict[str, TrainingConfig] = {
    "demo": TrainingConfig(
        dim=2, num_examples=11, num_layers=3, hidden_size=32, steps=1500, **BEST
    ),
    "d1": TrainingConfig(
        dim=1, num_examples=21, num_layers=4, hidden_size=32, steps=6000, **BEST
    ),
    "d2": TrainingConfig(dim=2, num_examples=21, num_layers=4, steps=8000, **BEST),
    "d4": TrainingConfig(dim=4, num_examples=41, num_layers=12, steps=14_000, **BEST),
    "control-d4": TrainingConfig(
        task="control", dim=4, num_examples=41, num_layers=12, steps=500
    ),
    "d8": TrainingConfig(num_layers=12, steps=32_000, **BEST),
    "d20": TrainingConfig(
        dim=20,
        num_examples=41,
        hidden_size=128,
        steps=20_000,
        curriculum=True,
        **BEST,
    ),
    "d8-broad": TrainingConfig(task="broad", num_layers=12, steps=32_000, **BEST),
    "tune": TrainingConfig(
        block="paper",
        recipe="paper",
        learning_rate=1e-5,
        steps=2000,
        steps_per_call=25,
        evaluate_every=100,
        save_every=100,
    ),
    "paper": TrainingConfig(
        num_examples=40,
        num_layers=16,
        hidden_size=512,
        block="paper",
        recipe="paper",
        learning_rate=1e-4,
        warmup=0.2,
        clip=0.0,
        steps=500_000,
        evaluate_every=5000,
        save_every=5000,
    ),
}


def preset(name: str) -> TrainingConfig:
    """Return a preset by name.

    Example:
        >>> preset("d8").dim
        8
    """
    require_choice("preset", name, PRESETS)
    return PRESETS[name]


def core_seconds(config: TrainingConfig) -> float:
    """Return about how many seconds one core needs for a run, if it is a fast one.

    A core of `foundation.CORE_FLOPS`: `slowness` tells how much longer others take.
    """
    tokens = config.batch_size * config.num_tokens
    overhead = LAYER_SECONDS * config.num_layers * tokens / (64 * 41)
    step = overhead + config.flops_per_step / FLOPS_PER_SECOND
    return RUN_SECONDS + config.steps * step


def estimated_seconds(config: TrainingConfig) -> float:
    """Return about how many seconds a run takes on all cores of this machine."""
    return core_seconds(config) * slowness() / num_cores()
