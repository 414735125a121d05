"""A transformer as a predictor (paper §2.2): learning happens in the forward pass."""

from dataclasses import asdict
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from algoscope.foundation.files import DamagedFileError, digest_of_arrays
from algoscope.foundation.validation import (
    InvalidValueError,
    require_examples,
    require_query,
)
from algoscope.model.checkpoints import (
    CONFIG,
    load_transformer,
    locate,
    named_leaves,
    save_transformer,
)
from algoscope.model.operand_range import OperandRange
from algoscope.model.tokens import QUERIES, append_query, encode_context
from algoscope.model.transformer import Transformer
from algoscope.tasks.catalog import make_task
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Task


class InContextLearner(eqx.Module):
    """A transformer that predicts y′ for a query x′ from the examples before it.

    Example:
        >>> learner = InContextLearner.from_pretrained("linear-d2")
        >>> x, y = jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([1.0, -1.0])
        >>> bool(abs(learner(x, y, jnp.array([1.0, 1.0]))) < 0.2)  # w = (1, −1)
        True
    """

    transformer: Transformer
    name: str = eqx.field(static=True)
    operands: OperandRange | None = eqx.field(static=True)
    task: Task = eqx.field(static=True)

    def __init__(
        self,
        transformer: Transformer,
        name: str = "ICL",
        operands: OperandRange | None = None,
        task: Task | None = None,
    ):
        """Hold a transformer, and the task it learned.

        Without a task it is asked about noiseless linear regression.
        """
        self.transformer = transformer
        self.name = name
        self.operands = operands
        dim = transformer.token_size - 1
        self.task = LinearRegression(dim) if task is None else task

    @property
    def dim(self) -> int:
        """d: the number of coordinates of an input."""
        return self.transformer.token_size - 1

    @property
    def digest(self) -> str:
        """A text that tells these weights and this block from any others."""
        weights = digest_of_arrays(named_leaves(self.transformer))
        return repr(self.transformer.block) + weights

    @property
    def max_examples(self) -> int:
        """How many examples there is room for before a query."""
        return (self.transformer.max_time - 1) // 2

    def __call__(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
        /,
    ) -> Float[Array, ""]:
        """Return the prediction for `query` after the examples."""
        x, y, query = jnp.asarray(x), jnp.asarray(y), jnp.asarray(query)
        require_query(query, self.dim)
        self._refuse_unfit(x, y, num_before_query=x.shape[0])
        _refuse_not_finite("query", query)
        x, y = append_query(x, y, query)
        self.warn_outside_range(x[None], y[None])
        return _predict(self.transformer, x, y)[-1]

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return the prediction at each xᵢ from the examples before it, in one pass."""
        x, y = jnp.asarray(x), jnp.asarray(y)
        self._refuse_unfit(x, y, num_before_query=max(x.shape[0] - 1, 0))
        self.warn_outside_range(x[None], y[None])
        return _predict(self.transformer, x, y)

    def warn_outside_range(
        self,
        x: Float[Array | np.ndarray, "datasets examples dim"],
        y: Float[Array | np.ndarray, "datasets examples"],
    ) -> None:
        """Warn if products of a transformer written by hand see too large operands.

        Nothing is known of numbers that are being traced: inside `jax.jit`, ask first.
        """
        if self.operands is not None and not isinstance(x, Tracer):
            tokens = encode_context(jnp.asarray(x), jnp.asarray(y))
            self.operands.warn(self.transformer, tokens, self.name)

    def _refuse_unfit(self, x: Array, y: Array, num_before_query: int) -> None:
        require_examples(x, y, self.dim)
        if num_before_query > self.max_examples:
            rule = f"hold at most {self.max_examples} examples before a query"
            raise InvalidValueError("x", rule, num_before_query)
        _refuse_not_finite("x", x)
        _refuse_not_finite("y", y)

    def save_pretrained(
        self,
        directory: str | Path,
        *,
        card: str | None = None,
        about: dict | None = None,
    ) -> None:
        """Write the learner to a directory, with a model card and facts `about` it."""
        if card is None:
            card = f"# {self.name}\n\nAn in-context learner for d = {self.dim}.\n"
        known = {} if self.operands is None else {"operands": asdict(self.operands)}
        save_transformer(
            Path(directory),
            self.transformer,
            name=self.name,
            card=card,
            about={**known, **(about or {})},
        )

    @classmethod
    def from_pretrained(cls, name: str | Path) -> "InContextLearner":
        """Return a shipped model by name, or the one saved in a directory."""
        directory = locate(name)
        transformer, config = load_transformer(directory)
        operands = OperandRange.from_config(config.get("operands"), directory)
        name = str(config.get("name", directory.name))
        return cls(transformer, name, operands, _task_in(config, directory))


def _task_in(config: dict, directory: Path) -> Task | None:
    """Return the task that a saved learner was trained on, if it was trained."""
    training = config.get("training")
    if training is None:
        return None
    try:
        names = ("task", "dim", "prior_variance", "noise_variance")
        return make_task(*(training[name] for name in names))
    except (KeyError, TypeError, ValueError) as error:
        problem = f"does not say which task it was trained on ({error})"
        raise DamagedFileError(directory / CONFIG, problem) from error


@eqx.filter_jit
def _predict(
    transformer: Transformer,
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
) -> Float[Array, " examples"]:
    """Return all predictions. Operation by operation they would take far longer."""
    return transformer.outputs(encode_context(x, y), QUERIES)


def _refuse_not_finite(name: str, values: Array) -> None:
    """Refuse NaN and infinity, where there are values to look at."""
    if isinstance(values, Tracer):
        return
    if not bool(jnp.all(jnp.isfinite(values))):
        raise InvalidValueError(name, "be finite", "NaN or infinity")
