"""The two training recipes: the paper's, and one that needs far fewer steps (app. D).

`paper`: Adam. `fast`: Muon, which orthogonalizes the update of every weight matrix,
with Adam for the vectors. Both follow a linear warm-up and a cosine to zero.
"""

from typing import Any

import jax
import optax
from optax.contrib import MuonDimensionNumbers, muon

from algoscope.training.config import TrainingConfig

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


def _matrices(parameters: Any) -> Any:
    """Return the axes of each parameter, and None for those that are not matrices."""
    return jax.tree_util.tree_map_with_path(
        lambda path, _: MATRICES.get(path[-1].name), parameters
    )


def schedule(config: TrainingConfig) -> optax.Schedule:
    """Return the learning rate per step: linear warm-up, then a cosine to zero."""
    warmup = round(config.warmup * config.steps)
    return optax.warmup_cosine_decay_schedule(
        init_value=0.0 if warmup else config.learning_rate,
        peak_value=config.learning_rate,
        warmup_steps=warmup,
        decay_steps=config.steps,
    )


def optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    """Return the optimizer of the configuration's recipe."""
    rate = schedule(config)
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
