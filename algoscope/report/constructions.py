"""A transformer written by hand as a section: what each of its layers does."""

import shlex
from dataclasses import fields
from pathlib import Path

from algoscope.construction.building import Construction, read_construction
from algoscope.construction.listing import listing
from algoscope.experiments.record import Table
from algoscope.report.options import options
from algoscope.report.sections import Section

HEADER = ("layer", "part", "register", "rows", "operation")


def construction_section(directory: Path) -> Section:
    """Return the program of a saved construction, layer by layer."""
    construction = read_construction(directory)
    arrangement = construction.arrange()
    rows = tuple(
        (str(line.layer), line.part, line.register, line.rows, line.operation)
        for line in listing(arrangement)
    )
    return Section(
        title=f"Written by hand: {construction.name}",
        source=str(directory),
        findings=(
            f"{arrangement.num_layers} layers of width {arrangement.hidden_size} run "
            f"it for d = {construction.dim} after up to {construction.num_examples} "
            f"examples, in {construction.dtype}.",
        ),
        tables=(Table("What each layer does", HEADER, rows),),
        command=build_command(construction, directory.resolve().name),
        details={"Construction": construction.as_dict()},
    )


def build_command(construction: Construction, out: str) -> str:
    """Return the command that writes this transformer.

    Example:
        >>> from algoscope.construction.algorithms import MinimumNorm
        >>> build_command(Construction(MinimumNorm(), dim=2), "mine")
        'algoscope build ols --dim 2 --examples 20 --out mine'
    """
    words = ["algoscope", "build", construction.algorithm.name]
    words += ["--dim", str(construction.dim)]
    words += ["--examples", str(construction.num_examples)]
    chosen = dict(construction.parameters)
    for each in fields(construction)[3:]:
        if getattr(construction, each.name) != each.default:
            chosen[each.name] = getattr(construction, each.name)
    return shlex.join([*words, *options(chosen), "--out", out])
