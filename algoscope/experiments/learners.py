"""The learners of an experiment: models that come with algoscope, or runs of the store.

Runs whose models are kept beside the results of this or another experiment are taken
from there. A run whose model is nowhere, since it is large, is not trained again if all
that is asked of it was measured before.

A run that diverged is no learner; it is told in the record and left out of figures.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from algoscope.experiments.experiment import Place, Spent
from algoscope.experiments.models import restore_models
from algoscope.model.learner import InContextLearner
from algoscope.training.config import TrainingConfig

EVALUATION_DATASETS = 1000
MEASURED = "measured before: its model is not kept, so its time is not counted"


class NoLearnerError(RuntimeError):
    """None of the runs that an experiment needs ended with a model."""

    def __init__(self, runs: dict[str, str]):
        shown = "; ".join(f"{run}: {status}" for run, status in runs.items())
        super().__init__(
            f"No run ended with a model, so there is nothing to measure. {shown}"
        )


@dataclass(frozen=True)
class Trained:
    """A run that is finished."""

    config: TrainingConfig
    learner: InContextLearner


def train(
    place: Place,
    configs: Sequence[TrainingConfig],
    measured: Collection[TrainingConfig] = (),
) -> tuple[list[Trained], Spent]:
    """Train what is not trained yet; return the runs that ended well.

    Those that were `measured` and have no model are told in what was spent only.
    """
    from algoscope.training.sweeps import train_all

    distinct = list(dict.fromkeys(configs))
    results = place.directory.parent
    if kept := restore_models(place.store, [c.run_id for c in distinct], results):
        place.note(f"{kept} of {len(distinct)} models are kept in {results}")
    gone = {c for c in measured if not (place.store / c.run_id).exists()}
    known = Spent(runs={c.run_id: MEASURED for c in distinct if c in gone})
    distinct = [c for c in distinct if c not in gone]
    if not distinct:
        return [], known
    outcomes = train_all(
        distinct,
        place.store,
        engine=place.engine,
        workers=place.workers,
        evaluation_datasets=EVALUATION_DATASETS,
        progress=place.progress,
    )
    statuses = {
        each.config.run_id: f"{each.status}: {each.reason}"
        if each.reason
        else each.status
        for each in outcomes
    }
    finished = [
        Trained(each.config, InContextLearner.from_pretrained(str(each.directory)))
        for each in outcomes
        if each.status == "finished"
    ]
    return finished, known + Spent(sum(each.seconds for each in outcomes), statuses)


def model_or_run(
    place: Place, model: str, training: TrainingConfig | None
) -> tuple[InContextLearner, Spent]:
    """Return a model that comes with algoscope, or the run that takes its place."""
    if training is None:
        return InContextLearner.from_pretrained(model), Spent()
    trained, spent = train(place, [training])
    if not trained:
        raise NoLearnerError(spent.runs)
    return trained[0].learner, spent
