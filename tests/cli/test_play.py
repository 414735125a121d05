"""`algoscope play`, as a user types it."""

import webbrowser

from support.commands import rejected, run


def test_the_command_writes_a_page_and_opens_it(tmp_path, capsys, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    out = tmp_path / "page.html"
    status, printed, _ = run(capsys, "play", "linear-d1", "-o", str(out))
    assert status == 0
    size = f"{out.stat().st_size / 1e6:.1f} MB"
    assert printed == f"{out}: linear-d1, {size}. Open it in a browser.\n"
    assert opened == []
    run(capsys, "play", "linear-d1", "-o", str(out), "--open")
    assert opened == [out.as_uri()]


def test_bad_input_is_one_line_and_exit_status_2(tmp_path, capsys):
    assert rejected(capsys, "play", "linear-d1", "-o", "page.pdf") == (
        "`out` must end in .html, got 'page.pdf'."
    )
    said = rejected(capsys, "play", "nothing", "-o", str(tmp_path / "a.html"))
    assert said.startswith("`name` must be one of control-d4, linear-d1,")
    directory = tmp_path / "page.html"
    directory.mkdir()
    said = rejected(capsys, "play", "linear-d1", "-o", str(directory))
    assert said == (
        f"{directory} is a directory, not a regular file, and is left as it is. "
        "Choose another path."
    )
