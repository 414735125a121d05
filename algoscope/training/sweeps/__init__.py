"""Sweeps: many training runs in one store, on one machine or on many (paper app. D).

A `Grid` expands to configurations; `train_all` trains each of them exactly once, in
`STORE/<run id>/`, on an engine: inline, processes, ray or slurm. The status of a store
is read from its directories, so every engine and every other process sees the same.
Nothing here imports JAX before a run is trained or read.
"""

from algoscope.training.sweeps.engines import ENGINES as ENGINES
from algoscope.training.sweeps.engines import EngineOptions as EngineOptions
from algoscope.training.sweeps.grid import GRIDS as GRIDS
from algoscope.training.sweeps.grid import Grid as Grid
from algoscope.training.sweeps.grid import SavedSweep as SavedSweep
from algoscope.training.sweeps.store import Outcome as Outcome
from algoscope.training.sweeps.store import RunStatus as RunStatus
from algoscope.training.sweeps.store import SweepStatus as SweepStatus
from algoscope.training.sweeps.sweep import (
    SweepInterruptedError as SweepInterruptedError,
)
from algoscope.training.sweeps.sweep import train_all as train_all
