"""Learners whose insides are known, with labels, to score interpretability methods.

`write_ground_truth` writes compiled learners and what is where in them; `score` asks
how often probing and patching find it, and do not find what is absent.
"""

from algoscope.ground_truth.collection import LabelledLearner as LabelledLearner
from algoscope.ground_truth.collection import write_ground_truth as write_ground_truth
from algoscope.ground_truth.findings import GroundTruthScores as GroundTruthScores
from algoscope.ground_truth.score import score as score
