"""The Python of the guides runs, block after block."""

import re
from pathlib import Path

import pytest
from support.torch_present import require

DOCS = Path(__file__).parent.parent / "docs"


PAGES = (
    "start",
    "train",
    "write_your_own_algorithm",
    "learning_rules",
    "constructions",
    "ground_truth",
    "probing",
    "pytorch",
    "playground",
)
FEWER = {  # steps of training, weights, datasets, and probes
    "steps=5000": "steps=30",
    "range(2000)": "range(3)",
    "width=64, layers=4, heads=4": "width=16, layers=2, heads=2",
    "asc.identify(mine)": "asc.identify(mine, num_datasets=32)",
    "[mine.shuffled()])": "[mine.shuffled()], places=['query'])",
}
NEEDED = {"pytorch": ("torch", "transformers")}  # extras


@pytest.mark.parametrize("page", PAGES)
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in NEEDED.get(page, ()):
        require(name)
    monkeypatch.chdir(tmp_path)
    run_blocks(page, "python")


def test_a_prior_fitted_network_of_the_package_pfns_is_compared(capsys):
    pytest.importorskip("pfns", reason="no pfns here: it pins the tools of tests")
    run_blocks("pytorch", "python pfns")
    assert capsys.readouterr().out.splitlines()[-1].startswith("pfn behaves most like")


def run_blocks(page: str, kind: str) -> None:
    """Run all blocks of one kind of a page, in their order, in one namespace."""
    path = DOCS / f"{page}.md"
    text = path.read_text()
    for shown, run in FEWER.items():
        text = text.replace(shown, run)
    pattern = re.compile(rf"^```{kind}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    fences = list(pattern.finditer(text))
    assert fences
    namespace = {"__name__": "__main__"}
    for fence in fences:
        line = text.count("\n", 0, fence.start(1))
        exec(compile("\n" * line + fence[1], path, "exec"), namespace)
