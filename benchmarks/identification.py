"""Does `identify` name the right algorithm? Black boxes whose truth is known.

    python benchmarks/identification.py

Draws black boxes at random from the textbook predictors and from scikit-learn, with
random parameters and d ∈ {2, 4, 8}, asks `identify` about each, and counts: the right
family, and the right parameter (λ and α within 10 %, whole numbers exactly). Then it
asks about algorithms of no known family, which must be answered `none`.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import tyro
from report import RESULTS, markdown, note, write
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import (
    BayesianRidge,
    HuberRegressor,
    Lasso,
    LinearRegression,
    Ridge,
    SGDRegressor,
)
from sklearn.neighbors import KNeighborsRegressor

import algoscope
from algoscope import predictors
from algoscope.adapters import EstimatorPredictor, FunctionPredictor
from algoscope.identification import identify

DIMS = (2, 4, 8)
Rng = np.random.Generator


@dataclass(frozen=True)
class Options:
    """Ask `identify` about black boxes whose truth is known."""

    boxes: int = 200
    """How many black boxes with a known truth."""
    examples: int = 20
    """The most examples before a query."""
    seed: int = 0
    """Seed of the draw."""
    out: Path = RESULTS / "identification.json"
    """Where the results go."""


@dataclass(frozen=True)
class Truth:
    """A black box, its family, and its parameters."""

    box: Any
    family: str
    parameters: dict[str, Any]


def between(rng: Rng, low: float, high: float) -> float:
    """Return a number drawn evenly on the logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def a_ridge(rng: Rng, d: int) -> Truth:
    penalty = between(rng, 0.03, 10)
    return Truth(predictors.ridge(penalty), "ridge", {"penalty": penalty})


def a_lasso(rng: Rng, d: int) -> Truth:
    penalty = between(rng, 0.01, 0.5)
    return Truth(predictors.lasso(penalty), "lasso", {"penalty": penalty})


def a_knn(rng: Rng, d: int) -> Truth:
    k, kind = int(rng.integers(1, 9)), str(rng.choice(["uniform", "weighted"]))
    return Truth(predictors.knn(k, cast(Any, kind)), "knn", {"k": k})


def an_sgd(rng: Rng, d: int) -> Truth:
    rate = between(rng, 0.005, 0.06)
    penalty = between(rng, 0.01, 0.5) if rng.random() < 0.5 else 0.0
    found = {"learning_rate": rate} | ({"penalty": penalty} if penalty else {})
    return Truth(predictors.sgd(rate, penalty), "sgd", found)


def a_gd(rng: Rng, d: int) -> Truth:
    rate, steps = between(rng, 0.002, 0.015), int(rng.integers(1, 9))
    return Truth(
        predictors.gd(rate, steps), "gd", {"learning_rate": rate, "steps": steps}
    )


def a_newton(rng: Rng, d: int) -> Truth:
    steps = int(rng.integers(1, 9))
    return Truth(predictors.newton(steps), "newton", {"steps": steps})


def a_cg(rng: Rng, d: int) -> Truth:
    steps = int(rng.integers(1, d))  # after d steps it is least squares
    box = predictors.conjugate_gradients(steps)
    return Truth(box, "conjugate_gradients", {"steps": steps})


def a_kaczmarz(rng: Rng, d: int) -> Truth:
    rate = float(rng.uniform(0.2, 1.5))
    return Truth(predictors.kaczmarz(rate), "kaczmarz", {"learning_rate": rate})


def a_heavy_ball(rng: Rng, d: int) -> Truth:
    rate, momentum = between(rng, 0.002, 0.01), float(rng.uniform(0.2, 0.9))
    steps = int(rng.integers(2, 9))
    return Truth(
        predictors.heavy_ball(rate, momentum, steps),
        "heavy_ball",
        {"learning_rate": rate, "momentum": momentum, "steps": steps},
    )


def an_rls(rng: Rng, d: int) -> Truth:
    forgetting, penalty = float(rng.uniform(0.6, 0.95)), between(rng, 0.03, 10)
    return Truth(
        predictors.rls(forgetting, penalty),
        "rls",
        {"forgetting": forgetting, "penalty": penalty},
    )


def a_kernel(rng: Rng, d: int) -> Truth:
    bandwidth = between(rng, 0.3, 3)
    box = predictors.nadaraya_watson(bandwidth)
    return Truth(box, "nadaraya_watson", {"bandwidth": bandwidth})


def a_constant(rng: Rng, d: int) -> Truth:
    family = str(rng.choice(["zero", "average", "ols"]))
    return Truth(getattr(predictors, family), family, {})


def sklearn_ols(rng: Rng, d: int) -> Truth:
    return Truth(EstimatorPredictor(LinearRegression(fit_intercept=False)), "ols", {})


def sklearn_ridge(rng: Rng, d: int) -> Truth:
    penalty = between(rng, 0.03, 10)
    box = EstimatorPredictor(Ridge(penalty, fit_intercept=bool(rng.random() < 0.5)))
    return Truth(box, "ridge", {"penalty": penalty})


