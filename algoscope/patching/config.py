"""How much to patch: a frozen configuration, and two sizes of it."""

from dataclasses import asdict, dataclass
from typing import Any

from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
    require_positive,
)
from algoscope.model.learner import InContextLearner


@dataclass(frozen=True)
class PatchingConfig:
    """The sizes of the three causal tests."""

    num_examples: int | None = None  # n, before the query; None: 2d, or all there is
    num_pairs: int = 128  # datasets D and D′ that swap hidden states
    num_queries: int | None = None  # to imply weights from; None: 4d
    num_training: int = 4096  # datasets that the probes of edits are fitted on
    num_edits: int = 1024  # other datasets, whose states are edited
    edit_size: float = 0.5  # of Δ, over the spread of the target
    num_ablation_datasets: int = 1000
    seed: int = 0

    def __post_init__(self):
        for name in ("num_examples", "num_queries"):
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        for name in ("num_pairs", "num_training", "num_edits", "num_ablation_datasets"):
            require_at_least(name, getattr(self, name), 2)
        require_positive("edit_size", self.edit_size)
        require_at_least("seed", self.seed, 0)

    def examples_for(self, learner: InContextLearner) -> int:
        """Return n; refuse more than the learner has room for."""
        if self.num_examples is None:
            return min(2 * learner.dim, learner.max_examples)
        if self.num_examples > learner.max_examples:
            rule = f"be at most {learner.max_examples}, for which {learner.name} is"
            raise InvalidValueError("num_examples", rule, self.num_examples)
        return self.num_examples

    def queries_for(self, learner: InContextLearner) -> int:
        """Return how many queries weights are implied from."""
        queries = 4 * learner.dim if self.num_queries is None else self.num_queries
        require_at_least("num_queries", queries, learner.dim)
        return queries

    def as_dict(self) -> dict[str, Any]:
        """Return the choices as JSON has them."""
        return asdict(self)


BUDGETS: dict[str, PatchingConfig] = {
    "smoke": PatchingConfig(
        num_pairs=8, num_training=256, num_edits=64, num_ablation_datasets=64
    ),
    "cpu": PatchingConfig(),
}


def find_budget(budget: str | PatchingConfig) -> PatchingConfig:
    """Return a configuration by its name; a configuration is returned as it is.

    Example:
        >>> find_budget("cpu").num_pairs
        128
    """
    if isinstance(budget, PatchingConfig):
        return budget
    require_choice("budget", budget, BUDGETS)
    return BUDGETS[budget]
