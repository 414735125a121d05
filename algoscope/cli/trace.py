"""`algoscope trace`: what a transformer that was written by hand computes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import tyro

from algoscope.cli import show
from algoscope.cli.destinations import require_file, write_or_rescue
from algoscope.foundation.files import json_text, write_atomically
from algoscope.foundation.user_code import did_you_mean
from algoscope.foundation.validation import InvalidValueError, require_at_least

if TYPE_CHECKING:
    from algoscope.construction.trace import TracedStep

CHAINS = ("theorem_1", "theorem_2", "sgd_chain", "ridge_chain")

EXAMPLES = """
algoscope trace theorem_1                                # the paper's appendix A
algoscope trace my_sgd --show difference                 # build --out wrote it
algoscope trace my_sgd --layer 2 --json
algoscope trace my_sgd --html trace.html                 # heat maps, for a browser
"""


@dataclass(frozen=True)
class Trace:
    """Show step by step what a transformer that was written by hand computes.

    Every layer is shown with its formulas and with what every register holds at every
    token of one dataset. What is exact comes from the formulas, in NumPy; what is
    computed comes from the weights.
    """

    target: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(
            metavar="TARGET",
            help="A directory that `algoscope build` wrote, or one of the paper's "
            "chains: theorem_1, theorem_2, sgd_chain, ridge_chain.",
        ),
    ]
    num_examples: int | None = None
    """How many examples to show. By default three, or all that there is room for."""
    dim: int = 2
    """d of a chain."""
    learning_rate: float = 0.05
    """α of a chain."""
    penalty: float = 0.1
    """λ of a chain."""
    paper: bool = False
    """Run a chain with the paper's own approximations."""
    show: Literal["computed", "exact", "difference"] = "computed"
    """What the weights compute, what the formulas say, or the one minus the other."""
    layer: int | None = None
    """Show this layer only, counted from 1."""
    seed: int = 0
    """Seed of the dataset that is shown."""
    html: Path | None = None
    """Write a page with a heat map of every layer, instead of printing the tables."""
    json: bool = False
    """Print the matrices as JSON."""


class _Traced(NamedTuple):
    """What there is to show."""

    title: str
    about: str
    steps: "list[TracedStep]"


def run_trace(command: Trace) -> None:
    """Show what a construction computes, exact and computed, step by step."""
    require_at_least("seed", command.seed, 0)
    require_file("html", command.html)
    found = _trace_chain(command) if command.target in CHAINS else _trace_saved(command)
    from algoscope.construction.trace import as_records, as_text, explanation

    title, about, steps = found
    first = command.layer or 0
    if command.layer is not None:
        require_at_least("layer", command.layer, 1)
        if command.layer >= len(steps):
            rule = f"be at most {len(steps) - 1}, the depth"
            raise InvalidValueError("layer", rule, command.layer)
        steps = [steps[command.layer]]
    if command.html is not None:
        from algoscope.reporting.trace import trace_page

        page = trace_page(title, about, steps, command.show, first).encode()
        write_or_rescue(command.html, lambda path: write_atomically(path, page))
    if command.json:
        print(json_text(as_records(steps)))
    elif command.html is not None:
        show(f"{command.html}: {title}. Open it in a browser.")
    else:
        show(f"{title}. {about}\n")
        show(as_text(steps, command.show, first))
        show(f"\n{explanation(steps, command.show)}")


def _trace_chain(command: Trace) -> _Traced:
    """Return the appendix's matrices, from a run of its chain."""
    require_at_least("dim", command.dim, 1)
    examples = 2 if command.num_examples is None else command.num_examples
    require_at_least("num_examples", examples, 1)
    import jax

    jax.config.update("jax_enable_x64", True)
    import numpy as np

    from algoscope.construction.compiler.numerics import numerics, paper_numerics
    from algoscope.construction.paper import chain as chains
    from algoscope.construction.trace import trace_chain

    d, start = command.dim, np.zeros(command.dim)
    rate, penalty = command.learning_rate, command.penalty
    rng = np.random.default_rng(command.seed)
    if command.target == "theorem_1":
        chain = chains.theorem_1(d, rng.normal(size=d), rate, penalty)
    elif command.target == "theorem_2":
        chain = chains.theorem_2(d, penalty)
    elif command.target == "sgd_chain":
        chain = chains.sgd_chain(d, examples, start, rate, penalty)
    else:
        chain = chains.ridge_chain(d, examples, penalty)
    x = rng.normal(size=(chain.num_examples + 1, d))
    y = (x @ rng.normal(size=d))[:-1]
    chosen = paper_numerics() if command.paper else numerics()
    about = (
        f"{len(chain.steps)} layers, one for each line, {_size(d, chain.num_examples)}"
    )
    return _Traced(command.target, about, trace_chain(chain, chosen, x, y))


def _trace_saved(command: Trace) -> _Traced:
    """Return what a saved construction computes."""
    from algoscope.foundation.files import read_json
    from algoscope.model.checkpoints import CONFIG, locate

    if not Path(command.target).is_dir():
        known = ", ".join(CHAINS)
        rule = f"be a directory that `algoscope build` wrote, or one of {known}"
        remedy = did_you_mean(command.target, CHAINS)
        raise InvalidValueError("target", rule, f"'{command.target}'", remedy)
    place = locate(command.target)
    saved = read_json(place / CONFIG).get("construction") or {}
    import jax

    jax.config.update("jax_enable_x64", saved.get("dtype") == "float64")
    from algoscope.construction.build import load_construction
    from algoscope.construction.trace import trace_program

    learner, construction = load_construction(place)
    shown = min(3, construction.num_examples)
    if command.num_examples is not None:
        require_at_least("num_examples", command.num_examples, 1)
        shown = command.num_examples
        if shown > construction.num_examples:
            rule = f"be at most {construction.num_examples}, which it was built for"
            raise InvalidValueError("num_examples", rule, shown)
    tokens = construction.suited.examples(
        construction.dim, construction.num_examples, 1, command.seed
    )[:, : 2 * shown + 1]
    arrangement = construction.arrange()
    about = f"{arrangement.num_layers} layers, {_size(construction.dim, shown)}"
    steps = trace_program(arrangement, learner.transformer, tokens)
    return _Traced(construction.name, about, steps)


def _size(dim: int, num_examples: int) -> str:
    return f"d = {dim}, {num_examples} example{'s' if num_examples > 1 else ''}."
