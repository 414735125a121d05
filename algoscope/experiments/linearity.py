"""R² of a learner's predictions in three forms, as figure 6 needs them (paper app. F).

Predictions ŷᵢ at fresh queries x′ᵢ are fitted by a linear function ŵᵀx′, per number of
examples n:

- *pooled*: 1 − Σ (ŷᵢ − ŵᵀx′ᵢ)² / Σ ŷᵢ², both sums over all queries of all datasets;
- *per dataset*: the same for each dataset, then the median or the mean over datasets;
- *against gold labels*: 1 − Σ (wᵀx′ᵢ − ŷᵢ)² / Σ (wᵀx′ᵢ)², over all datasets.

The first two are 1 for a linear algorithm, whatever it knows. The third is about n/d
for the best one, since n examples tell n of the d coordinates of w.
"""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from algoscope.comparison.intervals import interval_of, over_seeds
from algoscope.comparison.linearization import Queries, fit_sums, implied
from algoscope.foundation.plotting import COLORS, ResultFigure, owner_of
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import listed, with_interval
from algoscope.predictors import Predictor
from algoscope.tasks.task import Dataset

RESAMPLES = 400
FORMS = {
    "pooled": "pooled",
    "median": "per dataset: median",
    "mean": "per dataset: mean",
    "gold": "against gold labels",
}

Scores = Float[np.ndarray, "forms prefixes"]


class Sums(NamedTuple):
    """Sums of squares over the queries of each dataset, after n = 1, 2, … examples."""

    residual: Float[np.ndarray, "datasets prefixes"]  # of the linear fit
    total: Float[np.ndarray, "datasets prefixes"]  # of the predictions
    error: Float[np.ndarray, "datasets prefixes"]  # of the predictions, to wᵀx′
    labels: Float[np.ndarray, "datasets 1"]  # of wᵀx′

    def scores(
        self, chosen: Int[np.ndarray, " chosen"] | slice = slice(None)
    ) -> Scores:
        """Return R² in every form of `FORMS`, over the chosen datasets."""
        residual, total, error, labels = (each[chosen] for each in self)
        with np.errstate(invalid="ignore", divide="ignore"):
            each = 1 - residual / total
        pooled = 1 - residual.sum(axis=0) / total.sum(axis=0)
        gold = 1 - error.sum(axis=0) / labels.sum(axis=0)
        # A dataset whose predictions are all zero has no R².
        return np.stack([pooled, np.nanmedian(each, 0), np.nanmean(each, 0), gold])


def sums_of(learner: Predictor, data: Dataset, queries: Queries) -> Sums:
    """Ask a learner about the queries after every number of examples."""
    x, y, w = (np.asarray(each) for each in (data.x, data.y, data.w))
    found = implied(learner, x, y, queries)
    fit = fit_sums(queries, found.answers, found.weights)
    labels = np.einsum("bqd,bd->bq", queries.astype(np.float64), w)
    error = np.sum((found.answers - labels[:, None]) ** 2, axis=-1)
    total = np.sum(labels**2, axis=-1, keepdims=True)
    return Sums(fit.residual[:, 1:], fit.total[:, 1:], error[:, 1:], total)


