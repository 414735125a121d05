"""How a run ended, as its directory tells.

A finished run is its finished model; `outcome.json` is written for the others:

    {"status": "diverged" or "failed", "reason": "…", "traceback": "…"}
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from algoscope.foundation.text import duration
from algoscope.training.config import TrainingConfig
from algoscope.training.cost import core_seconds
from algoscope.training.lock import is_held

OUTCOME = "outcome.json"


@dataclass(frozen=True)
class Outcome:
    """How one run of a sweep ended."""

    config: TrainingConfig
    directory: Path
    status: Literal["finished", "diverged", "failed"]
    reason: str = ""  # why not finished
    seconds: float = 0.0  # of training, over all sittings


def read_outcome(config: TrainingConfig, directory: Path) -> Outcome | None:
    """Return how the run in this directory ended, or None if it has not."""
    from algoscope.foundation.files import read_json
    from algoscope.training.run import Run

    run = Run(directory, config)
    if run.finished:
        return Outcome(config, directory, "finished", seconds=_seconds(run))
    try:
        record = read_json(directory / OUTCOME)
    except FileNotFoundError:
        return None
    status: Literal["diverged", "failed"] = (
        "diverged" if record.get("status") == "diverged" else "failed"
    )
    reason = str(record.get("reason", ""))
    return Outcome(config, directory, status, reason, _seconds(run))


def _seconds(run) -> float:
    rows = run.metrics()
    return float(rows[-1]["seconds"]) if rows else 0.0


def record_outcome(
    config: TrainingConfig,
    directory: Path,
    status: Literal["diverged", "failed"],
    reason: str,
    traceback: str = "",
) -> Outcome:
    """Write why a run did not finish, and return it."""
    from algoscope.foundation.files import write_json
    from algoscope.training.run import Run

    record = {"status": status, "reason": reason, "traceback": traceback}
    write_json(directory / OUTCOME, record)
    return Outcome(config, directory, status, reason, _seconds(Run(directory, config)))


State = Literal["pending", "running", "finished", "diverged", "failed"]
ORDER: tuple[State, ...] = ("running", "failed", "diverged", "pending", "finished")
TAIL = 1 << 14  # bytes: the last rows of the metrics, with an SPD among them


@dataclass(frozen=True)
class RunStatus:
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
class SweepStatus:
    """Where all runs of a sweep are."""

    runs: tuple[RunStatus, ...]
    seconds_left: float | None = None  # at the pace so far

    @property
    def counts(self) -> Counter[State]:
        """How many runs are in each state."""
        return Counter(run.state for run in self.runs)

    @property
    def headline(self) -> str:
        """The counts, and how long it will take."""
        counts = self.counts
        parts = [f"{counts[state]} {state}" for state in ORDER if counts[state]]
        ending = f"; left {duration(self.seconds_left)}" if self.seconds_left else ""
        return f"{', '.join(parts)}{ending}"


def read_run(config: TrainingConfig, store: Path) -> RunStatus:
    """Return where a run is, from its directory."""
    from algoscope.training.run import METRICS

    directory = store / config.run_id
    if not directory.is_dir():
        return RunStatus(config, "pending")
    # The lock is asked first: a run that ends in between has then an outcome.
    running = is_held(directory)
    known = read_outcome(config, directory)
    state: State = known.status if known else "running" if running else "pending"
    rows = _last_rows(directory / METRICS)
    last = rows[-1] if rows else {}
    spd = next((row["spd_ols"] for row in reversed(rows) if "spd_ols" in row), None)
    return RunStatus(
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
