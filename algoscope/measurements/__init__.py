"""What a predictor does beyond one prediction: run it, and keep the arrays.

Each file asks one kind of question of any predictor, traced or black box, after every
number of examples n; `algoscope.metrics` turns two such arrays into a metric.
"""

from algoscope.measurements.gradients import influences as influences
from algoscope.measurements.gradients import sensitivities as sensitivities
from algoscope.measurements.implied import Implied as Implied
from algoscope.measurements.implied import implied as implied
from algoscope.measurements.panel import COSTLY as COSTLY
from algoscope.measurements.panel import LINEAR_FIT as LINEAR_FIT
from algoscope.measurements.panel import Trial as Trial
from algoscope.measurements.panel import costly_samples as costly_samples
from algoscope.measurements.panel import kinds_for as kinds_for
from algoscope.measurements.panel import measure as measure
from algoscope.measurements.symmetries import SYMMETRIES as SYMMETRIES
from algoscope.measurements.symmetries import symmetries as symmetries
