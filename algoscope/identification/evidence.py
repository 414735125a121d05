"""Further evidence for a hypothesis: implied weights, influences and symmetries."""

from typing import Any

import jax
import numpy as np

from algoscope.comparison.linearization import implied_weights, influences
from algoscope.comparison.metrics import cosine_similarity, squared_distance
from algoscope.comparison.predict import held_out, is_slow, predict_queries
from algoscope.comparison.symmetries import symmetries
from algoscope.identification.hypothesis import Hypothesis
from algoscope.predictors import BlackBox, Predictor
from algoscope.tasks.task import Task

DATASETS, BLACK_BOX_DATASETS = 12, 3
MOST_INFLUENCES = 8  # examples before a query whose influence is measured
BROKEN = 0.1  # a larger relative change breaks a symmetry
KEPT = 0.02  # a smaller one keeps it


def broken_symmetries(evidence: dict[str, Any]) -> dict[str, float]:
    """Return the symmetries that the hypothesis has and the predictor does not.

    Example:
        >>> change = {"rotation": {"target": 0.2, "nearest": 0.0}}
        >>> broken_symmetries({"symmetries": change})
        {'rotation': 0.2}
    """
    found = {}
    for name, change in evidence.get("symmetries", {}).items():
        target, nearest = change["target"], change["nearest"]
        if target is None or nearest is None:
            continue
        if target > BROKEN and nearest < KEPT:
            found[name] = target
    return found


def num_questions(
    predictor: Predictor | BlackBox, spans: list[tuple[str, int, int]]
) -> int:
    """Return how many questions `gather_evidence` asks a black box."""
    count = BLACK_BOX_DATASETS if is_slow(predictor) else DATASETS
    n = spans[-1][2]
    short = min(MOST_INFLUENCES, n)
    # Implied weights, two answers for each influence, and eight for the symmetries,
    # one of which has no room at the last n.
    return count * (len(spans) + short * (short + 1) + 8 * n - 1)


def gather_evidence(
    predictor: Predictor | BlackBox,
    hypothesis: Hypothesis,
    task: Task,
    spans: list[tuple[str, int, int]],
    seed: int,
) -> dict[str, Any]:
    """Return the evidence, as numbers by name.

    `ilwd` is ‖ŵ − ŵ′‖²/d at the last n of each regime, from `num_queries` queries;
    `influence` is the mean cosine and squared distance of ∂ŷ/∂y; `symmetries` are the
    relative changes of predictions under each symmetry, 0 where it is kept.
    """
    slow = is_slow(predictor)
    count = BLACK_BOX_DATASETS if slow else DATASETS
    num_examples = spans[-1][2]
    x, y = held_out(
        task, num_datasets=count, num_examples=num_examples + 1, seed=seed + 1
    )
    x, y = x.astype(np.float64), y.astype(np.float64)
    num_queries = 2 * task.dim
    rng = np.random.default_rng(seed)
    queries = rng.standard_normal((count, num_queries, task.dim))

    def implied_after(n: int, each: Predictor | BlackBox) -> np.ndarray:
        answers = predict_queries(each, x, y, queries, after=n)
        return implied_weights(queries, answers[:, None])

    with jax.enable_x64(True):
        ilwd = {}
        for name, _, n in spans:
            target, nearest = implied_after(n, predictor), implied_after(n, hypothesis)
            ilwd[name] = _mean(squared_distance(target, nearest, task.dim))
        short = slice(0, min(MOST_INFLUENCES, num_examples) + 1)
        moved = influences(predictor, x[:, short], y[:, short])
        expected = influences(hypothesis, x[:, short], y[:, short])
        broken = [symmetries(each, x, y, seed=seed) for each in (predictor, hypothesis)]
    return {
        "num_datasets": count,
        "num_queries": num_queries,
        "ilwd": ilwd,
        "influence": {
            "cosine": _mean(cosine_similarity(moved, expected)[:, 1:]),
            "distance": _mean(squared_distance(moved, expected, 1)[:, 1:]),
        },
        "symmetries": {
            name: {
                "target": _mean(broken[0][name][:, 1:]),
                "nearest": _mean(broken[1][name][:, 1:]),
            }
            for name in broken[0]
        },
    }


def _mean(values: np.ndarray) -> float | None:
    """Return the mean of the finite values, or None if there are none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else None
