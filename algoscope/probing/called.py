"""Hidden states of a learner that JAX cannot trace, as a source of probes.

The compiled program that trains probes calls back to Python for the states of every
batch. Each device calls from a thread of its own; a lock lets one of them in at a time.

A call must not raise inside the program: the other devices would wait forever for the
one that failed. So the first failure is kept, the states are NaN, and `raise_failure`
raises it once the program has returned.

Numbers cross the border as bits. In the threads of the devices JAX is in its default
mode, where it would round float64 to float32.
"""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from algoscope.foundation.validation import InvalidValueError
from algoscope.model.opened import Inputs, Labels, OpenedLearner
from algoscope.tasks.task import Dataset

States = Float[np.ndarray, "batch layers time hidden"]
Bits = UInt32[Array | np.ndarray, "*shape 2"]  # of numbers in float64


class _Caller:
    """Calls a learner, one thread at a time, and keeps its first failure."""

    def __init__(self, learner: OpenedLearner, layers: tuple[int, ...]):
        self.learner, self.layers = learner, layers
        self.failure: Exception | None = None
        self._lock = threading.Lock()

    def shape(self, x: Inputs) -> tuple[int, int, int, int]:
        """Return the shape of the states for such inputs."""
        time = 2 * x.shape[1] - 1
        return (x.shape[0], len(self.layers), time, self.learner.hidden_size)

    def states(self, x: Inputs, y: Labels) -> States:
        """Return H⁽ˡ⁾ of the layers, checked."""
        found = np.asarray(self.learner.hidden_states(np.asarray(x), np.asarray(y)))
        batch, _, *rest = self.shape(x)
        wanted = (batch, self.learner.num_layers + 1, *rest)
        what = f"hidden states of {self.learner.name}"
        if found.shape != wanted or found.dtype.kind != "f":
            rule = f"be real numbers of shape {wanted}"
            got = f"shape {found.shape} and dtype {found.dtype}"
            raise InvalidValueError(what, rule, got)
        if not np.all(np.isfinite(found)):
            raise InvalidValueError(what, "be finite", "NaN or infinity")
        return found[:, np.asarray(self.layers)]

    def call(self, x: Bits, y: Bits) -> Bits:
        """Return the same, or NaN after a failure."""
        x, y = (np.array(bits).view(np.float64)[..., 0] for bits in (x, y))
        found = np.full(self.shape(x), np.nan)
        with self._lock:
            if self.failure is None:
                try:
                    found[:] = self.states(x, y)
                except Exception as error:
                    self.failure = error
        return found[..., None].view(np.uint32)


class CalledStates(eqx.Module):
    """The hidden states of some layers, computed outside of the compiled program."""

    caller: _Caller = eqx.field(static=True)
    dtype: str = eqx.field(static=True)

    @classmethod
    def of(
        cls, learner: OpenedLearner, layers: tuple[int, ...], x: Inputs, y: Labels
    ) -> "CalledStates":
        """Return the source of a learner that answers on these datasets."""
        caller = _Caller(learner, layers)
        return cls(caller, caller.states(x, y).dtype.name)

    def __call__(self, data: Dataset) -> Float[Array, "part layers time hidden"]:
        """Return H⁽ˡ⁾ of the layers, or NaN after a failure."""
        shape = jax.ShapeDtypeStruct((*self.caller.shape(data.x), 2), jnp.uint32)
        bits = (_bits_of(values) for values in (data.x, data.y))
        found = jax.pure_callback(self.caller.call, shape, *bits)
        states = jax.lax.bitcast_convert_type(found, jnp.float64)
        return states.astype(self.dtype)

    def raise_failure(self) -> None:
        """Raise what went wrong in a call, if anything did."""
        failure, self.caller.failure = self.caller.failure, None
        if failure is not None:
            raise failure


def _bits_of(values: Float[Array, " *shape"]) -> Bits:
    return jax.lax.bitcast_convert_type(values.astype(jnp.float64), jnp.uint32)
