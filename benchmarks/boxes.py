"""Black boxes with a known truth, drawn at random, for `calibration.py`.

A box is an algorithm (`truths.py`) as it is, or two of them mixed or in turn, or one
that is noisy, rounded, silent for some n, or does something else on one kind of data.
"""

import numpy as np
from truths import Rng, Truth, extremes, log_uniform, members, outsiders

import algoscope
from algoscope.identification.scores import EXACT
from algoscope.identification.suites import SUITES, draw_questions

NEW_DATASETS, NEW_SEED = 256, 2**20  # to compare a box with its parts


def mixtures(rng: Rng, d: int, n: int) -> Truth:
    """A weighted mean of two algorithms: none, or one of the two.

    A mixture with zero is a shrunken algorithm, so it can be one of the families.
    """
    while True:
        one, two = members(rng, d, n), members(rng, d, n)
        if one.families != two.families:
            break
    share = float(rng.uniform(0.3, 0.7))
    return Truth(
        "mixture",
        f"{share} {one.name} + {two.name}",
        lambda x, y, q: share * one.box(x, y, q) + (1 - share) * two.box(x, y, q),
        one.families | two.families | {"shrunken"},
        none_is_right=True,
        can_be="zero" in one.families | two.families,
        parts=(one, two),
    )


def switches(rng: Rng, d: int, n: int) -> Truth:
    """One algorithm up to some n, another one after."""
    while True:
        one, two = members(rng, d, n), members(rng, d, n)
        if one.name != two.name:
            break
    at = int(rng.integers(d, n - 3))
    (first,), (second,) = one.families, two.families
    return Truth(
        "switch",
        f"{one.name} to {at}, then {two.name}",
        lambda x, y, q: (one if len(x) <= at else two).box(x, y, q),
        one.families | two.families,
        none_is_right=True,
        can_be=False,
        switch=(at, first, second),
        parts=(one, two),
    )


def noisy(rng: Rng, d: int, n: int) -> Truth:
    """A member whose answers have noise."""
    one, size = members(rng, d, n), log_uniform(rng, 1e-3, 0.1)
    draws = np.random.default_rng(int(rng.integers(2**31)))
    return Truth(
        "noisy",
        f"{one.name} + {size} noise",
        lambda x, y, q: one.box(x, y, q) + size * draws.standard_normal(),
        one.families,
    )


def rounded(rng: Rng, d: int, n: int) -> Truth:
    """A member whose answers are rounded."""
    one, digits = members(rng, d, n), int(rng.integers(1, 4))
    return Truth(
        "rounded",
        f"{one.name} to {digits} digits",
        lambda x, y, q: round(one.box(x, y, q), digits),
        one.families,
        can_be=True,
    )


def partial_boxes(rng: Rng, d: int, n: int) -> Truth:
    """A member that answers for some n only."""
    one, first = members(rng, d, n), int(rng.integers(2, 5))
    last = int(rng.integers(n - 3, n + 1))
    return Truth(
        "partial",
        f"{one.name} for n = {first}–{last}",
        lambda x, y, q: one.box(x, y, q) if first <= len(x) <= last else float("nan"),
        one.families,
    )


def conditional(rng: Rng, d: int, n: int) -> Truth:
    """A member that does something else on one kind of data."""
    one = members(rng, d, n)

    def outlier(x, y, q):
        wild = np.max(np.abs(y)) > 6 * np.median(np.abs(y)) + 1
        return 0.0 if wild else one.box(x, y, q)

    def shifted(x, y, q):
        far = np.linalg.norm(x.mean(0)) > 0.8 * np.sqrt(d) and len(x) > 2
        return float(y.mean()) if far else one.box(x, y, q)

    def lookup(x, y, q):
        seen = np.all(x == q, axis=1)
        return float(y[seen][-1]) if seen.any() else one.box(x, y, q)

    kind = [outlier, shifted, lookup][rng.integers(3)]
    return Truth(
        "conditional",
        f"{one.name}, but {kind.__name__}",
        kind,
        one.families,
        none_is_right=True,
        can_be=False,
        parts=(one,),
    )


GROUPS = (
    (members, 0.2),
    (extremes, 0.08),
    (mixtures, 0.12),
    (switches, 0.12),
    (noisy, 0.1),
    (rounded, 0.06),
    (partial_boxes, 0.06),
    (conditional, 0.1),
    (outsiders, 0.16),
)


def equals_a_part(truth: Truth, verdicts: set[str], d: int, n: int) -> bool:
    """Return whether a box gives the answers of a named part of it to new questions.

    Neighbors with k ≥ 4 up to n = 4, then the mean, are the mean at every n; and the
    mean does not differ from itself on shifted inputs.
    """
    task = algoscope.LinearRegression(d)
    sizes = {"sizes": (NEW_DATASETS,), "num_examples": n + 1, "seed": NEW_SEED}
    (asked,) = draw_questions(SUITES, task, **sizes)
    return any(
        all(
            (part.box(x[:i], y[:i], x[i]) - truth.box(x[:i], y[:i], x[i])) ** 2
            <= EXACT * np.mean(y**2)
            for x, y in zip(asked.x, asked.y, strict=True)
            for i in range(1, n + 1)
        )
        for part in truth.parts
        if part.families & verdicts
    )


def draw(number: int, seed: int) -> tuple[Truth, int, int]:
    """Return box `number` of a seed, with d and the most examples."""
    rng = np.random.default_rng([seed, number])
    d = int(rng.integers(2, 4))
    n = int(rng.integers(2 * d + 4, 2 * d + 7))
    kinds, shares = zip(*GROUPS, strict=True)
    return kinds[rng.choice(len(kinds), p=shares)](rng, d, n), d, n
