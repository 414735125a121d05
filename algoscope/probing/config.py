"""The configuration of probing: its sizes, three budgets, and what they cost.

The paper gives the form of the probe (512 inner units, Adam, every layer, one probe per
prefix), but neither the steps of training nor the amount of data; those are our choice.
Every step of training draws datasets that no probe has seen, so `num_training` is also
how many different datasets there are.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import jax

from algoscope.foundation import slowness
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
    require_positive,
)
from algoscope.model.learner import InContextLearner
from algoscope.model.opened import OpenedLearner
from algoscope.probing.places import FIXED, PLACES, Place

Kind = Literal["linear", "mlp"]  # of a probe
Solver = Literal["adam", "least_squares"]

# Operations per second on two otherwise idle cores of `foundation.CORE_FLOPS`: of the
# learner's forward pass, and of the probes.
FORWARD_FLOPS = 2.6e11
PROBE_FLOPS = 2e11
COMPILING = 15.0  # seconds, for the programs of one learner

MOMENTS = (0.125, 0.25, 0.5, 0.75, 1.0)  # of a pass, when validation errors are taken
TRIALS = 2  # the moments until which learned attention tries all starts

LISTS = ("kinds", "prefixes", "layers", "places", "control_places")
MOST_PILOT = 8192  # datasets that decide how states and targets are scaled


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
    places: tuple[Place, ...] = ("learned", *FIXED)  # the first is the result's default
    control_places: tuple[Place, ...] | None = None  # of controls; None: the same
    inner_size: int = 16  # of the MLP
    learning_rate: float = 1e-2  # the highest; it falls to zero
    batch_size: int = 32
    num_training: int = 1024  # datasets, all fresh
    num_learned: int = 512  # further ones, for learned attention
    num_validation: int = 64  # to choose by
    num_test: int = 128
    block_size: int = 16  # of test datasets whose mean error is saved
    repeats: int = 2  # with other datasets and initial probes, for intervals
    seed: int = 0
    solver: Solver = "adam"
    layers_per_call: int = 64  # layers probed by one program and cached in one file

    def __post_init__(self):
        for name in LISTS:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, tuple(value))
                _require_distinct(name, tuple(value))
        for kind in self.kinds:
            require_choice("kind", kind, get_args(Kind))
        for place in (*self.places, *(self.control_places or ())):
            require_choice("place", place, PLACES)
        if not self.fixed_places or (self.learned_places and "all" not in self.places):
            rule = "hold a fixed place, and `all` where attention is learned"
            remedy = "Learned attention starts at the fixed places."
            raise InvalidValueError("places", rule, ", ".join(self.places), remedy)
        require_choice("solver", self.solver, get_args(Solver))
        for n in self.prefixes:
            remedy = "No target can be computed from 0 examples."
            require_at_least("prefix", n, 1, remedy)
        for layer in self.layers or ():
            require_at_least("layer", layer, 0)
        sizes = ("inner_size", "batch_size", "layers_per_call", "block_size")
        for name in (*sizes, "num_learned", "repeats"):
            require_at_least(name, getattr(self, name), 1)
        require_at_least("num_training", self.num_training, 2)
        for name in ("num_validation", "num_test"):
            require_at_least(name, getattr(self, name), 1)
            if getattr(self, name) % self.block_size:
                rule = f"be a multiple of `block_size` {self.block_size}"
                raise InvalidValueError(name, rule, getattr(self, name))
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

    @property
    def fixed_places(self) -> tuple[Place, ...]:
        """The places that are not learned."""
        return tuple(place for place in self.places if place in FIXED)

    @property
    def learned_places(self) -> tuple[Place, ...]:
        """Those that are."""
        return tuple(place for place in self.places if place not in FIXED)

    @property
    def num_pilot(self) -> int:
        """The datasets that decide how states and targets are scaled."""
        return min(MOST_PILOT, self.num_training)

    @property
    def steps(self) -> int:
        """The steps of Adam at fixed places."""
        return -(-self.num_training // self.batch_size)

    @property
    def learned_steps(self) -> int:
        """The further steps with learned attention, of which some try all starts."""
        return -(-self.num_learned // self.batch_size) if self.learned_places else 0

    def layers_of(self, learner: OpenedLearner) -> tuple[int, ...]:
        """Return the layers to probe; reject those that the learner does not have."""
        depth = learner.num_layers
        layers = tuple(range(depth + 1)) if self.layers is None else self.layers
        if max(layers) > depth:
            rule = f"be at most {depth}, the depth of {learner.name}"
            raise InvalidValueError("layers", rule, max(layers))
        if max(self.prefixes) > learner.max_examples:
            room = learner.max_examples
            rule = f"be at most {room}, the context length of {learner.name}"
            raise InvalidValueError("prefixes", rule, max(self.prefixes))
        return layers

    def at(self, places: Sequence[Place] | None) -> "ProbingConfig":
        """Return the same at other places, also in controls; None changes nothing."""
        if places is None:
            return self
        return replace(self, places=tuple(places), control_places=None)

    @property
    def for_controls(self) -> "ProbingConfig":
        """How controls are probed."""
        return self.at(self.control_places)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON holds them, with lists for tuples."""
        return {
            name: list(value) if name in LISTS and value is not None else value
            for name, value in asdict(self).items()
        }


