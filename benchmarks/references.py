"""Reference predictions at all prefixes: one compiled call against a loop of fits.

    python benchmarks/references.py

The predictors of figure 1 on 10,000 datasets (d = 8, n = 40), after every number of
examples: ours, in float64, against scikit-learn (least squares, ridge, neighbors) and
NumPy (gradient descent, SGD) fitted anew for every dataset and prefix, as the paper's
code does. The loop runs on a few datasets, and its time per dataset is compared; both
must give the same numbers.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import tyro
from report import RESULTS, markdown, note, note_load, write
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

import algoscope
from algoscope.comparison.predict import held_out, predict_exactly
from algoscope.predictors import figure_1_references

Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Options:
    """Compare reference predictions at all prefixes with a loop of fits."""

    datasets: int = 10_000
    """Datasets of ours."""
    looped: int = 5
    """Datasets of the loop."""
    rounds: int = 3
    """How often each is timed; the median counts."""
    out: Path = RESULTS / "references.json"
    """Where the results go."""


def estimator(make: Callable) -> Fit:
    def fit(x, y, query):
        return float(make(len(y)).fit(x, y).predict(query[None])[0])

    return fit


def one_step(rate: float) -> Fit:
    return lambda x, y, query: float(query @ (2 * rate * x.T @ y))


def one_pass(rate: float) -> Fit:
    def fit(x, y, query):
        w = np.zeros(x.shape[1])
        for each, label in zip(x, y, strict=True):
            w -= 2 * rate * (w @ each - label) * each
        return float(w @ query)

    return fit


def inverse_square(distances: np.ndarray) -> np.ndarray:
    return distances**-2.0


def neighbors(weights) -> Fit:
    return estimator(lambda n: KNeighborsRegressor(min(3, n), weights=weights))


LOOP: dict[str, Fit] = {
    "OLS": estimator(lambda n: LinearRegression(fit_intercept=False)),
    "Ridge(0.1)": estimator(lambda n: Ridge(0.1, fit_intercept=False)),
    "Ridge(0.5)": estimator(lambda n: Ridge(0.5, fit_intercept=False)),
    "GD(0.01)": one_step(0.01),
    "GD(0.02)": one_step(0.02),
    "SGD(0.01)": one_pass(0.01),
    "SGD(0.03)": one_pass(0.03),
    "KNN(3, uniform)": neighbors("uniform"),
    "KNN(3, weighted)": neighbors(inverse_square),
}


def loop(fit: Fit, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array(
        [
            [fit(a[:n], b[:n], a[n]) for n in range(1, len(b))]
            for a, b in zip(x, y, strict=True)
        ]
    )


def seconds(run: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def main(options: Options) -> None:
    note_load()
    task = algoscope.LinearRegression(8)
    x, y = held_out(task, num_datasets=options.datasets, num_examples=41, seed=0)
    few = x[: options.looped].astype(np.float64), y[: options.looped].astype(np.float64)
    rows, results = [], []
    totals = np.zeros(2)
    for reference in figure_1_references():
        ours = predict_exactly(reference, x, y)  # compiles
        fit = LOOP[reference.name]
        error = np.abs(loop(fit, *few) - ours[: options.looped, 1:])
        # Near n = d least squares amplifies rounding by its condition number.
        if not np.median(error) < 1e-8 or not np.quantile(error, 0.99) < 1e-5:
            raise SystemExit(f"{reference.name}: the loop predicts something else.")
        our_time = seconds(lambda r=reference: predict_exactly(r, x, y), options.rounds)
        their_time = seconds(lambda f=fit: loop(f, *few), options.rounds)
        pair = np.array([our_time / options.datasets, their_time / options.looped])
        totals += pair
        note(f"{reference.name}: {pair[1] / pair[0]:.0f}×")
        results.append({"name": reference.name, "seconds_per_dataset": pair.tolist()})
        rows.append([reference.name, *(f"{1e6 * t:.4g}" for t in pair)])
        rows[-1].append(f"{pair[1] / pair[0]:,.0f}×")
    rows.append(["all nine", *(f"{1e6 * t:.4g}" for t in totals)])
    rows[-1].append(f"**{totals[1] / totals[0]:,.0f}×**")
    print(
        markdown(
            ["predictor", "ours, µs / dataset", "loop, µs / dataset", "faster by"], rows
        )
    )
    settings = {"datasets": options.datasets, "looped": options.looped}
    write(options.out, settings, results)


if __name__ == "__main__":
    main(tyro.cli(Options))
