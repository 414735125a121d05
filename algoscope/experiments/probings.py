"""The probings of figures 4 and 5: which models, how they are measured, where saved.

Both figures come from one probing, saved beside figure 4: of the learner and of other
training seeds, each with a control model, which was trained where w is always 1, and an
untrained network:

    fig4/probing.json          the learner and its controls
    fig4/seed-1/probing.json   the second seed and its controls
    fig4/NAME/probing.json     other models, at fixed places only

All are measured on the same test datasets, so that their errors can be paired. Each
directory is measured once, so that a further seed or model costs only its own probing.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from algoscope.experiments.learners import Place, Spent, model_or_run, train_runs
from algoscope.experiments.record import Difference, Table
from algoscope.foundation import provenance
from algoscope.foundation.cache import Cache
from algoscope.foundation.text import listed, with_interval
from algoscope.model.learner import InContextLearner
from algoscope.probing import (
    ProbingConfig,
    ProbingResult,
    estimate_cost,
    probe,
    untrained,
)
from algoscope.probing.evidence import Evidence, Margin
from algoscope.probing.targets import symbol
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig
from algoscope.training.loop import initial_state

PROBED = "probing.json"
SEED = "seed-"  # and a number: the directory of another seed


@dataclass(frozen=True)
class ProbedModels:
    """The models of figures 4 and 5, and how they are probed."""

    probing: ProbingConfig
    model: str = "linear-d4"
    control: str = "control-d4"
    training: TrainingConfig | None = None  # to train instead of taking the models
    seeds: tuple[tuple[TrainingConfig, TrainingConfig], ...] = ()  # learner, control
    others: tuple[tuple[str, TrainingConfig], ...] = ()  # by name
    targets: tuple[str, ...] = ("moment", "w_ols")

    @property
    def fixed(self) -> ProbingConfig:
        """How other models are probed: at fixed places, without learned attention."""
        return self.probing.at(("labels", "last_label", "query"))


def _control_run(config: ProbedModels) -> TrainingConfig | None:
    return replace(config.training, task="control") if config.training else None


def _runs(config: ProbedModels) -> list[TrainingConfig]:
    """Return the runs of other seeds and other models."""
    seeds = [run for pair in config.seeds for run in pair]
    return seeds + [run for _, run in config.others]


def trainings(config: ProbedModels) -> list[TrainingConfig]:
    """Return all runs that are to be trained."""
    first = [run for run in (config.training, _control_run(config)) if run is not None]
    return first + _runs(config)


def measuring(config: ProbedModels) -> float:
    """Return the seconds that probing takes."""
    if config.training is None:
        like = InContextLearner.from_pretrained(config.model)
    else:
        like = _blank(config.training)
    sizes = (like.dim,) * len(config.targets)

    def seconds(learner: InContextLearner, probing: ProbingConfig) -> float:
        return estimate_cost(learner, probing, target_sizes=sizes).seconds

    count = 1 + len(config.seeds)  # of learners and of controls; one is untrained
    total = count * seconds(like, config.probing)
    total += (count + 1) * seconds(like, config.probing.for_controls)
    others = (seconds(_blank(run), config.fixed) for _, run in config.others)
    return total + sum(others)


def _blank(run: TrainingConfig) -> InContextLearner:
    return InContextLearner(initial_state(run).transformer)


def measure(config: ProbedModels, place: Place) -> Spent:
    """Probe all learners and their controls on the same datasets."""
    learner, spent = model_or_run(place, config.model, config.training)
    control, more = model_or_run(place, config.control, _control_run(config))
    trained, last = train_runs(place, _runs(config)) if _runs(config) else ([], Spent())
    found = {each.config: each.learner for each in trained}
    learner, control = (
        _named(each, name)
        for each, name in ((learner, config.model), (control, config.control))
    )
    nothing = untrained(learner)
    groups = [_Group("", learner, (control, nothing), config.probing)]
    for index, pair in enumerate(config.seeds, 1):
        if all(run in found for run in pair):
            names = [f"{each.name}, seed {index}" for each in (learner, control)]
            own, other = (_named(found[r], n) for r, n in zip(pair, names, strict=True))
            group = _Group(f"{SEED}{index}", own, (other, nothing), config.probing)
            groups.append(group)
    for name, run in config.others:
        if run in found:
            other = _named(found[run], f"{learner.name}, {name}")
            groups.append(_Group(name, other, (), config.fixed))
    seconds = sum(_probe_once(group, config.targets, place) for group in groups)
    return spent + more + last + Spent(seconds)


@dataclass(frozen=True)
class _Group:
    """A learner and its controls, which are probed and saved together."""

    name: str  # of their directory
    learner: InContextLearner
    controls: tuple[InContextLearner, ...]
    probing: ProbingConfig


def _probe_once(group: _Group, targets: tuple[str, ...], place: Place) -> float:
    """Probe a group unless it was probed before; return the seconds that it took."""
    directory = _probing_directory(place.directory)
    learners = group.learner, *group.controls

    def save() -> None:
        probe(
            group.learner,
            LinearRegression(group.learner.dim),
            group.probing,
            targets=targets,
            controls=group.controls,
            directory=directory / "chunks",
            progress=place.progress,
        ).save(directory / group.name)

    identity: dict[str, Any] = {
        "probing": group.probing.as_dict(),
        "targets": targets,
        "learners": [each.digest for each in learners],
        "versions": provenance(),
    }
    place.note(f"probing {listed([each.name for each in learners])}")
    return Cache(directory / group.name).file(PROBED, identity, save)


def _named(learner: InContextLearner, name: str) -> InContextLearner:
    return InContextLearner(learner.transformer, name, task=learner.task)


def _probing_directory(directory: Path) -> Path:
    """Return where the probing of both figures is saved."""
    return directory.parent / "fig4"


def load_probing(directory: Path) -> ProbingResult:
    """Read the probing of the first seed; `directory` is that of either figure."""
    return ProbingResult.load(_probing_directory(directory))


def load_evidence(directory: Path) -> Evidence:
    """Read the probing of all seeds."""
    places = sorted(_probing_directory(directory).glob(f"{SEED}*/{PROBED}"))
    seeds = [ProbingResult.load(place.parent) for place in places]
    return Evidence((load_probing(directory), *seeds))


def load_others(directory: Path) -> list[ProbingResult]:
    """Read the probings of models that decide no verdict."""
    places = sorted(_probing_directory(directory).glob(f"*/{PROBED}"))
    names = [place.parent for place in places if not place.parent.name.startswith(SEED)]
    return [ProbingResult.load(place) for place in names]


def in_text(margin: Margin) -> str:
    """Return a mean with its interval."""
    return with_interval(margin.mean, margin.low, margin.high)


def weakest(margins: list[Margin]) -> Difference:
    """Return the margin of lowest lower bound, as the difference that decides."""
    return Difference(*min(margins, key=lambda margin: margin.low))


def sample_sizes(evidence: Evidence) -> str:
    """Return what every number rests on."""
    result = evidence.first
    return (
        f"n = {listed(result.prefixes)}; {result.config['num_test']:,} test datasets, "
        f"seeds: {evidence.seeds}"
    )


def layer_tables(result: ProbingResult, learner: str) -> tuple[Table, ...]:
    """Return the error per layer of one learner, a table for each target."""
    tables = []
    for target in result.targets:
        found = [result.of(target, kind, learner).per_layer() for kind in result.kinds]
        rows = tuple(
            (str(layer), *(with_interval(*(p[place] for p in each)) for each in found))
            for place, layer in enumerate(
                result.of(target, result.kinds[0], learner).layers
            )
        )
        title = f"{symbol(target)} in {learner}: relative error"
        tables.append(Table(title, ("layer", *result.kinds), rows))
    return tuple(tables)
