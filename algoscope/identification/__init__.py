"""Which learning algorithm does a predictor run? (Paper §4, for any predictor.)"""

from algoscope.identification.identify import identify as identify
from algoscope.identification.result import Candidate as Candidate
from algoscope.identification.result import Identification as Identification
from algoscope.identification.result import Statement as Statement
from algoscope.identification.survival import Survival as Survival
from algoscope.identification.survival import survives as survives
