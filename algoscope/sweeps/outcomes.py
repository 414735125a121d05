"""How a run ended, as its directory tells.

A finished run is its finished model; `outcome.json` is written for the others:

    {"status": "diverged" or "failed", "reason": "…", "traceback": "…"}
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from algoscope.configuration import TrainingConfig

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
    from algoscope.checkpoints import read_json
    from algoscope.runs import Run

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
    from algoscope.checkpoints import write_json
    from algoscope.runs import Run

    record = {"status": status, "reason": reason, "traceback": traceback}
    write_json(directory / OUTCOME, record)
    return Outcome(config, directory, status, reason, _seconds(Run(directory, config)))
