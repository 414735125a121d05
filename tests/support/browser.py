"""Chromium without a window, driven over the pipe of its DevTools protocol.

Only what a test of a page needs: open a file, see what it requests and logs, evaluate
an expression, print.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # root has none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
# Chromium reads commands from descriptor 3 and writes answers to descriptor 4. Placing
# them between fork and exec is not safe in a process with JAX's threads.
LAUNCHER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execvp(sys.argv[3], sys.argv[3:])"
)
TIMEOUT = 60.0  # seconds for one answer


def find_browser() -> str:
    """Return the browser, or skip the test; where one is required, fail instead."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    reason = "no Chromium here: install chromium to check the report in a browser"
    if os.environ.get("ALGOSCOPE_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


class Browser:
    """A Chromium process with an empty profile, which talks to nobody else."""

    def __init__(self, profile: Path):
        ours, theirs = [], []
        for place in (0, 1):
            ends = list(os.pipe())
            theirs.append(fcntl.fcntl(ends[place], fcntl.F_DUPFD, 10))  # not 3 or 4
            os.close(ends[place])
            ours.append(ends[1 - place])
        self.write, self.read = ours
        words = [sys.executable, "-c", LAUNCHER, *map(str, theirs), find_browser()]
        self.process = subprocess.Popen(
            [*words, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for descriptor in theirs:
            os.close(descriptor)
        self.buffer, self.count = b"", 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result; events on the way are kept."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        message |= {"sessionId": session} if session else {}
        os.write(self.write, json.dumps(message).encode() + b"\0")
        answer = self.wait_for(lambda each: each.get("id") == self.count)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def wait_for(self, wanted: Any) -> dict[str, Any]:
        """Return the next message that is wanted."""
        end = time.monotonic() + TIMEOUT
        while True:
            while b"\0" not in self.buffer:
                left = max(0.0, end - time.monotonic())
                ready, _, _ = select.select([self.read], [], [], left)
                assert ready, "Chromium does not answer"
                content = os.read(self.read, 1 << 20)
                assert content, "Chromium has ended"
                self.buffer += content
            line, self.buffer = self.buffer.split(b"\0", 1)
            message = json.loads(line)
            if "method" in message:
                self.events.append(message)
            if wanted(message):
                return message

    def close(self) -> None:
        """End the process and its children."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        finally:
            self.process.wait()
            os.close(self.write)
            os.close(self.read)


class Page:
    """A file, opened, and everything that it asked for and complained about."""

    def __init__(self, browser: Browser, path: Path, *, width: int, dark: bool = False):
        self.browser = browser
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.show(dark=dark)
        self.call("Page.navigate", url=path.as_uri())
        browser.wait_for(lambda each: each.get("method") == "Page.loadEventFired")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command about this page."""
        return self.browser.call(method, self.session, **parameters)

    def show(self, *, dark: bool = False, media: str = "screen") -> None:
        """Show the page in the dark, or as it is printed."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def _seen(self, method: str) -> list[dict[str, Any]]:
        events = self.browser.events
        return [each["params"] for each in events if each["method"] == method]

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for, in order."""
        return [
            each["request"]["url"] for each in self._seen("Network.requestWillBeSent")
        ]

    @property
    def complaints(self) -> list[str]:
        """What was logged: by the browser, by the page, and by what it threw."""
        logged = [each["entry"]["text"] for each in self._seen("Log.entryAdded")]
        said = [str(each["args"]) for each in self._seen("Runtime.consoleAPICalled")]
        thrown = [
            each["exceptionDetails"]["text"]
            for each in self._seen("Runtime.exceptionThrown")
        ]
        return [*logged, *said, *thrown]

    def pdf(self) -> bytes:
        """Print the page."""
        answer = self.call(
            "Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69
        )
        return base64.b64decode(answer["data"])
