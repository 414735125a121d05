"""Which learning algorithm does a predictor run? It is asked, and families are fitted.

1. The predictor is asked on datasets of its task and of other kinds (`suites`), half of
   them to fit, half of them to test, and twice on a few, to see how exactly it answers.
2. Every family of algorithms is fitted to its answers (`fitting`).
3. It is asked again, on datasets on which the nearest hypotheses disagree.
4. Hypotheses are ranked on what was not fitted (`scores`), spans of n are fitted alone
   (`regimes`), and symmetries are checked.
5. Two statements are made, about its task and about all kinds of data, each with the
   probability that it is right (`confidence`).
"""

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from algoscope.comparison.compare import DEFAULT_EXAMPLES, asked_on, known_task
from algoscope.comparison.intervals import regime_spans
from algoscope.comparison.predict import Counted, counted, predict_exactly
from algoscope.foundation import provenance
from algoscope.foundation.progress import Progress, shown
from algoscope.foundation.validation import require_at_least, require_choice
from algoscope.identification.evidence import (
    broken_symmetries,
    gather_evidence,
    num_questions,
)
from algoscope.identification.families import families_with
from algoscope.identification.family import Family
from algoscope.identification.fitting import CLEAR, Scan, fit_families, polish
from algoscope.identification.hypothesis import Hypothesis
from algoscope.identification.observations import Observations
from algoscope.identification.result import Identification, Statement
from algoscope.identification.scores import (
    Floor,
    Score,
    best_fitted,
    rank,
)
from algoscope.identification.statements import (
    LIMIT,
    find_regimes,
    make_statement,
    parameter_ranges,
    some_answers,
    spread,
    without_name,
)
from algoscope.identification.suites import (
    SUITES,
    Questions,
    draw_questions,
    most_contested,
)
from algoscope.predictors import BlackBox, Predictor, PredictorFailedError
from algoscope.tasks.task import Task

Domain = Literal["task", "everywhere"]

DATASETS = 128  # by default, without those that are asked again
TASK_DATASETS = 64  # by default, on the task alone
CONTENDERS = 5  # nearest hypotheses, between which the contested datasets decide
POOL = 8  # datasets to choose from, for each contested dataset
FITTED = 40  # datasets that families are fitted to; the nearest are fitted to all
EXACT_ON_TASK = 1e-8  # no learned model is nearer to an algorithm
LEARNED = 5e-4  # the farthest that a program is named for its answers on a task alone
MOST_FAILURES = 3  # kinds of data on which a named program may fail
REPEATED = 2  # datasets of each suite that are asked twice


