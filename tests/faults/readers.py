"""Everything that reads a file: a good sample of it, and what a user does with it.

A new reader is one line in `READERS`.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from support.results import (
    save_identification,
    save_patching,
    save_probing,
    save_record,
    save_run,
)
from support.sweeping import GRID, TINY

import algoscope as asc
from algoscope.adapters.black_box import UnansweredError, as_predictions
from algoscope.adapters.process import ProcessPredictor, _predictions
from algoscope.comparison.result import Comparison
from algoscope.construction.build import load_construction
from algoscope.construction.written import compile
from algoscope.exchange.imports import import_model
from algoscope.experiments import figure_7
from algoscope.experiments.distances import Distances
from algoscope.experiments.linearity import Linearity
from algoscope.experiments.record import Record
from algoscope.experiments.shift_distances import ShiftDistances
from algoscope.foundation.cache import Cache
from algoscope.foundation.locks import held, is_held, owner
from algoscope.foundation.result import SavedResult
from algoscope.ground_truth import LabelledLearner, write_ground_truth
from algoscope.identification import Identification, survives
from algoscope.identification.survival import Survival
from algoscope.layerwise.read_outs import ReadOuts
from algoscope.layerwise.result import LayersResult
from algoscope.model.learner import InContextLearner
from algoscope.patching.result import PatchingResult
from algoscope.predictors import PredictorFailedError
from algoscope.probing.result import ProbingResult
from algoscope.reporting.report import report
from algoscope.training.card import model_card
from algoscope.training.run import Run
from algoscope.training.sweeps import SavedSweep
from algoscope.training.sweeps.grid import saved_sweeps
from algoscope.training.sweeps.store import read_outcome, read_sweep, record_outcome

RESULTS = Path(__file__).parents[2] / "results"
ROW = {"step": 10, "loss": 2.0, "spd_ols": 0.5, "spd_bayes": 0.5, "seconds": 1.0}


@dataclass(frozen=True)
class Reader:
    """One kind of file or directory."""

    name: str
    write: Callable[[Path], object]  # writes a good sample into an empty directory
    read: Callable[[Path], object]  # reads what is there, and uses it
    share: float = 1.0  # of inputs, next to other readers: less if reading takes long


def _result(kind: type[SavedResult], name: str, write: Callable) -> Reader:
    """Return the reader of a kind of result; a directory has the name "."."""

    def read(place: Path) -> None:
        found = kind.load(place / name)
        assert len(repr(found)) <= 400
        found.rows()
        found.to_fields()

    return Reader(kind.kind, lambda place: write(place / name), read)


def _copy(name: str, place: Path) -> None:
    """Write a shipped result; a directory without its pictures."""
    source = RESULTS / name
    if source.is_file():
        shutil.copy(source, place)
        return
    for path in source.iterdir():
        if path.suffix in (".json", ".safetensors"):
            shutil.copy(path, place)


def _comparison(path: Path) -> None:
    sizes = {"num_examples": 2, "num_datasets": 10, "progress": False}
    asc.compare(asc.ols, ["zero"], asc.LinearRegression(1), **sizes).save(path)


def _survival(path: Path) -> None:
    task = asc.LinearRegression(2)
    options = {"num_examples": 2, "num_datasets": 10, "progress": False}
    survives(asc.ols, "ols", task, **options).save(path)


def _learner(place: Path) -> None:
    shutil.copytree(_EVALUATION.parent, place, dirs_exist_ok=True)


def _read_learner(place: Path) -> None:
    learner = InContextLearner.from_pretrained(place)
    assert learner.task is not None
    assert learner.dim
    assert learner.max_examples
    learner.digest  # noqa: B018


def _run_directory(place: Path) -> None:
    run = Run.open(place, TINY)
    run.log.add(ROW)
    run.save_state(run.load_state()[0], 1.5)
    record_outcome(TINY, place, "failed", "no memory")
    with held(place):
        pass


def _read_run(place: Path) -> None:
    run = Run.open(place, TINY, resume=True)
    run.load_state()
    rows = run.log.rows()
    run.log.forget_after(5)
    model_card("x", TINY, rows, Comparison.load(_EVALUATION))


_EVALUATION = Path(asc.__file__).parent / "models" / "linear-d1" / "evaluation.json"


def _read_lock(place: Path) -> None:
    owner(place)
    is_held(place)
    with held(place):
        pass


def _store(place: Path) -> None:
    SavedSweep(GRID, 20).save(place)
    config = GRID.configs[0]
    (place / config.run_id).mkdir()
    _run_directory(place / config.run_id)


def _read_store(place: Path) -> None:
    for sweep in saved_sweeps(place).values():
        status = read_sweep(sweep.grid.configs, place)
        assert status.headline
        assert sum(run.work_left for run in status.runs) >= 0
        for config in sweep.grid.configs[:3]:
            read_outcome(config, place / config.run_id)


def _construction(place: Path) -> None:
    def hebb(w: Any, x: Any, y: Any) -> Any:
        return w + 0.1 * x * y

    rule = asc.learning_rule(predict=lambda w, x: w @ x, init=np.zeros)(hebb)
    compile(rule, dim=1, num_examples=2).save_pretrained(place)


def _read_construction(place: Path) -> None:
    learner, construction = load_construction(place)
    assert learner.name
    assert construction.name
    construction.arrange()


def _cache(place: Path) -> None:
    cache = Cache(place)
    cache.file("a.txt", {"of": 1}, lambda: (place / "a.txt").touch())
    cache.keep("part", {"of": 2}, {"x": np.zeros(2)})


def _read_cache(place: Path) -> None:
    cache = Cache(place)
    cache.seconds("a.txt", {"of": 1})
    cache.find("part", {"of": 2})
    cache.keep_only(["b.txt"])


def _distances(place: Path) -> None:
    shutil.copy(RESULTS / "fig1" / "distances-linear-d8.json", place / "d.json")
    Cache(place).file("d.json", {"of": 1}, lambda: None)


def _read_distances(place: Path) -> None:
    for each in Distances.load_all(place):
        for region in each.spans:
            for name in each.columns:
                each.column(name, region)


def _read_out(place: Path) -> None:
    _learner(place)
    learner = InContextLearner.from_pretrained(place)
    shape = (learner.num_layers + 1, learner.hidden_size)
    ReadOuts(np.zeros(shape), np.zeros(shape), 0.0).save(place, learner)


def _read_read_out(place: Path) -> None:
    ReadOuts.load(place, InContextLearner.from_pretrained(place))


def _garg(place: Path) -> None:
    from exchange.test_garg import draw, write_run

    sizes = {"n_dims": 1, "n_positions": 2, "n_embd": 4, "n_layer": 1, "n_head": 1}
    write_run(place, draw(sizes), sizes)
    (place / "model_500.pt").unlink()


def _read_import(place: Path) -> None:
    assert import_model(place).dim >= 1


def _gpt2(place: Path) -> None:
    asc.export("linear-d1", place, to="gpt2")


def _truth(place: Path) -> None:
    write_ground_truth(place, only=["sgd-d2-n4"], progress=False)


def _read_truth(place: Path) -> None:
    learner = LabelledLearner.load(place / "sgd-d2-n4")
    for each in learner.labels.quantities:
        learner.quantity(each.name)


def _read_squares(place: Path) -> None:
    figure_7.SquareApproximations.load(place / "squares.json")


def _reports(place: Path) -> None:
    save_record(place / "fig1", title="x")
    save_run(place / "runs" / "a")
    save_run(place / "runs" / "b")
    save_probing(place / "probing")
    save_patching(place / "patching")
    save_identification(place / "found.json")
    _copy("layers/linear-d8", _made(place / "layers"))


def _made(place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    return place


def _read_report(place: Path) -> None:
    out = place.with_name("page")
    report(place, out.with_suffix(".md"), progress=False)
    report(place, out.with_suffix(".html"), progress=False)


def _reply(place: Path) -> None:
    (place / "line.reply").write_text(json.dumps({"predictions": [1.0, 2.0]}))


def _read_reply(place: Path) -> None:
    """Read what a program answered as `cmd:` does."""
    content = (place / "line.reply").read_bytes()
    try:
        reply = ProcessPredictor(["true"], "mine")._parse(content)
        as_predictions(_predictions(reply), 2)
    except (PredictorFailedError, UnansweredError):
        return  # which ends with one line, or with NaN


READERS: tuple[Reader, ...] = (
    _result(Comparison, "c.json", _comparison),
    _result(Identification, "i.json", save_identification),
    _result(Survival, "s.json", _survival),
    _result(ProbingResult, ".", save_probing),
    _result(PatchingResult, ".", save_patching),
    _result(LayersResult, ".", partial(_copy, "layers/linear-d8")),
    _result(Record, ".", save_record),
    _result(Linearity, "l.json", partial(_copy, "fig6/linear_fit.json")),
    _result(ShiftDistances, ".", partial(_copy, "shifts")),
    Reader("learner", _learner, _read_learner),
    Reader("run", _run_directory, _read_run),
    Reader("lock", _run_directory, _read_lock),
    Reader("sweep's store", _store, _read_store),
    Reader("construction", _construction, _read_construction),
    Reader("cache", _cache, _read_cache),
    Reader("distances", _distances, _read_distances),
    Reader("read-outs", _read_out, _read_read_out),
    Reader("run of in-context-learning", _garg, _read_import),
    Reader("export", _gpt2, _read_import),
    Reader("ground truth", _truth, _read_truth),
    Reader("squares", partial(_copy, "fig7/squares.json"), _read_squares),
    Reader("reply", _reply, _read_reply),
    Reader("report", _reports, _read_report, share=0.02),
)
