"""A comparison in words: the table by regime, and the sentence that answers."""

import math

from algoscope.comparison import LABELS, Comparison
from algoscope.curves import regime_spans


def regimes(comparison: Comparison) -> list[tuple[str, int, int]]:
    """Return the regimes that the comparison covers: name, first and last n."""
    spans = regime_spans(comparison.dim, comparison.num_examples)
    return [("n = d" if name == "determined" else name, a, b) for name, a, b in spans]


def table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return a header and one row per reference, the nearest first."""
    spans = regimes(comparison)
    header = ["reference", "all n ≥ 1"]
    header += [f"{name} ({a}–{b})" if a < b else name for name, a, b in spans]
    if "ilwd" in comparison.metrics:
        header.append("ILWD, all n ≥ 1")
    everything = comparison.nearest(1, comparison.num_examples)
    rows = []
    for name in [*(name for name, _ in everything), LABELS]:
        curve = comparison.against(name)
        cells = [curve.average(1, comparison.num_examples)]
        cells += [curve.average(a, b) for _, a, b in spans]
        texts = [f"{cell:.2g}" for cell in cells]
        if "ilwd" in comparison.metrics:
            texts.append(
                "–" if name == LABELS else _weight_difference(comparison, name)
            )
        rows.append([name, *texts])
    return header, rows


def _weight_difference(comparison: Comparison, name: str) -> str:
    curve = comparison.against(name, "ilwd")
    return f"{curve.average(1, comparison.num_examples):.2g}"


def _times(ratio: float) -> str:
    """Return how many times as far, in plain digits."""
    if ratio >= 1e6:
        return "over a million times"
    return f"{ratio:.2g} times" if ratio < 10 else f"{ratio:,.0f} times"


def sentence(comparison: Comparison) -> str:
    """Return the answer to "which algorithm is it?", as far as SPD can tell."""
    (first, nearest), *others = comparison.nearest(1, comparison.num_examples)
    if not math.isfinite(nearest):
        return f"{comparison.learner} is like none of these: it predicts no numbers."
    most = comparison.num_examples
    span = f"on average over 1 to {most} examples" if most > 1 else "after 1 example"
    text = (
        f"{comparison.learner} behaves most like {first}: SPD/d = {nearest:.2g} "
        f"{span} ({comparison.num_datasets:,} datasets)"
    )
    if others:
        second, distance = others[0]
        text += f"; the next is {second}"
        text += f", {_times(distance / nearest)} as far" if nearest else ""
        text += f" ({distance:.2g})"
    return text + "."
