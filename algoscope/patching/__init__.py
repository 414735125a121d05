"""Does a learner use what probes read in it? Three causal tests (beyond paper §5)."""

from algoscope.patching.ablations import Part as Part
from algoscope.patching.ablations import ablate as ablate
from algoscope.patching.ablations import parts_of as parts_of
from algoscope.patching.config import BUDGETS as BUDGETS
from algoscope.patching.config import PatchingConfig as PatchingConfig
from algoscope.patching.config import find_budget as find_budget
from algoscope.patching.patch import patch as patch
from algoscope.patching.result import PatchingResult as PatchingResult
