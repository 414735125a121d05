"""What tests of several experiments share."""

from pathlib import Path

import pytest
from support.experiments import small_learner

from algoscope.training import sweeps
from algoscope.training.config import TrainingConfig
from algoscope.training.sweeps.store import Outcome


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[TrainingConfig]:
    """Replace training by random weights; the list holds what was trained."""
    asked: list[TrainingConfig] = []

    def train_all(configs, store: Path, **choices) -> list[Outcome]:
        outcomes = []
        for config in configs:
            directory = store / config.run_id
            if not directory.exists():
                asked.append(config)
                made = small_learner(config.seed, config.dim, config.num_examples)
                made.save_pretrained(directory, card="", about={})
            outcomes.append(Outcome(config, directory, "finished", seconds=1.0))
        return outcomes

    monkeypatch.setattr(sweeps, "train_all", train_all)
    return asked
