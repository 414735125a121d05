"""Algorithmic phases along one axis of the model's size: words and drawings (figure 3).

A series holds, for every value of one hyper-parameter, the run of least risk over the
others. Its phase is the family of the nearest reference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.comparison.result import LABELS
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.experiments.references import Distances, family, paper_names
from algoscope.foundation.plotting import COLORS, STYLES, save_picture
from algoscope.foundation.text import listed, with_interval

REGION = "under-determined"
ORDER = ["gradient descent", "ridge", "OLS"]  # as the paper's learners grow
SYMBOLS = {"num_layers": "L", "hidden_size": "H"}
SHADES = {"gradient descent": "#D55E00", "ridge": "#009E73", "OLS": "#0072B2"}


@dataclass(frozen=True)
class Series:
    """The best run for every value of one hyper-parameter."""

    dim: int
    axis: str
    runs: dict[int, Distances]

    def phases(self) -> dict[int, str]:
        """Return the family of the nearest of the paper's references."""
        return {
            value: family(run.nearest(REGION, paper_names()).second)
            for value, run in self.runs.items()
        }


def series_of(runs: Sequence[Distances], axis: str) -> Series:
    """Keep, for every value on the axis, the run of least risk."""
    best = {}
    for value in sorted({run.about[axis] for run in runs}):
        same = [run for run in runs if run.about[axis] == value]
        best[value] = min(same, key=lambda run: run.to(LABELS, "all n").mean)
    return Series(runs[0].about["dim"], axis, best)


def _nearest(value: int, run: Distances, symbol: str, among: list[str] | None) -> str:
    best = run.nearest(REGION, among)
    shown = with_interval(best.mean, best.low, best.high)
    sure = "" if run.stands_out(REGION, among) else ", intervals overlap"
    return f"{symbol} = {value}: {best.second} at {shown}{sure}"


def sentence(series: Series, wider: bool) -> str:
    """Return what is nearest at every size."""
    symbol = SYMBOLS[series.axis]
    among = None if wider else list(paper_names())
    panel = "of the wider panel" if wider else "of the paper's references"
    parts = [_nearest(value, run, symbol, among) for value, run in series.runs.items()]
    size = next(iter(series.runs.values())).num_datasets
    return (
        f"d = {series.dim}, nearest {panel} by MSPD/d over n < d: {'; '.join(parts)} "
        f"({size:,} datasets)."
    )


def _measured(series: Series) -> str:
    return sentence(series, wider=False)


def _expected(num_layers: int) -> str:
    """Return the phase in print of a depth."""
    return ORDER[0] if num_layers == 1 else ORDER[1] if num_layers < 8 else ORDER[2]


def _ranks(series: Series) -> list[int] | None:
    """Return the places of the phases in the order; None if one is not in it."""
    phases = list(series.phases().values())
    return [ORDER.index(p) for p in phases] if set(phases) <= set(ORDER) else None


def _follows(series: Series) -> tuple[Verdict, str]:
    """Judge whether the phases run through the paper's order."""
    ranks = _ranks(series)
    phases = ", ".join(series.phases().values())
    if len(series.runs) < 2:
        return "not testable", "Only one size was trained."
    if ranks is None or ranks != sorted(ranks) or len(set(ranks)) == 1:
        return "not reproduced", f"The phases are {phases}."
    if set(ranks) == {0, 1, 2}:
        return "reproduced", ""
    return "partly", f"Not all three phases appear: {phases}."


def depth_claim(series: Series) -> Claim:
    """Judge GD → ridge → OLS with depth, and at which depths."""
    verdict, reason = _follows(series)
    depths = series.phases()
    others = [depth for depth in depths if not _as_printed(series, depth)]
    if verdict in ("reproduced", "partly") and others:
        verdict = "partly"
        reason = f"In this order, but not as in print at L = {listed(others)}."
    elif verdict == "partly":
        reason = f"Only L = {listed(list(depths))} were trained."
    return Claim(
        f"GD → ridge → OLS with depth, d = {series.dim}",
        "One layer is best approximated by a single step of gradient descent, two to "
        "four by ridge regression, eight or more by OLS (§4.3, figure 3).",
        _measured(series),
        verdict,
        reason,
    )


def _as_printed(series: Series, num_layers: int) -> bool:
    """Return whether a depth has its phase in print; SGD takes more than one step."""
    nearest = series.runs[num_layers].nearest(REGION, paper_names()).second
    return family(nearest) == _expected(num_layers) and not nearest.startswith("SGD")


def width_claim(series: Series) -> Claim:
    """Judge the same with hidden size."""
    return Claim(
        f"the same phases with hidden size, d = {series.dim}",
        "A similar phase shift occurs when the hidden size varies in a problem of 16 "
        "dimensions (§4.3, figure 3).",
        _measured(series),
        *_follows(series),
    )


