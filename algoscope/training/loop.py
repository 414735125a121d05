"""The training loop of an in-context learner, and its two recipes (paper §2.2, app. D).

Each step draws fresh datasets on the device, keyed by the step's number, so a run that
is resumed at any step sees exactly the data it would have seen. The batch is divided
over the devices of a mesh; a dataset's key depends on its place in the batch and not on
the device, so any number of devices trains on the same data.

The recipe `paper` is Adam; `fast` is Muon, which needs far fewer steps.
"""

from collections.abc import Iterator
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, Key
from optax.contrib import MuonDimensionNumbers, muon

from algoscope.foundation.validation import InvalidValueError
from algoscope.model.layer import Block
from algoscope.model.tokens import QUERIES, encode_context
from algoscope.model.transformer import Transformer, random_transformer
from algoscope.tasks import make_task
from algoscope.tasks.task import Dataset, Task
from algoscope.training.config import TrainingConfig

# By default XLA uses vectors of 256 bits even where a core has 512.
WIDE_VECTORS = {"xla_cpu_prefer_vector_width": "512"}

# Which axes of a stacked weight are read from and written to. A head's matrices are
# treated as slices of the one matrix [heads·key, hidden] that they form.
MATRICES = {
    "w_q": MuonDimensionNumbers(reduction_axis=3, output_axis=(1, 2)),
    "w_k": MuonDimensionNumbers(reduction_axis=3, output_axis=(1, 2)),
    "w_v": MuonDimensionNumbers(reduction_axis=3, output_axis=(1, 2)),
    "w_f": MuonDimensionNumbers(reduction_axis=(1, 3), output_axis=2),
    "w_2": MuonDimensionNumbers(reduction_axis=2, output_axis=1),
    "w_1": MuonDimensionNumbers(reduction_axis=2, output_axis=1),
    "w_e": MuonDimensionNumbers(reduction_axis=1, output_axis=0),
    "positions": MuonDimensionNumbers(reduction_axis=0, output_axis=1),
}


LEAST_RISK = 0.1  # added to the risk, so that no position counts for everything


class TrainingState(eqx.Module):
    """Everything that a run carries from one step to the next."""

    transformer: Transformer
    optimizer_state: Any
    step: Int[Array, ""]  # steps done


class TrainingDivergedError(RuntimeError):
    """The loss is no longer finite; `state` is the last good one."""

    def __init__(self, step: int, config: TrainingConfig, state: TrainingState):
        self.step = step
        self.state = state
        super().__init__(
            f"The loss is not finite at step {step}: training diverged. The state of "
            f"step {int(state.step)} is kept. Lower the learning rate (now "
            f"{config.learning_rate:g}), lengthen the warm-up (now {config.warmup:g} "
            f"of the steps) or clip gradients harder (now {config.clip:g})."
        )


def task_of(config: TrainingConfig) -> Task:
    """Return the task that the configuration trains on."""
    return make_task(
        config.task, config.dim, config.prior_variance, config.noise_variance
    )


def initial_state(
    config: TrainingConfig, dtype: str = "float32", start: Transformer | None = None
) -> TrainingState:
    """Return the state before the first step: random weights, or those of `start`."""
    if start is not None:
        begun = optimizer(config).init(cast(Any, start))
        return TrainingState(start, begun, jnp.zeros((), jnp.int32))
    pre_norm = config.block == "pre_norm"
    key_size = config.hidden_size // config.num_heads
    block = Block(
        pre_norm=pre_norm,
        activation=config.activation,
        attention_scale=key_size**-0.5 if pre_norm else 1.0,
    )
    transformer = random_transformer(
        config.seed,
        token_size=config.dim + 1,
        max_time=config.num_tokens,
        num_layers=config.num_layers,
        hidden_size=config.hidden_size,
        num_heads=config.num_heads,
        block=block,
        initialization=config.initialization,
        dtype=dtype,
    )
    step = jnp.zeros((), jnp.int32)
    optimizer_state = optimizer(config).init(cast(Any, transformer))
    return TrainingState(transformer, optimizer_state, step)


