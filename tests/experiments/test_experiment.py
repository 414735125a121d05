"""Experiments: their budgets and costs; reproduced, judged and drawn again."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.experiments import place_in
from support.refusals import refuses

import algoscope as asc
from algoscope.experiments import (
    BUDGETS,
    MODULES,
    figure_3,
    figure_7,
    figure_8,
    find_experiment,
)
from algoscope.experiments.experiment import (
    SMOKE,
    reproduce,
    total,
    unfinished_runs,
)
from algoscope.experiments.learners import train_runs
from algoscope.experiments.record import RESULT, Record
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.validation import InvalidValueError
from algoscope.training.config import (
    RUN_SECONDS,
    TrainingConfig,
    core_seconds,
    preset,
)

HOUR = 3600
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Figure 7, reproduced with two budgets; the directories of its results."""
    places = {
        name: place_in(tmp_path_factory.mktemp(name)) for name in ("smoke", "cpu")
    }
    for budget, place in places.items():
        figure_7.EXPERIMENT.reproduce(budget, place)
    return {budget: place.directory for budget, place in places.items()}


def copied(once: dict[str, Path], budget: str, tmp_path: Path) -> Record:
    """Copy figure 7 to the place in a test's directory, and return its record."""
    directory = place_in(tmp_path).directory
    shutil.copytree(once[budget], directory)
    return Record.load(directory)


@pytest.mark.parametrize("name", MODULES)
def test_every_experiment_has_the_three_budgets_and_a_cost(name: str):
    found = find_experiment(name)
    assert found.name == name
    assert tuple(found.budgets) == BUDGETS
    costs = [found.estimate(budget).seconds for budget in BUDGETS]
    assert 0 < costs[0] <= costs[1] <= costs[2]


def test_everything_takes_at_most_a_day_on_two_cores():
    cost = total([find_experiment(name).estimate("cpu") for name in MODULES])
    assert cost.seconds < 24 * HOUR


def test_experiments_that_share_runs_pay_for_them_once():
    both = [find_experiment(name).estimate("cpu") for name in ("fig3", "fig8")]
    shared = set(both[0].trainings) & set(both[1].trainings)
    # Four depths, and the hidden sizes below 64: three for d = 8 and two for d = 16.
    assert len(shared) == 2 * (7 + 6)
    paid = sum(core_seconds(run) for run in shared) / 2
    assert total(both).seconds == pytest.approx(sum(c.seconds for c in both) - paid)


def test_the_estimate_fits_the_step_that_was_timed_on_two_idle_cores():
    config = preset("d8")
    step = (core_seconds(config) / 2 - RUN_SECONDS / 2) / config.steps
    assert step == pytest.approx(0.052, rel=0.3)


def test_the_grid_of_the_paper_has_2016_runs():
    assert len(figure_8.EXPERIMENT.estimate("paper").trainings) == 2016


def test_a_budget_is_one_of_three():
    with refuses(
        InvalidValueError,
        "`budget` must be one of smoke, cpu, paper, got 'cpus'. Did you mean 'cpu'?",
    ):
        figure_7.EXPERIMENT.config("cpus")


def test_a_figure_is_one_of_the_paper():
    known = ", ".join(MODULES)
    with refuses(
        InvalidValueError,
        f"`figure` must be one of {known}, got 'fig9'. Did you mean 'fig8'?",
    ):
        find_experiment("fig9")


def test_an_experiment_is_measured_once_and_drawn_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = place_in(tmp_path)
    first = figure_7.EXPERIMENT.reproduce("cpu", place)
    svg = place.directory / "figure_7.svg"
    drawn = svg.read_bytes()

    def forbidden(num_points: int) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(figure_7, "approximate_squares", forbidden)
    svg.unlink()
    assert figure_7.EXPERIMENT.reproduce("cpu", place) == first
    assert svg.read_bytes() == drawn
    assert Record.load(place.directory) == first
    assert {claim.verdict for claim in first.claims} == {"reproduced", "partly"}


def test_the_smoke_budget_tests_no_claim(once):
    record = Record.load(once["smoke"])
    assert record.claims
    for claim in record.claims:
        assert (claim.verdict, claim.reason) == ("not testable", SMOKE)
        assert claim.measured


def test_a_record_says_how_many_runs_its_verdicts_do_without(
    tmp_path: Path, trained: list[TrainingConfig]
):
    config = figure_3.EXPERIMENT.config("smoke")
    place = place_in(tmp_path, "fig3")
    first = figure_3.trainings(config)[0]
    train_runs(place, [first])
    (place.store / first.run_id / "evaluation.json").touch()
    found = figure_3.EXPERIMENT.reproduce("smoke", replace(place, finished=True))
    missing = (
        "1 of 2 runs are not trained to their end; the verdicts rest on the others."
    )
    assert found.command == "algoscope reproduce fig3 --budget smoke --finished"
    assert found.findings[-1] == missing
    assert figure_3.EXPERIMENT.redraw(place.directory).findings[-1] == missing
    whole = figure_3.EXPERIMENT.reproduce("smoke", place)
    assert missing not in whole.findings
    assert len(trained) == 2


def test_results_of_another_budget_are_not_replaced(once, tmp_path: Path):
    smoke = copied(once, "smoke", tmp_path)
    directory = place_in(tmp_path).directory
    message = (
        "`out` must hold no results of another budget than cpu, got those of smoke in "
        f"{directory}. Choose another --out."
    )
    with refuses(InvalidValueError, message):
        figure_7.EXPERIMENT.reproduce("cpu", place_in(tmp_path))
    assert Record.load(directory) == smoke


