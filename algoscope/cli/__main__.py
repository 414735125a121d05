"""`python -m algoscope.cli` is the same as `algoscope`."""

from algoscope.cli.main import main

main()
