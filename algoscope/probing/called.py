"""Hidden states of a learner that JAX cannot trace, as a source of probes.

A compiled program cannot call such a learner: with several devices, JAX's callbacks
wait for each other forever. So its states are computed before the program starts, for
all datasets that the program will draw, and the program takes them as an argument. A
`Shown` dataset holds its states; `ShownStates` is the source that reads them there, and
`CalledStates` the one that asks the learner for them.

One call of a program gets as many datasets as `ROOM` allows.
"""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from algoscope.foundation.validation import InvalidValueError
from algoscope.model.opened import Inputs, Labels, OpenedLearner
from algoscope.tasks.task import Dataset

ROOM = 2**28  # bytes of states that one program is given

States = Float[np.ndarray, "batch layers time hidden"]


class Shown(Dataset):
    """Datasets with their hidden states."""

    states: Float[Array, "*batch layers time hidden"]


class GivenStates(eqx.Module):
    """The states of whole batches, one for each of some successive steps."""

    states: Float[Array | np.ndarray, "steps batch layers time hidden"]
    first: Int[Array | np.ndarray, ""]  # the step of the first batch

    def show(
        self, data: Dataset, step: Int[Array, ""], places: Int[Array, " part"]
    ) -> Shown:
        """Return the datasets at these places of a step's batch with their states."""
        own = jax.lax.dynamic_index_in_dim(
            self.states, step - self.first, keepdims=False
        )
        return Shown(data.x, data.y, data.w, own[places])


class ShownStates(eqx.Module):
    """The source of a program: the same for all learners, so it is compiled once."""

    def __call__(self, data: Dataset) -> Float[Array, "part layers time hidden"]:
        """Return the states that the datasets show."""
        assert isinstance(data, Shown)
        return data.states


class CalledStates(ShownStates):
    """The same with the learner that is called for the states, in whole batches."""

    learner: OpenedLearner = eqx.field(static=True)
    layers: tuple[int, ...] = eqx.field(static=True)
    dtype: str = eqx.field(static=True)

    @classmethod
    def of(
        cls, learner: OpenedLearner, layers: tuple[int, ...], x: Inputs, y: Labels
    ) -> "CalledStates":
        """Return the source of a learner that answers on these datasets."""
        found = _states(learner, layers, np.asarray(x), np.asarray(y))
        return cls(learner, layers, found.dtype.name)

    def num_steps(self, wanted: int, batch_size: int, time: int) -> int:
        """Return how many batches one program is given, at most as many as wanted."""
        units = batch_size * len(self.layers) * time * self.learner.hidden_size
        return max(1, min(wanted, ROOM // (units * np.dtype(self.dtype).itemsize)))

    def given(self, data: Dataset, first: int, room: int) -> GivenStates:
        """Return the states of batches [steps, batch, …], filled up to `room` steps.

        One room for all calls: one shape, one compilation.
        """
        parts = zip(np.asarray(data.x), np.asarray(data.y), strict=True)
        found = [_states(self.learner, self.layers, *part) for part in parts]
        states = np.zeros((room, *found[0].shape), self.dtype)
        states[: len(found)] = found
        return GivenStates(states, np.array(first))


def _states(
    learner: OpenedLearner, layers: tuple[int, ...], x: Inputs, y: Labels
) -> States:
    """Return H⁽ˡ⁾ of some layers of a learner, checked."""
    found = np.asarray(learner.hidden_states(x, y))
    time = 2 * x.shape[1] - 1
    wanted = (len(x), learner.num_layers + 1, time, learner.hidden_size)
    what = f"hidden states of {learner.name}"
    if found.shape != wanted or found.dtype.kind != "f":
        rule = f"be real numbers of shape {wanted}"
        got = f"shape {found.shape} and dtype {found.dtype}"
        raise InvalidValueError(what, rule, got)
    if not np.all(np.isfinite(found)):
        raise InvalidValueError(what, "be finite", "NaN or infinity")
    return found[:, np.asarray(layers)]
