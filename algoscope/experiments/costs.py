"""What experiments take, said before they are started."""

from collections.abc import Sequence
from dataclasses import dataclass

from algoscope.configuration import TrainingConfig
from algoscope.machine import core_seconds

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


def cost_of(trainings: Sequence[TrainingConfig], measuring: dict[str, float]) -> Cost:
    """Return the cost of distinct runs and of measuring."""
    return Cost(tuple(dict.fromkeys(trainings)), measuring)


def total(costs: Sequence[Cost]) -> Cost:
    """Return the cost of several experiments, which may share runs and measurements."""
    runs = [config for cost in costs for config in cost.trainings]
    return cost_of(runs, {k: v for cost in costs for k, v in cost.measuring.items()})
