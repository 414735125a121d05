"""A few labelled learners, written once for all tests."""

from pathlib import Path

import pytest

from algoscope.ground_truth import LabelledLearner, write_ground_truth

NAMES = ("sgd-d2-n4", "kaczmarz-d2-n4-rotated", "gd-d2-n4")


@pytest.fixture(scope="session")
def written(tmp_path_factory) -> Path:
    """Return the directory of three learners: plain, rotated, with a division."""
    out = tmp_path_factory.mktemp("truth")
    assert write_ground_truth(out, only=NAMES, progress=False) == [
        "sgd-d2-n4",
        "gd-d2-n4",
        "kaczmarz-d2-n4-rotated",
    ]
    return out


@pytest.fixture(scope="session")
def plain(written: Path) -> LabelledLearner:
    """Return compiled SGD."""
    return LabelledLearner.load(written / "sgd-d2-n4")


@pytest.fixture(scope="session", params=NAMES)
def labelled(request, written: Path) -> LabelledLearner:
    """Return each of them."""
    return LabelledLearner.load(written / request.param)
