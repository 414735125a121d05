"""`python -m algoscope` is the same as `algoscope`."""

from algoscope.cli.__main__ import main

if __name__ == "__main__":
    main()
