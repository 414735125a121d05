"""What probing says about the claims of §5: layers, kinds of probes, controls.

Errors are relative to the target's variance and averaged over prefixes; intervals are
Student's over repeats, and differences are taken within a repeat, on equal datasets.
"""

import numpy as np
from jaxtyping import Float

from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.foundation.text import listed, with_interval
from algoscope.probing.result import Measurement, ProbingResult, interval
from algoscope.probing.targets import symbol

ACCURATE = 0.04  # where the paper's axis for w_OLS ends


def _best(found: Measurement) -> Float[np.ndarray, " repeats"]:
    """Return, for every repeat, the error in the layer that is best on average."""
    return found.samples()[:, found.best_layer()]


def shown(samples: Float[np.ndarray, " repeats"]) -> str:
    """Return the mean over repeats with its interval."""
    mean, low, high = interval(samples[:, None])
    return with_interval(float(mean[0]), float(low[0]), float(high[0]))


def _surely_positive(samples: Float[np.ndarray, " repeats"]) -> bool:
    return bool(interval(samples[:, None]).low[0] > 0)


def half_way(found: Measurement) -> int:
    """Return the first layer with half of the way from the input to the least error."""
    errors = found.per_layer().mean
    middle = (errors[0] + errors.min()) / 2
    return found.layers[int(np.argmax(errors <= middle))]


def verdict_of(holds: list[bool]) -> Verdict:
    """Return the verdict on a claim that has several parts."""
    if all(holds):
        return "reproduced"
    return "partly" if any(holds) else "not reproduced"


def sentences(result: ProbingResult) -> tuple[str, ...]:
    """Return the best layer and its error for every target and kind of probe."""
    depth = max(result.measurements[0].layers)
    said = []
    for target in result.targets:
        for kind in result.kinds:
            found = result.of(target, kind)
            layer = found.layers[found.best_layer()]
            said.append(
                f"{symbol(target)}, {kind} probes of {result.learner}: the best layer "
                f"is {layer} of {depth} with a relative error of "
                f"{shown(_best(found))}; half of the way from the input is done in "
                f"layer {half_way(found)} ({_sizes(result)})."
            )
    return tuple(said)


def _sizes(result: ProbingResult) -> str:
    return (
        f"{len(result.prefixes)} prefixes, {result.config['num_test']:,} held-out "
        f"datasets, {result.config['repeats']} repeats"
    )


def moment_before_weights(result: ProbingResult) -> Claim:
    """Judge the order in which the targets become readable."""
    holds, said = [], []
    for kind in result.kinds:
        first, second = result.of("moment", kind), result.of("w_ols", kind)
        halves = half_way(first), half_way(second)
        best = [each.layers[each.best_layer()] for each in (first, second)]
        holds += [halves[0] < halves[1], best[0] < best[1]]
        said.append(
            f"{kind} probes: half of the way in layers {halves[0]} and {halves[1]}, "
            f"best in layers {best[0]} and {best[1]}"
        )
    verdict = verdict_of(holds)
    return Claim(
        "XᵀY before w",
        "XᵀY becomes predictable relatively early, in layer 7 of 16, and w later, "
        "around layer 12 (§5, figure 4).",
        f"For XᵀY and w_OLS, {'; '.join(said)} ({_sizes(result)}).",
        verdict,
        "" if verdict == "reproduced" else "It is not earlier by every measure.",
    )


def nonlinear_is_better(result: ProbingResult) -> Claim:
    """Judge MLP probes against linear ones, each in its best layer."""
    holds, said = [], []
    for target in result.targets:
        linear, mlp = (_best(result.of(target, kind)) for kind in ("linear", "mlp"))
        holds.append(_surely_positive(linear - mlp))
        said.append(
            f"{symbol(target)}: linear {shown(linear)}, MLP {shown(mlp)}, difference "
            f"{shown(linear - mlp)}"
        )
    verdict = verdict_of(holds)
    return Claim(
        "MLP probes beat linear ones",
        "For both targets a 2-layer MLP probe outperforms a linear probe (§5).",
        f"Relative errors in the best layers: {'; '.join(said)} ({_sizes(result)}).",
        verdict,
        "" if verdict == "reproduced" else "Not surely for both targets.",
    )


def deep_not_input(result: ProbingResult) -> Claim:
    """Judge that targets are read deep in the network and not in its input."""
    holds, said = [], []
    for target in result.targets:
        found = result.of(target, "mlp")
        place = found.best_layer()
        halved = found.samples()[:, 0] / 2 - _best(found)
        layer, depth = found.layers[place], max(found.layers)
        holds.append(_surely_positive(halved) and layer >= depth / 2)
        said.append(
            f"{symbol(target)}: {shown(found.samples()[:, 0])} in the input, "
            f"{shown(_best(found))} in layer {layer} of {depth}"
        )
    verdict = verdict_of(holds)
    return Claim(
        "targets are encoded deep in the network",
        "Both targets are encoded deep in the network and not in its input, where "
        "probes fail; in print the best layers are 8 and 12 of 16 (§5, figure 4).",
        f"Relative errors of MLP probes: {'; '.join(said)} ({_sizes(result)}).",
        verdict,
        "" if verdict == "reproduced" else "Not for both targets.",
    )


def decoded_accurately(result: ProbingResult) -> Claim:
    """Judge the size of the errors; XᵀY is left out, whose unit in print is unclear."""
    found = result.of("w_ols", "mlp")
    errors = found.samples("error")[:, found.best_layer("error")]
    surely = bool(interval(errors[:, None]).high[0] < ACCURATE)
    return Claim(
        "w is decoded accurately",
        f"Errors of w_OLS are drawn on an axis that ends at {ACCURATE} (figure 4).",
        f"Squared error per dimension of MLP probes in the best layer: "
        f"{shown(errors)} ({_sizes(result)}).",
        "reproduced" if surely else "not reproduced",
        "" if surely else "Errors are larger than that.",
    )


def controls_are_worse(result: ProbingResult, control: str) -> Claim:
    """Judge the best probes of a control against the best of the learner."""
    holds, said = [], []
    for target in result.targets:
        for kind in result.kinds:
            own = _best(result.of(target, kind))
            other = _best(result.of(target, kind, control))
            holds.append(_surely_positive(other - own))
            said.append(
                f"{symbol(target)}, {kind}: {shown(other)} against {shown(own)}"
            )
    verdict = verdict_of(holds)
    return Claim(
        f"probes of {control} are worse",
        "Probes applied to models that were trained with a fixed w perform "
        "significantly worse (§5, app. E, figure 5).",
        f"Relative errors in the best layers, of {control} against {result.learner}: "
        f"{'; '.join(said)} ({_sizes(result)}).",
        verdict,
        ""
        if verdict == "reproduced"
        else f"Surely worse in {listed([sum(holds)])} of {len(holds)} cases.",
    )


def tables(result: ProbingResult, learner: str) -> tuple[Table, ...]:
    """Return the error per layer of one learner, a table for each target."""
    made = []
    for target in result.targets:
        rows = []
        found = {kind: result.of(target, kind, learner) for kind in result.kinds}
        for place, layer in enumerate(next(iter(found.values())).layers):
            cells = [shown(each.samples()[:, place]) for each in found.values()]
            rows.append((str(layer), *cells))
        title = f"{symbol(target)} in {learner}: relative error"
        made.append(Table(title, ("layer", *result.kinds), tuple(rows)))
    return tuple(made)


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
