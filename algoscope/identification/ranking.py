"""Ranking fitted hypotheses by how far they are from what was observed.

The distance of a hypothesis is ρ of `fitting`, averaged over the 80 % of the datasets
that it fits best: an algorithm whose solver did not converge on a few datasets, or that
breaks ties in another way, is still the same algorithm.
"""

import numpy as np
from jaxtyping import Float, Int

from algoscope.comparison.metrics import squared_prediction_difference
from algoscope.identification.fitting import Hypothesis, Observations
from algoscope.identification.result import Candidate, Regime

KEPT = 0.8  # of the datasets, those that a hypothesis fits best
INTERVAL_RESAMPLES = 1000
CONFIDENCE_RESAMPLES = 200
EXACT = 1e-10  # distances up to this are rounding
SLACK = 1.1  # distances within this factor of the smallest count as equal


def best_fitted(
    distances: Float[np.ndarray, "*rest datasets"],
) -> Int[np.ndarray, "*rest kept"]:
    """Return the indices of the datasets with the smallest distances, in order."""
    num_kept = max(round(KEPT * distances.shape[-1]), 1)
    return np.argsort(distances, axis=-1, kind="stable")[..., :num_kept]


def trimmed_mean(
    distances: Float[np.ndarray, "*rest datasets"],
) -> Float[np.ndarray, " *rest"]:
    """Return the mean distance over the datasets that are fitted best."""
    kept = np.take_along_axis(distances, best_fitted(distances), axis=-1)
    return np.asarray(kept.mean(axis=-1))


def bootstrap_distance_interval(
    distances: Float[np.ndarray, " datasets"], seed: int
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of `trimmed_mean` over datasets."""
    n = len(distances)
    drawn = np.random.default_rng(seed).integers(0, n, (INTERVAL_RESAMPLES, n))
    # No interpolation: the mean of a hypothesis that diverges may be infinite.
    bounds = np.quantile(
        trimmed_mean(distances[drawn]), [0.025, 0.975], method="inverted_cdf"
    )
    return float(bounds[0]), float(bounds[1])


def rank(
    hypotheses: list[Hypothesis], distances: dict[Hypothesis, float]
) -> list[Hypothesis]:
    """Return the hypotheses, the nearest first.

    Of those that are equally near as the nearest, up to `SLACK`, the one with the
    fewest parameters comes first.
    """
    equal = max(SLACK * min(distances.values()), EXACT)
    ties = [h for h in hypotheses if distances[h] <= equal]
    winner = min(ties, key=lambda h: h.family.num_parameters)
    others = [h for h in hypotheses if h is not winner]
    return [winner, *sorted(others, key=distances.__getitem__)]


def confidence(
    ranked: list[Hypothesis],
    distances: dict[Hypothesis, Float[np.ndarray, " datasets"]],
    seed: int,
) -> float:
    """Return how often, over resampled datasets, the first one's family is nearest.

    Families that are equally near, up to `SLACK`, do not count against it.
    """
    rng = np.random.default_rng(seed)
    matrix = np.stack([distances[h] for h in ranked])
    same = np.array([h.family.name == ranked[0].family.name for h in ranked])
    n = matrix.shape[1]
    wins = []
    for _ in range(CONFIDENCE_RESAMPLES):
        means = trimmed_mean(matrix[:, rng.integers(0, n, n)])
        wins.append(means[same].min() <= max(SLACK * means.min(), EXACT))
    return float(np.mean(wins))


def describe_candidate(
    hypothesis: Hypothesis,
    predictions: Float[np.ndarray, "datasets examples"],
    observed: Observations,
    spans: list[tuple[str, int, int]],
    seed: int,
) -> Candidate:
    """Return the distances of a hypothesis: over all n, and over each span of n."""
    distances = observed.distances(predictions)
    kept = best_fitted(distances)
    low, high = bootstrap_distance_interval(distances, seed)
    squares = observed.residuals(predictions) ** 2
    dim = observed.x.shape[2]
    spd = squared_prediction_difference(predictions, observed.predictions, dim)
    by_regime, median_spd = {}, {}
    for name, first, last in spans:
        part = slice(first, last + 1)
        counted = observed.weights[kept, part] > 0
        by_regime[name] = float(squares[kept, part].sum() / max(counted.sum(), 1))
        median_spd[name] = (
            float(np.median(spd[kept, part][counted]))
            if counted.any()
            else float("nan")
        )
    return Candidate(
        family=hypothesis.family.name,
        name=hypothesis.name,
        parameters=hypothesis.parameters,
        distance=float(trimmed_mean(distances)),
        low=low,
        high=high,
        regimes=by_regime,
        median_spd=median_spd,
    )


def describe_regime(
    span: tuple[str, int, int],
    ranked: list[Hypothesis],
    candidates: list[Candidate],
    threshold: float,
) -> Regime:
    """Return the answer for one span of n: its name, first and last n."""
    name, first, last = span
    distances = {h: c.regimes[name] for h, c in zip(ranked, candidates, strict=True)}
    winner = rank(ranked, distances)[0]
    fits = distances[winner] <= threshold
    return Regime(
        name=name,
        first=first,
        last=last,
        verdict=winner.family.name if fits else "none",
        nearest=winner.name,
        distance=distances[winner],
    )