def sklearn_lasso(rng: Rng, d: int) -> Truth:
    penalty = between(rng, 0.01, 0.5)
    box = EstimatorPredictor(Lasso(penalty, fit_intercept=bool(rng.random() < 0.5)))
    return Truth(box, "lasso", {"penalty": penalty})


def sklearn_knn(rng: Rng, d: int) -> Truth:
    k, weights = int(rng.integers(1, 9)), str(rng.choice(["uniform", "distance"]))
    box = EstimatorPredictor(KNeighborsRegressor(k, weights=weights))
    return Truth(box, "knn", {"k": k})


def sklearn_sgd(rng: Rng, d: int) -> Truth:
    rate, penalty = between(rng, 0.01, 0.1), between(rng, 0.01, 0.5)
    estimator = SGDRegressor(
        learning_rate="constant",
        eta0=rate,
        alpha=penalty,
        fit_intercept=bool(rng.random() < 0.5),
    )
    box = EstimatorPredictor(estimator, incremental=True)
    return Truth(box, "sgd", {"learning_rate": rate / 2, "penalty": penalty})


TEXTBOOK: tuple[Callable[[Rng, int], Truth], ...] = (
    a_ridge,
    a_lasso,
    a_knn,
    an_sgd,
    a_gd,
    a_newton,
    a_cg,
    a_kaczmarz,
    a_heavy_ball,
    an_rls,
    a_kernel,
    a_constant,
)
SKLEARN = (sklearn_ols, sklearn_ridge, sklearn_lasso, sklearn_knn, sklearn_sgd)


def outsiders() -> dict[str, Any]:
    """Return algorithms that no known family describes."""

    def random_function(x, y, query):
        return float(np.sin(37 * query.sum() + 11 * y.sum()))

    return {
        "random forest": EstimatorPredictor(RandomForestRegressor(20, random_state=0)),
        "Huber regression": EstimatorPredictor(HuberRegressor(max_iter=1000)),
        "Bayesian ridge": EstimatorPredictor(BayesianRidge()),
        "a constant": FunctionPredictor(lambda x, y, query: 0.7, "a constant"),
        "a random function": FunctionPredictor(random_function, "a random function"),
        "GP with RBF kernel": EstimatorPredictor(
            GaussianProcessRegressor(RBF(), alpha=1e-6, optimizer=cast(Any, None))
        ),
    }


def right(true: Any, found: Any) -> bool:
    """Return whether a parameter was found: exactly, or within 10 %."""
    if isinstance(true, int):
        return found == true
    return found is not None and abs(found - true) <= 0.1 * true


def main(options: Options) -> None:
    rng = np.random.default_rng(options.seed)
    records: list[dict[str, Any]] = []
    for number in range(options.boxes):
        draws = TEXTBOOK if rng.random() < 0.6 else SKLEARN
        dim = int(rng.choice(DIMS))
        truth = draws[rng.integers(len(draws))](rng, dim)
        task = algoscope.LinearRegression(dim)
        start = time.perf_counter()
        found = identify(
            truth.box,
            task,
            num_examples=options.examples,
            seed=number,
            with_evidence=False,
        )
        records.append(
            {
                "box": truth.box.name,
                "dim": dim,
                "true": truth.family,
                "verdict": found.verdict,
                "true_parameters": truth.parameters,
                "parameters": found.parameters,
                "distance": found.nearest.distance,
                "nearest": found.nearest.name,
                "runner_up": [found.runner_up.name, found.runner_up.distance],
                "seconds": time.perf_counter() - start,
                "parameters_right": all(
                    right(value, found.parameters.get(name))
                    for name, value in truth.parameters.items()
                ),
            }
        )
        last = records[-1]
        ok = last["true"] == last["verdict"] and last["parameters_right"]
        note(
            f"{number + 1:4} {'ok ' if ok else 'BAD'} d={dim} {last['box']}: "
            f"{last['nearest']} at {last['distance']:.1e}, {last['seconds']:.1f} s"
        )
    outside = []
    for name, box in outsiders().items():
        found = identify(
            box, algoscope.LinearRegression(4), num_examples=options.examples
        )
        outside.append(
            [name, found.verdict, found.nearest.name, found.nearest.distance]
        )
        note(f"{name}: {found.verdict}, nearest {found.nearest.name}")

    families = sorted({r["true"] for r in records} | {r["verdict"] for r in records})
    counts = Counter((r["true"], r["verdict"]) for r in records)
    rows = [
        [true, *(str(counts[true, found] or "·") for found in families)]
        for true in families
        if any(r["true"] == true for r in records)
    ]
    print(markdown(["truth \\ verdict", *families], rows))
    family_right = sum(r["true"] == r["verdict"] for r in records)
    both = sum(r["true"] == r["verdict"] and r["parameters_right"] for r in records)
    print(f"\nfamily right: {family_right} of {len(records)}")
    print(f"family and all parameters right: {both} of {len(records)}\n")
    print(
        markdown(
            ["outsider", "verdict", "nearest", "distance"],
            [[*map(str, row[:3]), f"{row[3]:.2g}"] for row in outside],
        )
    )
    summary = {"records": records, "outsiders": outside}
    write(options.out, {"boxes": options.boxes, "seed": options.seed}, [summary])


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
