"""Figure 4: what probes read out of hidden states and in which layer, d = 4 (§5).

Figures 4 and 5 come from one probing: of the learner, of the control model, which was
trained where w is always 1, and of an untrained network. It is saved beside figure 4.
This file measures for both and judges the learner; `figure_5` judges the controls.

Errors are relative to the target's variance and averaged over prefixes. Intervals are
Student's over repeats; differences are taken within a repeat, on the same datasets.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import Place, Spent, model_or_run
from algoscope.experiments.record import Claim, Table
from algoscope.foundation import provenance
from algoscope.foundation.cache import Cache
from algoscope.foundation.plotting import FORMATS, save_figure
from algoscope.foundation.text import with_interval
from algoscope.model.learner import InContextLearner
from algoscope.probing import (
    Measurement,
    ProbingConfig,
    ProbingResult,
    estimate_cost,
    find_budget,
    probe,
    untrained,
)
from algoscope.probing.figures import attention_figure, layers_figure
from algoscope.probing.result import mean_with_interval
from algoscope.probing.targets import symbol
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.loop import initial_state

PROBED = "probing.json"
ACCURATE = 0.04  # where the paper's axis for w_OLS ends
MOST = 0.5  # of the attention: what the paper calls "primarily"

PerRepeat = Float[np.ndarray, " repeats"]


@dataclass(frozen=True)
class Figure4:
    """The sizes of figures 4 and 5."""

    probing: ProbingConfig
    model: str = "linear-d4"
    control: str = "control-d4"
    training: TrainingConfig | None = None  # to train instead of taking the models
    targets: tuple[str, ...] = ("moment", "w_ols")


def _control_run(config: Figure4) -> TrainingConfig | None:
    return replace(config.training, task="control") if config.training else None


def trainings(config: Figure4) -> list[TrainingConfig]:
    """Return the runs of the learner and the control, if they are to be trained."""
    return [run for run in (config.training, _control_run(config)) if run is not None]


def measuring(config: Figure4) -> float:
    """Return the seconds that probing takes: three learners of the same size."""
    if config.training is None:
        like = InContextLearner.from_pretrained(config.model)
    else:
        like = InContextLearner(initial_state(config.training).transformer)
    sizes = (like.dim,) * len(config.targets)
    return 3 * estimate_cost(like, config.probing, target_sizes=sizes).seconds


def measure(config: Figure4, place: Place) -> Spent:
    """Probe the learner and its controls on the same datasets."""
    learner, spent = model_or_run(place, config.model, config.training)
    control, more = model_or_run(place, config.control, _control_run(config))
    directory = _probing_directory(place.directory)

    def save() -> None:
        place.note(f"probing {learner.name}, {control.name} and an untrained network")
        probe(
            learner,
            LinearRegression(learner.dim),
            config.probing,
            targets=config.targets,
            controls=[control, untrained(learner)],
            directory=directory / "chunks",
            progress=place.progress,
        ).save(directory)

    identity: dict[str, Any] = {
        "probing": config.probing.as_dict(),
        "targets": config.targets,
        "learners": [each.digest for each in (learner, control)],
        "versions": provenance(),
    }
    return spent + more + Spent(Cache(directory).file(PROBED, identity, save))


def _probing_directory(directory: Path) -> Path:
    """Return where the probing of both figures is saved."""
    return directory.parent / "fig4"


def load_probing(directory: Path) -> ProbingResult:
    """Read the probing of both figures; `directory` is that of either."""
    return ProbingResult.load(_probing_directory(directory))


def judge(config: Figure4, directory: Path) -> Judgment:
    """Say in which layer, by which probes and at which positions targets are read."""
    found = load_probing(directory)
    claims = (
        moment_before_weights(found),
        nonlinear_is_better(found),
        deep_not_input(found),
        decoded_accurately(found),
        read_at_labels(found),
    )
    return Judgment(_sentences(found), layer_tables(found, found.learner), claims)


def best_errors(found: Measurement) -> PerRepeat:
    """Return, for every repeat, the error in the layer that is best on average."""
    return found.samples()[:, found.best_layer()]


def mean_text(samples: PerRepeat) -> str:
    """Return the mean over repeats with its interval."""
    mean, low, high = mean_with_interval(samples[:, None])
    return with_interval(float(mean[0]), float(low[0]), float(high[0]))


def is_above(samples: PerRepeat, bound: float = 0.0) -> bool:
    """Return whether the mean over repeats is significantly above a bound."""
    return bool(mean_with_interval(samples[:, None]).low[0] > bound)


def sample_sizes(result: ProbingResult) -> str:
    """Return what every number rests on."""
    return (
        f"{len(result.prefixes)} prefixes, {result.config['num_test']:,} held-out "
        f"datasets, {result.config['repeats']} repeats"
    )


def layer_tables(result: ProbingResult, learner: str) -> tuple[Table, ...]:
    """Return the error per layer of one learner, a table for each target."""
    tables = []
    for target in result.targets:
        found = [result.of(target, kind, learner) for kind in result.kinds]
        rows = tuple(
            (str(layer), *(mean_text(each.samples()[:, place]) for each in found))
            for place, layer in enumerate(found[0].layers)
        )
        title = f"{symbol(target)} in {learner}: relative error"
        tables.append(Table(title, ("layer", *result.kinds), rows))
    return tuple(tables)


def half_way(found: Measurement) -> int:
    """Return the first layer with half of the improvement over the input."""
    errors = found.per_layer().mean
    middle = (errors[0] + errors.min()) / 2
    return found.layers[int(np.argmax(errors <= middle))]


def _best_layer(found: Measurement) -> int:
    return found.layers[found.best_layer()]


def _sentences(result: ProbingResult) -> tuple[str, ...]:
    """Return the best layer and its error for every target and kind of probe."""
    measured = [result.of(t, kind) for t in result.targets for kind in result.kinds]
    return tuple(
        f"{symbol(each.target)}, {each.kind} probes of {result.learner}: the best "
        f"layer is {_best_layer(each)} of {max(each.layers)} with a relative error of "
        f"{mean_text(best_errors(each))}; half of the improvement over the input is "
        f"reached in layer {half_way(each)} ({sample_sizes(result)})."
        for each in measured
    )


def moment_before_weights(result: ProbingResult) -> Claim:
    """Judge the order in which the targets become readable."""
    holds, texts = [], []
    for kind in result.kinds:
        pair = result.of("moment", kind), result.of("w_ols", kind)
        halves, best = ([f(each) for each in pair] for f in (half_way, _best_layer))
        holds += [halves[0] < halves[1], best[0] < best[1]]
        texts.append(
            f"with {kind} probes, half of the improvement over the input is reached "
            f"in layers {halves[0]} and {halves[1]}, and the best layers are {best[0]} "
            f"and {best[1]}"
        )
    return Claim.of_parts(
        "XᵀY before w",
        "XᵀY becomes predictable relatively early, in layer 7 of 16, and w later, "
        "around layer 12 (§5, figure 4).",
        f"For XᵀY and w_OLS, {'; '.join(texts)} ({sample_sizes(result)}).",
        holds,
        "XᵀY is not earlier by every measure.",
    )


def nonlinear_is_better(result: ProbingResult) -> Claim:
    """Judge MLP probes against linear ones, each in its best layer."""
    holds, texts = [], []
    for target in result.targets:
        linear, mlp = (best_errors(result.of(target, k)) for k in ("linear", "mlp"))
        holds.append(is_above(linear - mlp))
        texts.append(
            f"{symbol(target)}: linear {mean_text(linear)}, MLP {mean_text(mlp)}, "
            f"difference {mean_text(linear - mlp)}"
        )
    return Claim.of_parts(
        "MLP probes beat linear ones",
        "For both targets a 2-layer MLP probe outperforms a linear probe (§5).",
        f"Relative errors in the best layers: {'; '.join(texts)} "
        f"({sample_sizes(result)}).",
        holds,
        "The difference is not significant for every target.",
    )


def deep_not_input(result: ProbingResult) -> Claim:
    """Judge that targets are read deep in the network and not in its input."""
    holds, texts = [], []
    for target in result.targets:
        found = result.of(target, "mlp")
        at_input, best = found.samples()[:, 0], best_errors(found)
        layer, depth = _best_layer(found), max(found.layers)
        holds.append(is_above(at_input / 2 - best) and layer >= depth / 2)
        texts.append(
            f"{symbol(target)}: {mean_text(at_input)} in the input, {mean_text(best)} "
            f"in layer {layer} of {depth}"
        )
    return Claim.of_parts(
        "targets are encoded deep in the network",
        "Both targets are encoded deep in the network and not in its input, where "
        "probes fail; in the paper the best layers are 8 and 12 of 16 (§5, figure 4).",
        f"Relative errors of MLP probes: {'; '.join(texts)} ({sample_sizes(result)}).",
        holds,
        "This does not hold for every target.",
    )


def decoded_accurately(result: ProbingResult) -> Claim:
    """Judge the size of the error of w_OLS; the paper's unit for XᵀY is unclear."""
    found = result.of("w_ols", "mlp")
    errors = found.samples("error")[:, found.best_layer("error")]
    return Claim.of_parts(
        "w is decoded accurately",
        f"Errors of w_OLS are drawn on an axis that ends at {ACCURATE} (figure 4).",
        f"Squared error per dimension of MLP probes in the best layer: "
        f"{mean_text(errors)} ({sample_sizes(result)}).",
        [is_above(ACCURATE - errors)],
        f"The 95 % interval of the error is not below {ACCURATE}.",
    )


