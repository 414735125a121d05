"""One virtual device per core, for commands that divide their work over devices."""

from contextlib import suppress

from algoscope.machine import num_cores


def use_all_cores() -> None:
    """Make every core a device, unless JAX is running already with its own."""
    import jax

    with suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", num_cores())
