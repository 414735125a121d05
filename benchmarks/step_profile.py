"""Where the time of a training step goes.

    python benchmarks/step_profile.py

Trains with the recipe of the presets at the three sizes of `training_step.py` and lets
JAX's profiler record every operation of the compiled loop, on one core. Each is counted
under one of five names:

- *data*: drawing the datasets;
- *attention*: scores, softmax and the weighted sums of values, and their gradients;
- *matrix products*: all others of the model, and their gradients;
- *optimizer*: the update of the weights, with Muon's matrix products;
- *the rest*: normalization, activations, sums, copies.
"""

import gzip
import json
import re
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import jax
import tyro
from jax.sharding import NamedSharding, PartitionSpec
from report import RESULTS, markdown, note, note_load, write
from training_step import CASES

from algoscope.training.config import BEST, TrainingConfig
from algoscope.training.loop import compile_steps, data_mesh, initial_state

INSTRUCTION = re.compile(r'%(\S+) = (.*?op_name="[^"]*")')
CONTAINERS = ("while", "call", "conditional")  # their time is that of what they hold
PRODUCTS, REST = "matrix products", "the rest"
SCOPES = ("data", "optimizer", "attention")
COLUMNS = (PRODUCTS, "attention", REST, "optimizer", "data")


@dataclass(frozen=True)
class Options:
    """Record where the time of a training step goes."""

    steps: int = 20
    """Steps that are recorded."""
    out: Path = RESULTS / "step_profile.json"
    """Where the results go."""


def kind(instruction: str) -> str:
    """Return what an instruction of the compiled loop belongs to, by its names."""
    words = set(re.split(r"\W+", instruction))
    for scope in SCOPES:
        if scope in words:
            return scope
    return PRODUCTS if words & {"dot", "dot_general"} else REST


def recorded(directory: Path) -> dict[str, float]:
    """Return the microseconds of every instruction, by its name in the compiled loop.

    The median over all times it ran, times their number, so that what interrupted one
    of them does not count.
    """
    (path,) = directory.glob("**/perfetto_trace.json.gz")
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    times = defaultdict(list)
    for event in events:
        name = event.get("args", {}).get("hlo_op")
        if name and not name.startswith(CONTAINERS):
            times[name].append(event["dur"])
    return {name: median(each) * len(each) for name, each in times.items()}


def profile(config: TrainingConfig, num_steps: int) -> dict[str, float]:
    """Return the milliseconds per step that go into each kind of operation."""
    mesh = data_mesh(1)
    state = jax.device_put(initial_state(config), NamedSharding(mesh, PartitionSpec()))
    compiled = compile_steps(config, mesh, num_steps).lower(state).compile()
    kinds = {n: kind(text) for n, text in INSTRUCTION.findall(compiled.as_text() or "")}
    jax.block_until_ready(compiled(state))
    with tempfile.TemporaryDirectory() as directory:
        with jax.profiler.trace(directory, create_perfetto_trace=True):
            jax.block_until_ready(compiled(state))
        times = recorded(Path(directory))
    totals: dict[str, float] = dict.fromkeys(COLUMNS, 0.0)
    for name, microseconds in times.items():
        totals[kinds.get(name, REST)] += microseconds / 1000 / num_steps
    return totals


def main(options: Options) -> None:
    note_load()
    results = []
    for case in CASES:
        note(case.name)
        config = TrainingConfig(
            num_layers=case.num_layers,
            hidden_size=case.hidden_size,
            num_examples=case.num_examples,
            **BEST,
        )
        results.append(
            {"case": case.name, "milliseconds": profile(config, options.steps)}
        )
    rows = []
    for result in results:
        total = sum(result["milliseconds"].values())
        shares = (100 * each / total for each in result["milliseconds"].values())
        rows.append([result["case"], *(f"{share:.0f} %" for share in shares)])
    print(markdown(["model", *COLUMNS], rows))
    write(options.out, {"steps": options.steps}, results)


if __name__ == "__main__":
    main(tyro.cli(Options))