def on_last_label(found: Measurement, prefixes: tuple[int, ...], dim: int) -> PerRepeat:
    """Return, for every repeat, the attention on yₙ, averaged over n ≤ d."""
    alpha = found.attention[:, found.best_layer()]
    shares = [alpha[:, k, 2 * n - 1] for k, n in enumerate(prefixes) if n <= dim]
    return np.mean(shares, axis=0)


def on_labels(found: Measurement, prefixes: tuple[int, ...], dim: int) -> PerRepeat:
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
    holds, texts = [], []
    chance = np.mean([n / (2 * n + 1) for n in result.prefixes if n > result.dim])
    for target in result.targets:
        found = result.of(target, "mlp")
        first = on_last_label(found, result.prefixes, result.dim)
        later = on_labels(found, result.prefixes, result.dim)
        holds += [is_above(first, MOST), is_above(later, MOST)]
        texts.append(
            f"{symbol(target)}: {mean_text(first)} on yₙ for n ≤ d, {mean_text(later)} "
            "on all labels for n > d"
        )
    return Claim.of_parts(
        name,
        paper,
        f"Attention of MLP probes in the best layers, {'; '.join(texts)}, where equal "
        f"attention to all positions would give {chance:.2f}.",
        holds,
        f"Significantly more than half in {sum(holds)} of {len(holds)} cases.",
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the error per layer, and the positions that each kind of probe looks at."""
    found = load_probing(directory)
    figures = {"figure_4_layers": layers_figure(found)}
    for kind in found.kinds:
        figures[f"figure_4_attention_{kind}"] = attention_figure(found, kind=kind)
    for name, figure in figures.items():
        for ending in FORMATS:
            save_figure(figure, directory / f"{name}{ending}")
    return tuple(figures)


PAPER = replace(preset("paper"), dim=4, num_examples=41)  # prefixes end at 40

EXPERIMENT = Experiment(
    name="fig4",
    title="What do hidden states encode, and in which layer?",
    budgets={
        "smoke": Figure4(find_budget("smoke")),
        "cpu": Figure4(find_budget("cpu")),
        "paper": Figure4(find_budget("paper"), training=PAPER),
    },
    trainings=trainings,
    measuring=measuring,
    measure=measure,
    judge=judge,
    draw=draw,
)
