"""Theorems 1 and 2: sizes and errors of transformers, measured and judged."""

from dataclasses import asdict
from pathlib import Path

import pytest
from support.experiments import place_in

from algoscope.experiments import theorems
from algoscope.experiments.theorems import Size, Theorems
from algoscope.foundation.files import write_json


def write_sizes(
    directory: Path, widths: dict[str, list[int]], layers: int = 9, error: float = 1e-12
) -> None:
    """Write made-up sizes of Theorem 1 and of a Theorem 2 that holds."""
    sizes = [
        Size("Theorem 1", form, dim, 2 if form == "compiled" else layers, width, error)
        for form, found in widths.items()
        for dim, width in enumerate(found, start=2)
    ]
    sizes += [
        Size("Theorem 2", form, dim, depth, dim**2, 1e-12)
        for form, depth in (("as printed", 14), ("compiled", 2))
        for dim in (2, 3, 4, 5)
    ]
    write_json(directory / theorems.FILE, {"sizes": [asdict(each) for each in sizes]})


LINEAR, SQUARE = [5, 7, 9, 11], [4, 9, 16, 25]


@pytest.mark.parametrize(
    ("printed", "compiled", "layers", "error", "verdict"),
    [
        (LINEAR, LINEAR, 9, 1e-12, "reproduced"),
        (SQUARE, LINEAR, 9, 1e-12, "partly"),  # not O(d)
        (LINEAR, LINEAR, 10, 1e-12, "partly"),  # more layers than in the paper
        (LINEAR, LINEAR, 9, 1e-3, "not reproduced"),
    ],
)
def test_a_theorem_is_judged_by_depth_width_and_error(
    tmp_path: Path,
    printed: list[int],
    compiled: list[int],
    layers: int,
    error: float,
    verdict: str,
):
    widths = {"as printed": printed, "compiled": compiled}
    write_sizes(tmp_path, widths, layers, error)
    first, second = theorems.judge(Theorems((2, 3, 4, 5)), tmp_path).claims
    assert first.verdict == verdict
    assert second.verdict == "reproduced"
    assert first.seeds == 0  # nothing was trained
    assert first.difference is not None
    assert first.difference.of == "largest error − 1e-06"
    assert first.difference.mean == pytest.approx(error - 1e-6)
    assert f"as printed in the paper: {layers} layers, hidden size" in first.measured
    assert theorems.draw(tmp_path) == ("theorems",)


def test_both_theorems_are_built_and_exact(tmp_path: Path):
    place = place_in(tmp_path, "theorems")
    config = Theorems((2,), 4)
    theorems.measure(config, place)
    judgment = theorems.judge(config, place.directory)
    assert [claim.verdict for claim in judgment.claims] == ["reproduced"] * 2
    (table,) = judgment.tables
    assert [row[:4] for row in table.rows[:2]] == [
        ("Theorem 1", "as printed", "2", "9"),
        ("Theorem 2", "as printed", "2", "14"),
    ]
    assert {float(row[-1]) < 1e-6 for row in table.rows} == {True}
