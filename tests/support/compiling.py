"""Compiling without optimizations, for programs that run for less time than that takes.

XLA's older way to emit loops compiles faster. JAX has no public setting of XLA's
options for all programs of a process that could also be taken back.
"""

import os

from jax._src import compiler

options_of_users = compiler.get_compile_options

# For programs that tests start.
QUICKLY = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} "
    "--xla_cpu_use_fusion_emitters=false",
}


def quick_options(*args, **kwargs):
    """Stand in for JAX's function of the same arguments."""
    options = options_of_users(*args, **kwargs)
    more = ("xla_cpu_use_fusion_emitters", False)
    options.env_option_overrides = [*options.env_option_overrides, more]
    return options
