"""The least sizes that prefer OLS to ridge: words and drawings (figure 8).

Where the 95 % interval of SPD(OLS, ICL) − SPD(Ridge, ICL) holds zero, a size is said to
be undecided, and the table has a question mark.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from algoscope.experiments.distances import Distances
from algoscope.experiments.pictures import save_picture
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.experiments.words import listed, with_interval
from algoscope.figures import COLORS

REGION = "under-determined"
AXES = ("hidden_size", "num_layers", "num_heads")
WORDS = {
    "hidden_size": "hidden size H",
    "num_layers": "depth L",
    "num_heads": "number of heads M",
}


@dataclass(frozen=True)
class Least:
    """The least size that was seen to suffice for one d; None if none did."""

    dim: int
    axis: str
    size: int | None
    tried: tuple[int, ...]
    unsure: tuple[int, ...] = ()  # up to it, neither surely enough nor too small


def satisfies(run: Distances) -> bool:
    """Return whether SPD(OLS, ICL) < SPD(Ridge(0.1), ICL)."""
    return run.nearest(REGION).second == "OLS"


def _is_sure(run: Distances) -> bool:
    """Return whether the 95 % interval of the difference leaves out zero."""
    return run.is_surely_nearest(REGION)


def least_sizes(runs: Sequence[Distances], dims: Iterable[int] = ()) -> list[Least]:
    """Return the least size of a run that suffices, others at their best.

    `dims` are those that were asked for: all runs of one may have diverged.
    """
    found = []
    for axis in AXES:
        for dim in sorted({*dims, *(run.about["dim"] for run in runs)}):
            same = [run for run in runs if run.about["dim"] == dim]
            enough = [run.about[axis] for run in same if satisfies(run)]
            least = min(enough, default=None)
            tried = tuple(sorted({run.about[axis] for run in same}))
            sure = {run.about[axis] for run in same if satisfies(run) and _is_sure(run)}
            near = {run.about[axis] for run in same if not _is_sure(run)} - sure
            unsure = tuple(n for n in tried if n in near and n <= (least or inf))
            found.append(Least(dim, axis, least, tried, unsure))
    return found


def sentences(least: Sequence[Least], num_datasets: int) -> tuple[str, ...]:
    """Return one sentence for each hyper-parameter."""
    return tuple(
        f"The least {WORDS[axis]} that prefers OLS to Ridge(0.1): "
        + listed([_shown(each) for each in least if each.axis == axis])
        + f" ({num_datasets:,} datasets for each run)."
        for axis in AXES
    )


def _shown(each: Least) -> str:
    if not each.tried:
        return f"unknown for d = {each.dim}, as no run ended"
    size = f"more than {each.tried[-1]}" if each.size is None else str(each.size)
    unsure = f" ({listed(each.unsure)} undecided)" if each.unsure else ""
    return f"{size} for d = {each.dim}{unsure}"


def claims(least: Sequence[Least], num_datasets: int) -> tuple[Claim, ...]:
    """Judge the appendix: one head is enough, the rest grows in steps with d."""
    said = dict(zip(AXES, sentences(least, num_datasets), strict=True))
    heads = [each for each in least if each.axis == "num_heads"]
    alone = [each.dim for each in heads if each.size == 1]
    verdict: Verdict = "partly" if alone else "not reproduced"
    reason = f"It does for d = {listed(alone)}." if alone else "It does for no d."
    if len(alone) == len(heads):
        verdict, reason = "reproduced", ""
    single = Claim(
        "a single head suffices",
        "A single head is enough for all problem dimensions (app. H, figure 8).",
        said["num_heads"],
        verdict,
        reason,
    )
    return (single, *(_growth(least, axis, said[axis]) for axis in AXES[:2]))


def _growth(least: Sequence[Least], axis: str, measured: str) -> Claim:
    """Judge whether a requirement grows with d, never falling."""
    sizes = [each.size for each in least if each.axis == axis]
    known = [inf if size is None else float(size) for size in sizes]
    verdict, reason = _steps(known)
    return Claim(
        f"required {WORDS[axis]} grows with d in steps",
        "Hidden size and depth requirements depend on the input size like a step "
        "function; in print H is 20 to 30 and more, L is 2 to 8 (app. H, figure 8).",
        measured,
        verdict,
        reason,
    )


def _steps(sizes: list[float]) -> tuple[Verdict, str]:
    if len(sizes) < 2:
        return "not testable", "Only one d was tried."
    if set(sizes) == {inf}:
        return "not testable", "No size that was tried is enough for any d."
    if sizes != sorted(sizes):
        return "not reproduced", "It falls somewhere."
    if sizes[0] == sizes[-1]:
        return "partly", "It is the same for all d that were tried."
    if inf in sizes:
        return "partly", "The largest size that was tried is not enough for some d."
    return "reproduced", ""


def requirement_table(runs: Sequence[Distances]) -> Table:
    """Return every run with its distances to both references."""
    order = sorted(runs, key=lambda run: [run.about[a] for a in ("dim", *AXES[::-1])])
    rows = tuple(
        (
            str(run.about["dim"]),
            *(str(run.about[axis]) for axis in AXES),
            *(
                with_interval(each.mean, each.low, each.high)
                for each in run.means[REGION][:2]
            ),
            ("yes" if satisfies(run) else "no") + ("" if _is_sure(run) else "?"),
        )
        for run in order
    )
    header = ("d", "H", "L", "M", "SPD/d to OLS", "SPD/d to Ridge(0.1)", "OLS nearer")
    return Table("Runs", header, rows)


def draw_requirements(runs: Sequence[Distances], directory: Path) -> str:
    """Draw the least size against d, one panel for each hyper-parameter."""
    least = least_sizes(runs)
    figure = Figure(figsize=(10.5, 3.4))
    for axes, axis in zip(figure.subplots(1, 3), AXES, strict=True):
        own = [each for each in least if each.axis == axis]
        met = [each for each in own if each.size is not None]
        unmet = [each for each in own if each.size is None and each.tried]
        dims = [each.dim for each in met]
        axes.plot(dims, [each.size for each in met], "o-", color=COLORS[0])
        axes.plot(
            [each.dim for each in unmet],
            [each.tried[-1] for each in unmet],
            "^",
            color=COLORS[1],
            label="more than",
        )
        if unmet:
            axes.legend(fontsize=7)
        axes.set_xlabel("d")
        axes.set_xticks([each.dim for each in own])
        axes.set_ylabel(f"{WORDS[axis]} needed")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"SPD(OLS, ICL) < SPD(Ridge(0.1), ICL), {runs[0].num_datasets:,} datasets",
        fontsize=10,
    )
    figure.tight_layout()
    return save_picture(figure, directory, "figure_8")
