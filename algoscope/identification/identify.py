"""The distance of a hypothesis over the datasets that it fits best, with its interval.

A solver that did not converge on a few datasets, or ties that it breaks another way, do
not make another algorithm.
"""

import warnings
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from algoscope.comparison.compare import DEFAULT_EXAMPLES, asked_on
from algoscope.comparison.intervals import regime_spans
from algoscope.comparison.metrics import squared_prediction_difference
from algoscope.comparison.predict import counted, predict_exactly
from algoscope.foundation.machine import provenance
from algoscope.foundation.progress import Progress, shown
from algoscope.foundation.validation import require_at_least, require_choice
from algoscope.identification.evidence import gather
from algoscope.identification.fitting import Hypothesis, Observations, fit, refine
from algoscope.identification.result import Candidate, Identification, Regime
from algoscope.identification.suites import SUITES, Probes, draw_probes
from algoscope.model.learner import InContextLearner
from algoscope.predictors import BlackBox, Predictor, PredictorFailedError
from algoscope.tasks.task import Task

KEPT = 0.8  # of the datasets, those that a hypothesis fits best
RESAMPLES = 1000  # for an interval


def best_fitted(
    per_dataset: Float[np.ndarray, "*rest datasets"],
) -> Int[np.ndarray, "*rest kept"]:
    """Return the places of the datasets that fit best, the best first."""
    num_kept = max(round(KEPT * per_dataset.shape[-1]), 1)
    return np.argsort(per_dataset, axis=-1, kind="stable")[..., :num_kept]


def typical(
    per_dataset: Float[np.ndarray, "*rest datasets"],
) -> Float[np.ndarray, " *rest"]:
    """Return the mean over the datasets that fit best."""
    nearest = np.take_along_axis(per_dataset, best_fitted(per_dataset), axis=-1)
    return np.asarray(nearest.mean(axis=-1))


