"""Progress reaches the caller's callback, a terminal, a notebook, or plain lines."""

import io
import re
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

import pytest

from algoscope.foundation import progress as module
from algoscope.foundation.progress import Progress, Steps, shown, silent


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(module.time, "monotonic", fake)
    return fake


class Output(io.StringIO):
    """Standard error, which is a terminal or is not."""

    def __init__(self, terminal: bool):
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    @contextmanager
    def shows(self, progress: Progress | bool, **options) -> Iterator[Progress]:
        with redirect_stderr(self), shown(progress, **options) as report:
            yield report


@pytest.fixture(autouse=True)
def _outside_of_a_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)


@pytest.fixture
def plain() -> Output:
    return Output(terminal=False)


@pytest.fixture
def terminal(monkeypatch) -> Output:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Output(terminal=True)


class Shown:
    """What a cell of a notebook shows: one text for each display, as last updated."""

    def __init__(self):
        self.lines: list[str] = []
        self.updates = 0

    def display(self, line: str, display_id: bool) -> "Handle":
        assert display_id  # without it the line cannot be updated
        self.lines.append(line)
        return Handle(self, len(self.lines) - 1)


class Handle:
    def __init__(self, cell: Shown, place: int):
        self.cell, self.place = cell, place

    def update(self, line: str) -> None:
        self.cell.lines[self.place] = line
        self.cell.updates += 1


