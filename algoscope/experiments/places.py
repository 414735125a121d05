"""Where probes look: at labels, as the caption of figure 4 says, or elsewhere (§5).

Attention is summed over positions and averaged over prefixes; intervals are Student's
over repeats.
"""

import numpy as np
from jaxtyping import Float

from algoscope.experiments.readings import shown, verdict_of
from algoscope.experiments.record import Claim
from algoscope.probing.result import Measurement, ProbingResult, interval
from algoscope.probing.targets import symbol

MOST = 0.5  # "primarily"


def on_last_label(
    found: Measurement, prefixes: tuple[int, ...], dim: int
) -> Float[np.ndarray, " repeats"]:
    """Return, for every repeat, the attention on yₙ, averaged over n ≤ d."""
    alpha = found.attention[:, found.best_layer()]
    shares = [alpha[:, k, 2 * n - 1] for k, n in enumerate(prefixes) if n <= dim]
    return np.mean(shares, axis=0)


def on_labels(
    found: Measurement, prefixes: tuple[int, ...], dim: int
) -> Float[np.ndarray, " repeats"]:
    """Return, for every repeat, the attention on all labels, averaged over n > d."""
    alpha = found.attention[:, found.best_layer()]
    later = [k for k, n in enumerate(prefixes) if n > dim]
    return alpha[:, later, 1::2].sum(axis=-1).mean(axis=1)


def read_at_labels(result: ProbingResult) -> Claim:
    """Judge whether the best probes look at yₙ first, and later at all labels."""
    name = "targets are read at the labels"
    paper = (
        "The value of the target after n exemplars is decoded primarily from the "
        "representation of yₙ or, after n = d, uniformly from the labels (figure 4)."
    )
    if not min(result.prefixes) <= result.dim < max(result.prefixes):
        reason = "It takes prefixes on both sides of d."
        return Claim(name, paper, "", "not testable", reason)
    holds, said = [], []
    chance = np.mean([n / (2 * n + 1) for n in result.prefixes if n > result.dim])
    for target in result.targets:
        found = result.of(target, "mlp")
        first = on_last_label(found, result.prefixes, result.dim)
        later = on_labels(found, result.prefixes, result.dim)
        holds += [bool(interval(s[:, None]).low[0] > MOST) for s in (first, later)]
        said.append(
            f"{symbol(target)}: {shown(first)} on yₙ for n ≤ d, {shown(later)} on all "
            "labels for n > d"
        )
    verdict = verdict_of(holds)
    return Claim(
        name,
        paper,
        f"Attention of MLP probes in the best layers, {'; '.join(said)}, where "
        f"{chance:.2f} is what equal attention to all positions gives.",
        verdict,
        ""
        if verdict == "reproduced"
        else f"More than half surely in {sum(holds)} of {len(holds)} cases.",
    )