def requirement_claim(series: Series, least: int) -> Claim:
    """Judge from which hidden size on a learner is ridge-like."""
    phases = series.phases()
    good = [h for h, phase in phases.items() if phase in ("ridge", "OLS")]
    from_there = [h for h in phases if good and h >= good[0]]
    verdict: Verdict = "not reproduced"
    reason = ""
    if good and good == from_there:
        verdict = "reproduced" if good[0] == least else "partly"
        if good[0] < least:
            reason = f"H = {good[0]} is enough already."
        elif good[0] > least:
            reason = f"It takes H = {good[0]}."
    if verdict == "reproduced" and least == min(phases):
        reason = "Narrower models were not trained here; figure 8 goes below."
    return Claim(
        f"H ≥ {least} for ridge-like behavior at d = {series.dim}",
        f"Hidden sizes of {least} and more are close to ridge-regression-like "
        f"solutions for d = {series.dim} (§4.3).",
        f"Nearest to ridge regression or OLS at H = {listed(good)} of "
        f"{listed(list(phases))}. {_measured(series)}",
        verdict,
        reason,
    )


def phase_table(series: Series) -> Table:
    """Return MSPD/d to every reference at every size."""
    symbol = SYMBOLS[series.axis]
    runs = series.runs
    names = [each.second for each in next(iter(runs.values())).means[REGION]]
    rows = [
        (name, *(_cell(run, name) for run in runs.values()))
        for name in names
        if name != LABELS
    ]
    chosen = [
        f"L{run.about['num_layers']} H{run.about['hidden_size']} "
        f"M{run.about['num_heads']}"
        for run in runs.values()
    ]
    rows.append(("the run of least risk", *chosen))
    header = ("reference", *(f"{symbol} = {value}" for value in runs))
    return Table(f"MSPD/d over n < d = {series.dim}", header, tuple(rows))


def _cell(run: Distances, name: str) -> str:
    value = run.to(name, REGION)
    return with_interval(value.mean, value.low, value.high)


def draw_phases(
    series: Sequence[Series], directory: Path, name: str, *, wider: bool
) -> str:
    """Draw one panel per series; the background tells the phase."""
    count = -(-len(series) // 2)
    figure = Figure(figsize=(11, 4 * count))
    panels = figure.subplots(count, 2, squeeze=False).ravel()
    for axes, each in zip(panels, series, strict=False):
        _draw_series(axes, each, wider)
    place = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5), "fontsize": 7}
    for axes in panels[1::2]:  # the best rates of gradient descent differ between rows
        axes.legend(**place)
    size = next(iter(series[0].runs.values())).num_datasets
    figure.suptitle(
        f"MSPD / d over n < d, {size:,} datasets; background: the nearest of the "
        "paper's references (red: gradient descent, green: ridge, blue: OLS)",
        fontsize=9,
    )
    figure.tight_layout()
    return save_picture(figure, directory, name)


def _is_shown(name: str, wider: bool) -> bool:
    """The wider panel keeps the paper's OLS and ridge, to compare the others with."""
    if not wider:
        return name in paper_names()
    return name not in paper_names() or family(name) in ("OLS", "ridge")


def _draw_series(axes: Axes, series: Series, wider: bool) -> None:
    places = range(len(series.runs))
    runs = list(series.runs.values())
    names = [each.second for each in runs[0].means[REGION] if each.second != LABELS]
    shown = [n for n in names if _is_shown(n, wider)]
    for index, name in enumerate(shown):
        values = [run.to(name, REGION) for run in runs]
        color = COLORS[index % len(COLORS)]
        style = STYLES[index // len(COLORS) % len(STYLES)]
        means = [value.mean for value in values]
        axes.plot(places, means, f"o{style}", ms=3, color=color, label=name, lw=1.2)
        low, high = [v.low for v in values], [v.high for v in values]
        axes.fill_between(places, low, high, color=color, alpha=0.2, lw=0)
    for place, phase in zip(places, series.phases().values(), strict=True):
        shade = SHADES.get(phase, "0.5")
        axes.axvspan(place - 0.5, place + 0.5, color=shade, alpha=0.08, lw=0)
    axes.set_xticks(places, [str(value) for value in series.runs])
    axes.set(xlim=(-0.5, len(runs) - 0.5), ylim=(0, 0.4))
    words = {"num_layers": "layers L", "hidden_size": "hidden size H"}
    axes.set_xlabel(words[series.axis])
    axes.set_ylabel("MSPD / d")
    axes.set_title(f"d = {series.dim}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