def test_the_measurements_of_a_shared_experiment_are_not_replaced(once, tmp_path: Path):
    record = Record.load(once["smoke"])
    replace(record, figure="fig4", budget="cpu").save(tmp_path / "out" / "fig4")
    with pytest.raises(InvalidValueError, match="those of cpu in .*fig4"):
        find_experiment("fig5").reject_other_budgets("smoke", tmp_path / "out" / "fig5")
    find_experiment("fig5").reject_other_budgets("cpu", tmp_path / "out" / "fig5")


def test_an_experiment_is_run_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    record = asc.reproduce("fig7", progress=False)
    assert (record.figure, record.budget) == ("fig7", "smoke")
    assert record.directory == Path("results-smoke/fig7")
    assert Record.load(tmp_path / "results-smoke" / "fig7") == record
    assert (tmp_path / "results-smoke" / "fig7" / "figure_7.svg").exists()
    reproduce("fig7", "cpu", progress=False)
    assert Record.load(tmp_path / "results" / "fig7").budget == "cpu"
    record = reproduce("fig7", out=str(tmp_path / "mine"), progress=False)
    assert record.directory == tmp_path / "mine" / "fig7"


def test_progress_is_reported_while_something_is_measured(tmp_path: Path):
    stages = []

    def report(stage: str, done: int, total: int | None, note: str = "") -> None:
        stages.append((stage, done, total))

    reproduce("theorems", out=tmp_path, store=tmp_path / "runs", progress=report)
    assert stages == [("building the transformers of Theorems 1 and 2", 0, None)]
    stages.clear()
    reproduce("theorems", out=tmp_path, store=tmp_path / "runs", progress=report)
    assert stages == []


def test_only_known_figures_and_budgets_are_reproduced(tmp_path: Path):
    with pytest.raises(InvalidValueError, match="`figure` must be one of fig1"):
        reproduce("fig77", out=tmp_path)
    with pytest.raises(InvalidValueError, match="`budget` must be one of smoke"):
        reproduce("fig7", "cpus", out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_saved_measurements_are_judged_and_drawn_again_without_measuring(
    once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    record = copied(once, "cpu", tmp_path)
    place = place_in(tmp_path)
    written = {path: path.read_bytes() for path in place.directory.iterdir()}

    def forbidden(num_points: int) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(figure_7, "approximate_squares", forbidden)
    outdated = replace(record.claims[0], measured="an old text", verdict="partly")
    replace(record, findings=(), tables=(), claims=(outdated,)).save(place.directory)
    (place.directory / "figure_7.svg").unlink()
    assert figure_7.EXPERIMENT.redraw(place.directory) == record
    assert {path: path.read_bytes() for path in written} == written


def test_a_judgment_of_other_settings_is_kept_when_figures_are_redrawn(
    once, tmp_path: Path
):
    record = copied(once, "cpu", tmp_path)
    place = place_in(tmp_path)
    old = replace(record, config={"num_points": 7}, findings=("Of seven points.",))
    old.save(place.directory)
    (place.directory / "figure_7.svg").unlink()
    assert figure_7.EXPERIMENT.redraw(place.directory) == old
    assert (place.directory / "figure_7.svg").exists()


def test_redrawing_keeps_claims_of_the_smoke_budget_untested(once, tmp_path: Path):
    record = copied(once, "smoke", tmp_path)
    assert figure_7.EXPERIMENT.redraw(tmp_path / "fig7") == record


def test_only_whole_records_are_redrawn(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        figure_7.EXPERIMENT.redraw(tmp_path)
    (tmp_path / RESULT).write_text("{}")
    with pytest.raises(DamagedFileError, match="is not a saved experiment"):
        figure_7.EXPERIMENT.redraw(tmp_path)


def assert_as_judged_today(directory: Path) -> None:
    """Check a saved record, unless it was measured with other settings."""
    record = Record.load(directory)
    chosen = find_experiment(record.figure)
    if not chosen.is_current(record):
        pytest.skip(f"{directory} was measured with other settings")
    judgment = chosen.judge(chosen.config(record.budget), directory)
    findings = (*judgment.findings, *unfinished_runs(record.runs))
    assert findings == record.findings
    assert judgment.tables == record.tables
    assert judgment.claims == record.claims


@pytest.mark.parametrize("name", MODULES)
def test_the_saved_results_say_what_is_judged_today(name: str):
    if not (RESULTS / name).exists():
        pytest.skip(f"{name} is not measured yet")
    assert_as_judged_today(RESULTS / name)


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig3", "fig8"])
def test_saved_results_of_any_settings_are_drawn_as_before(name: str, tmp_path: Path):
    for path in (RESULTS / name).glob("*.json"):
        shutil.copy(path, tmp_path)
    for figure in find_experiment(name).draw(tmp_path):
        before = (RESULTS / name / f"{figure}.svg").read_bytes()
        assert (tmp_path / f"{figure}.svg").read_bytes() == before


def test_a_saved_result_that_says_something_else_is_found(once, tmp_path: Path):
    record = copied(once, "cpu", tmp_path)
    directory = tmp_path / "fig7"
    assert figure_7.EXPERIMENT.is_current(record)
    assert_as_judged_today(directory)
    replace(record, findings=("Something else.",)).save(directory)
    with pytest.raises(AssertionError):
        assert_as_judged_today(directory)
    old = replace(record, config={"num_points": 7}, findings=("Of seven points.",))
    assert not figure_7.EXPERIMENT.is_current(old)
