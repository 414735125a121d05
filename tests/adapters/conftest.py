"""Servers that answer with ridge regression, and data to ask about."""

import sys

import numpy as np
import pytest
from support.boxes import RIDGE_SERVER

MISBEHAVIOR = {
    "none": "pass",
    "crash": "print('out of\\nmemory', file=sys.stderr); sys.exit(3)",
    "die": "os.kill(os.getpid(), 9)",
    "hang": "time.sleep(600)",
    "garbage": "reply = 'step 5 of 10'",
    "list": "reply = '[1.0]'",
    "twice": "reply = reply + chr(10) + reply",
    "shape": "reply = json.dumps({'predictions': answers * 3})",
    "nan": "reply = json.dumps({'predictions': [float('nan')] * len(answers)})",
    "text": "reply = json.dumps({'predictions': ['1.0'] * len(answers)})",
    "error": "reply = json.dumps({'error': 'no\\nidea'})",
    "empty": "reply = '{}'",
    "endless": "sys.stdout.write('9' * 2**25)",
    "chatter": "sys.stderr.write('loading ' * 2**20)",
    "padded": "reply = reply + ' ' * 2**20",
}


@pytest.fixture
def server(tmp_path):
    """Return the command of a server that misbehaves at its fifth question."""

    def command(misbehavior: str = "none") -> list[str]:
        path = tmp_path / f"{misbehavior}.py"
        path.write_text(RIDGE_SERVER.replace("MISBEHAVIOR", MISBEHAVIOR[misbehavior]))
        return [sys.executable, str(path)]

    return command


@pytest.fixture
def data(rng) -> tuple[np.ndarray, np.ndarray]:
    """Four datasets of six examples in two dimensions."""
    return rng.standard_normal((4, 6, 2)), rng.standard_normal((4, 6))