def _require_distinct(name: str, values: tuple[Any, ...]) -> None:
    if not values or len(set(values)) < len(values):
        shown = ", ".join(map(str, values)) or "none"
        rule = "hold at least one value, and no value twice"
        raise InvalidValueError(name, rule, shown)


CPU = ProbingConfig(
    places=PLACES,
    control_places=("learned", *FIXED),
    prefixes=(1, 2, 4, 8, 16, 28, 40),
    inner_size=512,
    batch_size=128,
    num_training=307_200,
    num_learned=102_400,
    num_validation=4096,
    num_test=8192,
    block_size=128,
    repeats=1,
)
BUDGETS: dict[str, ProbingConfig] = {
    "smoke": ProbingConfig(),
    "cpu": CPU,
    "paper": replace(
        CPU,
        prefixes=tuple(range(1, 41)),
        control_places=None,
        num_training=1_024_000,
        num_learned=307_200,
        repeats=3,
    ),
}


def find_budget(
    budget: str | ProbingConfig, max_examples: int | None = None
) -> ProbingConfig:
    """Return the configuration of a budget; a configuration is returned unchanged.

    Prefixes of a budget that a learner of at most `max_examples` cannot take are left
    out.

    Example:
        >>> find_budget("paper").inner_size, find_budget("cpu", 20).prefixes
        (512, (1, 2, 4, 8, 16))
    """
    if isinstance(budget, ProbingConfig):
        return budget
    require_choice("budget", budget, BUDGETS)
    found = BUDGETS[budget]
    if max_examples is None or max_examples < min(found.prefixes):
        return found
    prefixes = tuple(n for n in found.prefixes if n <= max_examples)
    return replace(found, prefixes=prefixes)


@dataclass(frozen=True)
class ProbingCost:
    """The estimated cost of probing one learner."""

    num_probes: int
    forward_flops: float  # of the learner
    probe_flops: float

    @property
    def seconds(self) -> float:
        """The estimated time on two otherwise idle fast cores."""
        computing = self.forward_flops / FORWARD_FLOPS + self.probe_flops / PROBE_FLOPS
        return COMPILING + computing

    def __str__(self) -> str:
        minutes = max(1, math.ceil(self.seconds * slowness() / 60))
        flops = self.forward_flops + self.probe_flops
        return (
            f"{self.num_probes:,} probes, {flops:.1e} operations: about {minutes:,} "
            "min on two CPU cores like these"
        )


def estimate_cost(
    learner: OpenedLearner, config: ProbingConfig, *, target_sizes: tuple[int, ...]
) -> ProbingCost:
    """Return the cost of probing one learner for targets of these sizes.

    A token costs the forward pass two operations per weight, and the attention of a
    layer four per unit and position. A weight of a probe costs two operations per
    dataset forward and two backward; where attention is learned, two more to reach it.
    """
    layers = config.layers_of(learner)
    width, time, inner = learner.hidden_size, config.time, config.inner_size
    deepest = max(layers)
    per_layer = 12 * width**2  # as in GPT-2, where weights are not known
    if isinstance(learner, InContextLearner):
        leaves = jax.tree.leaves(learner.transformer.layers)
        per_layer = sum(leaf.size for leaf in leaves) / learner.num_layers
    token = 2.0 * width * (learner.dim + 1)
    token += deepest * (2.0 * per_layer + 4.0 * width * time)
    fixed, learned = len(config.fixed_places), config.learned_places
    tried = MOMENTS[TRIALS - 1]  # the share of the steps with all starts
    num_starts = len(learned) * (fixed * tried + 1 - tried)  # on average
    cells = len(layers) * len(config.prefixes)
    sizes = {
        "mlp": [width * inner + inner * size for size in target_sizes],
        "linear": [width * size for size in target_sizes],
    }
    of_fixed = 4.0 * sum(sizes["mlp"]) if "mlp" in config.kinds else 0.0
    of_fixed += 4.0 * width * (width + sum(target_sizes))  # moments and whitening
    of_learned = sum(
        6.0 * size + 4.0 * width * (time + width)
        for kind in config.kinds
        for size in sizes[kind]
    )
    held_out = config.num_test + len(MOMENTS) * config.num_validation
    passes = 1 + bool(learned)
    forward = config.num_training + config.num_learned * bool(learned)
    forward += passes * held_out + 2 * config.num_pilot
    work = cells * fixed * of_fixed * (config.num_training + held_out / 3)
    work += cells * num_starts * of_learned * (config.num_learned + held_out / 3)
    probes = cells * (fixed + len(learned)) * len(target_sizes) * len(config.kinds)
    return ProbingCost(
        num_probes=config.repeats * probes,
        forward_flops=config.repeats * token * time * forward,
        probe_flops=config.repeats * work,
    )