def interval(
    per_dataset: Float[np.ndarray, " datasets"], seed: int
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of `typical`, over all datasets."""
    n = len(per_dataset)
    drawn = np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))
    # No interpolation: where a hypothesis diverges, a mean may be infinite.
    bounds = np.quantile(
        typical(per_dataset[drawn]), [0.025, 0.975], method="inverted_cdf"
    )
    return float(bounds[0]), float(bounds[1])


Domain = Literal["task", "everywhere"]

# A learned algorithm is approximate and only meant for its task; a programmed one is
# exact everywhere, up to a solver's tolerance.
THRESHOLD: dict[Domain, float] = {"task": 0.05, "everywhere": 0.01}
EXACT = 1e-10  # a distance that is rounding
SLACK = 1.1  # distances in this ratio are the same
CONTENDERS = 5  # hypotheses between which the second round decides
POOL = 8  # datasets to choose from, for each one chosen
FITTED = 48  # datasets that families are fitted to, at least
FOLDS = 4  # of the data, on each of which the winner's parameters are fitted again


def identify(
    predictor: Predictor | BlackBox,
    task: Task | None = None,
    *,
    num_examples: int | None = None,
    num_datasets: int | None = None,
    domain: Domain | None = None,
    seed: int = 0,
    with_evidence: bool = True,
    progress: Progress | bool = True,
) -> Identification:
    """Say which learning algorithm a predictor runs.

    A model knows its task; for any other predictor, `task` says on which data it is
    asked. `num_examples` is by default 20, or as many as a model has room for.
    `domain` is where it is held to the answer: on its `task`, the default for an
    `InContextLearner`, or `everywhere`, on data of other kinds too, for all others.
    Without `with_evidence` only the distances are measured, which is faster.
    `num_datasets` is by default 96 for a black box and 192 for what JAX runs.
    """
    task, room = asked_on(predictor, task, num_examples)
    num_examples = num_examples or min(room, DEFAULT_EXAMPLES)
    require_at_least("num_examples", num_examples, 2)
    if num_datasets is None:
        num_datasets = 96 if isinstance(predictor, BlackBox) else 192
    require_at_least("num_datasets", num_datasets, 16)
    require_at_least("seed", seed, 0)
    if domain is None:
        domain = "task" if isinstance(predictor, InContextLearner) else "everywhere"
    require_choice("domain", domain, THRESHOLD)
    with shown(progress) as report:
        return _identify(
            counted(predictor, report),
            task,
            num_examples=num_examples,
            num_datasets=num_datasets,
            domain=domain,
            seed=seed,
            with_evidence=with_evidence,
            progress=report,
        )


def _identify(
    predictor: Predictor | BlackBox,
    task: Task,
    *,
    num_examples: int,
    num_datasets: int,
    domain: Domain,
    seed: int,
    with_evidence: bool,
    progress: Progress,
) -> Identification:
    suites = ("task",) if domain == "task" else SUITES
    to_fit, to_test, pool = draw_probes(
        suites,
        task,
        sizes=(num_datasets // 2, num_datasets // 2, POOL * num_datasets // 4),
        num_examples=num_examples + 1,
        seed=seed,
    )

    def ask(probes: Probes) -> Observations:
        answers = predict_exactly(predictor, probes.x, probes.y)
        return Observations(probes.x, probes.y, answers.astype(np.float64))

    training, testing = ask(to_fit), ask(to_test)
    sample = training.take(slice(None, None, max(len(training.x) // FITTED, 1)))
    hypotheses = fit(sample, progress)

    first = [_distance(h, testing) for h in hypotheses]
    order = np.argsort(first, kind="stable")
    for i in order[:CONTENDERS]:
        hypotheses[i] = _refine_typical(hypotheses[i], training)
    nearest = [hypotheses[i] for i in order[:CONTENDERS]]
    contested = ask(_contested(nearest, pool))
    observed = testing.join(contested)

    predictions = {h: h.predict(observed.x, observed.y) for h in hypotheses}
    per_dataset = {h: observed.distances(p) for h, p in predictions.items()}
    distances = {h: float(typical(d)) for h, d in per_dataset.items()}
    ranked = _rank(hypotheses, distances)
    winner = ranked[0]
    folds = _refit(winner, training)
    spans = regime_spans(task.dim, num_examples)
    candidates = [
        _candidate(h, predictions[h], per_dataset[h], observed, spans, seed)
        for h in ranked
    ]
    threshold = THRESHOLD[domain]
    regimes = [
        _regime(name, ranked, candidates, threshold, span) for name, *span in spans
    ]
    fits = distances[winner] <= threshold
    return Identification(
        target=predictor.name,
        verdict=winner.family.name if fits else "none",
        parameters=winner.parameters if fits else {},
        parameter_ranges=folds if fits else {},
        confidence=_confidence(winner, ranked, per_dataset, seed),
        candidates=candidates,
        regimes=regimes,
        domain=domain,
        threshold=threshold,
        task=repr(task),
        dim=task.dim,
        num_examples=num_examples,
        num_datasets=len(training.x) + len(observed.x),
        seed=seed,
        versions=provenance(),
        evidence=_evidence(predictor, winner, task, spans, seed)
        if with_evidence
        else {},
    )


def _distance(hypothesis: Hypothesis, observed: Observations) -> float:
    predictions = hypothesis.predict(observed.x, observed.y)
    return float(typical(observed.distances(predictions)))


def _refine_typical(hypothesis: Hypothesis, observed: Observations) -> Hypothesis:
    """Return the hypothesis fitted to the datasets that it fits best."""
    if not hypothesis.family.parameters:
        return hypothesis
    distances = observed.distances(hypothesis.predict(observed.x, observed.y))
    return refine(hypothesis, observed.take(best_fitted(distances)))[1]


def _contested(nearest: list[Hypothesis], pool: Probes) -> Probes:
    """Return the eighth of the pool on which the nearest hypotheses differ most.

    How far two differ on a dataset is relative to the labels; what counts is the
    difference of the two that differ least, so that every pair is told apart.
    """
    predictions = np.stack([h.predict(pool.x, pool.y) for h in nearest])[:, :, 1:]
    scale = np.mean(pool.y**2, axis=1) + 1e-300
    with np.errstate(over="ignore", invalid="ignore"):  # one of them may diverge
        pairs = [
            np.mean((a - b) ** 2, axis=1) / scale
            for i, a in enumerate(predictions)
            for b in predictions[:i]
        ]
        usual = [np.median(pair) + 1e-300 for pair in pairs]
        relative = np.array([p / u for p, u in zip(pairs, usual, strict=True)])
    score = np.where(np.isfinite(relative), relative, 0.0).min(axis=0)
    return pool.take(np.argsort(-score, kind="stable")[: len(pool.x) // POOL])


def _rank(
    hypotheses: list[Hypothesis], distances: dict[Hypothesis, float]
) -> list[Hypothesis]:
    """Return the hypotheses by distance; of equals, the simplest first."""
    best = min(distances.values())
    equal = max(SLACK * best, EXACT)
    ties = [h for h in hypotheses if distances[h] <= equal]
    winner = min(ties, key=lambda h: h.family.num_parameters)
    others = [h for h in hypotheses if h is not winner]
    return [winner, *sorted(others, key=distances.__getitem__)]


def _refit(
    winner: Hypothesis, observations: Observations
) -> dict[str, tuple[float, float]]:
    """Return, for each continuous parameter, its range over disjoint quarters."""
    if not winner.family.parameters:
        return {}
    parts = [observations.take(slice(fold, None, FOLDS)) for fold in range(FOLDS)]
    fitted = [refine(winner, part)[1].parameters for part in parts]
    return {
        p.name: (min(f[p.name] for f in fitted), max(f[p.name] for f in fitted))
        for p in winner.family.parameters
    }


def _evidence(
    predictor: Predictor | BlackBox,
    winner: Hypothesis,
    task: Task,
    spans: list[tuple[str, int, int]],
    seed: int,
) -> dict[str, Any]:
    """Return what else speaks for the answer; none of it if a black box fails now."""
    try:
        return gather(predictor, winner, task, spans, seed)
    except PredictorFailedError as error:
        warnings.warn(f"{error} The evidence is left out.", stacklevel=3)
        return {}


def _candidate(
    hypothesis: Hypothesis,
    predictions: Float[np.ndarray, "datasets examples"],
    per_dataset: Float[np.ndarray, " datasets"],
    observed: Observations,
    spans: list[tuple[str, int, int]],
    seed: int,
) -> Candidate:
    squares = observed.residuals(predictions) ** 2
    dim = observed.x.shape[2]
    spd_of_each = squared_prediction_difference(predictions, observed.predictions, dim)
    kept = best_fitted(per_dataset)
    low, high = interval(per_dataset, seed)
    by_regime, spd = {}, {}
    for name, start, stop in spans:
        part = slice(start, stop + 1)
        counted = observed.weights[kept, part] > 0
        by_regime[name] = float(squares[kept, part].sum() / max(counted.sum(), 1))
        spd[name] = (
            float(np.median(spd_of_each[kept, part][counted]))
            if counted.any()
            else float("nan")
        )
    return Candidate(
        family=hypothesis.family.name,
        name=hypothesis.name,
        parameters=hypothesis.parameters,
        distance=float(typical(per_dataset)),
        low=low,
        high=high,
        regimes=by_regime,
        median_spd=spd,
    )


def _regime(
    name: str,
    ranked: list[Hypothesis],
    candidates: list[Candidate],
    threshold: float,
    span: list[int],
) -> Regime:
    distances = {h: c.regimes[name] for h, c in zip(ranked, candidates, strict=True)}
    winner = _rank(ranked, distances)[0]
    fits = distances[winner] <= threshold
    return Regime(
        name=name,
        first=span[0],
        last=span[1],
        verdict=winner.family.name if fits else "none",
        nearest=winner.name,
        distance=distances[winner],
    )


def _confidence(
    winner: Hypothesis,
    ranked: list[Hypothesis],
    per_dataset: dict[Hypothesis, Float[np.ndarray, " datasets"]],
    seed: int,
) -> float:
    """Return how often, over resampled datasets, the winner's family is nearest.

    A family that is as near up to the slack does not count against it.
    """
    rng = np.random.default_rng(seed)
    matrix = np.stack([per_dataset[h] for h in ranked])
    same = np.array([h.family.name == winner.family.name for h in ranked])
    n = matrix.shape[1]
    wins = []
    for _ in range(200):
        means = typical(matrix[:, rng.integers(0, n, n)])
        wins.append(means[same].min() <= max(SLACK * means.min(), EXACT))
    return float(np.mean(wins))
