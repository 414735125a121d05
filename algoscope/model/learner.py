"""A transformer as a predictor (paper §2.2): learning happens in the forward pass.

A trained learner knows the task that it was trained on. A constructed one knows its
`OperandRange`: how large the numbers may be that its layers multiply.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from algoscope.model.opened import (
    HiddenStates,
    Inputs,
    Labels,
    StateEdit,
    edit_outside,
    name_layers,
    name_tokens,
    require_datasets,
    require_layer,
    run_edited,
)
from algoscope.model.operands import OperandRange
from algoscope.model.tokens import QUERIES, append_query, encode_context
from algoscope.model.transformer import Transformer, run_compiled
from algoscope.tasks import make_task
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Task

if TYPE_CHECKING:
    from algoscope.layerwise.read_outs import ReadOuts


class InContextLearner(eqx.Module):
    """A transformer that predicts y′ for a query x′ from the examples before it.

    Example:
        >>> learner = InContextLearner.from_pretrained("linear-d2")
        >>> x, y = jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([1.0, -1.0])
        >>> bool(abs(learner(x, y, jnp.array([1.0, 1.0]))) < 0.2)  # w = (1, −1)
        True
        >>> learner.task
        LinearRegression(dim=2, prior_variance=1.0, noise_variance=0.0)
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
        """Hold a transformer and its task, by default noiseless linear regression."""
        self.transformer = transformer
        self.name = name
        self.operands = operands
        self.task = LinearRegression(self.dim) if task is None else task

    if not TYPE_CHECKING:

        def __getattribute__(self, name: str) -> Any:
            # Equinox makes pytrees of methods, which `jax.jit` cannot hash.
            return object.__getattribute__(self, name)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> Any:
        return self is other or super().__eq__(other)

    @property
    def dim(self) -> int:
        """d: the number of coordinates of an input."""
        return self.transformer.token_size - 1

    @property
    def max_examples(self) -> int:
        """The most examples that fit before a query."""
        return (self.transformer.max_time - 1) // 2

    @property
    def num_layers(self) -> int:
        """The depth L."""
        return self.transformer.num_layers

    @property
    def hidden_size(self) -> int:
        """The number of hidden units."""
        return self.transformer.w_e.shape[0]

    @property
    def layer_names(self) -> tuple[str, ...]:
        """The names of H⁽⁰⁾, …, H⁽ᴸ⁾."""
        return name_layers(self.num_layers)

    @property
    def digest(self) -> str:
        """A text that differs between learners with other weights or another block."""
        weights = digest_of_arrays(named_leaves(self.transformer))
        sizes = self.transformer.layers.inner_sizes
        widths = "" if sizes is None else repr(sizes)
        return repr(self.transformer.block) + widths + weights

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
        self._reject_unfit(x, y, num_before_query=x.shape[0])
        _reject_not_finite("query", query)
        x, y = append_query(x, y, query)
        self.warn_outside_range(x[None], y[None])
        return _predict(self.transformer, x, y)[-1]

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return the prediction at each xᵢ from the examples before it, in one pass."""
        x, y = jnp.asarray(x), jnp.asarray(y)
        self._reject_unfit(x, y, num_before_query=max(x.shape[0] - 1, 0))
        self.warn_outside_range(x[None], y[None])
        return _predict(self.transformer, x, y)

    def token_names(self, num_examples: int) -> list[str]:
        """Return the names of the tokens of some examples and of the query."""
        return name_tokens(num_examples)

    def hidden_states(self, x: Inputs, y: Labels, /) -> HiddenStates:
        """Return H⁽⁰⁾, …, H⁽ᴸ⁾ of every dataset, at the tokens up to its last x."""
        x, y = jnp.asarray(x), jnp.asarray(y)
        require_datasets(x, y, self.dim, self.max_examples)
        return run_compiled(self.transformer, encode_context(x, y)).hidden

    def predict_edited(
        self, x: Inputs, y: Labels, layer: int, edit: StateEdit, /
    ) -> Labels:
        """Return the prediction at every x when H⁽ˡ⁾ is replaced by edit(H⁽ˡ⁾)."""
        x, y = jnp.asarray(x), jnp.asarray(y)
        require_datasets(x, y, self.dim, self.max_examples)
        require_layer(layer, self.num_layers)
        if not isinstance(edit, eqx.Module):
            edit = edit_outside(edit, self.hidden_states(x, y)[:, layer])
        return run_edited(self.transformer, x, y, jnp.asarray(layer), edit)

    def readouts(self, **options: Any) -> "ReadOuts":
        """Fit a linear read-out to every layer; see `algoscope.readouts`."""
        from algoscope.layerwise.read_outs import readouts

        return readouts(self, **options)

    def warn_outside_range(
        self,
        x: Float[Array | np.ndarray, "datasets examples dim"],
        y: Float[Array | np.ndarray, "datasets examples"],
    ) -> None:
        """Warn if a constructed transformer cannot compute precisely with these data.

        Of traced values it warns when they are known, unless `range_warnings` is off.
        """
        if self.operands is not None:
            tokens = encode_context(jnp.asarray(x), jnp.asarray(y))
            self.operands.warn(self.transformer, tokens, self.name)

    def _reject_unfit(self, x: Array, y: Array, num_before_query: int) -> None:
        require_examples(x, y, self.dim)
        if num_before_query > self.max_examples:
            rule = f"hold at most {self.max_examples} examples before a query"
            raise InvalidValueError("x", rule, num_before_query)
        _reject_not_finite("x", x)
        _reject_not_finite("y", y)

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
    def from_pretrained(
        cls, name: str | Path, *, signed: bool = True
    ) -> "InContextLearner":
        """Return a shipped model by name, or the one saved in a directory.

        Weights that carry no digest are rejected unless not `signed`.
        """
        directory = locate(name)
        transformer, config = load_transformer(directory, signed=signed)
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
    """Return all predictions; compiled, because single operations take far longer."""
    return transformer.outputs(encode_context(x, y), QUERIES)


def _reject_not_finite(name: str, values: Array) -> None:
    """Reject NaN and infinity, except in traced values, which are unknown."""
    finite = jnp.all(jnp.isfinite(values))
    if not isinstance(finite, Tracer) and not bool(finite):
        raise InvalidValueError(name, "be finite", "NaN or infinity")
