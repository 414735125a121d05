"""How far apart two predictors are (paper §4.1), with intervals.

Functions here take arrays (predictions, weights, gradients), whoever made them; each
returns one number per dataset and prefix, and `summarize` averages over the datasets.
"""

from algoscope.metrics.intervals import Summary as Summary
from algoscope.metrics.intervals import bootstrap_interval as bootstrap_interval
from algoscope.metrics.intervals import summarize as summarize
from algoscope.metrics.predictions import error_similarity as error_similarity
from algoscope.metrics.predictions import label_scores as label_scores
from algoscope.metrics.predictions import mean_over_region as mean_over_region
from algoscope.metrics.predictions import (
    squared_prediction_difference as squared_prediction_difference,
)
from algoscope.metrics.vectors import cosine_similarity as cosine_similarity
from algoscope.metrics.vectors import squared_distance as squared_distance
from algoscope.metrics.weights import implied_weights as implied_weights
from algoscope.metrics.weights import linearity as linearity
