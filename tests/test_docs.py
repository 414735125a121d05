"""The Python of the guides runs, block after block."""

import re
from pathlib import Path

import pytest
from support.torch_present import require

DOCS = Path(__file__).parent.parent / "docs"


PAGES = (
    "write_your_own_algorithm",
    "learning_rules",
    "constructions",
    "probing",
    "pytorch",
)
FEWER = {"steps=5000": "steps=30"}  # where training takes minutes
NEEDED = {"pytorch": ("torch", "transformers")}  # extras


@pytest.mark.parametrize("page", PAGES)
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in NEEDED.get(page, ()):
        require(name)
    path = DOCS / f"{page}.md"
    text = path.read_text()
    for shown, run in FEWER.items():
        text = text.replace(shown, run)
    pattern = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    fences = list(pattern.finditer(text))
    assert fences
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for fence in fences:
        line = text.count("\n", 0, fence.start(1))
        exec(compile("\n" * line + fence[1], path, "exec"), namespace)
