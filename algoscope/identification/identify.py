"""Which learning algorithm does a predictor run? It is asked, and families are fitted.

1. The predictor is asked on datasets, half of them to fit, half of them to test.
2. Every family of algorithms is fitted to its answers (`fitting`).
3. It is asked again, on datasets on which the nearest hypotheses disagree (`suites`).
4. The hypotheses are ranked by their distance on what was not fitted (`ranking`).
5. Further evidence is gathered on a few datasets: weights, influences, symmetries.
"""

import warnings
from typing import Any, Literal

import jax
import numpy as np

from algoscope.comparison.compare import DEFAULT_EXAMPLES, asked_on, known_task
from algoscope.comparison.intervals import regime_spans
from algoscope.comparison.linearization import implied_weights, influences
from algoscope.comparison.metrics import cosine_similarity, squared_distance
from algoscope.comparison.predict import (
    counted,
    held_out,
    is_slow,
    predict_exactly,
    predict_queries,
)
from algoscope.comparison.symmetries import symmetries
from algoscope.foundation import provenance
from algoscope.foundation.progress import Progress, shown
from algoscope.foundation.validation import require_at_least, require_choice
from algoscope.identification.fitting import (
    Hypothesis,
    Observations,
    fit_families,
    refine,
)
from algoscope.identification.ranking import (
    best_fitted,
    confidence,
    describe_candidate,
    describe_regime,
    rank,
    trimmed_mean,
)
from algoscope.identification.result import Identification
from algoscope.identification.suites import (
    SUITES,
    Probes,
    draw_probes,
    most_contested,
)
from algoscope.predictors import BlackBox, Predictor, PredictorFailedError
from algoscope.tasks.task import Task

Domain = Literal["task", "everywhere"]

# The largest distance at which a hypothesis counts as the same algorithm. A learned
# algorithm is approximate and only meant for its task; a programmed one is exact
# everywhere, up to the tolerance of a solver.
THRESHOLD: dict[Domain, float] = {"task": 0.05, "everywhere": 0.01}
DATASETS, BLACK_BOX_DATASETS = 192, 96  # by default
CONTENDERS = 5  # nearest hypotheses, between which the contested datasets decide
POOL = 8  # datasets to choose from, for each contested dataset
FITTED = 48  # datasets that families are fitted to, at least
FOLDS = 4  # disjoint parts of the data, to each of which the winner is fitted again
EVIDENCE_DATASETS, EVIDENCE_BLACK_BOX_DATASETS = 12, 3  # for further evidence
MOST_INFLUENCES = 8  # examples before a query whose influence is measured


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
    """Find which learning algorithm a predictor runs.

    Args:
        predictor: a model, a textbook predictor, or a black box.
        task: the distribution of datasets to ask about. A model knows its own; any
            other predictor needs it.
        num_examples: the most examples before a query, by default 20 or as many as a
            model has room for.
        num_datasets: datasets to ask about, by default 96 for a black box and 192 for
            a predictor that JAX runs.
        domain: where the answer must hold: on its "task", the default for a model, or
            "everywhere", on other kinds of data too, the default for all others.
        seed: of the datasets.
        with_evidence: whether to measure implied weights, influences and symmetries
            too; without them it is faster.
        progress: True for progress bars, False for none, or a function to call.

    Example:
        >>> import algoscope as asc
        >>> data = asc.LinearRegression(dim=2)
        >>> found = asc.identify(asc.ridge(0.3), data, num_examples=8, num_datasets=32)
        >>> found.verdict, round(found.parameters["penalty"], 3)
        ('ridge', 0.3)
    """
    task, room = asked_on(predictor, task, num_examples)
    num_examples = num_examples or min(room, DEFAULT_EXAMPLES)
    require_at_least("num_examples", num_examples, 2)
    if num_datasets is None:
        num_datasets = BLACK_BOX_DATASETS if is_slow(predictor) else DATASETS
    require_at_least("num_datasets", num_datasets, 16)
    require_at_least("seed", seed, 0)
    if domain is None:
        domain = "task" if known_task(predictor) else "everywhere"
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
    """Return the answer; all arguments have been checked."""
    to_fit, to_test, pool = draw_probes(
        ("task",) if domain == "task" else SUITES,
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
    hypotheses = fit_families(sample, progress)

    order = np.argsort([_distance(h, testing) for h in hypotheses], kind="stable")
    for i in order[:CONTENDERS]:
        hypotheses[i] = _refine_on_best_fitted(hypotheses[i], training)
    disputed = np.stack(
        [hypotheses[i].predict(pool.x, pool.y) for i in order[:CONTENDERS]]
    )
    contested = ask(most_contested(pool, disputed, len(pool.x) // POOL))
    observed = testing.join(contested)

    predictions = {h: h.predict(observed.x, observed.y) for h in hypotheses}
    per_dataset = {h: observed.distances(p) for h, p in predictions.items()}
    distances = {h: float(trimmed_mean(d)) for h, d in per_dataset.items()}
    ranked = rank(hypotheses, distances)
    winner = ranked[0]
    ranges = _parameter_ranges(winner, training)
    spans = regime_spans(task.dim, num_examples)
    candidates = [
        describe_candidate(h, predictions[h], observed, spans, seed) for h in ranked
    ]
    threshold = THRESHOLD[domain]
    fits = distances[winner] <= threshold
    evidence = {}
    if with_evidence:
        evidence = _evidence(predictor, winner, task, spans, seed)
    return Identification(
        target=predictor.name,
        verdict=winner.family.name if fits else "none",
        parameters=winner.parameters if fits else {},
        parameter_ranges=ranges if fits else {},
        confidence=confidence(ranked, per_dataset, seed),
        candidates=candidates,
        regimes=[describe_regime(s, ranked, candidates, threshold) for s in spans],
        domain=domain,
        threshold=threshold,
        task=repr(task),
        dim=task.dim,
        num_examples=num_examples,
        num_datasets=len(training.x) + len(observed.x),
        seed=seed,
        versions=provenance(),
        evidence=evidence,
    )


def _distance(hypothesis: Hypothesis, observed: Observations) -> float:
    predictions = hypothesis.predict(observed.x, observed.y)
    return float(trimmed_mean(observed.distances(predictions)))


def _refine_on_best_fitted(
    hypothesis: Hypothesis, observed: Observations
) -> Hypothesis:
    """Return the hypothesis, fitted again to the datasets that it fits best."""
    if not hypothesis.family.parameters:
        return hypothesis
    distances = observed.distances(hypothesis.predict(observed.x, observed.y))
    return refine(hypothesis, observed.take(best_fitted(distances)))[1]


def _parameter_ranges(
    winner: Hypothesis, observed: Observations
) -> dict[str, tuple[float, float]]:
    """Return the range of each continuous parameter over disjoint parts of the data."""
    if not winner.family.parameters:
        return {}
    parts = [observed.take(slice(fold, None, FOLDS)) for fold in range(FOLDS)]
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
    """Return further evidence, or nothing, with a warning, if a black box fails now."""
    try:
        return gather_evidence(predictor, winner, task, spans, seed)
    except PredictorFailedError as error:
        warnings.warn(f"{error} The evidence is left out.", stacklevel=4)
        return {}


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
    count = EVIDENCE_BLACK_BOX_DATASETS if slow else EVIDENCE_DATASETS
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
