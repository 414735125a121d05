"""What commands say beside their results, on the standard error stream."""

import sys


def complain(text: object) -> None:
    """Say in one line, beside the results, what went wrong."""
    print(f"algoscope: {text}", file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Say what is about to happen."""
    print(text, file=sys.stderr, flush=True)
