"""Reading intermediate quantities out of hidden states (paper §5, app. E)."""

from algoscope.probing.budgets import BUDGETS as BUDGETS
from algoscope.probing.budgets import ProbingConfig as ProbingConfig
from algoscope.probing.budgets import budget as budget
from algoscope.probing.controls import untrained as untrained
from algoscope.probing.cost import estimate_cost as estimate_cost
from algoscope.probing.probing import probe as probe
from algoscope.probing.result import Measurement as Measurement
from algoscope.probing.result import ProbingResult as ProbingResult
from algoscope.probing.targets import TARGETS as TARGETS
from algoscope.probing.targets import Target as Target
from algoscope.probing.targets import weights_of as weights_of
