"""The time of one training step: ours against the same model in PyTorch.

    python benchmarks/training_step.py --torch-python PATH

Both sides train the same transformer (pre-norm block, M = 4 heads, d = 8) from the same
weights with Adam at a constant 10⁻³ on 64 fresh datasets a step, in float32 on all
cores. Each lives in a process of its own, and they compute in turns: a round is some
steps of ours, then as many of each PyTorch variant; the first round is not counted.
The opponents are the fastest eager variant and the faster of two that `torch.compile`
translated. The measure is the ratio ours / PyTorch within a round, its median, least
and greatest over the rounds: below 1 ours is faster.

Before anything is timed the twin is checked to be one: from equal weights and on equal
data its losses must be ours, before the first step of Adam and after five.

PATH is a Python that has torch; the one at work will do if the `benchmark` extra is
installed. It takes about ten minutes on two cores, on which nothing else should run.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any, Literal, cast

import tyro
from report import RESULTS, markdown, note, note_load, write

from algoscope.foundation import num_cores
from algoscope.training.config import TrainingConfig

HERE = Path(__file__).parent
CHECKED_STEPS = 6  # the sixth loss is the one after five steps
MODES = ("eager", "torch.compile")  # the ends of the names of variants
SETTLING = 0.3  # seconds between turns: idle threads spin before they sleep


@dataclass(frozen=True)
class Case:
    """One model, and how many steps of it make a turn."""

    num_layers: int
    hidden_size: int
    num_examples: int
    steps: int

    @property
    def name(self) -> str:
        tokens = 2 * self.num_examples
        return f"L={self.num_layers}, H={self.hidden_size}, T≈{tokens}"

    @property
    def config(self) -> TrainingConfig:
        return TrainingConfig(
            num_layers=self.num_layers,
            hidden_size=self.hidden_size,
            num_examples=self.num_examples,
            recipe="paper",
            learning_rate=1e-3,
            warmup=0.0,
            clip=0.0,
            steps=10**9,  # so far away that the cosine stays at its peak
        )


CASES = (Case(4, 64, 20, 20), Case(8, 64, 40, 20), Case(4, 256, 40, 8))


@dataclass(frozen=True)
class Options:
    """Time one training step: ours against the same model in PyTorch."""

    torch_python: str = sys.executable
    """A Python interpreter that has torch and numpy."""
    rounds: int = 7
    """How many rounds are counted."""
    steps: int | None = None
    """Steps of a turn, at least 6. By default 20, and 8 for the largest model."""
    cases: tuple[Literal[1, 2, 3], ...] = (1, 2, 3)
    """Which models, by their row in the table."""
    cores: int = num_cores()
    """Threads of PyTorch, and our virtual devices."""
    out: Path = RESULTS / "training_step.json"
    """Where the results go."""


class Worker:
    """A process that answers each line with a line, both of them JSON."""

    def __init__(self, python: str, script: str, job: dict):
        self.script = script
        command = [python, str(HERE / script), json.dumps(job)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error) -> None:
        cast(IO[str], self.process.stdin).close()  # the end of its input is its end
        self.process.wait()

    def listen(self) -> Any:
        line = cast(IO[str], self.process.stdout).readline()
        if not line:
            sys.exit(f"{self.script} ended early; what it said is above.")
        return json.loads(line)

    def ask(self, request: str) -> Any:
        stdin = cast(IO[str], self.process.stdin)
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        return self.listen()


def require_torch(python: str) -> None:
    """Refuse an interpreter without torch, in one line."""
    search = "import importlib.util as u, sys; sys.exit(not u.find_spec('torch'))"
    found = shutil.which(python)
    if found is None or subprocess.run([found, "-c", search]).returncode:
        note(
            f"{python} has no torch: install the benchmark extra (pip install "
            "'algoscope[benchmark]') or name a Python that has it: --torch-python PATH"
        )
        sys.exit(2)


def require_twins(ours: list[float], answer: dict, parameters: int) -> None:
    """Stop unless every variant computes what ours does."""
    if answer["parameters"] != parameters:
        sys.exit(f"The twin has {answer['parameters']} weights, ours {parameters}.")
    for variant, losses in answer["losses"].items():
        for step, (our, their) in enumerate(zip(ours, losses, strict=True)):
            tolerance = 1e-3 if step else 1e-4
            if not abs(their - our) <= tolerance * our:  # also where one is NaN
                sys.exit(
                    f"PyTorch ({variant}) is no twin: after {step} steps its loss is "
                    f"{their:.7g} and ours {our:.7g}, further apart than {tolerance:g}."
                )


def measure(case: Case, options: Options) -> dict[str, Any]:
    """Return the seconds per step of ours and of each variant, round by round."""
    steps = options.steps or case.steps
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        job = {
            "config": asdict(case.config),
            "steps": steps,
            "checked_steps": CHECKED_STEPS,
            "cores": options.cores,
            "file": f"{directory}/start.npz",
        }
        ours = stack.enter_context(Worker(sys.executable, "jax_worker.py", job))
        our_losses = ours.listen()["losses"][:CHECKED_STEPS]
        theirs = stack.enter_context(Worker(options.torch_python, "torch_twin.py", job))
        answer = theirs.listen()
        require_twins(our_losses, answer, case.config.num_parameters)
        note(f"{case.name}: the twins agree; {options.rounds} rounds of {steps} steps")

        ask = {"ours": ours} | dict.fromkeys(answer["losses"], theirs)
        seconds: dict[str, list[float]] = {name: [] for name in ask}
        for _ in range(options.rounds + 1):
            for name, worker in ask.items():
                time.sleep(SETTLING)
                seconds[name].append(worker.ask(name) / steps)
    seconds = {name: rounds[1:] for name, rounds in seconds.items()}
    our_seconds = seconds.pop("ours")
    opponents = {mode: fastest(seconds, mode) for mode in MODES}
    return {
        "case": case.name,
        "tokens": case.config.num_tokens,
        "parameters": case.config.num_parameters,
        "steps_per_round": steps,
        "losses_of_the_check": {"ours": our_losses, **answer["losses"]},
        "seconds_per_step": {"ours": our_seconds, **seconds},
        "opponents": opponents,
        "ratios": {
            mode: [a / b for a, b in zip(our_seconds, seconds[name], strict=True)]
            for mode, name in opponents.items()
        },
        "torch": answer["torch"],
    }


def fastest(seconds: dict[str, list[float]], mode: str) -> str:
    """Return the variant of a mode with the least median."""
    variants = [name for name in seconds if name.endswith(mode)]
    return min(variants, key=lambda name: median(seconds[name]))


def rows(result: dict[str, Any]) -> list[list[str]]:
    """Return the lines of the table, one for each opponent."""

    def milliseconds(name: str) -> str:
        return f"{1000 * median(result['seconds_per_step'][name]):.1f}"

    return [
        [
            result["case"],
            f"{result['parameters']:,}",
            milliseconds("ours"),
            milliseconds(result["opponents"][mode]),
            result["opponents"][mode],
            f"**{median(ratios):.2f}**",
            f"{min(ratios):.2f}–{max(ratios):.2f}",
        ]
        for mode, ratios in result["ratios"].items()
    ]


def main(options: Options) -> None:
    if options.steps is not None and options.steps < CHECKED_STEPS:
        note(f"`steps` must be at least {CHECKED_STEPS}, got {options.steps}.")
        sys.exit(2)
    require_torch(options.torch_python)
    note_load()
    results = [measure(CASES[number - 1], options) for number in options.cases]
    header = (
        "model|parameters|ours, ms|PyTorch, ms|PyTorch variant|ours / PyTorch|range"
    )
    print(markdown(header.split("|"), [row for each in results for row in rows(each)]))
    settings = {"rounds": options.rounds, "cores": options.cores}
    write(options.out, settings, results, torch=results[0]["torch"])


if __name__ == "__main__":
    main(tyro.cli(Options))
