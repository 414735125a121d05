"""Probing results made by hand, for tests of what reads them."""

import numpy as np

from algoscope.probing.result import Measurement, ProbingResult

EARLY, LATE = [1.0, 0.8, 0.1, 0.2, 0.3], [1.0, 0.9, 0.8, 0.1, 0.05]


def probed(errors: dict[tuple[str, str, str], list[float]]) -> ProbingResult:
    """Return a made-up result with these relative errors per layer."""
    noise = np.array([-1e-3, 0.0, 1e-3])[:, None, None]
    measurements = tuple(
        Measurement(
            learner=learner,
            target=target,
            kind=kind,
            layers=tuple(range(len(values))),
            error=np.array(values)[None, :, None] + noise,
            variance=np.ones((3, 1)),
            attention=np.ones((3, len(values), 1, 3)) / 3,
        )
        for (learner, target, kind), values in errors.items()
    )
    config = {"repeats": 3, "num_test": 10, "num_training": 10}
    return ProbingResult("l", ("c",), 4, "task", (1,), config, {}, measurements)


def probing_result(
    moment: list[float], weights: list[float], linear: float, control: float
) -> ProbingResult:
    """Return errors per layer of MLP probes for two targets.

    Linear probes have `linear` more, and those of the control `control` more.
    """
    errors = {}
    for learner, offset in (("l", 0.0), ("c", control)):
        for target, values in (("moment", moment), ("w_ols", weights)):
            for kind, more in (("linear", linear), ("mlp", 0.0)):
                made = [value + offset + more for value in values]
                errors[learner, target, kind] = made
    return probed(errors)