def objective(
    transformer: Transformer,
    data: Dataset,
    weights: Float[Array, " examples"] | None = None,
) -> Float[Array, ""]:
    """Return the mean of (yᵢ − T([x₁, y₁, …, xᵢ]))² over positions i and datasets.

    Eq. 8 sums over the positions; the mean differs by the constant factor n. `weights`
    say how much each position counts.
    """
    predictions = transformer.outputs(encode_context(data.x, data.y), QUERIES)
    errors = jnp.mean((predictions - data.y) ** 2, axis=0)
    if weights is None:
        return jnp.mean(errors)
    return jnp.sum(errors * weights) / jnp.sum(weights)


def position_weights(config: TrainingConfig) -> Float[np.ndarray, " examples"] | None:
    """Return how much each position counts in the loss, or None if all count the same.

    The label after n examples cannot be predicted better than with a mean squared error
    of about dτ²(r + s/d), r = max(0, 1 − n/d), s = σ²/τ². Its noise reaches the
    gradient, so that position gets the weight 1 / (r + s/d + 0.1). The best predictor
    minimizes the error at every position, so weights do not change it.
    """
    if config.loss_weights == "equal":
        return None
    n = np.arange(config.num_examples)
    noise = config.noise_variance / (config.prior_variance * config.dim)
    weights = 1 / (np.maximum(0, 1 - n / config.dim) + noise + LEAST_RISK)
    return (weights / weights.mean()).astype(np.float32)


def curriculum(
    config: TrainingConfig, step: Int[Array, ""]
) -> tuple[Float[Array, " dim"], Float[Array, " examples"]]:
    """Return which coordinates are active and which positions count at a step.

    Both grow linearly over the first third of the steps: coordinates from a quarter of
    d, positions from a quarter of n (similar to Garg et al., 2022).
    """
    share = jnp.minimum(1.0, 0.25 + 0.75 * step / (config.steps / 3))
    dims = jnp.arange(config.dim) < jnp.ceil(share * config.dim)
    positions = jnp.arange(config.num_examples) < jnp.ceil(share * config.num_examples)
    return dims.astype(float), positions.astype(float)


def _draw_batch(
    config: TrainingConfig, keys: Key[Array, " batch"], step: Int[Array, ""]
) -> tuple[Dataset, Float[Array, " examples"] | None]:
    """Return one dataset per key, and how much each position counts."""
    task = task_of(config)
    data = jax.vmap(lambda key: task.sample(key, config.num_examples))(keys)
    weights = position_weights(config)
    if not config.curriculum:
        return data, None if weights is None else jnp.asarray(weights)
    dims, mask = curriculum(config, step)
    mask = mask if weights is None else mask * weights
    x = data.x * dims[None, None]
    removed = jnp.einsum("bnd,bd->bn", data.x - x, data.w)
    return Dataset(x, data.y - removed, data.w), mask


def data_mesh(num_devices: int | None = None) -> Mesh:
    """Return a mesh over the devices of all processes, or over the first few."""
    devices = jax.devices()
    if num_devices is not None and not 1 <= num_devices <= len(devices):
        rule = f"be between 1 and the number of devices {len(devices)}"
        raise InvalidValueError("num_devices", rule, num_devices)
    return Mesh(np.array(devices[:num_devices]), ("data",))


