"""Transformers written by hand (paper §3, app. A-C).

`language` defines programs, in which learning algorithms are written; `compiler` turns
programs into weights; `algorithms` are the programs that come with algoscope; `paper`
has the primitives and chains of the paper's own proofs. `build` makes a learner of an
algorithm, `trace` shows what it computes.
"""

from algoscope.construction.algorithms import ALGORITHMS as ALGORITHMS
from algoscope.construction.build import Construction as Construction
from algoscope.construction.build import WrittenLearner as WrittenLearner
from algoscope.construction.build import build as build
from algoscope.construction.build import load_construction as load_construction
from algoscope.construction.build import save_construction as save_construction
from algoscope.construction.compiler.compile import Compiled as Compiled
from algoscope.construction.compiler.compile import compile_program as compile_program
from algoscope.construction.compiler.numerics import Numerics as Numerics
from algoscope.construction.compiler.numerics import numerics as numerics
from algoscope.construction.compiler.numerics import paper_numerics as paper_numerics
from algoscope.construction.language.functions import above as above
from algoscope.construction.language.functions import absolute as absolute
from algoscope.construction.language.functions import exp as exp
from algoscope.construction.language.functions import maximum as maximum
from algoscope.construction.language.functions import minimum as minimum
from algoscope.construction.language.functions import norm as norm
from algoscope.construction.language.functions import reciprocal as reciprocal
from algoscope.construction.language.functions import relu as relu
from algoscope.construction.language.functions import sigmoid as sigmoid
from algoscope.construction.language.functions import sign as sign
from algoscope.construction.language.functions import tanh as tanh
from algoscope.construction.language.functions import where as where
from algoscope.construction.language.interpreter import interpret as interpret
from algoscope.construction.language.matrices import Matrix as Matrix
from algoscope.construction.language.matrices import moments as moments
from algoscope.construction.language.matrices import outer as outer
from algoscope.construction.language.program import Program as Program
from algoscope.construction.language.rules import LearningRule as LearningRule
from algoscope.construction.language.storage import load_program as load_program
from algoscope.construction.language.storage import save_program as save_program
from algoscope.construction.language.timesteps import PREVIOUS as PREVIOUS
from algoscope.construction.language.timesteps import SELF as SELF
from algoscope.construction.language.timesteps import Earlier as Earlier
from algoscope.construction.language.timesteps import Labels as Labels
from algoscope.construction.language.timesteps import Sets as Sets
from algoscope.construction.language.timesteps import Single as Single
from algoscope.construction.language.values import Head as Head
from algoscope.construction.language.values import Value as Value
from algoscope.construction.language.values import constant as constant
from algoscope.construction.language.values import join as join
from algoscope.construction.written import compile as compile
from algoscope.construction.written import learning_rule as learning_rule
