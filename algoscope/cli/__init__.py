"""`algoscope <command>`: one file per command, its options and what it does.

The options are a frozen dataclass, whose docstrings are the help. Nothing here imports
JAX before a command runs, so that help is instant.
"""
