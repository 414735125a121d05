"""Compiling without optimizations, for programs that run for less time than that takes.

`jax_disable_most_optimizations` is public and saves a part of the time; XLA's older way
to emit loops saves most of the rest: without it, tests of the training loop, of the
predictors and of patching take 2.2, 2.1 and 1.6 times as much CPU time. XLA also takes
that option from XLA_FLAGS, which saves almost as much, but only once, when a process
starts, for all of its programs. Then tests marked `optimized`, most of them about
rounding, would not be compiled as a user's programs are.
JAX has no public setting that can be undone, so this file, and no other, replaces a
private function of JAX while a test runs.
"""

import os

import pytest
from jax._src import compiler

# For programs that tests start.
QUICKLY = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
}
# The first of several programs that compute the same compiles for all of them.
SHARED = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

_MORE = [
    ("xla_cpu_use_fusion_emitters", False),
    ("xla_cpu_parallel_codegen_split_count", 1),  # workers have one thread each
]
_options_of_users = compiler.get_compile_options


def emit_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let XLA emit loops in its older way, for what is compiled during one test."""
    monkeypatch.setattr(compiler, "get_compile_options", _quick_options)


def _quick_options(*args, **kwargs):
    options = _options_of_users(*args, **kwargs)
    options.env_option_overrides = [*options.env_option_overrides, *_MORE]
    return options
