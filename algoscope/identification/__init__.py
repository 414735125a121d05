"""Which learning algorithm does a predictor run? (Paper §4, for any predictor.)"""

from algoscope.identification.identify import identify as identify
from algoscope.identification.result import Candidate as Candidate
from algoscope.identification.result import Identification as Identification
