"""What every benchmark ends with: a Markdown table, and a JSON file to check it by."""

import os
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from algoscope.foundation import num_cores, provenance
from algoscope.foundation.files import write_json

RESULTS = Path(__file__).parent / "results"
LOAD_AT_START = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def note(line: str) -> None:
    """Print a message; standard output is for the table alone."""
    print(line, file=sys.stderr, flush=True)


def note_load() -> None:
    """Warn if the machine is busy: the numbers will mean little."""
    if LOAD_AT_START > 0.5:
        note(
            f"The machine is busy (load {LOAD_AT_START:.1f}): the numbers mean little."
        )


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, the first column to the left, the rest to the right."""
    rule = [":--", *["--:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *rows])


def write(path: Path, settings: Any, results: Any, **versions: str) -> None:
    """Write the results with everything needed to judge and to repeat them."""
    packages = {name: version(name) for name in ("equinox", "optax")}
    write_json(
        path,
        {
            "benchmark": Path(sys.argv[0]).stem,
            "command": shlex.join(["python", *sys.argv]),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "versions": {**provenance(), **packages, **versions},
            "settings": settings,
            "results": results,
        },
    )
    note(f"Written to {path}.")


def machine() -> dict[str, Any]:
    """Return the processor, its cores, and the load before the benchmark."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        names = [line.split(":", 1)[1] for line in lines if line.startswith("model n")]
        model = names[0].strip() if names else model
    return {"cpu": model, "cores": num_cores(), "load_at_start": LOAD_AT_START}
