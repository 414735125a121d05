"""The configuration of probing: its sizes, three budgets, and what they cost.

The paper gives the form of the probe (512 and 512, Adam at 10⁻³, every prefix and every
layer), but neither the steps of training nor the amount of data; those are our choice.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
    require_positive,
)
from algoscope.model.learner import InContextLearner

Kind = Literal["linear", "mlp"]  # of a probe
Solver = Literal["adam", "least_squares"]

# Operations per second that probes of the size of the `cpu` budget reach on two
# otherwise idle CPU cores.
FLOPS_PER_SECOND = 3e10


@dataclass(frozen=True)
class ProbingConfig:
    """What is trained, on how much data, and how often it is repeated.

    The defaults are those of the budget `smoke`, which takes seconds.

    Example:
        >>> import algoscope as asc
        >>> asc.ProbingConfig(prefixes=(1, 4)).time
        9
    """

    kinds: tuple[Kind, ...] = ("linear", "mlp")
    prefixes: tuple[int, ...] = (1, 2, 3)  # one probe for each n
    layers: tuple[int, ...] | None = None  # 0 is the input; None: all, 0, …, L
    value_size: int = 16  # H′, the rows of W_v
    inner_size: int = 16  # of the MLP
    learning_rate: float = 1e-2
    steps: int = 100
    batch_size: int = 32
    num_training: int = 256  # datasets
    num_test: int = 128
    repeats: int = 2  # with other datasets and initial probes, for intervals
    seed: int = 0
    solver: Solver = "adam"
    layers_per_call: int = 16  # layers probed by one program and cached in one file

    def __post_init__(self):
        for name in ("kinds", "prefixes", "layers"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))
                _require_distinct(name, tuple(value))
        for kind in self.kinds:
            require_choice("kind", kind, get_args(Kind))
        require_choice("solver", self.solver, get_args(Solver))
        for n in self.prefixes:
            remedy = "No target can be computed from 0 examples."
            require_at_least("prefix", n, 1, remedy)
        for layer in self.layers or ():
            require_at_least("layer", layer, 0)
        sizes = ("value_size", "inner_size", "steps", "batch_size", "layers_per_call")
        for name in (*sizes, "repeats", "num_test"):
            require_at_least(name, getattr(self, name), 1)
        require_at_least("num_training", self.num_training, 2)
        require_at_least("seed", self.seed, 0)
        require_positive("learning_rate", self.learning_rate)
        if self.solver == "least_squares" and self.kinds != ("linear",):
            rule = "be linear for the solver least_squares"
            raise InvalidValueError("kinds", rule, ", ".join(self.kinds))

    @property
    def num_examples(self) -> int:
        """The examples of a dataset: the longest prefix and one query."""
        return max(self.prefixes) + 1

    @property
    def time(self) -> int:
        """The tokens of a dataset, up to and including its query."""
        return 2 * max(self.prefixes) + 1

    def layers_of(self, learner: InContextLearner) -> tuple[int, ...]:
        """Return the layers to probe; reject those that the learner does not have."""
        depth = learner.transformer.num_layers
        layers = tuple(range(depth + 1)) if self.layers is None else self.layers
        if max(layers) > depth:
            rule = f"be at most {depth}, the depth of {learner.name}"
            raise InvalidValueError("layers", rule, max(layers))
        if max(self.prefixes) > learner.max_examples:
            room = learner.max_examples
            rule = f"be at most {room}, the context length of {learner.name}"
            raise InvalidValueError("prefixes", rule, max(self.prefixes))
        return layers

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON holds them, with lists for tuples."""
        lists = ("kinds", "prefixes", "layers")
        return {
            name: list(value) if name in lists and value is not None else value
            for name, value in asdict(self).items()
        }


def _require_distinct(name: str, values: tuple[Any, ...]) -> None:
    if not values or len(set(values)) < len(values):
        shown = ", ".join(map(str, values)) or "none"
        rule = "hold at least one value, and no value twice"
        raise InvalidValueError(name, rule, shown)


PAPER = ProbingConfig(
    prefixes=tuple(range(1, 41)),
    value_size=512,
    inner_size=512,
    learning_rate=1e-3,
    steps=20_000,
    batch_size=64,
    num_training=32_768,
    num_test=4096,
    repeats=3,
    layers_per_call=1,
)
BUDGETS: dict[str, ProbingConfig] = {
    "smoke": ProbingConfig(),
    "cpu": replace(  # a quarter of the width, at four times the learning rate
        PAPER,
        value_size=128,
        inner_size=128,
        learning_rate=4e-3,
        steps=2000,
        num_training=8192,
        num_test=2048,
    ),
    "paper": PAPER,
}


def find_budget(budget: str | ProbingConfig) -> ProbingConfig:
    """Return the configuration of a budget; a configuration is returned unchanged.

    Example:
        >>> find_budget("paper").value_size
        512
    """
    if isinstance(budget, ProbingConfig):
        return budget
    require_choice("budget", budget, BUDGETS)
    return BUDGETS[budget]


@dataclass(frozen=True)
class ProbingCost:
    """The estimated cost of probing one learner."""

    num_probes: int
    flops: float
    layer_bytes: int  # hidden states of one layer

    @property
    def seconds(self) -> float:
        """The estimated time on two otherwise idle CPU cores."""
        return self.flops / FLOPS_PER_SECOND

    def __str__(self) -> str:
        minutes = max(1, math.ceil(self.seconds / 60))
        return (
            f"{self.num_probes:,} probes, {self.flops:.1e} operations: about "
            f"{minutes:,} min on two CPU cores; {self.layer_bytes / 1e6:,.0f} MB of "
            "hidden states per layer"
        )


def estimate_cost(
    learner: InContextLearner, config: ProbingConfig, *, target_sizes: tuple[int, ...]
) -> ProbingCost:
    """Return the cost of probing one learner for targets of these sizes.

    A step takes 2 operations per weight and dataset forward, and 4 backward. A number
    of a hidden state takes 4 bytes.
    """
    layers = config.layers_of(learner)
    hidden = learner.transformer.w_e.shape[0]
    each = config.repeats * len(layers) * len(config.prefixes)
    weights = 0
    for size in target_sizes:
        for kind in config.kinds:
            last = config.inner_size if kind == "mlp" else config.value_size
            inner = config.value_size * config.inner_size if kind == "mlp" else 0
            weights += hidden * (config.time + config.value_size) + inner + last * size
    return ProbingCost(
        num_probes=each * len(target_sizes) * len(config.kinds),
        flops=6.0 * each * weights * config.steps * config.batch_size,
        layer_bytes=4 * (config.num_training + config.num_test) * config.time * hidden,
    )
