"""Learners of experiments: trained once, kept beside the results, found again."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.experiments import TINY, place_in
from support.refusals import refuses

from algoscope.experiments import figure_8, learners
from algoscope.experiments.distances import UNDER
from algoscope.experiments.learners import (
    FILES,
    MEASURED,
    UNFINISHED,
    NoLearnerError,
    Place,
    Spent,
    find_model,
    keep_models,
    model_or_run,
    train_runs,
)
from algoscope.model.learner import InContextLearner
from algoscope.training import sweeps
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.sweeps.store import Outcome


def write_run(directory: Path, size: int = 1, names: tuple[str, ...] = FILES) -> None:
    """Write files of a run, each of a size."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_bytes(b"x" * size)


def test_small_models_are_kept_and_those_of_other_runs_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store, directory = tmp_path / "store", tmp_path / "fig"
    write_run(store / "small", 5)
    write_run(store / "large", 9)
    write_run(store / "diverged", 0, ("config.json",))
    monkeypatch.setattr(learners, "MOST_BYTES", 5)
    keep_models(store, ["small", "large", "diverged"], directory)
    assert [path.name for path in (directory / "models").iterdir()] == ["small"]
    kept = directory / "models" / "small"
    assert {path.name for path in kept.iterdir()} == set(FILES)
    assert (kept / "model.safetensors").read_bytes() == b"xxxxx"
    (kept / "notes.txt").write_text("mine")
    monkeypatch.setattr(learners, "MOST_BYTES", 9)
    keep_models(store, ["large"], directory)
    assert {path.name for path in kept.iterdir()} == {"notes.txt"}
    assert (directory / "models" / "large" / "config.json").exists()
    keep_models(store, [], directory)
    assert not (directory / "models" / "large").exists()


def test_a_model_is_kept_by_one_experiment(tmp_path: Path):
    write_run(tmp_path / "store" / "run")
    results = tmp_path / "results"
    for _ in range(2):
        keep_models(tmp_path / "store", ["run"], results / "fig3")
        keep_models(tmp_path / "store", ["run"], results / "fig8")
        assert find_model("run", results) == results / "fig3" / "models" / "run"
        assert not (results / "fig8" / "models" / "run").exists()
    (results / "fig3" / "models" / "run" / FILES[-1]).unlink()
    keep_models(tmp_path / "store", ["run"], results / "fig8")
    assert find_model("run", results) == results / "fig8" / "models" / "run"
    assert find_model("another", results) is None


def test_a_model_that_comes_with_algoscope_is_neither_trained_nor_kept(
    tmp_path: Path, trained: list[TrainingConfig]
):
    run = preset("d1")
    place = place_in(tmp_path)
    (found,), _ = train_runs(place, [run])
    assert trained == []
    assert found.learner.digest == InContextLearner.from_pretrained("linear-d1").digest
    keep_models(place.store, [run.run_id], place.directory)
    assert not (place.directory / "models").exists()


def test_models_that_results_keep_are_not_trained_again(
    tmp_path: Path, trained: list[TrainingConfig]
):
    place, other = place_in(tmp_path, "fig3"), replace(TINY, seed=1)
    (first, _), _ = train_runs(place, [TINY, other])
    assert trained == [TINY, other]
    for name in ("evaluation.json", "metrics.jsonl"):
        (place.store / TINY.run_id / name).touch()
    keep_models(place.store, [TINY.run_id, other.run_id], place.directory)

    stages = []

    def report(stage: str, done: int, total: int | None, note: str = "") -> None:
        stages.append((stage, done, total))

    elsewhere = Place(tmp_path / "fig8", tmp_path / "new", "inline", progress=report)
    (again, _), _ = train_runs(elsewhere, [TINY, other])
    assert trained == [TINY, other, other]
    assert stages[0] == ("1 of 2 runs are trained already", 0, None)
    assert again.learner.digest == first.learner.digest
    files = (tmp_path / "new" / TINY.run_id).iterdir()
    assert {path.name for path in files} == set(FILES)


def test_progress_is_passed_to_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    choices = {}

    def train_all(configs, store: Path, **given) -> list[Outcome]:
        choices.update(given)
        return [Outcome(c, store, "diverged", "The loss is NaN.", 2.0) for c in configs]

    def report(stage: str, done: int, total: int | None, note: str = "") -> None: ...

    monkeypatch.setattr(sweeps, "train_all", train_all)
    train_runs(place_in(tmp_path, workers=2, progress=report), [TINY])
    assert choices["progress"] is report
    assert (choices["engine"], choices["workers"]) == ("inline", 2)


def test_a_run_that_was_measured_and_is_gone_is_only_listed(
    tmp_path: Path, trained: list[TrainingConfig]
):
    other = replace(TINY, seed=1)
    found, spent = train_runs(place_in(tmp_path), [TINY, other], measured=[TINY])
    assert trained == [other]
    assert [each.config for each in found] == [other]
    assert spent.runs == {TINY.run_id: MEASURED, other.run_id: "finished"}
    assert spent.seconds == 1


def test_unfinished_runs_are_only_listed_where_nothing_is_to_be_trained(
    tmp_path: Path, trained: list[TrainingConfig]
):
    other = replace(TINY, seed=1)
    with pytest.raises(NoLearnerError, match=f"{TINY.run_id}: not trained to its end"):
        model_or_run(place_in(tmp_path, finished=True), "linear-d1", TINY)
    train_runs(place_in(tmp_path), [TINY])
    place = place_in(tmp_path, finished=True)
    assert train_runs(place, [TINY])[0] == []  # its evaluation is missing
    (place.store / TINY.run_id / "evaluation.json").touch()
    found, spent = train_runs(place, [TINY, other])
    assert trained == [TINY]
    assert [each.config for each in found] == [TINY]
    assert spent.runs == {TINY.run_id: "finished", other.run_id: UNFINISHED}


def test_a_model_comes_with_algoscope_or_is_trained(
    tmp_path: Path, trained: list[TrainingConfig]
):
    learner, spent = model_or_run(place_in(tmp_path), "linear-d1", None)
    assert (learner.name, spent) == ("linear-d1", Spent())
    learner, spent = model_or_run(place_in(tmp_path), "linear-d1", TINY)
    assert learner.dim == TINY.dim
    assert trained == [TINY]
    assert spent == Spent(1.0, {TINY.run_id: "finished"})


def test_runs_that_diverged_are_listed_and_leave_nothing_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def train_all(configs, store: Path, **choices) -> list[Outcome]:
        return [Outcome(c, store, "diverged", "The loss is NaN.", 2.0) for c in configs]

    monkeypatch.setattr(sweeps, "train_all", train_all)
    found, spent = train_runs(place_in(tmp_path), [TINY, TINY])
    assert found == []
    assert spent.runs == {TINY.run_id: "diverged: The loss is NaN."}
    assert spent.seconds == 2
    base = replace(TINY, num_layers=1)
    regions = (UNDER,)
    config = figure_8.Figure8((base,), (1,), regions, (1,), (8,), (4,), num_datasets=5)
    message = (
        "No run ended with a model, so there is nothing to measure. "
        f"{base.run_id}: diverged: The loss is NaN."
    )
    with refuses(NoLearnerError, message):
        figure_8.measure(config, place_in(tmp_path, "fig8"))
    with refuses(NoLearnerError, message):
        model_or_run(place_in(tmp_path), "linear-d1", base)
