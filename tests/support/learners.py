"""Small learners with random weights, for tests of what opens them."""

from algoscope.model.learner import InContextLearner
from algoscope.model.transformer import random_transformer
from algoscope.tasks.task import Task


def small_learner(
    seed: int = 0, name: str = "small", task: Task | None = None
) -> InContextLearner:
    """Return a learner of two layers, for d = 2 and up to three examples."""
    transformer = random_transformer(
        seed, token_size=3, max_time=7, num_layers=2, hidden_size=4, num_heads=1
    )
    return InContextLearner(transformer, name, task=task)
