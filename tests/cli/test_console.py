"""What a person reads in the terminal, and what a log file gets."""

import pytest

from algoscope.cli import console
from algoscope.cli.console import print_table, training_progress
from algoscope.foundation.text import duration, short
from algoscope.training.run import Progress


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.4, "0 s"),
        (42.0, "42 s"),
        (89.0, "89 s"),
        (90.0, "1.5 min"),
        (150.0, "2.5 min"),
        (594.0, "9.9 min"),
        (600.0, "10 min"),
        (1300.0, "22 min"),
        (5399.0, "90 min"),
        (5400.0, "1.5 h"),
        (36_000.0, "10 h"),
        (129_599.0, "36 h"),
        (129_600.0, "1.5 days"),
        (5e6, "58 days"),
        (1e9, "11574 days"),
    ],
)
def test_a_duration_has_the_unit_that_fits(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize("seconds", [598.2, 35_900.0, 863_900.0])
def test_a_duration_of_almost_ten_has_two_digits(seconds):
    assert "." not in duration(seconds)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (0.01234, "0.012"), (1.5e-5, "1.5e-05"), (0.5, "0.5")],
)
def test_a_small_number_has_two_digits(value, text):
    assert short(value) == text


# Progress where there is no terminal.


class Clock:
    """A clock that the test sets."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(console, "time", clock)
    return clock


@pytest.fixture
def lines(capsys):
    """Return a function that returns the lines printed since its last call."""

    def read() -> list[str]:
        printed = capsys.readouterr()
        assert printed.out == ""  # for results
        return printed.err.splitlines()

    return read


@pytest.fixture
def watch(clock, lines, monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    with training_progress("tiny") as watch:
        yield watch


def test_the_first_report_is_printed_at_once_without_a_guess(watch, lines):
    watch(Progress(step=50, steps=200, loss=1.23456, seconds=5.0))
    assert lines() == ["tiny  50/200  loss 1.2346  SPD(OLS)/d –"]


def test_between_two_lines_pass_ten_seconds(watch, clock, lines):
    for step, now in [(10, 0.0), (20, 4.0), (30, 9.9), (40, 10.0), (50, 19.0)]:
        clock.now = 1000 + now
        watch(Progress(step, 1000, 1.0, seconds=now))
    assert [line.split("  ")[1] for line in lines()] == ["10/1,000", "40/1,000"]


def test_the_last_step_is_printed_whenever_it_comes(watch, lines):
    watch(Progress(199, 200, 1.0, seconds=1.0))
    watch(Progress(200, 200, 0.5, seconds=2.0, spd_ols=0.0123, spd_bayes=0.5))
    _, last = lines()
    assert last == "tiny  200/200  loss 0.5000  SPD(OLS)/d 0.012  left 0 s"


def test_the_time_left_follows_the_pace_of_this_sitting(watch, clock, lines):
    # Resumed at step 100 after an hour; since then 2 s per step.
    watch(Progress(100, 400, 1.0, seconds=3600.0))
    clock.now += 20
    watch(Progress(110, 400, 1.0, seconds=3620.0))
    _, second = lines()
    assert second.endswith("  left 9.7 min")  # 290 steps


def test_a_terminal_shows_a_bar_with_what_was_measured(capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with training_progress("a [b]run[/b]") as watch:
        watch(Progress(50, 200, 1.23456, seconds=5.0, spd_ols=0.0123))
    err = capsys.readouterr().err
    assert "a [b]run[/b]" in err
    assert "50/200" in err
    assert "loss 1.2346  SPD(OLS)/d 0.012" in err


# Tables.

HEADER = ["reference", "all n ≥ 1", "under-determined (1–7)", "n = d"]
ROWS = [["OLS", "0.0012", "3e-05", "0.1"], ["KNN(3, weighted)", "12", "0.4", "0.5"]]


def printed_cells(capsys) -> list[list[str]]:
    lines = capsys.readouterr().out.splitlines()
    rows = [line.replace("┃", "│").split("│")[1:-1] for line in lines]
    return [row for row in rows if row]


@pytest.fixture
def terminal(monkeypatch):
    """Set the width of what is printed to."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return monkeypatch


@pytest.mark.usefixtures("terminal")
def test_a_table_holds_its_title_its_header_and_its_rows(capsys):
    print_table("The title", HEADER, ROWS)
    out = capsys.readouterr().out
    assert out.startswith("The title")
    print_table("The title", HEADER, ROWS)
    cells = [[cell.strip() for cell in row] for row in printed_cells(capsys)]
    assert cells == [HEADER, *ROWS]


@pytest.mark.usefixtures("terminal")
def test_names_stand_to_the_left_and_numbers_to_the_right(capsys):
    print_table("The title", HEADER, ROWS)
    for name, *numbers in printed_cells(capsys):
        assert name.startswith(" ")
        assert not name.startswith("  ")
        assert all(
            number == f" {number.strip()} ".rjust(len(number)) for number in numbers
        )


def test_no_number_is_cut_where_there_is_no_terminal(terminal, capsys):
    terminal.setenv("COLUMNS", "80")
    wide = [*HEADER, "over-determined (9–40)"]
    print_table("The title", wide, [[*row, "0.0034"] for row in ROWS])
    out = capsys.readouterr().out
    assert "…" not in out


@pytest.mark.parametrize("name", ["[red]", "[/red]"])
@pytest.mark.usefixtures("terminal")
def test_brackets_in_a_name_are_printed(name, capsys):
    print_table(f"SPD/d of {name}", HEADER, [[name, "1", "2", "3"]])
    out = capsys.readouterr().out
    assert out.count(name) == 2
