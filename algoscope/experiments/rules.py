"""The rules of verdicts in words, for reports; docs/verdicts.md explains them.

The programs that follow them are `judge` in the file of each figure.
"""

from dataclasses import dataclass

from algoscope.experiments.record import Verdict


@dataclass(frozen=True)
class Rule:
    """When a claim is called reproduced, and when partly."""

    figure: str  # the experiment that makes the claim
    starts: str  # how the name of the claim starts
    reproduced: str
    partly: str
    before: Verdict | None = None  # at the cpu budget, if earlier rules said otherwise
    why: str = ""  # it is not the same


RULES = (
    Rule(
        "fig1",
        "OLS fits best without noise",
        "OLS is significantly nearest over n < d and over n = 1–14, and SPD/d to it is "
        "significantly below 0.01 at all but at most two of these n",
        "OLS is nearest in one of the two ranges",
    ),
    Rule(
        "fig1",
        "minimum norm when under-determined",
        "OLS is significantly nearest over n < d, and no other reference is materially "
        "nearer at any n < d",
        "OLS is nearest on average over n < d",
    ),
    Rule(
        "fig1",
        "the order of the references",
        "over n = 1–14: OLS, Ridge(0.1), Ridge(0.5), then gradient descent and SGD, "
        "then kNN, each step significant",
        "OLS, Ridge(0.1) and Ridge(0.5) are the nearest three, in this order",
    ),
    Rule(
        "fig2",
        "the diagonal of figure 2",
        "every model has learned; in every column the Bayes predictor is nearest for n "
        "< d and for n ≥ 2d, significantly in at least one of the two",
        "it is nearest in at least one of the regions in more than half of the columns",
    ),
    Rule(
        "fig3",
        "GD → ridge → OLS with depth",
        "every model has learned; the nearest reference is one step of GD for L = 1, "
        "ridge regression for L = 2 and 4, and OLS from L = 8 on; significantly nearer "
        "than every reference of another family",
        "two or all three of these phases appear in this order, with models that have "
        "not learned left out",
        "partly",
        "a model with one layer counts as gradient descent only if it has learned what "
        "one step of it can, and none has",
    ),
    Rule(
        "fig3",
        "the same phases with hidden size",
        "all three phases appear in this order, each significant, at models that have "
        "learned",
        "two of them appear, in this order",
    ),
    Rule(
        "fig3",
        "H ≥ ",
        "ridge regression or OLS is significantly nearest from the paper's hidden size "
        "on, and at no narrower model",
        "this holds from another hidden size on",
        "reproduced",
        "the nearest reference has to be so significantly over both seeds, and at "
        "H = 16 they differ",
    ),
    Rule(
        "fig6",
        "gradual linearity",
        "for the pooled and for the median R² of the linear fit alike: it is "
        "significantly below 0.99 at half or more of the n < d, significantly smaller "
        "at n = 1 than at n = d, and falls significantly at no n < d",
        "both are significantly below 0.99 at some n < d and significantly smaller at "
        "n = 1 than at n = d; or one of the two meets the first rule",
        "partly",
        "pooled and median R² are above 0.99 at every n; the growth came from a mean "
        "over datasets, a few of them without signal",
    ),
    Rule(
        "fig8",
        "a single head suffices",
        "with one head, OLS is significantly nearer than Ridge(0.1) for every d",
        "for some d",
    ),
    Rule(
        "fig8",
        "required ",
        "the least size at which OLS is significantly nearer than Ridge(0.1) never "
        "falls as d grows, and is larger for the largest d than for the smallest",
        "this holds in one region only; or the size is the same for all d; or the "
        "largest size tried is not enough for some d",
    ),
    Rule(
        "fig4",
        "XᵀY before w",
        "with both kinds of probes, XᵀY is significantly earlier than w_OLS by two "
        "measures: the half-way layer and the best layer",
        "by both measures with one kind of probe",
    ),
    Rule(
        "fig4",
        "MLP probes beat linear ones",
        "for both targets the error of MLP probes is significantly lower, each kind in "
        "its best layer",
        "for one target",
    ),
    Rule(
        "fig4",
        "targets are encoded deep in the network",
        "both targets are encoded for n > d and over all n, and the best layer of each "
        "is in the second half of the network in every seed",
        "one target is, or both are encoded but not all best layers are in the second "
        "half",
        "reproduced",
        "a probe that knows only the other target does as well for n > d, and XᵀY is "
        "read best in the first half of the network",
    ),
    Rule(
        "fig4",
        "w is encoded",
        "w_OLS is encoded for n ≤ d and for n > d",
        "in one of the two regions",
    ),
    Rule(
        "fig4",
        "targets are read at yₙ and at the labels",
        "for both targets yₙ is significantly the best of the fixed places for n ≤ d, "
        "and the labels are for n > d",
        "one of these four parts holds",
    ),
    Rule(
        "fig5",
        "probes of ",
        "for both targets and both kinds of probes the error of the control is "
        "significantly higher, each model in its best layer",
        "in some of the four cases",
    ),
    Rule(
        "fig7",
        "products through ",
        "the largest error of the paper's formula for x² is below 5 % of the largest "
        "square",
        "it is below 25 %",
    ),
    Rule(
        "theorems",
        "Theorem ",
        "for the construction as printed and for the compiled one: the depth is the "
        "same for all d (as printed, it is the paper's number of layers), the width is "
        "a polynomial in d of at most the paper's degree, and errors are below 10⁻⁶",
        "for one of the two",
    ),
    Rule(
        "shifts",
        "the match with least squares has limits",
        "at least three runs trained on x ~ N(0, I) match in distribution; under some "
        "shift all of them match, and under some shift all of them break",
        "some run matches in distribution and breaks under some shift",
    ),
    Rule(
        "shifts",
        "behavior under a shift is a property of the run",
        "two runs trained on x ~ N(0, I) whose distances in distribution differ by "
        "significantly less than 0.002 differ under a shift by more than a factor of "
        "10",
        "by significantly more than a factor of 3",
    ),
    Rule(
        "shifts",
        "training on a broad law of x survives",
        "every run trained on the task `broad` has, under every shift, a distance "
        "significantly below 3 times its own in distribution",
        "this holds under more shifts than for any run trained on x ~ N(0, I)",
    ),
    Rule(
        "leaving",
        "training leaves the construction",
        "at the end of training it is nearer to the Bayes predictor than to the "
        "construction, and nearer to it than at the start",
        "one of the two holds",
    ),
    Rule(
        "leaving",
        "a construction is a head start",
        "after the same steps its loss is lower than that of weights that started at "
        "random",
        "never",
    ),
)


def rule_of(figure: str, claim: str) -> Rule | None:
    """Return the rule of a claim by its name, or None if there is none.

    Example:
        >>> rule_of("fig7", "products through tanh").partly
        'it is below 25 %'
    """
    found = (r for r in RULES if r.figure == figure and claim.startswith(r.starts))
    return next(found, None)
