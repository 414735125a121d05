"""Saved results as pictures, in the paper's layout. Reads results, never models."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from algoscope.comparison import LABELS, Comparison
from algoscope.validation import require_choice

# Okabe and Ito's palette: distinguishable for color-blind readers.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw figure 1 (left): SPD/d to each reference against the number of examples.

    The file's ending decides the format. Bands are 95 % bootstrap intervals.
    """
    require_choice("path ending", path.suffix, (".png", ".svg", ".pdf"))
    path.parent.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "algoscope"  # the same result, the same file
    figure, (linear, logarithmic) = plt.subplots(1, 2, figsize=(10, 4.2))
    curves = [c for c in comparison.curves if c.first == comparison.learner]
    for axes in (linear, logarithmic):
        for index, curve in enumerate(curves):
            numbers = range(1, len(curve.mean))
            style = (
                "--" if curve.second == LABELS else ("-", "-.")[index // len(COLORS)]
            )
            color = COLORS[index % len(COLORS)]
            label = f"({curve.second}, {curve.first})"
            axes.plot(numbers, curve.mean[1:], style, color=color, label=label)
            axes.fill_between(
                numbers, curve.low[1:], curve.high[1:], color=color, alpha=0.2, lw=0
            )
        axes.axvline(comparison.dim, color="gray", lw=0.8, ls=":")
        axes.set_xlabel("number of examples n (dotted: n = d)")
        axes.spines[["top", "right"]].set_visible(False)
    linear.set_ylabel("SPD / d")
    linear.set_ylim(0, 0.8)
    logarithmic.set_yscale("log")
    logarithmic.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle(
        f"Which algorithm is {comparison.learner}?  d = {comparison.dim}, "
        f"{comparison.num_datasets:,} datasets",
        fontsize=11,
    )
    figure.tight_layout()
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=150, metadata=metadata)
    plt.close(figure)
