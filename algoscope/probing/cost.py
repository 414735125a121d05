"""What probing will take, said before it is started."""

import math
from dataclasses import dataclass

from algoscope.learner import InContextLearner
from algoscope.probing.budgets import ProbingConfig

# Per second on two CPU cores: what probes of the size of the `cpu` budget reach where
# little else computes.
FLOPS_PER_SECOND = 3e10


@dataclass(frozen=True)
class Cost:
    """What a configuration will take, before it is run."""

    num_probes: int
    flops: float
    layer_bytes: int  # hidden states of one layer

    @property
    def seconds(self) -> float:
        """A guess for two CPU cores that do nothing else."""
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
) -> Cost:
    """Return the cost of probing one learner for targets of these sizes.

    A step costs 2 operations per weight and dataset forward and 4 backward; hidden
    states take 4 bytes per number.
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
    return Cost(
        num_probes=each * len(target_sizes) * len(config.kinds),
        flops=6.0 * each * weights * config.steps * config.batch_size,
        layer_bytes=4 * (config.num_training + config.num_test) * config.time * hidden,
    )
