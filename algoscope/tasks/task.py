"""What a task is: a distribution over regression problems (paper §2.3, §4.2).

A task is a frozen value that draws a `Dataset` from a random key. Sampling is pure
JAX, so it works on any device, under `jit` and `vmap`, and in the training loop.

Axes: `examples` pairs (x, y), each x with `dim` coordinates.
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray


class Dataset(eqx.Module):
    """Examples of one function: inputs x, labels y, and the weights w behind them.

    Example:
        >>> import jax
        >>> import algoscope as asc
        >>> data = asc.LinearRegression(dim=2).sample(jax.random.key(0), num_examples=5)
        >>> data.x.shape, data.y.shape, data.w.shape
        ((5, 2), (5,), (2,))
    """

    x: Float[Array, "*batch examples dim"]
    y: Float[Array, "*batch examples"]
    w: Float[Array, "*batch dim"]


@runtime_checkable
class Task(Protocol):
    """A distribution p(D) over datasets whose inputs have `dim` coordinates.

    Example:
        >>> import algoscope as asc
        >>> isinstance(asc.LinearRegression(dim=2), asc.Task)
        True
    """

    @property
    def dim(self) -> int: ...

    @property
    def prior_variance(self) -> float: ...

    @property
    def noise_variance(self) -> float: ...

    def sample(self, key: PRNGKeyArray, num_examples: int) -> Dataset: ...
