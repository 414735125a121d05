"""How far runs are from least squares under each shift: measured, tabulated, drawn.

The distance is SPD to OLS over the signal, E[(ŷ − ŷ_OLS)²] / E[(wᵀx)²]. In distribution
it equals SPD/d. The prediction that is always 0 has a distance of at most 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from algoscope.comparison.intervals import (
    interval_of,
    regime_spans,
    replicates,
    summarize,
)
from algoscope.comparison.metrics import mean_over_region
from algoscope.comparison.predict import predict_all, predict_exactly
from algoscope.experiments.shifted_data import (
    IN_DISTRIBUTION,
    Shift,
    draw_shifted,
    find_shift,
)
from algoscope.foundation.plotting import (
    FAINT,
    ON_BRIGHT,
    ON_DARK,
    ResultFigure,
    looks,
    owner_of,
    plain_name,
)
from algoscope.foundation.progress import Progress, silent
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import listed, short, with_interval
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner
from algoscope.predictors import Predictor, ols

ALL = "all n"
NUMBERS = ("mean", "low", "high", "median")
ARRAYS = ("curves", "regions", "resampled")
COLUMNS = 4  # of panels
SHOWN = (5e-5, 3.0)  # distances; OLS itself explodes at n = d with label noise

Distances = Float[np.ndarray, "datasets prefixes"]  # from n = 0 on


def spans_of(dim: int, num_examples: int) -> dict[str, tuple[int, int]]:
    """Return the regions of n, with their first and last n.

    Example:
        >>> spans_of(8, 20)
        {'n < d': (1, 7), 'n = d': (8, 8), 'n > d': (9, 20), 'all n': (1, 20)}
    """
    words = {
        "under-determined": "n < d",
        "determined": "n = d",
        "over-determined": "n > d",
    }
    spans = {words[name]: (a, b) for name, a, b in regime_spans(dim, num_examples)}
    return spans | {ALL: (1, num_examples)}


def distances(
    runs: Mapping[str, Predictor],
    shift: Shift,
    dim: int,
    *,
    num_datasets: int,
    num_examples: int,
    seed: int,
) -> dict[str, Distances]:
    """Return (ŷ − ŷ_OLS)² / E[(wᵀx)²] of each run, per dataset and n = 0, 1, …

    OLS sees the data in float64, and learners in float32.
    """
    x, y, _ = draw_shifted(
        shift,
        dim,
        num_datasets=num_datasets,
        num_examples=num_examples + 1,
        seed=seed,
    )
    best = predict_exactly(ols, x, y)
    single = x.astype(np.float32), y.astype(np.float32)
    found = {}
    for name, run in runs.items():
        is_learner = isinstance(run, InContextLearner)
        own = predict_all(run, *single) if is_learner else predict_exactly(run, x, y)
        found[name] = (own.astype(np.float64) - best) ** 2 / (dim * shift.signal)
    return found


@dataclass(frozen=True, repr=False)
class ShiftDistances(SavedResult):
    """Distances of runs to OLS, per run, shift and n, on the same datasets."""

    kind: ClassVar[str] = "shifts"
    file: ClassVar[str] = "shifts.json"
    arrays_file: ClassVar[str] = "shifts.safetensors"

    runs: tuple[str, ...]
    laws: tuple[str, ...]  # of x in training: the task's name, for each run
    shifts: tuple[str, ...]  # the first is `IN_DISTRIBUTION`
    dim: int
    num_datasets: int
    seed: int
    versions: dict[str, str]
    curves: Float[np.ndarray, "4 runs shifts prefixes"]  # `NUMBERS`, from n = 1 on
    regions: Float[np.ndarray, "4 runs shifts regions"]
    resampled: Float[np.ndarray, "resamples runs shifts"]  # means over all n

    @property
    def num_examples(self) -> int:
        """The largest number of examples before a prediction."""
        return self.curves.shape[-1]

    @property
    def spans(self) -> dict[str, tuple[int, int]]:
        """The regions of n."""
        return spans_of(self.dim, self.num_examples)

    @property
    def judged(self) -> list[str]:
        """The shifts under which least squares is best, without the first."""
        return [s for s in self.shifts[1:] if find_shift(s).ols_is_best]

    def of(self, run: str, shift: str, region: str = ALL) -> Float[np.ndarray, "4"]:
        """Return mean, low, high and median of a distance."""
        index = list(self.spans).index(region)
        place = self.runs.index(run), self.shifts.index(shift)
        return self.regions[:, place[0], place[1], index].astype(np.float64)

    def text(self, run: str, shift: str, region: str = ALL) -> str:
        """Return a distance with its interval."""
        mean, low, high, _ = map(float, self.of(run, shift, region))
        return with_interval(mean, low, high, short)

    def replicates(self, run: str, shift: str) -> Float[np.ndarray, " resamples"]:
        """Return bootstrap means over all n, paired between runs and shifts."""
        place = self.runs.index(run), self.shifts.index(shift)
        return self.resampled[:, place[0], place[1]].astype(np.float64)

    @property
    def sentence(self) -> str:
        """The distance of each run in distribution, and under the worst shift."""
        each = []
        for run in self.runs:
            worst = max(self.judged, key=lambda shift: self.of(run, shift)[0])
            each.append(
                f"{run}: {self.text(run, IN_DISTRIBUTION)} in distribution and at most "
                f"{self.text(run, worst)} ({worst})"
            )
        return (
            f"Distance to OLS over all n, as a share of the signal "
            f"({self.num_datasets:,} datasets). {'; '.join(each)}."
        )

    def rows(self) -> list[Row]:
        """Return one row per run, shift and n, with its interval."""
        return [
            {"run": run, "law": law, "shift": shift, "n": n + 1}
            | dict(zip(NUMBERS, self.curves[:, r, s, n].tolist(), strict=True))
            for r, (run, law) in enumerate(zip(self.runs, self.laws, strict=True))
            for s, shift in enumerate(self.shifts)
            for n in range(self.num_examples)
        ]

    def plot(self, axes: Axes | None = None) -> Figure:
        """Draw the distance against n, a panel per shift; or the heat map into axes."""
        if axes is not None:
            self._draw_map(axes)
            return owner_of(axes)
        names = self.shifts[1:]
        count = -(-len(names) // COLUMNS)
        figure = ResultFigure(
            figsize=(2.9 * COLUMNS, 2.3 * count + 1.1), layout="constrained"
        )
        panels = figure.subplots(count, COLUMNS, sharex=True, sharey=True).ravel()
        for panel, name in zip(panels, names, strict=False):
            self._draw_shift(panel, name)
        for panel in panels[len(names) :]:
            panel.set_axis_off()
        for panel in panels[: len(names)]:  # each is read alone on a narrow page
            panel.set_xlabel("number of examples n", fontsize=8)
            panel.set_ylabel("distance to OLS", fontsize=8)
            panel.tick_params(labelbottom=True, labelleft=True, labelsize=8)
        panels[0].set_ylim(SHOWN)
        handles, labels = panels[0].get_legend_handles_labels()
        place = {"loc": "outside lower center", "ncols": 3}
        figure.legend(handles, labels, fontsize=8, **place)
        figure.suptitle(
            "SPD to OLS over the signal under each shift; grey: the runs in "
            f"distribution; dotted: n = d = {self.dim}; {self.num_datasets:,} datasets",
            fontsize=10,
        )
        return figure

    def _draw_shift(self, axes: Axes, name: str) -> None:
        numbers = np.arange(1, self.num_examples + 1)
        index = self.shifts.index(name)
        for run, look in enumerate(looks(self.runs).values()):
            axes.plot(numbers, self.curves[0, run, 0], color=FAINT, lw=0.8, zorder=0)
            mean, low, high, _ = self.curves[:, run, index]
            label = plain_name(self.runs[run])
            axes.plot(numbers, mean, label=label, markevery=(run, 4), **look.line)
            axes.fill_between(numbers, low, high, color=look.color, alpha=0.2, lw=0)
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
        note = "" if find_shift(name).ols_is_best else " (OLS is not best)"
        axes.set_title(f"{name}{note}", fontsize=9)
        axes.axvline(self.dim, color="gray", lw=0.8, ls=":")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)

    def map_figure(self) -> Figure:
        """Draw the distance over all n of every run under every shift."""
        size = 1.5 + 0.56 * len(self.runs), 1.9 + 0.3 * len(self.shifts)
        figure = ResultFigure(figsize=size)
        self._draw_map(figure.subplots())
        figure.tight_layout()
        return figure

    def _draw_map(self, axes: Axes) -> None:
        values = self.regions[0, :, :, -1].T.astype(np.float64)
        scale = LogNorm(vmin=1e-3, vmax=1.0, clip=True)
        axes.imshow(values, cmap="viridis_r", norm=scale, aspect="auto")
        for (shift, run), value in np.ndenumerate(values):
            color = ON_DARK if scale(value) > 0.55 else ON_BRIGHT
            axes.text(
                run, shift, short(value), color=color, size=7, ha="center", va="center"
            )
        names = [s if find_shift(s).ols_is_best else f"({s})" for s in self.shifts]
        axes.set_yticks(range(len(names)), names, fontsize=8)
        runs, slant = list(map(plain_name, self.runs)), {"rotation": 40, "ha": "right"}
        axes.set_xticks(range(len(runs)), runs, fontsize=8, **slant)
        axes.set_title(
            "SPD to OLS over the signal, mean over all n\n(brackets: OLS is not best)",
            fontsize=9,
        )

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        arrays = {name: getattr(self, name).astype(np.float32) for name in ARRAYS}
        names = ("runs", "laws", "shifts", "dim", "num_datasets", "seed", "versions")
        return {name: getattr(self, name) for name in names}, arrays

    @classmethod
    def from_fields(
        cls, values: Row, arrays: dict[str, np.ndarray]
    ) -> "ShiftDistances":
        for name in ("runs", "laws", "shifts"):
            values[name] = tuple(values[name])
        shape = len(values["runs"]), len(values["shifts"])
        for name in ARRAYS:
            if arrays[name].shape[1:3] != shape:
                raise KeyError(name)
        fields: Row = {**values, **{name: arrays[name] for name in ARRAYS}}
        return cls(**fields)


def measure_shifts(
    runs: Mapping[str, Predictor],
    laws: Mapping[str, str],
    shifts: tuple[Shift, ...],
    dim: int,
    *,
    num_datasets: int,
    num_examples: int,
    seed: int,
    versions: dict[str, str],
    progress: Progress = silent,
) -> ShiftDistances:
    """Measure every run under every shift, on datasets from the same x and w."""
    if not shifts or shifts[0].name != IN_DISTRIBUTION:
        got = listed([shift.name for shift in shifts])
        raise InvalidValueError("shifts", f"start with '{IN_DISTRIBUTION}'", got)
    spans = spans_of(dim, num_examples).values()
    sizes: Any = {"num_datasets": num_datasets, "num_examples": num_examples}
    curves, regions, resampled = [], [], []
    for done, shift in enumerate(shifts):
        progress("measuring shifts", done, len(shifts), shift.name)
        found = distances(runs, shift, dim, seed=seed, **sizes)
        samples = np.stack(list(found.values()), axis=1)
        curves.append(np.stack(summarize(samples[..., 1:], seed=seed)[:4]))
        means = [mean_over_region(samples, *span) for span in spans]
        of_all = replicates(means[-1], seed=seed)
        summary = np.stack(summarize(np.stack(means, axis=-1), seed=seed)[:4])
        summary[1:3, :, -1] = interval_of(of_all)  # as verdicts see it
        regions.append(summary)
        resampled.append(of_all)
    return ShiftDistances(
        runs=tuple(runs),
        laws=tuple(laws[name] for name in runs),
        shifts=tuple(shift.name for shift in shifts),
        dim=dim,
        num_datasets=num_datasets,
        seed=seed,
        versions=versions,
        curves=np.stack(curves, axis=2),
        regions=np.stack(regions, axis=2),
        resampled=np.stack(resampled, axis=2),
    )
