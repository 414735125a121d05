"""About how long a training run takes: on one core, and on this machine.

Measured on one core for the presets' sequences of 41 tokens: a layer takes 5 ms per
step however narrow it is, and its arithmetic runs at 60 GFLOP/s, so that H = 16, 32, 64
and 128 take 6, 9, 20 and 60 ms per layer. Compiling and evaluating take half a minute
per run.
"""

from algoscope.foundation.machine import num_cores
from algoscope.training.config import TrainingConfig

LAYER_SECONDS = 5e-3  # per step, for 64 sequences of 41 tokens
FLOPS_PER_SECOND = 60e9
RUN_SECONDS = 30.0  # compiling and evaluating


def core_seconds(config: TrainingConfig) -> float:
    """Return about how many seconds one core needs for a run."""
    tokens = config.batch_size * config.num_tokens
    overhead = LAYER_SECONDS * config.num_layers * tokens / (64 * 41)
    step = overhead + config.flops_per_step / FLOPS_PER_SECOND
    return RUN_SECONDS + config.steps * step


def estimated_seconds(config: TrainingConfig) -> float:
    """Return about how many seconds a run takes on all cores of this machine."""
    return core_seconds(config) / num_cores()
