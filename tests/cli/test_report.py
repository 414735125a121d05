"""`algoscope report`, as a user types it."""

import json

from support.commands import rejected, run
from support.results import save_record


def test_the_command_writes_a_page_and_prints_where(tmp_path, capsys):
    save_record(tmp_path / "fig1")
    out = tmp_path / "report.html"
    words = ["report", str(tmp_path / "fig1"), str(tmp_path), "-o", str(out)]
    words += ["--title", "Mine"]
    status, printed, _ = run(capsys, *words)
    assert status == 0
    assert printed == f"{out}: 1 result, 2 claims, 0.0 MB.\n"
    _, printed, _ = run(capsys, *words, "--json")
    size = out.stat().st_size
    written = {"out": str(out), "sections": 1, "claims": 2, "bytes": size}
    assert json.loads(printed) == written
    assert "<title>Mine</title>" in out.read_text()


def test_bad_input_is_one_line_and_exit_status_2(tmp_path, capsys):
    missing = tmp_path / "nowhere"
    page = str(tmp_path / "report.html")
    assert rejected(capsys, "report", str(missing), "-o", page).startswith(str(missing))
    save_record(tmp_path / "fig1")
    assert rejected(capsys, "report", str(tmp_path), "-o", "report.pdf") == (
        "`out` must end in .html or .md, got 'report.pdf'."
    )
