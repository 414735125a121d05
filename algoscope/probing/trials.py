"""One repeat: datasets to fit on, others to be measured on, and the targets of both.

Learner and controls are probed on the same trial, so that they can be compared.
"""

from dataclasses import dataclass

from algoscope.evaluation import draw_datasets
from algoscope.learner import InContextLearner
from algoscope.probing.budgets import ProbingConfig
from algoscope.probing.states import (
    TEST,
    TRAINING,
    StateSplit,
    hidden_states,
    standardize,
)
from algoscope.probing.targets import Target, TargetSplit, target_values
from algoscope.tasks import Dataset, Task


@dataclass(frozen=True)
class Trial:
    """The datasets of one repeat, and the targets' values on them."""

    seed: int
    training: Dataset
    test: Dataset
    targets: dict[str, TargetSplit]
    task: str

    @classmethod
    def draw(
        cls, task: Task, config: ProbingConfig, targets: list[Target], repeat: int
    ) -> "Trial":
        """Draw the datasets of a repeat, which have a seed of their own."""
        seed = config.seed + repeat
        training, test = (
            draw_datasets(
                task,
                num_datasets=size,
                num_examples=config.num_examples,
                seed=seed,
                fold=fold,
            )
            for size, fold in (
                (config.num_training, TRAINING),
                (config.num_test, TEST),
            )
        )
        values = {
            target.name: TargetSplit(
                target_values(target, training, config.prefixes),
                target_values(target, test, config.prefixes),
            )
            for target in targets
        }
        return cls(seed, training, test, values, repr(task))

    def states(self, learner: InContextLearner, layers: tuple[int, ...]) -> StateSplit:
        """Return standardized hidden states of the layers asked."""
        return standardize(
            hidden_states(learner, self.training, layers),
            hidden_states(learner, self.test, layers),
        )
