"""Fitting families to the answers of a predictor: a grid, then Gauss-Newton steps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product

import numpy as np
from jaxtyping import Float

from algoscope.foundation.progress import Progress, Steps
from algoscope.identification.families import all_families
from algoscope.identification.family import Family, Points
from algoscope.identification.hypothesis import Hypothesis, points_at
from algoscope.identification.observations import Observations
from algoscope.identification.prefixes import Prefixes

GRID_SIZE = {0: 1, 1: 41, 2: 9}  # points per parameter, by the number of parameters
SCANNED_STEPS = 64  # of iterative families, on the grid; the search goes on from there
ZOOMED_STEPS = 8  # more and fewer, on the finer grid around the best
STARTS = 2  # choices or numbers of steps that are polished
FIRST_ROUND, LAST_ROUND = 5, 15  # Gauss-Newton steps
SMALLEST_GAIN = 1e-3  # a step that reduces ρ by a smaller share is the last
DIFFERENCE = 1e-6  # for numerical derivatives
FOUND = 1e-14  # at a smaller ρ the algorithm is found, and others need not be tried
ALWAYS_POLISHED = 8  # nearest families, polished even if the algorithm is found
FAR = 10.0  # times the nearest: too far after the first round to be polished further
CLIMBING = 3.0  # times the nearest: too far for other numbers of steps to be tried
WORTHWHILE = 0.02  # the share by which another number of steps must reduce ρ
CLEAR = 1e-6  # a smaller ρ is not used to leave others out: they may be exact
HOPELESS = 30.0  # times the nearest: too far on the grid to be polished
WALKED_STEPS = 64  # more and fewer, from an iteration that is nearly met
LOST = 100.0  # times the nearest: too far to walk on
DAMPINGS = (0.0, 1e-3, 0.1, 10.0, 1e3)


@dataclass(frozen=True, eq=False)
class Scan:
    """What a grid found: all members that were tried, and their ρ at every n."""

    family: Family
    members: list[Hypothesis]
    squares: Float[np.ndarray, "members examples"]  # per n, weighted by suite

    def starts(
        self, first: int = 1, last: int | None = None
    ) -> list[tuple[float, Hypothesis]]:
        """Return each choice at its best point for a span of n, the nearest first."""
        part = slice(first, None if last is None else last + 1)
        losses = self.squares[:, part].sum(axis=1)
        losses = losses / max(len(range(*part.indices(self.squares.shape[1]))), 1)
        best: dict[tuple, tuple[float, Hypothesis]] = {}
        for loss, member in zip(losses, self.members, strict=True):
            key = tuple(member.choice.items())
            if key not in best or loss < best[key][0]:
                best[key] = (float(loss), member)
        return sorted(best.values(), key=lambda pair: pair[0])


def scan(family: Family, observations: Observations) -> Scan:
    """Return the members of a family on a grid, with their ρ."""
    size = GRID_SIZE[len(family.parameters)]
    grids = [p.grid(size) for p in family.parameters]
    coordinates = np.array(list(product(*grids))).reshape(
        size ** len(grids), len(grids)
    )
    points = points_at(family, coordinates)
    weights = observations.shares / np.maximum(observations.counted.mean(axis=1), 1e-9)
    members, squares = [], []
    for choice, answers in _tried(family, observations.prefixes, points):
        found = observations.bounded(answers) ** 2
        squares.append(np.einsum("pbn,b->pn", found, weights))
        members += [Hypothesis(family, choice, each) for each in coordinates]
    return Scan(family, members, np.concatenate(squares))


def _tried(family: Family, prefixes: Prefixes, points: Points):
    """Yield every choice with its predictions at all points."""
    if family.iterates is None:
        for choice in family.choices(prefixes):
            yield choice, family.answers(prefixes, points, choice)
        return
    last = min(family.max_steps, SCANNED_STEPS)
    steps = family.iterates(prefixes, points)
    for k in range(1, last + 1):
        with np.errstate(all="ignore"):  # a large rate diverges
            answers = next(steps)()
        yield {"steps": k}, answers


def polish(
    starts: list[tuple[float, Hypothesis]],
    observations: Observations,
    nearest: float = np.inf,
) -> tuple[float, Hypothesis]:
    """Return the nearest member of a family, and its ρ.

    The best choices take a few Gauss-Newton steps from their grid points, then the
    number of steps of an iterative family is varied while that helps, then the nearest
    takes more Gauss-Newton steps. What is then still far from `nearest`, the smallest ρ
    of another family, is left as it is.
    """
    family = starts[0][1].family
    refined = [refine(start, observations, FIRST_ROUND) for _, start in starts[:STARTS]]
    best = min(refined, key=lambda pair: pair[0])
    if best[0] > FAR * nearest:
        return best
    if not family.parameters:
        return best
    if family.iterates is not None:
        if len(family.parameters) == 1:
            best = min(best, _zoom(best[1], observations), key=lambda pair: pair[0])
        if FOUND < best[0] <= CLIMBING * nearest:
            best = _climb(best, observations)
    return refine(best[1], observations, LAST_ROUND)


def _climb(
    best: tuple[float, Hypothesis], observations: Observations
) -> tuple[float, Hypothesis]:
    """Return a better number of steps, if there is one: first far away, then near."""
    for stride in (16, 4, 1):
        improved = True
        while improved:
            improved = False
            for moved in _with_steps(best[1], stride):
                tried = refine(moved, observations, FIRST_ROUND)
                if tried[0] < best[0] * (1 - WORTHWHILE):
                    best, improved = tried, True
                    break
    return best


def _with_steps(hypothesis: Hypothesis, stride: int) -> Iterator[Hypothesis]:
    """Yield the hypothesis with more and with fewer steps.

    First α·k is held constant, since k steps are then nearly the same function; next to
    the best number α itself too, which decides where an iteration diverges.
    """
    family, steps = hypothesis.family, hypothesis.choice["steps"]
    names = [p.name for p in family.parameters]
    rates = np.array([name == "learning_rate" for name in names], float)
    for held in (1.0, 0.0) if stride == 1 and rates.any() else (1.0,):
        for k in (steps + stride, steps - stride):
            if 1 <= k <= family.max_steps:
                moved = hypothesis.coordinates + held * rates * np.log(steps / k)
                yield Hypothesis(family, {"steps": k}, moved)


def _walk(
    best: tuple[float, Hypothesis], observations: Observations
) -> tuple[float, Hypothesis]:
    """Return the best of half to twice as many steps, each fitted from its neighbor.

    With momentum, all numbers of steps can be nearly the same function, one of them
    exact, and none but that one better than its neighbors.
    """
    start = best
    steps, most = best[1].choice["steps"], best[1].family.max_steps
    for stride, count in (
        (-1, min(steps // 2, WALKED_STEPS)),
        (1, min(steps, WALKED_STEPS, most - steps)),
    ):
        here = start
        for _ in range(count):
            moved = next(_with_steps(here[1], stride))
            here = refine(moved, observations)
            best = min(best, here, key=lambda pair: pair[0])
            if best[0] <= FOUND:
                return best
            if here[0] > LOST * best[0]:
                break
    return best


def _zoom(
    hypothesis: Hypothesis, observations: Observations
) -> tuple[float, Hypothesis]:
    """Return the best of a finer grid around a hypothesis, after Gauss-Newton steps.

    Where an iteration diverges, the rate and the number of steps have to be met
    closely before a descent finds them.
    """
    family, steps = hypothesis.family, hypothesis.choice["steps"]
    (parameter,) = family.parameters
    cell = np.ptp(parameter.grid(2)) / (GRID_SIZE[1] - 1)
    near = np.linspace(-cell, cell, GRID_SIZE[1])
    coordinates = (hypothesis.coordinates + near)[:, None]
    points = points_at(family, coordinates)
    first, last = max(steps - ZOOMED_STEPS, 1), steps + ZOOMED_STEPS
    assert family.iterates is not None
    best, start = np.inf, hypothesis
    with np.errstate(all="ignore"):  # a large rate diverges
        iterates = family.iterates(observations.prefixes, points)
        for k, after in enumerate(islice(iterates, last), start=1):
            if k < first:
                continue
            losses = np.sum(observations.weighted(after()) ** 2, axis=1)
            place = int(np.argmin(losses))
            if losses[place] < best:
                best = losses[place]
                start = Hypothesis(family, {"steps": k}, coordinates[place])
    return refine(start, observations, FIRST_ROUND)


def refine(
    start: Hypothesis, observations: Observations, iterations: int = LAST_ROUND
) -> tuple[float, Hypothesis]:
    """Return the hypothesis after Gauss-Newton steps on its parameters, and its ρ.

    Each step uses the damping that reduces ρ most.
    """
    family, prefixes = start.family, observations.prefixes
    if not family.parameters:
        rest = observations.weighted(start.predict(prefixes))
        return float(rest @ rest), start
    lows, highs = np.transpose([p.grid(2) for p in family.parameters])
    best = np.clip(start.coordinates, lows, highs)

    def residuals(points: Float[np.ndarray, "points parameters"]) -> np.ndarray:
        values = points_at(family, points)
        return observations.weighted(family.answers(prefixes, values, start.choice))

    size = len(best)
    moves = np.concatenate([np.zeros((1, size)), DIFFERENCE * np.eye(size)])
    moves[1:] *= np.where(best + DIFFERENCE > highs, -1, 1)[:, None]
    loss = np.inf
    for _ in range(iterations):
        here = residuals(best + moves)
        center = here[0]
        loss = float(center @ center)
        signs = np.diag(moves[1:])
        jacobian = ((here[1:] - center) / signs[:, None]).T
        normal, slope = jacobian.T @ jacobian, jacobian.T @ center
        scale = np.diag(np.maximum(np.diag(normal), 1e-30))
        steps = [np.linalg.lstsq(normal + a * scale, slope)[0] for a in DAMPINGS]
        tried = np.clip(best - np.array(steps), lows, highs)
        losses = np.sum(residuals(tried) ** 2, axis=1)
        winner = int(np.argmin(losses))
        if not losses[winner] < loss:
            break
        best, gained = tried[winner], losses[winner] < loss * (1 - SMALLEST_GAIN)
        loss = float(losses[winner])
        if not gained:
            break
    return loss, Hypothesis(family, start.choice, best)


def fit_families(
    observations: Observations,
    progress: Progress,
    families: tuple[Family, ...] | None = None,
) -> tuple[list[Hypothesis], list[Scan]]:
    """Return the nearest member of every family, in their order, and scans.

    Families are polished in the order of their distance on the grid. Once the algorithm
    is found, only the nearest families are still polished.
    """
    scans, families = [], families or all_families()
    steps = Steps(progress, "trying families", len(families))
    for family in families:
        scans.append(scan(family, observations))
        steps.add(note=family.name)
    starts = [each.starts() for each in scans]
    nearest, found, hypotheses, losses = np.inf, np.inf, {}, {}
    steps = Steps(progress, "fitting families", len(families))
    order = sorted(range(len(scans)), key=lambda index: starts[index][0][0])
    for place, index in enumerate(order):
        loss, hypothesis = starts[index][0]
        family = hypothesis.family
        known = max(nearest, CLEAR)
        hopeless = len(family.parameters) < 2 and loss > HOPELESS * known
        needed = family.complexity < found and not hopeless
        if place < ALWAYS_POLISHED or needed:
            loss, hypothesis = polish(starts[index], observations, known)
            for start in _nested_starts(family, hypotheses.values()):
                tried = refine(start, observations, LAST_ROUND)
                loss, hypothesis = min((loss, hypothesis), tried, key=lambda p: p[0])
        steps.add(note=family.name)
        nearest = min(nearest, loss)
        if loss < FOUND:
            found = min(found, family.complexity)
        hypotheses[index], losses[index] = hypothesis, loss
    if FOUND < nearest <= CLEAR:
        for index in sorted(losses, key=losses.__getitem__):
            if hypotheses[index].family.iterates is None or losses[index] > CLEAR:
                continue
            pair = _walk((losses[index], hypotheses[index]), observations)
            losses[index], hypotheses[index] = pair
            if losses[index] <= FOUND:
                break
    best = hypotheses[min(losses, key=losses.__getitem__)]
    for index in range(len(scans)):
        start = _simpler_start(scans[index].family, best)
        if start is not None:
            loss, hypothesis = refine(start, observations)
            if loss < losses[index]:
                hypotheses[index] = hypothesis
    return [hypotheses[index] for index in range(len(scans))], scans


def _simpler_start(family: Family, best: Hypothesis) -> Hypothesis | None:
    """Return the member of a simpler family with the parameters that both share.

    Gradient descent with a rate near divergence is hard to find on a grid, and easy to
    find as Nesterov's method without momentum.
    """
    known = dict(
        zip((p.name for p in best.family.parameters), best.coordinates, strict=True)
    )
    alike = (family.iterates is None) == (best.family.iterates is None)
    names = [p.name for p in family.parameters]
    if (
        family.complexity >= best.family.complexity
        or not alike
        or not names
        or not set(names) <= set(known)
        or (family.iterates is None and family.choices is not best.family.choices)
    ):
        return None
    return Hypothesis(family, best.choice, np.array([known[name] for name in names]))


def _nested_starts(
    family: Family, hypotheses: Iterable[Hypothesis]
) -> Iterator[Hypothesis]:
    """Yield fitted members of simpler variants, as members of this family.

    A parameter that the simpler variant does not have starts near its low end.
    """
    names = {p.name for p in family.parameters}
    for each in hypotheses:
        fewer = {p.name for p in each.family.parameters}
        if each.family.name == family.name and fewer < names:
            order = [p.name for p in each.family.parameters]
            known = dict(zip(order, each.coordinates, strict=True))
            coordinates = [known.get(p.name, p.grid(9)[1]) for p in family.parameters]
            yield Hypothesis(family, each.choice, np.array(coordinates))
