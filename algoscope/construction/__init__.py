"""Transformers written by hand (paper §3, app. A-C).

From the bottom up: approximations and products, the primitives and the paper's chains
that are made of them, and a compiler for learning algorithms with those that it ships.
"""

from algoscope.construction.algorithms import ALGORITHMS as ALGORITHMS
from algoscope.construction.building import Construction as Construction
from algoscope.construction.building import build as build
from algoscope.construction.building import load_construction as load_construction
from algoscope.construction.building import save_construction as save_construction
from algoscope.construction.compiler import Compiled as Compiled
from algoscope.construction.compiler import compile_program as compile_program
from algoscope.construction.events import Head as Head
from algoscope.construction.interpreter import interpret as interpret
from algoscope.construction.listing import listing as listing
from algoscope.construction.numerics import Numerics as Numerics
from algoscope.construction.numerics import numerics as numerics
from algoscope.construction.numerics import paper_numerics as paper_numerics
from algoscope.construction.program import Program as Program
from algoscope.construction.timesteps import PREVIOUS as PREVIOUS
from algoscope.construction.timesteps import SELF as SELF
from algoscope.construction.timesteps import Earlier as Earlier
from algoscope.construction.timesteps import Labels as Labels
from algoscope.construction.timesteps import Sets as Sets
from algoscope.construction.timesteps import Single as Single
from algoscope.construction.values import Value as Value
from algoscope.construction.values import constant as constant
from algoscope.construction.values import join as join
