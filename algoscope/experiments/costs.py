"""What training takes, said before it is started.

Measured for the presets' sequences of 41 tokens, one core each: a layer of a step takes
5 ms however narrow it is, and its arithmetic runs at 60 GFLOP/s, so that H = 16, 32, 64
and 128 take 6, 9, 20 and 60 ms per layer. Compiling and evaluating a run takes half a
minute.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from algoscope.configuration import TrainingConfig

LAYER_SECONDS = 5e-3  # per step, for 64 sequences of 41 tokens
FLOPS_PER_SECOND = 60e9
RUN_SECONDS = 30.0
CORES = 2


@dataclass(frozen=True)
class Cost:
    """The most that an experiment takes."""

    trainings: tuple[TrainingConfig, ...]
    measuring: dict[str, float]  # what: seconds on two cores

    @property
    def seconds(self) -> float:
        """On two cores, if no run is in the store yet."""
        training = sum(map(core_seconds, self.trainings)) / CORES
        return training + sum(self.measuring.values())


def core_seconds(config: TrainingConfig) -> float:
    """Return about how long one core trains a run."""
    tokens = config.batch_size * config.num_tokens
    overhead = LAYER_SECONDS * config.num_layers * tokens / (64 * 41)
    step = overhead + config.flops_per_step / FLOPS_PER_SECOND
    return RUN_SECONDS + config.steps * step


def cost_of(trainings: Sequence[TrainingConfig], measuring: dict[str, float]) -> Cost:
    """Return the cost of distinct runs and of measuring."""
    return Cost(tuple(dict.fromkeys(trainings)), measuring)


def total(costs: Sequence[Cost]) -> Cost:
    """Return the cost of several experiments, which may share runs and measurements."""
    runs = [config for cost in costs for config in cost.trainings]
    return cost_of(runs, {k: v for cost in costs for k, v in cost.measuring.items()})
