"""`python -m algoscope.cli` is the same as `algoscope`.

Until the command line is ready to handle it, Ctrl-C ends the process silently.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)

from algoscope.cli.main import main as main  # noqa: E402

if __name__ == "__main__":
    main()