def compile_steps(config: TrainingConfig, mesh: Mesh, num_steps: int):
    """Return a compiled function that takes `num_steps` steps from a state.

    It maps a state to the next state and the losses on the way.
    """
    if config.batch_size % mesh.size:
        rule = f"be a multiple of the number of devices {mesh.size}"
        raise InvalidValueError("batch_size", rule, config.batch_size)
    per_device = config.batch_size // mesh.size
    update_rule = optimizer(config)
    data_key = jax.random.key(config.seed)

    def one_step(state: TrainingState, _):
        step_key = jax.random.fold_in(data_key, state.step)
        places = jax.lax.axis_index("data") * per_device + jnp.arange(per_device)
        keys = jax.vmap(lambda place: jax.random.fold_in(step_key, place))(places)
        with jax.named_scope("data"):  # names in a profile
            data, weights = _draw_batch(config, keys, state.step)
        loss, gradient = jax.value_and_grad(objective)(state.transformer, data, weights)
        loss, gradient = jax.lax.pmean((loss, gradient), "data")
        with jax.named_scope("optimizer"):
            updates, optimizer_state = update_rule.update(
                gradient, state.optimizer_state, cast(Any, state.transformer)
            )
            transformer = cast(
                Any, optax.apply_updates(cast(Any, state.transformer), updates)
            )
        return TrainingState(transformer, optimizer_state, state.step + 1), loss

    def steps(state: TrainingState):
        return jax.lax.scan(one_step, state, None, length=num_steps)

    replicated = PartitionSpec()
    together = jax.shard_map(
        steps, mesh=mesh, in_specs=replicated, out_specs=replicated, check_vma=False
    )
    on_cpu = mesh.devices.flat[0].platform == "cpu"
    return jax.jit(together, compiler_options=WIDE_VECTORS if on_cpu else None)


def on_host(tree: Any) -> Any:
    """Return a replicated tree as NumPy arrays, from this process's own copy."""
    return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), tree)


def train_steps(
    config: TrainingConfig, state: TrainingState, mesh: Mesh | None = None
) -> Iterator[tuple[TrainingState, Float[np.ndarray, " steps"]]]:
    """Train from `state` to the last step, in compiled calls of `steps_per_call` steps.

    Yields after each call the state, on the host, and the loss of each of its steps.
    Calls begin at multiples of `steps_per_call` wherever training starts, so a resumed
    run makes the same calls, and rounds the same, as one that was not interrupted.
    """
    mesh = data_mesh() if mesh is None else mesh
    placed = jax.device_put(state, NamedSharding(mesh, PartitionSpec()))
    compiled: dict[int, Any] = {}
    done = int(state.step)
    while done < config.steps:
        end = min(
            (done // config.steps_per_call + 1) * config.steps_per_call, config.steps
        )
        length = end - done
        if length not in compiled:
            compiled[length] = compile_steps(config, mesh, length)
        following, losses = compiled[length](placed)
        losses = on_host(losses)
        if not np.all(np.isfinite(losses)):
            bad = done + int(np.argmin(np.isfinite(losses))) + 1
            raise TrainingDivergedError(bad, config, on_host(placed))
        placed, done = following, end
        yield on_host(placed), losses


def _matrices(parameters: Any) -> Any:
    """Return the axes of each parameter, and None for those that are not matrices."""
    return jax.tree_util.tree_map_with_path(
        lambda path, _: MATRICES.get(path[-1].name), parameters
    )


def learning_rate_schedule(config: TrainingConfig) -> optax.Schedule:
    """Return the learning rate per step: linear warm-up, then the decay to zero."""
    warmup, peak = round(config.warmup * config.steps), config.learning_rate
    if config.decay == "linear":
        rising = optax.linear_schedule(0.0, peak, warmup)
        falling = optax.linear_schedule(peak, 0.0, config.steps - warmup)
        return optax.join_schedules([rising, falling], [warmup])
    return optax.warmup_cosine_decay_schedule(
        init_value=0.0 if warmup else peak,
        peak_value=peak,
        warmup_steps=warmup,
        decay_steps=config.steps,
    )


def optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    """Return the optimizer of the configuration's recipe."""
    rate = learning_rate_schedule(config)
    if config.recipe == "paper":
        update = optax.adamw(rate, weight_decay=config.weight_decay)
    else:
        update = muon(
            rate,
            weight_decay=config.weight_decay,
            adam_weight_decay=config.weight_decay,
            muon_weight_dimension_numbers=_matrices,
        )
    if config.clip == 0:
        return update
    return optax.chain(optax.clip_by_global_norm(config.clip), update)
