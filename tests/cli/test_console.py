"""Tables as a user reads them in the terminal, and as a log file gets them."""

import pytest

from algoscope.cli.console import print_table

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
