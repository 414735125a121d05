"""`python -m algoscope.cli` is the same as `algoscope`.

Until the command line is ready to handle it, Ctrl-C ends the process at once.
"""

import os
import signal


def _leave(*_: object) -> None:
    os.write(2, b"algoscope: interrupted.\n")
    os._exit(130)


if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as in the background
    signal.signal(signal.SIGINT, _leave)

from algoscope.cli.main import main as main  # noqa: E402

if __name__ == "__main__":
    main()