def identify(
    predictor: Predictor | BlackBox,
    task: Task | None = None,
    *,
    num_examples: int | None = None,
    num_datasets: int | None = None,
    domain: Domain | None = None,
    seed: int = 0,
    pool: Float[np.ndarray, "tasks dim"] | None = None,
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
        num_datasets: datasets to ask about, by default 128, and 64 on the task alone.
        domain: "task" to ask about its task alone, "everywhere" to speak about all
            kinds of data only; by default both are answered.
        seed: of the datasets.
        pool: the weights that a model was trained on, if they were finitely many; the
            posterior mean over them, `discrete_bayes`, is then a family too.
        with_evidence: whether to measure implied weights, influences and symmetries
            too; without them it is faster.
        progress: True for progress bars, False for none, or a function to call.

    Example:
        >>> import algoscope as asc
        >>> data = asc.LinearRegression(dim=2)
        >>> found = asc.identify(asc.ridge(0.3), data, num_examples=8, num_datasets=32)
        >>> found.relation, found.verdict, round(found.parameters["penalty"], 3)
        ('is', 'ridge', 0.3)
    """
    task, room = asked_on(predictor, task, num_examples)
    num_examples = num_examples or min(room, DEFAULT_EXAMPLES)
    require_at_least("num_examples", num_examples, 2)
    if num_datasets is None:
        num_datasets = TASK_DATASETS if domain == "task" else DATASETS
    require_at_least("num_datasets", num_datasets, 16)
    require_at_least("seed", seed, 0)
    if domain is not None:
        require_choice("domain", domain, ("task", "everywhere"))
    families = families_with(pool, task.dim)
    with shown(progress) as report:
        return _Inquiry(
            counted(predictor, report),
            task,
            num_examples,
            num_datasets,
            domain,
            seed,
            families,
        ).run(known_task(predictor) is not None, with_evidence, report)


class _Inquiry:
    """One run of `identify`: what was asked, and what follows from it."""

    def __init__(
        self,
        predictor: Predictor | BlackBox,
        task: Task,
        num_examples: int,
        num_datasets: int,
        domain: Domain | None,
        seed: int,
        families: tuple[Family, ...],
    ):
        self.predictor, self.task, self.seed = predictor, task, seed
        self.families = families
        self.num_examples, self.domain = num_examples, domain
        self.spans = regime_spans(task.dim, num_examples)
        self.suites = ("task",) if domain == "task" else SUITES
        half = num_datasets // 2
        self.to_fit, self.to_test, self.pool = draw_questions(
            self.suites,
            task,
            sizes=(half, half, POOL * max(half // 4, 1)),
            num_examples=num_examples + 1,
            seed=seed,
        )
        self.num_asked = self.num_answered = 0

    def ask(self, questions: Questions) -> Observations:
        """Return the predictor's answers."""
        answers = predict_exactly(self.predictor, questions.x, questions.y)
        found = Observations(
            questions.x, questions.y, answers.astype(np.float64), tuple(questions.suite)
        )
        self.num_asked += found.predictions[:, 1:].size
        self.num_answered += int(found.counted.sum())
        return found

    def plan(self, with_evidence: bool) -> None:
        """Announce how many questions there will be, so that the time left is known.

        A predictor that turns out to be noisy is asked more.
        """
        if not isinstance(self.predictor, Counted):
            return
        contested = len(self.pool.x) // POOL
        datasets = len(self.to_fit.x) + len(self.to_test.x) + contested
        planned = (datasets + 2 * len(self.repeated)) * self.num_examples
        if with_evidence:
            planned += num_questions(self.predictor, self.spans)
        self.predictor.planned = planned

    @property
    def repeated(self) -> Int[np.ndarray, " rows"]:
        """The datasets that are asked twice."""
        first = [self.to_fit.suite.index(name) for name in self.suites]
        rows = np.concatenate([np.arange(i, i + REPEATED) for i in first])
        return rows[rows < len(self.to_fit.x)]

    def measure_floor(self) -> Floor:
        """Return how exactly the predictor answers: asked twice, and in other words."""
        rows = self.repeated
        questions = self.to_fit.take(rows)
        order = np.random.default_rng(self.seed).permutation(self.task.dim)
        again = self.ask(questions)
        turned = self.ask(
            Questions(questions.x[..., order], questions.y, questions.suite)
        )
        once = self.fitted.take(rows)
        twice = once.squares(again.predictions)[once.counted] / 2
        moved = once.squares(turned.predictions)[once.counted]
        return Floor(
            noise=float(twice.mean()) if twice.size else 0.0,
            rounding=float(np.quantile(moved, 0.9)) if moved.size else 0.0,
        )

    def ask_again(self, observed: Observations) -> Observations:
        """Return the observations with a second answer to every question."""
        questions = Questions(observed.x, observed.y, list(observed.suite))
        return replace(observed, again=self.ask(questions).predictions)

    def run(
        self, has_task: bool, with_evidence: bool, progress: Progress
    ) -> Identification:
        """Return the answer."""
        self.plan(with_evidence)
        self.fitted, tested = self.ask(self.to_fit), self.ask(self.to_test)
        floor = self.measure_floor()
        if floor.is_noisy:
            self.fitted, tested = map(self.ask_again, (self.fitted, tested))
        views: dict[str, tuple[str, ...]] = {"task": ("task",), "everywhere": SUITES}
        wanted = [self.domain] if self.domain else ["everywhere", "task"]
        fits: dict[str, tuple[list[Hypothesis], list[Scan]]] = {}
        for domain in wanted:
            seen = self.fitted.only(*views[domain])
            sample = seen.take(spread(len(seen.x), FITTED))
            hypotheses, scans = fit_families(sample, progress, self.families)
            for others, _ in fits.values():  # on more data, odd answers mislead less
                pairs = zip(hypotheses, others, strict=True)
                hypotheses = [
                    min(pair, key=lambda h: Score.of(h, seen).distance)
                    for pair in pairs
                ]
            fits[domain] = (self._sharpen(hypotheses, seen, tested), scans)
            scored = [Score.of(h, seen) for h in fits[domain][0]]
            if any(score.is_same(floor) for score in scored):
                break  # found: on all kinds of data, so on its task too
        main = next(iter(fits))
        contested = self._contested(fits[main][0], tested.only(*views[main]))
        observed = tested.join(self.ask(contested)) if len(contested.x) else tested
        ranked = {
            domain: rank(
                [Score.of(h, observed.only(*views[domain])) for h in hypotheses], floor
            )
            for domain, (hypotheses, _) in fits.items()
        }
        if self.domain is None and "task" not in ranked:
            ranked["task"] = rank(
                [Score.of(h, observed.only("task")) for h in fits[main][0]], floor
            )
        made = {d: make_statement(d, r, floor, observed) for d, r in ranked.items()}
        chosen = self._main(made, has_task)
        order = [chosen, *(d for d in made if d != chosen)]
        return self._result(
            [made[d] for d in order],
            ranked[chosen],
            fits.get(chosen, fits[main])[1],
            observed.only(*views[chosen]),
            floor,
            with_evidence,
        )

    def _main(self, made: dict[str, Statement], has_task: bool) -> str:
        """Return the domain of the main statement."""
        if len(made) == 1:
            return next(iter(made))
        everywhere = made["everywhere"].relation
        if everywhere == "is":
            return "everywhere"
        task = made["task"]
        if task.relation == "none" or (everywhere != "none" and not has_task):
            return "everywhere"
        if has_task:
            return "task"
        # A task alone tells little: a program is named for it only if it is very near.
        # One that equals an algorithm there and fails on most other data is another
        # algorithm; what was learned is never as exact.
        distance = task.nearest.distance
        exact = distance < EXACT_ON_TASK
        other = exact and len(task.fails_on) > MOST_FAILURES
        return "everywhere" if other or distance > LEARNED else "task"

    def _sharpen(
        self, hypotheses: list[Hypothesis], seen: Observations, tested: Observations
    ) -> list[Hypothesis]:
        """Return the hypotheses, the nearest fitted again to more of what was seen.

        Datasets on which they fit worst are left out: a solver may have failed there.
        These may have misled the number of steps too, so it is varied again.
        """
        test = tested.only(*dict.fromkeys(seen.suite))
        order = np.argsort([Score.of(h, test).distance for h in hypotheses])
        found, nearest = list(hypotheses), np.inf
        for i in order[:CONTENDERS]:
            score = Score.of(found[i], seen)
            kept = seen.take(best_fitted(score))
            start = (score.distance, found[i])
            loss, found[i] = polish([start], kept, max(nearest, CLEAR))
            nearest = min(nearest, loss)
        return found

    def _contested(
        self, hypotheses: list[Hypothesis], tested: Observations
    ) -> Questions:
        """Return datasets on which the nearest hypotheses disagree most."""
        order = np.argsort([Score.of(h, tested).distance for h in hypotheses])
        pool = Observations(
            self.pool.x, self.pool.y, np.zeros_like(self.pool.y), tuple(self.pool.suite)
        )
        answers = [hypotheses[i].predict(pool.prefixes) for i in order[:CONTENDERS]]
        return most_contested(self.pool, np.stack(answers), len(self.pool.x) // POOL)

    def _result(
        self,
        statements: list[Statement],
        ranked: list[Score],
        scans: list[Scan],
        observed: Observations,
        floor: Floor,
        with_evidence: bool,
    ) -> Identification:
        main, winner = statements[0], ranked[0]
        fitted = self.fitted.only(*dict.fromkeys(observed.suite))
        regimes, changes_at = find_regimes(
            self.spans, ranked, scans, fitted, observed, floor, main.relation
        )
        if changes_at is not None and all(r.relation == "is" for r in regimes):
            main = without_name(main)  # it is two algorithms, and not like one
            statements = [main, *statements[1:]]
        evidence = self._evidence(winner.hypothesis) if with_evidence else {}
        broken = broken_symmetries(evidence) if main.relation == "behaves like" else {}
        if broken:
            main = without_name(main)
            statements = [main, *statements[1:]]
        covered = np.flatnonzero(observed.counted.any(axis=0))
        named = main.relation != "none"
        # What is the same on its task alone is not the same algorithm.
        partly = self.domain is None and main.domain == "task"
        relation = "behaves like" if partly and main.relation == "is" else main.relation
        return Identification(
            target=self.predictor.name,
            verdict=main.verdict,
            relation=relation,
            parameters=main.nearest.parameters if named else {},
            parameter_ranges=parameter_ranges(winner.hypothesis, fitted)
            if named
            else {},
            confidence=main.confidence,
            ties=main.ties,
            distance=main.nearest.distance,
            suites=main.suites,
            domain=main.domain,
            statements=statements,
            regimes=regimes,
            changes_at=changes_at,
            broken_symmetries=broken,
            limit=LIMIT,
            answered=self.num_answered / max(self.num_asked, 1),
            first_n=int(covered[0]) if len(covered) else 0,
            last_n=int(covered[-1]) if len(covered) else 0,
            noise=floor.noise,
            task=repr(self.task),
            dim=self.task.dim,
            num_examples=self.num_examples,
            num_datasets=len(self.fitted.x) + len(observed.x),
            num_questions=self.num_asked,
            seed=self.seed,
            versions=provenance(),
            evidence=evidence,
            answers=some_answers(winner),
        )

    def _evidence(self, winner: Hypothesis) -> dict[str, Any]:
        """Return further evidence, or nothing, with a warning, if a black box fails."""
        try:
            return gather_evidence(
                self.predictor, winner, self.task, self.spans, self.seed
            )
        except PredictorFailedError as error:
            warnings.warn(f"{error} The evidence is left out.", stacklevel=4)
            return {}
