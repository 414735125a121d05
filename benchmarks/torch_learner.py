"""A learner in PyTorch: asked in batches, against one question at a time and JAX.

    python benchmarks/torch_learner.py

`linear-d8` is exported to PyTorch. Its questions per second are measured in the causal
form and through a function that answers single questions. A matrix product alone says
how many the processor could answer if it did nothing else. `identify` is then run on it
and on the same learner in JAX, in turns, after one run each that compiles; both must
come to the same verdict. It takes a few minutes on two cores.
"""

import sys
import tempfile
import time
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import median
from typing import Any

import tyro
from report import RESULTS, markdown, note, note_load, write

import algoscope as asc
from algoscope.comparison.predict import held_out, predict_all


@dataclass(frozen=True)
class Options:
    """Time a PyTorch learner in batches, one question at a time, and against JAX."""

    model: str = "linear-d8"
    """The learner."""
    num_datasets: int = 1000
    """Datasets asked in batches, each at every number of examples."""
    num_datasets_single: int = 10
    """Datasets asked one question at a time."""
    rounds: int = 3
    """How often everything is timed."""
    out: Path = RESULTS / "torch_learner.json"
    """Where the results go."""


def exported(learner: asc.InContextLearner, directory: Path) -> Any:
    """Return the learner as a PyTorch module, loaded as a user would."""
    asc.export(learner, directory, to="torch")
    spec = spec_from_file_location("exported", directory / "model.py")
    if spec is None or spec.loader is None:
        sys.exit("The exported model cannot be imported.")
    module = module_from_spec(spec)
    sys.modules["exported"] = module
    spec.loader.exec_module(module)
    return module.load(directory)


def single_questions(model: Any, torch: Any) -> asc.FunctionPredictor:
    """Return the model as a function of one question."""

    def answer(x, y, query):
        xs = torch.as_tensor([*x.tolist(), query.tolist()], dtype=torch.float32)
        ys = torch.as_tensor([*y.tolist(), 0.0], dtype=torch.float32)
        with torch.no_grad():
            return model.predict_prefixes(xs[None], ys[None])[0, -1].item()

    return asc.FunctionPredictor(answer, "one at a time")


def rate(predictor: Any, x: Any, y: Any) -> float:
    """Return the questions answered per second."""
    start = time.perf_counter()
    predict_all(predictor, x, y)
    return len(x) * (x.shape[1] - 1) / (time.perf_counter() - start)


def operations(model: Any) -> int:
    """Return the floating-point operations of a question's two tokens with matrices."""
    named = model.layers.named_parameters()
    return 2 * 2 * sum(each.numel() for name, each in named if ".w_" in name)


def product_rate(torch: Any, repeats: int = 200) -> float:
    """Return the floating-point operations per second of a layer's first product."""
    rows, width, inner = 64 * 41, 64, 256
    h, matrix = torch.randn(rows, width), torch.randn(inner, width)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        torch.nn.functional.linear(h, matrix)
        seconds.append(time.perf_counter() - start)
    return 2 * rows * width * inner / median(seconds)


def shares(model: Any, torch: Any, x: Any, y: Any) -> dict[str, float]:
    """Return the shares of a batch's time: products, attention, and all the rest."""
    profiler = import_module("torch.profiler")
    x, y = (torch.as_tensor(each, dtype=torch.float32) for each in (x, y))
    with torch.no_grad():
        model.predict_prefixes(x, y)
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as profile:
            model.predict_prefixes(x, y)
    taken = {each.key: each.self_cpu_time_total for each in profile.key_averages()}
    found = {
        "products": sum(s for key, s in taken.items() if key.endswith("mm")),
        "attention": sum(s for key, s in taken.items() if "attention" in key),
    }
    whole = sum(taken.values())
    parts = {name: seconds / whole for name, seconds in found.items()}
    return parts | {"the rest": 1 - sum(parts.values())}


def timed(predictor: Any) -> tuple[float, asc.Identification]:
    """Return the seconds that `identify` takes, and what it finds."""
    start = time.perf_counter()
    found = asc.identify(predictor, progress=False)
    return time.perf_counter() - start, found


def main(options: Options) -> None:
    note_load()
    torch = import_module("torch")
    learner = asc.InContextLearner.from_pretrained(options.model)
    with tempfile.TemporaryDirectory() as directory:
        model = exported(learner, Path(directory) / "torch")
    batched = asc.from_torch(model, learner.dim, name=options.model, max_examples=20)
    single = single_questions(model, torch)
    x, y = held_out(
        learner.task, num_datasets=options.num_datasets, num_examples=21, seed=0
    )
    few = slice(options.num_datasets_single)
    rates: dict[str, list[float]] = {"batches": [], "one at a time": [], "JAX": []}
    products = []  # per second
    predict_all(learner, x, y)  # compiles
    for _ in range(options.rounds):
        products.append(product_rate(torch) / operations(model))
        rates["batches"].append(rate(batched, x, y))
        rates["one at a time"].append(rate(single, x[few], y[few]))
        rates["JAX"].append(rate(learner, x, y))
    parts = shares(model, torch, x[:64], y[:64])
    note("identifying")
    seconds: dict[str, list[float]] = {"PyTorch": [], "JAX": []}
    found: dict[str, asc.Identification] = {}
    for each in range(options.rounds + 1):
        for name, predictor in (("PyTorch", batched), ("JAX", learner)):
            taken, found[name] = timed(predictor)
            if each:  # the first run compiles
                seconds[name].append(taken)
        note(f"round {each} of {options.rounds}")
    ratio = median(seconds["PyTorch"]) / median(seconds["JAX"])
    gain = median(rates["batches"]) / median(rates["one at a time"])
    rows = [
        [f"questions / s, {name}", f"{median(each):,.0f}"]
        for name, each in rates.items()
    ]
    rows.append(["batches / one at a time", f"**{gain:,.0f}×**"])
    limit = median(products)
    most = limit / median(rates["one at a time"])
    rows.append(["questions / s, matrix products alone", f"{limit:,.0f}"])
    rows.append(["matrix products alone / one at a time", f"{most:,.0f}×"])
    rows += [
        [f"time of a batch, {name}", f"{each:.0%}"] for name, each in parts.items()
    ]
    rows += [
        [f"`identify`, {name}", f"{median(each):.1f} s, {found[name].verdict}"]
        for name, each in seconds.items()
    ]
    rows.append(["PyTorch / JAX", f"**{ratio:.2f}**"])
    print(markdown(["measured", "median"], rows))
    verdicts = {
        name: {"verdict": each.verdict, "parameters": each.parameters}
        for name, each in found.items()
    }
    rates["matrix products alone"] = products
    results = {"rates": rates, "shares": parts, "seconds": seconds, "found": verdicts}
    settings = {"model": options.model, "rounds": options.rounds}
    write(options.out, settings, results, torch=version("torch"))


if __name__ == "__main__":
    main(tyro.cli(Options))
