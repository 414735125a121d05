"""What `algoscope build` and `algoscope trace` do."""

import inspect
import json
from typing import Any

from algoscope.options import Build, Trace
from algoscope.validation import InvalidValueError, require_at_least, require_choice


def run_build(command: Build) -> None:
    """Write a transformer that runs an algorithm, and show what each layer does."""
    from algoscope.construction.algorithms import ALGORITHMS

    if command.list:
        _print_algorithms(command)
        return
    require_choice("algorithm", command.algorithm, ALGORITHMS)
    kind = ALGORITHMS[command.algorithm]
    known = inspect.signature(kind).parameters
    for name, value in command.parameters.items():
        if name not in known:
            rule = f"be left out for {command.algorithm}"
            has = ", ".join(f"`{each}`" for each in known) or "no parameters"
            raise InvalidValueError(name, rule, value, f"It has {has}.")
    require_at_least("dim", command.dim, 1)
    require_at_least("examples", command.examples, 1)
    import jax

    jax.config.update("jax_enable_x64", command.dtype == "float64")
    from algoscope.construction.building import Construction, save_construction
    from algoscope.construction.listing import listing

    construction = Construction(
        kind(**command.parameters),
        command.dim,
        command.examples,
        command.dtype,
        command.activation,
        command.layer_norm_epsilon,
        command.pre_norm,
    )
    compiled = construction.compile()
    if command.out is not None:
        save_construction(construction, compiled, command.out)
    lines = listing(compiled)
    if command.json:
        facts = {
            **construction.as_dict(),
            "num_layers": compiled.num_layers,
            "hidden_size": compiled.hidden_size,
            "num_parameters": compiled.transformer.num_parameters,
            "listing": [vars(line) for line in lines],
        }
        print(json.dumps(facts))
        return
    print("\n".join(map(str, lines)))
    print(
        f"{construction.name}: {compiled.num_layers} layers, "
        f"{compiled.hidden_size} rows, {compiled.transformer.num_parameters:,} numbers"
        + (f", in {command.out}" if command.out is not None else "")
    )


def _print_algorithms(command: Build) -> None:
    from algoscope.construction.algorithms import ALGORITHMS

    entries: list[dict[str, Any]] = [
        {
            "name": name,
            "parameters": {
                each.name: each.default
                for each in inspect.signature(kind).parameters.values()
            },
            "about": (inspect.getdoc(kind) or "")
            .partition("\n\n")[0]
            .replace("\n", " "),
        }
        for name, kind in ALGORITHMS.items()
    ]
    if command.json:
        print(json.dumps(entries))
        return
    for entry in entries:
        given = ", ".join(f"{k}={v:g}" for k, v in entry["parameters"].items())
        print(f"{entry['name'] + '(' + given + ')':<58} {entry['about']}")


def run_trace(command: Trace) -> None:
    """Show what a construction computes, exact and computed, step by step."""
    require_at_least("seed", command.seed, 0)
    steps = _trace_chain(command) if command.target in CHAINS else _trace_saved(command)
    from algoscope.construction.chain_trace import as_dict, as_text

    if command.layer is not None:
        require_at_least("layer", command.layer, 1)
        if command.layer >= len(steps):
            rule = f"be at most {len(steps) - 1}, the depth"
            raise InvalidValueError("layer", rule, command.layer)
        steps = [steps[command.layer]]
    if command.json:
        print(json.dumps(as_dict(steps)))
    else:
        print(as_text(steps, command.show, command.layer or 0))


CHAINS = ("theorem_1", "theorem_2", "sgd_chain", "ridge_chain")


def _trace_chain(command: Trace) -> list[Any]:
    """Return the appendix's matrices, from a run of its chain."""
    require_at_least("dim", command.dim, 1)
    examples = 2 if command.examples is None else command.examples
    require_at_least("examples", examples, 1)
    import jax

    jax.config.update("jax_enable_x64", True)
    import numpy as np

    from algoscope.construction import chains
    from algoscope.construction.chain_trace import trace
    from algoscope.construction.numerics import numerics, paper_numerics

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
    return trace(chain, paper_numerics() if command.paper else numerics(), x, y)


def _trace_saved(command: Trace) -> list[Any]:
    """Return what a saved construction computes."""
    from algoscope.checkpoints import read_json
    from algoscope.pretrained import CONFIG, locate

    place = locate(command.target)
    saved = read_json(place / CONFIG).get("construction") or {}
    import jax

    jax.config.update("jax_enable_x64", saved.get("dtype") == "float64")
    from algoscope.construction.building import load_construction
    from algoscope.construction.program_trace import trace_program

    learner, construction = load_construction(place)
    shown = min(3, construction.num_examples)
    if command.examples is not None:
        require_at_least("examples", command.examples, 1)
        shown = command.examples
        if shown > construction.num_examples:
            rule = f"be at most {construction.num_examples}, for which it was built"
            raise InvalidValueError("examples", rule, shown)
    tokens = construction.suited.examples(
        construction.dim, construction.num_examples, 1, command.seed
    )[:, : 2 * shown + 1]
    return trace_program(construction.arrange(), learner.transformer, tokens)
