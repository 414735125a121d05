"""Reading intermediate quantities out of hidden states (paper §5, app. E)."""

from algoscope.probing.config import BUDGETS as BUDGETS
from algoscope.probing.config import ProbingConfig as ProbingConfig
from algoscope.probing.config import estimate_cost as estimate_cost
from algoscope.probing.config import find_budget as find_budget
from algoscope.probing.evidence import Evidence as Evidence
from algoscope.probing.floors import closed_form as closed_form
from algoscope.probing.measurement import Measurement as Measurement
from algoscope.probing.places import PLACES as PLACES
from algoscope.probing.probe import probe as probe
from algoscope.probing.result import ProbingResult as ProbingResult
from algoscope.probing.states import untrained as untrained
from algoscope.probing.targets import TARGETS as TARGETS
from algoscope.probing.targets import ProbeTarget as ProbeTarget
from algoscope.probing.targets import weights_of as weights_of
