"""Where the runs of a sweep are, read from their directories.

Every engine writes the same directories, so this is true for all of them, and for
sweeps that other processes and other machines run over the same store.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from algoscope.configuration import TrainingConfig
from algoscope.machine import core_seconds
from algoscope.sweeps.locks import is_held
from algoscope.sweeps.outcomes import read_outcome

State = Literal["pending", "running", "finished", "diverged", "failed"]
TAIL = 1 << 14  # bytes: the last rows of the metrics, with an SPD among them


@dataclass(frozen=True)
class RunProgress:
    """Where one run is. A pending run may have steps: it waits to be resumed."""

    config: TrainingConfig
    state: State
    reason: str = ""  # why diverged or failed
    step: int = 0
    loss: float | None = None
    spd_ols: float | None = None  # when it was last measured
    seconds: float = 0.0  # of training, over all sittings

    @property
    def ended(self) -> bool:
        """Whether the run finished, diverged or failed."""
        return self.state not in ("pending", "running")

    @property
    def work_left(self) -> float:
        """About how long one core still trains, in seconds."""
        share = 0.0 if self.ended else 1 - self.step / self.config.steps
        return share * core_seconds(self.config)


@dataclass(frozen=True)
class SweepProgress:
    """Where all runs of a sweep are."""

    runs: tuple[RunProgress, ...]
    seconds_left: float | None = None  # at the pace so far

    @property
    def counts(self) -> Counter[State]:
        """How many runs are in each state."""
        return Counter(run.state for run in self.runs)


def read_run(config: TrainingConfig, store: Path) -> RunProgress:
    """Return where a run is, from its directory."""
    from algoscope.runs import METRICS

    directory = store / config.run_id
    if not directory.is_dir():
        return RunProgress(config, "pending")
    # The lock is asked first: a run that ends in between has then an outcome.
    running = is_held(directory)
    known = read_outcome(config, directory)
    state: State = known.status if known else "running" if running else "pending"
    rows = _last_rows(directory / METRICS)
    last = rows[-1] if rows else {}
    spd = next((row["spd_ols"] for row in reversed(rows) if "spd_ols" in row), None)
    return RunProgress(
        config,
        state,
        known.reason if known else "",
        step=last.get("step", 0),
        loss=last.get("loss"),
        spd_ols=spd,
        seconds=last.get("seconds", 0.0),
    )


def _last_rows(path: Path) -> list[dict]:
    """Return the last rows of metrics.jsonl, without one that is being written."""
    try:
        with open(path, "rb") as file:
            file.seek(-min(TAIL, file.seek(0, 2)), 2)
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return [row for row in rows if isinstance(row, dict)]
