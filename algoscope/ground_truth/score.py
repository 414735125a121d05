"""`score`: our probes and patching, asked about learners whose insides are known."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from algoscope.foundation import provenance
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import digest_of_arrays
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import require_choice
from algoscope.ground_truth.causes import (
    ABLATION,
    EDIT,
    LIKELY,
    SWAP,
    ablate_parts,
    edit_states,
    swap_states,
)
from algoscope.ground_truth.collection import LabelledLearner
from algoscope.ground_truth.findings import Finding, GroundTruthScores
from algoscope.ground_truth.reading import LINEAR, MLP, probe_states

# Above which number a method counts as having found something; the first is the strict
# one. A probe says the explained share of the variance, a swap the share of the way, an
# edit the slope, an ablation the largest change over the spread of the answers.
THRESHOLDS: dict[str, tuple[float, ...]] = {
    LINEAR: (0.9999, 0.99, 0.9),
    MLP: (0.99, 0.9),
    SWAP: (0.5,),
    EDIT: (0.5,),
    LIKELY: (0.5,),
    ABLATION: (1e-6,),
}


@dataclass(frozen=True)
class ScoringConfig:
    """How many datasets each method gets."""

    num_training: int = 1024  # on which probes are fitted
    num_test: int = 256
    num_pairs: int = 2  # of datasets that swap states
    num_edits: int = 32  # whose states are edited
    mlp_steps: int = 500  # of Adam, that an MLP probe is trained for


BUDGETS = {"smoke": ScoringConfig(128, 64, 2, 16, 50), "cpu": ScoringConfig()}


def score(
    learners: Sequence[Path | str],
    budget: str | ScoringConfig = "smoke",
    *,
    progress: Progress | bool = True,
) -> GroundTruthScores:
    """Ask linear and MLP probes, swaps, edits and ablations about labelled learners.

    What is found about a learner is saved in its directory. A run that was stopped
    resumes with the next learner.

    Example:
        >>> import tempfile
        >>> from algoscope.ground_truth import write_ground_truth
        >>> out = Path(tempfile.mkdtemp())
        >>> (name,) = write_ground_truth(out, only=["gd-d2-n4"], progress=False)
        >>> found = score([out / name], progress=False)
        >>> sorted({each.method for each in found.findings})
        ['MLP probe', 'ablation', 'edit', 'likely edit', 'linear probe', 'swap']
    """
    if isinstance(budget, str):
        require_choice("budget", budget, BUDGETS)
        budget = BUDGETS[budget]
    found: list[GroundTruthScores] = []
    seconds = 0.0
    with shown(progress) as report, jax.enable_x64(True):
        steps = Steps(report, "scoring", len(learners))
        for place in map(Path, learners):
            labelled = LabelledLearner.load(place)
            seconds += Cache(place).file(
                GroundTruthScores.file,
                _identity(labelled, budget),
                partial(_score_one, labelled, budget, place),
            )
            found.append(GroundTruthScores.load(place))
            steps.add()
    findings = tuple(finding for each in found for finding in each.findings)
    return GroundTruthScores(findings, THRESHOLDS, provenance(), round(seconds, 1))


def _identity(labelled: LabelledLearner, config: ScoringConfig) -> dict[str, Any]:
    """Return all that decides what is found about a learner."""
    leaves = jax.tree.leaves(labelled.learner.transformer)
    arrays = {str(number): np.asarray(leaf) for number, leaf in enumerate(leaves)}
    return {
        "config": asdict(config),
        "weights": digest_of_arrays(arrays),
        "labels": digest_of_arrays(labelled.values),
        "versions": provenance(),
    }


def _score_one(labelled: LabelledLearner, config: ScoringConfig, place: Path) -> None:
    """Score one learner, and save what was found in its directory."""
    findings = tuple(_findings(labelled, config))
    GroundTruthScores(findings, THRESHOLDS, provenance(), 0.0).save(place)
    jax.clear_caches()  # every learner has its own programs, which fill the memory


def _findings(labelled: LabelledLearner, config: ScoringConfig) -> Iterator[Finding]:
    sizes = (config.num_training, config.num_test, config.mlp_steps)
    yield from probe_states(labelled, *sizes)
    yield from swap_states(labelled, config.num_pairs)
    yield from edit_states(labelled, config.num_training, config.num_edits)
    yield from ablate_parts(labelled, config.num_edits)
