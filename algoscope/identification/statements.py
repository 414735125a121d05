"""Statements about a predictor, made from ranked hypotheses."""

from dataclasses import replace

import numpy as np

from algoscope.identification.confidence import confidence
from algoscope.identification.fitting import Scan, refine
from algoscope.identification.hypothesis import Hypothesis
from algoscope.identification.observations import Observations
from algoscope.identification.regimes import Regime, find_change, fit_span
from algoscope.identification.result import Candidate, Statement
from algoscope.identification.scores import Floor, Score, tied_families

LIMIT = 0.005  # the largest distance that is called "behaves like"
FOLDS = 4  # disjoint parts of the data, to each of which the winner is fitted again
NUM_CANDIDATES = 12  # that a result keeps
NUM_ANSWERS = 300  # that a result keeps


def make_statement(
    domain: str, ranked: list[Score], floor: Floor, observed: Observations
) -> Statement:
    """Return what is said about a domain."""
    winner = ranked[0]
    same = winner.is_same(floor)
    everywhere = Score.of(winner.hypothesis, observed)
    holds = [
        suite
        for suite, rho in everywhere.suites.items()
        if rho <= LIMIT or (same and suite in winner.suites)
    ]
    required = winner.suites.values()
    near = all(rho <= LIMIT for rho in required) and winner.explains
    relation = "is" if same else "behaves like" if near else "none"
    ties = tied_families(ranked, floor)
    candidates = [_describe(score) for score in ranked[:NUM_CANDIDATES]]
    return Statement(
        domain=domain,
        relation=relation,
        verdict=winner.hypothesis.family.name if relation != "none" else "none",
        confidence=confidence(
            relation,
            winner.unexplained,
            domain,
            len(everywhere.suites) - len(holds),
        ),
        candidates=candidates,
        ties=[score.hypothesis.family.name for score in ties],
        suites=everywhere.suites,
        holds_on=holds,
        fails_on=[name for name in everywhere.suites if name not in holds],
        unexplained=winner.unexplained,
    )


def without_name(statement: Statement) -> Statement:
    """Return the statement that it is none of the algorithms."""
    return replace(
        statement,
        relation="none",
        verdict="none",
        confidence=confidence("none", statement.unexplained, statement.domain, 0),
    )


def find_regimes(
    spans: list[tuple[str, int, int]],
    ranked: list[Score],
    scans: list[Scan],
    fitted: Observations,
    observed: Observations,
    floor: Floor,
    relation: str,
) -> tuple[list[Regime], int | None]:
    """Return the answer for every span of n, and where the algorithm changes."""
    known = ranked[:1] if relation == "is" else ranked[:3]
    if relation != "is":
        change = find_change(scans, fitted, observed, floor, ranked)
        if change is not None:
            one, two = change
            return [
                one.describe(f"up to {one.last}", LIMIT),
                two.describe(f"from {two.first}", LIMIT),
            ], one.last
    tried = [] if relation == "is" else scans
    covered = np.flatnonzero(observed.counted.any(axis=0))
    first, last = (covered[0], covered[-1]) if len(covered) else (1, 0)
    answered = [(s, max(a, int(first)), min(b, int(last))) for s, a, b in spans]
    found = [
        (name, fit_span(a, b, tried, fitted, observed, floor, known))
        for name, a, b in answered
        if a <= b
    ]
    return [span.describe(name, LIMIT) for name, span in found if span], None


def spread(total: int, count: int) -> np.ndarray:
    """Return about `count` indices below `total`, evenly spread."""
    return np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(int))


def _describe(score: Score) -> Candidate:
    low, high = score.interval
    hypothesis = score.hypothesis
    return Candidate(
        family=hypothesis.family.name,
        name=hypothesis.name,
        parameters=hypothesis.parameters,
        bounds=hypothesis.bounds,
        distance=score.distance,
        low=low,
        high=high,
        suites=score.suites,
        untrimmed=score.untrimmed,
        per_n=[float(v) if np.isfinite(v) else None for v in score.per_n],
    )


def some_answers(score: Score) -> dict[str, list[float]]:
    """Return some answers of the predictor and of a hypothesis, evenly spread."""
    observed = score.observed
    predicted = score.hypothesis.predict(observed.prefixes)
    rows, positions = np.nonzero(observed.counted)
    kept = spread(len(rows), NUM_ANSWERS) if len(rows) else np.zeros(0, int)
    rows, positions = rows[kept], positions[kept]
    return {
        "n": positions.astype(float).tolist(),
        "predictor": observed.predictions[rows, positions].tolist(),
        "hypothesis": predicted[rows, positions].tolist(),
    }


def parameter_ranges(
    winner: Hypothesis, observed: Observations
) -> dict[str, tuple[float, float]]:
    """Return the range of each continuous parameter over disjoint parts of the data."""
    if not winner.family.parameters:
        return {}
    parts = [observed.take(slice(fold, None, FOLDS)) for fold in range(FOLDS)]
    fitted = [refine(winner, part)[1].parameters for part in parts if part.suites]
    fitted.append(winner.parameters)
    return {
        p.name: (min(f[p.name] for f in fitted), max(f[p.name] for f in fitted))
        for p in winner.family.parameters
    }
