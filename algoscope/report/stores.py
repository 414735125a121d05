"""A directory of training runs as one table, for there may be thousands."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from algoscope.console import small
from algoscope.experiments.record import Table
from algoscope.report.sections import Section
from algoscope.report.training import UNFINISHED, load_run, newest
from algoscope.sweeps.outcomes import read_outcome

CHOICES = {
    "d": "dim",
    "τ²": "prior_variance",
    "σ²": "noise_variance",
    "L": "num_layers",
    "H": "hidden_size",
    "M": "num_heads",
    "learning rate": "learning_rate",
    "seed": "seed",
}
MEASURED = ("steps", "loss", "SPD(OLS)/d", "SPD(Bayes)/d", "status")
HEADER = ("run", "task", *CHOICES, *MEASURED)


def store_section(directory: Path, runs: Sequence[Path]) -> Section:
    """Return one row for each of the runs in a directory."""
    rows = []
    for path in runs:
        run, about, metrics = load_run(path)
        c, last = run.config, newest(metrics)
        outcome = read_outcome(c, path)
        rows.append(
            (
                str(about.get("name", path.name)),
                c.task,
                *(_shown(getattr(c, name)) for name in CHOICES.values()),
                f"{last.get('step', 0):,} of {c.steps:,}",
                *(small(last.get(key)) for key in ("loss", "spd_ols", "spd_bayes")),
                outcome.status if outcome else UNFINISHED,
            )
        )
    counts = Counter(row[-1] for row in rows)
    each = [f"{count:,} {status}" for status, count in sorted(counts.items())]
    return Section(
        title=f"Training runs in {directory.resolve().name}",
        source=str(directory),
        findings=(f"{len(rows):,} runs: {', '.join(each)}.",),
        tables=(Table("Runs", HEADER, tuple(rows)),),
    )


def _shown(value: float | int) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