def fake_ipython(monkeypatch, config: dict) -> Shown:
    cell = Shown()
    shell = types.SimpleNamespace(config=config)
    package = types.ModuleType("IPython")
    monkeypatch.setattr(package, "get_ipython", lambda: shell, raising=False)
    display = types.ModuleType("IPython.display")
    monkeypatch.setattr(display, "HTML", str, raising=False)
    monkeypatch.setattr(display, "display", cell.display, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return cell


@pytest.fixture
def notebook(monkeypatch) -> Shown:
    return fake_ipython(monkeypatch, {"IPKernelApp": {}})


# Who is reported to.


def test_a_callback_receives_every_report_as_it_is(terminal, notebook):
    reports = []

    def callback(stage, done, total, note=""):
        reports.append((stage, done, total, note))

    with terminal.shows(callback) as report:
        assert report is callback
        report("a", 1, None)
        report("a", 2, 3, "loss 0.1")
    assert reports == [("a", 1, None, ""), ("a", 2, 3, "loss 0.1")]
    assert terminal.getvalue() == ""
    assert notebook.lines == []


@pytest.mark.parametrize("plainly", [True, False])
def test_false_shows_nothing_anywhere(terminal, notebook, plainly):
    with terminal.shows(False, plain=plainly) as report:
        report("a", 1, 2)
    assert terminal.getvalue() == ""
    assert notebook.lines == []


def test_true_shows_nothing_in_a_file_unless_lines_are_wanted(plain):
    with plain.shows(True) as report:
        assert report is silent
        report("a", 1, 2)
    assert plain.getvalue() == ""
    with plain.shows(True, plain=True) as report:
        report("a", 1, 2)
    assert plain.getvalue() == "a  1/2\n"


def test_true_shows_nothing_without_standard_error():
    with redirect_stderr(None), shown(True) as report:
        report("a", 1, 2)


@pytest.mark.parametrize("config", [{}, {"TerminalIPythonApp": {}}], ids=str)
def test_ipython_in_a_terminal_is_not_a_notebook(monkeypatch, plain, config):
    cell = fake_ipython(monkeypatch, config)
    with plain.shows(True, plain=True) as report:
        report("a", 1, 2)
    assert cell.lines == []
    assert plain.getvalue() == "a  1/2\n"


def test_callbacks_of_any_kind_are_progress():
    assert isinstance(silent, Progress)
    with shown(True) as report:
        assert isinstance(report, Progress)


def test_an_error_inside_leaves_the_terminal_as_it_was(terminal):
    def fail():
        with terminal.shows(True) as report:
            report("a", 1, 2)
            raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        fail()
    assert terminal.getvalue().count("\x1b[?25h") == 1  # the cursor is visible again


# Steps.


def test_steps_are_counted_and_reported():
    reports = []

    def callback(stage, done, total, note=""):
        reports.append((stage, done, total, note))

    steps = Steps(callback, "fitting", 5)
    steps.add()
    steps.add(3, "ridge")
    assert reports == [("fitting", 1, 5, ""), ("fitting", 4, 5, "ridge")]
    Steps(callback, "asking", None).add()
    assert reports[-1] == ("asking", 1, None, "")


# Plain lines.


def lines(plain: Output) -> list[str]:
    return plain.getvalue().splitlines()


def test_lines_are_the_first_a_timely_one_and_the_last(plain, clock):
    with plain.shows(True, plain=True) as report:
        for done in range(1, 101):
            report("training", done, 100)
            clock.now += 1
    assert lines(plain) == [
        "training  1/100",
        *(f"training  {1 + d}/100  left {99 - d} s" for d in range(10, 90, 10)),
        "training  91/100  left 9 s",
        "training  100/100",
    ]


def test_time_left_counts_from_the_first_report_of_a_resumed_stage(plain, clock):
    with plain.shows(True, plain=True) as report:
        report("training", 5000, 14000)
        clock.now += 100
        report("training", 6000, 14000, "loss 0.1")
    assert lines(plain) == [
        "training  5,000/14,000",
        "training  6,000/14,000  loss 0.1  left 13 min",
    ]


def test_without_a_total_a_line_counts_only(plain, clock):
    with plain.shows(True, plain=True) as report:
        report("asking", 1, None)
        clock.now += 20
        report("asking", 1234, None, "slow")
    assert lines(plain) == ["asking  1", "asking  1,234  slow"]


def test_a_stage_without_steps_is_a_line_of_its_own(plain, clock):
    with plain.shows(True, plain=True) as report:
        report("drawing figure 3", 0, None)
        report("writing", 0, None, "3 files")
    assert lines(plain) == ["drawing figure 3", "writing  3 files"]


def test_stages_have_a_pace_of_their_own(plain, clock):
    with plain.shows(True, plain=True) as report:
        report("a", 1, 9)
        report("b", 1, 9)
        clock.now += 5
        report("a", 2, 9)
        clock.now += 5
        report("b", 3, 9)
    assert lines(plain) == ["a  1/9", "b  1/9", "b  3/9  left 30 s"]


# A terminal.


def on_screen(terminal: Output) -> str:
    """Return what was written, without escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())


def test_a_terminal_shows_a_bar_per_stage(terminal):
    with terminal.shows(True) as report:
        report("probing", 1, 40)
        report("fitting", 3, 4, "loss 0.25")
        report("probing", 40, 40, "done")
    last = on_screen(terminal).replace("\r", "\n").rstrip().splitlines()[-2:]
    assert re.match(r"probing +━+ +40/40 +done", last[0])
    assert re.match(r"fitting +━.* 3/4 +loss 0.25", last[1])
    assert "left" in last[0]


def test_a_terminal_shows_an_unknown_total(terminal):
    with terminal.shows(True) as report:
        report("asking", 7, None)
    assert re.search(r"asking .* 7/\?", on_screen(terminal))


def test_a_terminal_shows_a_stage_without_steps_as_a_line(terminal):
    with terminal.shows(True) as report:
        report("drawing [bold]figure[/] 3", 0, None)
    assert "drawing [bold]figure[/] 3" in on_screen(terminal)
    assert "━" not in on_screen(terminal)


def test_names_are_not_read_as_markup_in_a_terminal(terminal):
    with terminal.shows(True) as report:
        report("asking [red]box[/red]", 1, 2, "[link=x]y[/link]")
    assert "asking [red]box[/red]" in on_screen(terminal)
    assert "[link=x]y[/link]" in on_screen(terminal)


# A notebook.


def test_a_notebook_shows_a_bar_per_stage_and_updates_it(notebook, clock):
    with shown(True) as report:
        for done in range(1, 5):
            report("probing", 1000 * done, 4000, "w")
            report("fitting", done, 8)
            clock.now += 1
    assert notebook.updates == 6
    assert notebook.lines == [
        '<div>probing <progress value="4000" max="4000"></progress> '
        "4,000 of 4,000 w</div>",
        '<div>fitting <progress value="4" max="8"></progress> 4 of 8 left 4 s</div>',
    ]


def test_a_notebook_is_not_flooded_but_shows_the_last_report(notebook, clock):
    with shown(True) as report:
        for done in range(1, 101):
            report("probing", done, 100)
            clock.now += 0.01
    assert notebook.updates == 5
    assert 'value="100"' in notebook.lines[0]


def test_a_notebook_shows_an_unknown_total_as_a_moving_bar(notebook, clock):
    with shown(True) as report:
        report("asking", 1234, None, "slow")
    assert notebook.lines == ["<div>asking <progress></progress> 1,234 slow</div>"]


def test_a_notebook_shows_a_stage_without_steps_without_a_bar(notebook, clock):
    with shown(True) as report:
        report("drawing", 0, None)
    assert notebook.lines == ["<div>drawing</div>"]


def test_a_notebook_escapes_names_and_notes(notebook, clock):
    with shown(True) as report:
        report("<script>alert(1)</script>", 1, 2, '<img src="x">')
    (line,) = notebook.lines
    assert "<script>" not in line
    assert "<img" not in line
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in line
    assert "&lt;img src=&quot;x&quot;&gt;" in line
