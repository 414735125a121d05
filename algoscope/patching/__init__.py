"""Does a learner use what probes read? Three causal tests (beyond the paper's §5)."""

from algoscope.model.opened import Part as Part
from algoscope.patching.ablations import ablate as ablate
from algoscope.patching.ablations import parts_of as parts_of
from algoscope.patching.patch import BUDGETS as BUDGETS
from algoscope.patching.patch import PatchingConfig as PatchingConfig
from algoscope.patching.patch import find_budget as find_budget
from algoscope.patching.patch import patch as patch
from algoscope.patching.result import PatchingResult as PatchingResult
