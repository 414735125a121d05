"""The documentation site, built once for all tests; its notebooks are run meanwhile."""

import fcntl
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.browser import browser as browser
from support.compiling import QUICKLY, SHARED
from support.pages import DOCS, ROOT

NEEDED = ("sphinx", "furo", "myst_nb", "bs4", "latex2mathml", "sphinx_copybutton")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by whichever worker comes first; warnings are errors."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing and os.environ.get("ALGOSCOPE_REQUIRE_BROWSER") != "1":
        pytest.skip(f"no {missing[0]} here: the extra `docs` builds the site")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    out, log = shared / "site", shared / "site.json"
    with open(shared / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q"]
            command += ["-d", str(shared / "doctrees"), str(DOCS), str(out)]
            path = os.pathsep.join(filter(None, [str(ROOT), os.getenv("PYTHONPATH")]))
            # What notebooks run takes less time than its optimization would.
            environment = os.environ | QUICKLY | SHARED | {"PYTHONPATH": path}
            run = subprocess.run(
                command, capture_output=True, text=True, env=environment
            )
            log.write_text(json.dumps([run.returncode, run.stdout + run.stderr]))
    status, said = json.loads(log.read_text())
    assert status == 0, said
    return out
