"""Probing results made by hand, for tests of what reads them."""

import numpy as np

from algoscope.probing.evidence import Evidence
from algoscope.probing.measurement import Measurement
from algoscope.probing.result import ProbingResult

EARLY, LATE = [1.0, 0.8, 0.1, 0.2, 0.3], [1.0, 0.9, 0.8, 0.1, 0.05]
PREFIXES = (1, 2, 4, 8)
PLACES = ("learned", "last_label", "query", "labels")
BLOCKS = 16


def measured(
    learner: str,
    target: str,
    kind: str,
    place: str,
    errors: np.ndarray,
    seed: int = 0,
) -> Measurement:
    """Return relative errors [layers, prefixes] with a little noise between blocks."""
    noise = np.random.default_rng(seed).normal(0, 2e-3, (1, BLOCKS, 1, 1))
    error = np.asarray(errors, np.float64)[None]
    return Measurement(
        learner=learner,
        target=target,
        kind=kind,
        layers=tuple(range(error.shape[1])),
        error=error,
        variance=np.ones((1, error.shape[2])),
        attention=np.full((1, *error.shape[1:], 17), 1 / 17),
        place=place,
        blocks=error[:, None] + noise - noise.mean(),
        validation=error,
        history=np.repeat(error[:, None], 5, axis=1),
    )


def probing_result(
    moment: list[float],
    weights: list[float],
    linear: float,
    control: float,
    *,
    floor: float = 0.5,
    places: dict[str, list[float]] | None = None,
    seed: int = 0,
) -> ProbingResult:
    """Return errors per layer of MLP probes for two targets, the same for all n.

    Linear probes have `linear` more, and those of the control `control` more. `places`
    adds errors to those of fixed places, for each n.
    """
    added = {place: [0.1] * len(PREFIXES) for place in PLACES[1:]} | (places or {})
    found = [
        measured(
            learner,
            target,
            kind,
            place,
            np.add.outer(
                np.array(values) + offset + more,
                added.get(place, [0.0] * len(PREFIXES)),
            ),
            seed,
        )
        for learner, offset in (("l", 0.0), ("c", control))
        for target, values in (("moment", moment), ("w_ols", weights))
        for kind, more in (("linear", linear), ("mlp", 0.0))
        for place in PLACES
    ]
    floors = [
        measured("last pair", target, kind, "all", np.full((1, len(PREFIXES)), floor))
        for target in ("moment", "w_ols")
        for kind in ("linear", "mlp")
    ]
    config = {"repeats": 1, "num_test": 10, "num_training": 10}
    return ProbingResult(
        "l", ("c",), 4, "task", PREFIXES, config, {}, tuple(found), tuple(floors)
    )


def evidence(*arguments, seeds: int = 2, **choices) -> Evidence:
    """Return the same for several seeds."""
    return Evidence(
        tuple(probing_result(*arguments, **choices, seed=s) for s in range(seeds))
    )