@dataclass(frozen=True, repr=False)
class Linearity(SavedResult):
    """R² in every form, per learner and over all of them, with 95 % intervals.

    The first axis of each array holds value, low and high. The last learner stands for
    the mean of all; its intervals cover datasets and learners.
    """

    kind: ClassVar[str] = "linearity"

    learners: tuple[str, ...]
    dim: int
    num_datasets: int
    num_queries: int
    levels: Float[np.ndarray, "3 forms learners prefixes"]
    steps: Float[np.ndarray, "3 forms steps"]  # R²(n + 1) − R²(n), over all learners
    rise: Float[np.ndarray, "3 forms"]  # R² at n = d less R² at n = 1
    versions: dict[str, str]

    @property
    def num_examples(self) -> int:
        """The largest number of examples before a query."""
        return self.levels.shape[-1]

    def at(self, form: str, n: int) -> Float[np.ndarray, "3"]:
        """Return value, low and high of the mean over learners after n examples."""
        return self.levels[:, list(FORMS).index(form), -1, n - 1]

    def text(self, form: str, n: int) -> str:
        """Return R² after n examples, with its interval, to four digits."""
        return with_interval(*self.at(form, n), form="{:.4f}".format)

    @property
    def sentence(self) -> str:
        """R² in all forms after 1, d and all examples."""
        asked = sorted({1, min(self.dim, self.num_examples), self.num_examples})
        each = [
            f"{name} {listed([self.text(form, n) for n in asked])}"
            for form, name in FORMS.items()
        ]
        return (
            f"R² after {listed(asked)} examples of {listed(self.learners)}: "
            f"{'; '.join(each)} ({self.num_datasets:,} datasets of {self.num_queries} "
            "queries)."
        )

    def rows(self) -> list[Row]:
        """Return one row per learner, form and n."""
        return [
            {"learner": name, "form": form, "n": n + 1}
            | dict(zip(("r2", "low", "high"), self.levels[:, f, r, n], strict=True))
            for r, name in enumerate((*self.learners, "all"))
            for f, form in enumerate(FORMS)
            for n in range(self.num_examples)
        ]

    def plot(self, axes: Axes | None = None) -> Figure:
        """Draw R² of the linear fit and R² against gold labels; or the fit's alone."""
        if axes is not None:
            self._draw(axes, tuple(FORMS)[:3])
            return owner_of(axes)
        figure = ResultFigure(figsize=(9.5, 3.8))
        left, right = figure.subplots(1, 2)
        self._draw(left, tuple(FORMS)[:3])
        left.set(ylabel="R²", title="of the linear fit to the predictions")
        self._draw(right, ("gold",))
        right.plot([0, self.dim], [0, 1], "--", color="0.5", label="n/d", zorder=0)
        right.set(ylabel="R²", title="of the predictions, for the labels wᵀx′")
        for panel in (left, right):
            panel.set(ylim=(0, 1.05), xlim=(0.5, self.num_examples + 0.5))
            panel.legend(loc="lower right", fontsize=8)
        figure.suptitle(
            f"d = {self.dim}, thin lines: each of {len(self.learners)}, "
            f"{self.num_datasets:,} datasets, {self.num_queries} queries; bands: 95 %",
            fontsize=10,
        )
        figure.tight_layout()
        return figure

    def _draw(self, axes: Axes, forms: tuple[str, ...]) -> None:
        numbers = np.arange(1, self.num_examples + 1)
        for form in forms:
            index = list(FORMS).index(form)
            value, low, high = self.levels[:, index]
            color, style = COLORS[index], ("-", "--", ":", "-")[index]
            axes.plot(numbers, value[-1], style, color=color, label=FORMS[form])
            axes.plot(numbers, value[:-1].T, color=color, lw=0.5, alpha=0.7)
            axes.fill_between(numbers, low[-1], high[-1], color=color, alpha=0.2, lw=0)
        axes.axvline(self.dim, color="gray", lw=0.8, ls=":")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("number of examples n (dotted: n = d)")
        axes.spines[["top", "right"]].set_visible(False)

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        values = asdict(self)
        for name in ("levels", "steps", "rise"):
            values[name] = np.round(values[name], 7).tolist()
        return values, {}

    @classmethod
    def from_fields(cls, values: Row, arrays: dict[str, np.ndarray]) -> "Linearity":
        for name in ("levels", "steps", "rise"):
            values[name] = np.array(values[name], np.float64)
        if values["levels"].shape[:2] != (3, len(FORMS)):
            raise KeyError("levels")
        values["learners"] = tuple(values["learners"])
        return cls(**values)


def linearity_of(
    found: dict[str, Sums], dim: int, seed: int, **about: Any
) -> Linearity:
    """Return all forms of R² with intervals: a bootstrap over datasets and learners.

    All learners answered about the same datasets, and are resampled alike.
    """
    first = next(iter(found.values()))
    rng = np.random.default_rng(seed)
    count = len(first.labels)
    drawn = rng.integers(0, count, (RESAMPLES, count))
    values = np.stack([each.scores() for each in found.values()])
    resampled = np.stack(
        [[each.scores(chosen) for chosen in drawn] for each in found.values()]
    )
    jointly = over_seeds(resampled, seed=seed)
    last = min(dim, values.shape[-1]) - 1

    def summary(value: np.ndarray, of_each: np.ndarray) -> np.ndarray:
        return np.stack([value, *interval_of(of_each)])

    levels = [
        summary(value, each) for value, each in zip(values, resampled, strict=True)
    ]
    mean = values.mean(axis=0)
    levels.append(summary(mean, jointly))
    return Linearity(
        learners=tuple(found),
        dim=dim,
        levels=np.stack(levels, axis=2),
        steps=summary(np.diff(mean), np.diff(jointly)),
        rise=summary(mean[:, last] - mean[:, 0], jointly[..., last] - jointly[..., 0]),
        **about,
    )
