"""Opened learners in plain NumPy: one behind which another hides, and one by hand."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from algoscope.model.learner import InContextLearner
from algoscope.model.opened import name_layers, name_tokens
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Task


class Wrapped:
    """A learner of ours that JAX cannot see: it gives and takes NumPy arrays."""

    def __init__(self, learner: InContextLearner):
        self._learner = learner
        self.name, self.dim, self.task = learner.name, learner.dim, learner.task
        self.max_examples, self.digest = learner.max_examples, learner.digest
        self.num_layers, self.hidden_size = learner.num_layers, learner.hidden_size
        self.layer_names, self.token_names = learner.layer_names, learner.token_names
        self.calls = 0

    def hidden_states(self, x, y, /):
        self.calls += 1
        return np.asarray(self._learner.hidden_states(np.asarray(x), np.asarray(y)))

    def predict_edited(self, x, y, layer, edit, /):
        def outside(h):
            return edit(np.asarray(h))

        found = self._learner.predict_edited(
            np.asarray(x), np.asarray(y), layer, outside
        )
        return np.asarray(found)


class Handmade:
    """A learner whose layer l holds the predictions of the l-th algorithm.

    The input holds x alone. The last layer's predictions are its answers.
    """

    def __init__(
        self, dim: int, *algorithms: Callable, task: Task | None = None, room: int = 12
    ):
        self.name, self.dim, self.max_examples = "by hand", dim, room
        self.task = task or LinearRegression(dim)
        self.digest, self.num_layers = "by hand", len(algorithms)
        self.hidden_size, self._algorithms = dim + 2, algorithms
        self.layer_names = name_layers(self.num_layers)

    def token_names(self, num_examples: int) -> list[str]:
        return name_tokens(num_examples)

    def hidden_states(self, x, y, /):
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        batch, examples, dim = x.shape
        states = np.zeros((batch, self.num_layers + 1, 2 * examples, dim + 2))
        states[:, :, ::2, :dim] = x[:, None]
        states[:, :, :, -1] = 3.0  # constant
        for layer, algorithm in enumerate(self._algorithms, start=1):
            answers = jax.vmap(algorithm)(jnp.asarray(x), jnp.asarray(y))
            states[:, layer, ::2, dim] = answers
        return states[:, :, :-1]

    def predict_edited(self, x, y, layer, edit, /):
        states = self.hidden_states(x, y)
        last = states[:, -1]
        if layer == self.num_layers:
            last = np.asarray(edit(last))
        return last[:, ::2, self.dim]
