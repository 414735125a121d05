"""Whatever a file, a text or a command line holds: an answer, or one plain sentence.

`make fuzz` draws many more inputs than the fast tests do. What it finds is kept as a
line of `found.json`, and tried by every run of the suite.
"""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import pytest
from faults.damage import Edit, damage, edits_of
from faults.harmless import harmless
from faults.readers import READERS, Reader
from faults.words import LINE, LINES, TEXTS, Text, edited, lines_of, say, without_work
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algoscope.foundation.validation import InvalidTypeError, InvalidValueError

FOUND = json.loads(Path(__file__).with_name("found.json").read_text())
FEW = 10  # inputs of each kind in the fast tests, but of those that take long
FEWEST = 2
MANY = int(os.environ.get("FUZZ_INPUTS", "110000"))  # of all kinds, in the slow ones
SLOW = [pytest.mark.slow, pytest.mark.timeout(3600)]
READ = {reader.name: reader for reader in READERS}
PARSED = {text.name: text for text in TEXTS}
ALL = sum(each.share for each in (*READERS, *TEXTS)) + LINE * len(LINES)

fuzzing = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=False,
)


class Sample:
    """A good sample of what a reader reads, to be damaged and restored."""

    def __init__(self, reader: Reader, place: Path):
        self.reader, self.place = reader, place / "sample"
        self.place.mkdir(parents=True)
        reader.write(self.place)
        every = sorted(path for path in self.place.rglob("*") if path.is_file())
        self.files = {
            str(path.relative_to(self.place)): path.read_bytes() for path in every
        }
        reader.read(self.place)
        self.restore()

    def restore(self) -> None:
        shutil.rmtree(self.place)
        for name, content in self.files.items():
            path = self.place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def edits(self) -> st.SearchStrategy[tuple[str, list[Edit]]]:
        every = [
            st.tuples(st.just(name), edits_of(name, content))
            for name, content in self.files.items()
            if not name.endswith((".md", ".svg", ".png"))
        ]
        return st.one_of(*every)

    def check(self, name: str, edits: list[Edit]) -> None:
        """Read the sample with one file damaged: it is read, or refused in words."""
        path = self.place / name
        path.unlink()
        try:
            with catch_warnings(action="ignore"):
                damage(path, self.files[name], edits)
            with harmless(self.place.parent):
                self.reader.read(self.place)
        except OSError as error:
            if (
                error.errno is None
            ):  # not of the system, which the command line explains
                raise
        except (InvalidValueError, InvalidTypeError):
            pass
        finally:
            self.restore()


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Return a function from the name of a reader to its sample, which is made once."""
    made: dict[str, Sample] = {}

    def sample(name: str) -> Sample:
        if name not in made:
            place = tmp_path_factory.mktemp("sample")
            made[name] = Sample(READ[name], place)
        return made[name]

    return sample


@pytest.fixture
def told(request: pytest.FixtureRequest, capsys) -> Callable[[int], None]:
    """Print how many inputs there were, if they were many."""

    def tell(tried: int) -> None:
        if tried > 2 * FEW:
            with capsys.disabled():
                print(f"\n{request.node.name}: {tried:,} inputs")

    return tell


def fuzz(inputs: st.SearchStrategy, check: Callable[[Any], None], count: int) -> int:
    """Check so many inputs; return how many there were."""
    tried = 0

    @settings(fuzzing, max_examples=count)
    @given(inputs)
    def check_one(drawn: Any) -> None:
        nonlocal tried
        tried += 1
        check(drawn)

    check_one()
    return tried


@pytest.fixture(params=["few", pytest.param("many", marks=SLOW)])
def count(request: pytest.FixtureRequest) -> Callable[[float], int]:
    """Return a function from the share of a kind to how many inputs are drawn."""

    def number(share: float) -> int:
        if request.param == "few":
            return FEWEST if share < 0.1 else FEW
        return round(MANY * share / ALL)

    return number


@pytest.mark.parametrize("name", READ)
def test_a_damaged_file_is_read_or_refused_in_words(samples, name, count, told):
    sample = samples(name)
    told(
        fuzz(
            sample.edits(),
            lambda drawn: sample.check(*drawn),
            count(sample.reader.share),
        )
    )


def check_text(text: Text, typed: str, place: Path) -> None:
    """A text means something, or is refused in words."""
    with harmless(place), suppress(InvalidValueError, InvalidTypeError):
        text.parse(typed)


@pytest.mark.parametrize("name", PARSED)
def test_a_text_means_something_or_is_refused_in_words(
    name, count, told, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    text = PARSED[name]
    inputs = edited(text.examples)
    number = count(text.share)
    told(fuzz(inputs, lambda typed: check_text(text, typed, tmp_path), number))


def check_line(words: list[str], place: Path) -> None:
    """A command line is understood up to its work, or refused in one visible line."""
    with harmless(place):
        status, out, err = say(words, str(place / "a" / "b"))
    assert status in (0, 1, 2, 130), (status, err)
    assert "This is an error of algoscope" not in err, err
    assert "Traceback" not in err or "--debug" in words, err
    shown = (out + err).replace("\n", "")
    assert shown.isprintable(), ascii(shown)
    complaints = [line for line in err.splitlines() if line.startswith("algoscope: ")]
    assert len(complaints) == (status != 0), err
    assert all(len(line) <= 600 for line in complaints)


@pytest.mark.parametrize("command", LINES)
def test_a_command_line_is_understood_or_refused_in_one_line(
    command, count, told, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    with without_work():
        inputs, number = lines_of(command), count(LINE)
        told(fuzz(inputs, lambda words: check_line(words, tmp_path), number))


@pytest.mark.parametrize("case", FOUND["files"], ids=lambda case: case["reader"])
def test_what_was_found_in_files_stays_repaired(samples, case: dict[str, Any]):
    samples(case["reader"]).check(case["file"], case["edits"])


@pytest.mark.parametrize("case", FOUND["texts"], ids=lambda case: case["text"])
def test_what_was_found_in_texts_stays_repaired(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    check_text(PARSED[case["text"]], case["typed"], tmp_path)


@pytest.mark.parametrize("words", FOUND["lines"], ids=lambda words: words[0])
def test_what_was_found_in_command_lines_stays_repaired(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    with without_work():
        check_line(words, tmp_path)
