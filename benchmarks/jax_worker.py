"""Our side of `training_step.py`: the training loop of the package, run on request.

What is timed is the function that `algoscope.training.train` calls: data, gradient and
Adam of all steps in one compiled loop, the batch divided over virtual CPU devices.
"""

import json
import sys
import time
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from algoscope.model.checkpoints import named_leaves
from algoscope.tasks.task import Dataset
from algoscope.training.config import TrainingConfig
from algoscope.training.loop import (
    compile_steps,
    data_mesh,
    initial_state,
    on_host,
    task_of,
)


def batches(config: TrainingConfig, num_steps: int) -> Dataset:
    """Return the datasets that training draws for its first steps."""

    def dataset(step, place):
        key = jax.random.fold_in(jax.random.key(config.seed), step)
        key = jax.random.fold_in(key, place)
        return task_of(config).sample(key, config.num_examples)

    steps, places = np.arange(num_steps), np.arange(config.batch_size)
    every_place = jax.vmap(dataset, in_axes=(None, 0))
    return jax.jit(jax.vmap(every_place, in_axes=(0, None)))(steps, places)


def main() -> None:
    """Write weights and data for the twin, then take steps on request."""
    job = json.loads(sys.argv[1])
    jax.config.update("jax_num_cpu_devices", job["cores"])
    config = TrainingConfig.from_dict(job["config"])
    mesh = data_mesh()
    state = initial_state(config)
    data = batches(config, job["checked_steps"])
    arrays: dict[str, Any] = {"x": data.x, "y": data.y}
    arrays |= named_leaves(state.transformer)
    np.savez(job["file"], **arrays)

    take_steps = compile_steps(config, mesh, job["steps"])
    state = jax.device_put(state, NamedSharding(mesh, PartitionSpec()))
    state, losses = take_steps(state)
    print(json.dumps({"losses": on_host(losses).tolist()}), flush=True)

    for _ in sys.stdin:
        start = time.perf_counter()
        state, _ = jax.block_until_ready(take_steps(state))
        print(json.dumps(time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
