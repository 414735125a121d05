"""Telling somebody how much of a measurement is done."""

from collections.abc import Callable

Progress = Callable[[int, int], None]  # is told the steps done, and all steps


class Steps:
    """Counts the steps that are done, and tells it if somebody wants to know."""

    def __init__(self, progress: Progress | None, total: int):
        self.progress, self.total, self.done = progress, total, 0

    def add(self, steps: int = 1) -> None:
        """Count some more."""
        self.done += steps
        if self.progress is not None:
            self.progress(self.done, self.total)
