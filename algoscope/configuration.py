"""What a training run is: one frozen value, and the presets (paper §4.2, app. D).

Nothing here imports JAX, so the command line can show and check a configuration at
once. A run's id is a hash of the configuration: the same run has the same id
everywhere.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from algoscope.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_choice,
    require_not_negative,
    require_positive,
)

TaskKind = Literal["linear", "control"]
BlockKind = Literal["pre_norm", "paper"]
Recipe = Literal["fast", "paper"]
Activation = Literal[
    "gelu", "gelu_tanh", "relu", "tanh", "silu", "softplus", "sigmoid", "squared_relu"
]
Initialization = Literal["uniform_scaling", "normal"]


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that decides the weights a training run ends with."""

    task: TaskKind = "linear"  # control: w is always 1
    dim: int = 8  # d
    prior_variance: float = 1.0  # τ²
    noise_variance: float = 0.0  # σ²
    num_examples: int = 21  # pairs per sequence; the last has all others before it

    num_layers: int = 8  # L
    hidden_size: int = 64  # H
    num_heads: int = 4  # M
    block: BlockKind = "pre_norm"
    activation: Activation = "gelu"
    initialization: Initialization = "uniform_scaling"

    recipe: Recipe = "fast"  # Muon, or the paper's Adam
    learning_rate: float = 1e-2
    weight_decay: float = 0.0
    warmup: float = 0.05  # share of the steps
    clip: float = 1.0  # largest norm of the gradient; 0: no limit
    steps: int = 14_000
    batch_size: int = 64
    curriculum: bool = False  # grow dimension and length over the first third
    seed: int = 0

    steps_per_call: int = 50  # steps in one compiled call
    evaluate_every: int = 500
    save_every: int = 500

    def __post_init__(self):
        require_choice("task", self.task, get_args(TaskKind))
        require_choice("block", self.block, get_args(BlockKind))
        require_choice("recipe", self.recipe, get_args(Recipe))
        require_choice("activation", self.activation, get_args(Activation))
        require_choice("initialization", self.initialization, get_args(Initialization))
        for name in ("dim", "num_layers", "hidden_size", "num_heads", "batch_size"):
            require_at_least(name, getattr(self, name), 1)
        require_at_least(
            "num_examples", self.num_examples, 2, "The first has no examples before it."
        )
        for name in ("steps", "steps_per_call", "evaluate_every", "save_every"):
            require_at_least(name, getattr(self, name), 1)
        require_at_least("seed", self.seed, 0)
        require_positive("prior_variance", self.prior_variance)
        require_positive("learning_rate", self.learning_rate)
        for name in ("noise_variance", "weight_decay", "warmup", "clip"):
            require_not_negative(name, getattr(self, name))
        if self.warmup >= 1:
            raise InvalidValueError("warmup", "be below 1", self.warmup)
        if self.hidden_size % self.num_heads:
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
        """How many weights the transformer has."""
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
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @classmethod
    def from_dict(cls, values: Any) -> "TrainingConfig":
        """Return the configuration that `asdict` wrote."""
        if not isinstance(values, dict):
            raise InvalidTypeError("training", "be an object", repr(values))
        names = {field.name for field in fields(cls)}
        if set(values) != names:
            odd = ", ".join(sorted(set(values) ^ names))
            raise InvalidValueError(
                "training", "hold the fields of a TrainingConfig", odd
            )
        return cls(**values)


PRESETS: dict[str, TrainingConfig] = {
    "demo": TrainingConfig(
        dim=2, num_examples=11, num_layers=3, hidden_size=32, steps=1500
    ),
    "d1": TrainingConfig(
        dim=1, num_examples=21, num_layers=4, hidden_size=32, steps=3000
    ),
    "d2": TrainingConfig(dim=2, num_examples=21, num_layers=4, steps=4000),
    "d4": TrainingConfig(dim=4, num_examples=41, steps=5000),
    "control-d4": TrainingConfig(task="control", dim=4, num_examples=41, steps=500),
    "d8": TrainingConfig(),
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
    """Return a preset by name."""
    require_choice("preset", name, PRESETS)
    return PRESETS[name]
