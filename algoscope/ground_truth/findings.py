"""What a method says about cells whose truth is known, and how often it is right.

A finding is one cell: a quantity or a part of a learner, at a layer and perhaps a
token. It is true or not, for a reason, and a method gives it a number. Scores count
findings by method, reason and threshold.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from algoscope.foundation.result import Row, SavedResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Finding:
    """One cell: the truth about it, and what a method says."""

    learner: str
    method: str  # such as "linear probe"
    what: str  # a quantity, or a part
    layer: int
    truth: bool
    reason: str  # why it is true or false: held, not yet, gone, never, …
    says: float  # the larger, the more the method believes in it
    where: str = ""  # the token, where a method finds one


@dataclass(frozen=True)
class Tally:
    """How often a method is right about cells of one kind, at one threshold."""

    method: str
    learners: str  # plain, rotated
    reason: str
    truth: bool
    threshold: float
    cells: int
    right: int

    @property
    def share(self) -> float:
        """The share of cells about which the method is right."""
        return self.right / self.cells


@dataclass(frozen=True, repr=False)
class GroundTruthScores(SavedResult):
    """How often methods find what is there, and do not find what is not.

    `findings` are all cells; `thresholds` say above which number each method counts as
    having found something.
    """

    kind: ClassVar[str] = "ground truth scores"
    file: ClassVar[str] = "scores.json"

    findings: tuple[Finding, ...]
    thresholds: dict[str, tuple[float, ...]]
    versions: dict[str, str]
    seconds: float

    def scores(self) -> list[Tally]:
        """Return one score per method, form of learner, reason and threshold."""
        groups: dict[tuple[str, str, str, bool], list[float]] = {}
        for each in self.findings:
            form = form_of(each.learner)
            key = (each.method, form, each.reason, each.truth)
            groups.setdefault(key, []).append(each.says)
        found = []
        for (method, form, reason, truth), said in groups.items():
            for threshold in self.thresholds[method]:
                believed = np.array(said) > threshold
                right = int(np.sum(believed == truth))
                found.append(
                    Tally(method, form, reason, truth, threshold, len(said), right)
                )
        return found

    @property
    def sentence(self) -> str:
        """How many cells there are, and the share right at the first thresholds."""
        first = [
            s for s in self.scores() if s.threshold == self.thresholds[s.method][0]
        ]
        parts = []
        for method in self.thresholds:
            own = [score for score in first if score.method == method]
            if not own:
                continue
            parts.append(f"{method}: {_share(own, True)} and {_share(own, False)}")
        learners = len({each.learner for each in self.findings})
        return (
            f"{len(self.findings):,} cells of {learners} learners; right on what is "
            f"there and on what is not: {'; '.join(parts)}."
        )

    def rows(self) -> list[Row]:
        """Return the scores."""
        return [{**asdict(each), "share": each.share} for each in self.scores()]

    def summary(self) -> tuple[list[str], list[list[str]]]:
        """Return a header and the scores as rows of text."""
        header = [
            "method",
            "learners",
            "cells",
            "there",
            "threshold",
            "number",
            "right",
        ]
        rows = [
            [
                each.method,
                each.learners,
                each.reason,
                "yes" if each.truth else "no",
                f"{each.threshold:g}",
                f"{each.cells:,}",
                f"{each.share:.1%}",
            ]
            for each in self.scores()
        ]
        return header, rows

    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Draw the share of right answers per method and reason."""
        from algoscope.foundation.plotting import COLORS, ResultFigure, owner_of

        first = [
            s for s in self.scores() if s.threshold == self.thresholds[s.method][0]
        ]
        panel = (
            ResultFigure(figsize=(7, 0.28 * len(first) + 1)).subplots()
            if axes is None
            else axes
        )
        names = [f"{s.method}, {s.learners}: {s.reason}" for s in first]
        colors = [COLORS[0] if score.truth else COLORS[1] for score in first]
        panel.barh(names, [score.share for score in first], color=colors)
        panel.invert_yaxis()
        panel.set(xlabel="share of cells about which the method is right", xlim=(0, 1))
        panel.spines[["top", "right"]].set_visible(False)
        figure = owner_of(panel)
        if axes is None:
            figure.tight_layout()
        return figure

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        columns: dict[str, list[Any]] = {}
        for name in Finding.__dataclass_fields__:
            columns[name] = [getattr(each, name) for each in self.findings]
        rest = {"thresholds": self.thresholds, "versions": self.versions}
        return {**rest, "seconds": self.seconds, "findings": columns}, {}

    @classmethod
    def from_fields(
        cls, values: Row, arrays: dict[str, np.ndarray]
    ) -> "GroundTruthScores":
        columns = values["findings"]
        names = list(Finding.__dataclass_fields__)
        cells = zip(*(columns[name] for name in names), strict=True)
        return cls(
            tuple(Finding(**dict(zip(names, cell, strict=True))) for cell in cells),
            {k: tuple(v) for k, v in values["thresholds"].items()},
            values["versions"],
            values["seconds"],
        )


def _share(scores: list[Tally], truth: bool) -> str:
    """Return the share right among all cells that are true, or not, as text."""
    own = [score for score in scores if score.truth == truth]
    cells = sum(score.cells for score in own)
    return f"{sum(score.right for score in own) / cells:.1%}" if cells else "–"


def form_of(learner: str) -> str:
    """Return the form that a learner's name ends with.

    Example:
        >>> form_of("sgd-d2-n4"), form_of("gd-d2-n4-rotated")
        ('plain', 'rotated')
    """
    ending = learner.rpartition("-")[2]
    return ending if ending in ("rotated", "trained") else "plain"
