"""What the figures of the experiments show: captions, and text in place of the image.

They hold for any budget, so they name no result: what was found stands in the record.
Reports, in HTML and Markdown, take them from here.
"""

from dataclasses import dataclass

BANDS = "Bands are 95 % intervals."


@dataclass(frozen=True)
class Caption:
    """How a figure is to be read, and what it is for readers who cannot see it."""

    text: str
    alt: str


CAPTIONS = {
    "figure_1": Caption(
        "How far the learner is from each of the paper's references after n examples: "
        "its predictions (SPD/d) and the weights that they imply (ILWD/d). 0 is the "
        "same function. Dashed lines without markers are risks, the distances to the "
        f"true labels. {BANDS}",
        "Two panels of lines against the number of examples: SPD/d and ILWD/d of the "
        "learner to the nine references of the paper.",
    ),
    "figure_1_wider": Caption(
        "The same distances to algorithms that the paper does not have: k steps of "
        "gradient descent at their best rate, Newton's iteration and conjugate "
        f"gradients, beside OLS and Ridge(0.1). {BANDS}",
        "Two panels of lines against the number of examples: SPD/d and ILWD/d of the "
        "learner to OLS, Ridge(0.1) and iterative algorithms.",
    ),
    "figure_2": Caption(
        "Each column is a learner that was trained with its own noise σ and prior τ, "
        "each row a ridge regression. Cells are MSPD/d; bright is near, relative to "
        "the nearest of the column. The Bayes predictor of each column is framed.",
        "Two heat maps of references against learners, one for few and one for many "
        "examples, with a frame around the Bayes predictor of each column.",
    ),
    "figure_3": Caption(
        "Distance to each of the paper's references, averaged over n < d, as the "
        "learner gets deeper (layers L) or wider (hidden size H). The background is "
        "the family of the nearest reference: green for gradient descent, orange for "
        f"ridge regression, blue for OLS. {BANDS}",
        "Panels of lines against depth and against hidden size, one row for each "
        "dimension: MSPD/d to the references of the paper, on a background that "
        "changes color with the nearest family.",
    ),
    "figure_3_wider": Caption(
        "The same with the wider reference set, on a logarithmic scale. The background "
        f"still shows the nearest of the paper's references. {BANDS}",
        "Panels of lines against depth and against hidden size: MSPD/d to OLS, two "
        "ridge regressions and iterative algorithms, on a logarithmic scale.",
    ),
    "figure_4_layers": Caption(
        "Error of probes for XᵀY and for w_OLS per layer, divided by the target's "
        "variance: 1 is no better than its mean. Dashed lines are the least errors in "
        f"the controls, dotted ones what probes read without the learner. {BANDS}",
        "One panel per target, lines against the layer: the error of each kind of "
        "probe, and horizontal lines for the controls and floors.",
    ),
    "figure_4_prefixes": Caption(
        "Error of probes after n examples, in the layer that is best on average, at "
        "every place that they read. Gray lines are controls; pink ones are floors, "
        "what probes compute without the learner.",
        "One panel per target, lines against the number of examples: the error of "
        "probes at each place, of controls and of floors.",
    ),
    "figure_4_attention": Caption(
        "Where probes of the best layer look, for every number of examples n: their "
        "attention to each position, divided by the largest for this n. Positions "
        "after the query are empty.",
        "One heat map per target: attention of the probe, positions against the "
        "number of examples.",
    ),
    "figure_5": Caption(
        "The same probes in networks that learn nothing in context: the control, "
        f"trained with one fixed w, and an untrained network. {BANDS}",
        "One panel per target, lines against the layer: the error of each kind of "
        "probe in each control.",
    ),
    "figure_6": Caption(
        "R² of a linear function of the query that is fitted to the predictions, and "
        "R² of the predictions as estimates of wᵀx′. A linear algorithm has 1 in the "
        f"first and about n/d in the second. {BANDS}",
        "Two panels of lines against the number of examples: three forms of R² of the "
        "linear fit, and R² against the true labels beside the line n/d.",
    ),
    "figure_7": Caption(
        "x² computed by a few hidden units through GeLU, tanh and ReLU, and the error "
        "on a logarithmic scale: the paper's formula, and more accurate variants.",
        "Three columns of two panels, one for each non-linearity: approximations of "
        "x² on [−0.1, 0.1], and their errors.",
    ),
    "figure_8": Caption(
        "The least hidden size, depth and number of heads with which a learner is "
        "nearer to OLS than to Ridge(0.1), against the dimension d.",
        "Three panels of lines against d: the hidden size, the depth and the number "
        "of heads that are needed.",
    ),
    "theorems": Caption(
        "Hidden size of the transformers of Theorems 1 and 2 against d: as printed in "
        "the paper, and as our compiler writes them.",
        "Four lines of hidden size against d: each theorem as printed and compiled.",
    ),
    "shifts_map": Caption(
        "Distance to OLS over the signal for every shift of the data (rows) and every "
        "run (columns), on average over all n: bright is near. Under the shift in "
        "brackets OLS is not the best predictor, and it decides nothing.",
        "A heat map of distances to OLS, shifts of the data against training runs.",
    ),
    "shifts": Caption(
        "The same after n examples, one panel per shift. Gray lines are the runs "
        f"without a shift; the dotted line is n = d. {BANDS}",
        "One panel per shift of the data, lines against the number of examples: the "
        "distance of each run to OLS, on a logarithmic scale.",
    ),
    "leaving": Caption(
        "Distances and loss while training continues from weights that were written "
        "by hand, in full, in part or not at all, for each algorithm.",
        "Two panels per algorithm, lines against training steps: distances to the "
        "construction, to OLS and to the Bayes predictor, and the loss.",
    ),
}


def caption_of(figure: str) -> Caption | None:
    """Return the caption of a figure by its name; names may have an ending.

    Example:
        >>> caption_of("figure_4_attention_mlp") is CAPTIONS["figure_4_attention"]
        True
    """
    fitting = [name for name in CAPTIONS if f"{figure}_".startswith(f"{name}_")]
    return CAPTIONS[max(fitting, key=len)] if fitting else None
