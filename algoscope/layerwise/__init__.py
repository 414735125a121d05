"""Reading a learner layer by layer: what would it answer if it stopped here?"""

from algoscope.layerwise.layers import LayersConfig as LayersConfig
from algoscope.layerwise.layers import layers as layers
from algoscope.layerwise.read_outs import ReadOuts as ReadOuts
from algoscope.layerwise.read_outs import readouts as readouts
from algoscope.layerwise.result import LayersResult as LayersResult
