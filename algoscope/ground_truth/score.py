"""`score`: our probes and patching, asked about learners whose insides are known."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax

from algoscope.foundation import provenance
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

    num_training: int = 2048  # on which probes are fitted
    num_test: int = 512
    num_pairs: int = 4  # of datasets that swap states
    num_edits: int = 64  # whose states are edited
    mlp_steps: int = 1000  # of Adam, that an MLP probe is trained for


BUDGETS = {"smoke": ScoringConfig(128, 64, 2, 16, 50), "cpu": ScoringConfig()}


def score(
    learners: Sequence[Path | str],
    budget: str | ScoringConfig = "smoke",
    *,
    progress: Progress | bool = True,
) -> GroundTruthScores:
    """Ask linear and MLP probes, swaps, edits and ablations about labelled learners.

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
    start = time.perf_counter()
    findings: list[Finding] = []
    with shown(progress) as report, jax.enable_x64(True):
        steps = Steps(report, "scoring", len(learners))
        for place in learners:
            findings += _findings(LabelledLearner.load(place), budget)
            steps.add()
    seconds = round(time.perf_counter() - start, 1)
    return GroundTruthScores(tuple(findings), THRESHOLDS, provenance(), seconds)


def _findings(labelled: LabelledLearner, config: ScoringConfig) -> Iterator[Finding]:
    sizes = (config.num_training, config.num_test, config.mlp_steps)
    yield from probe_states(labelled, *sizes)
    yield from swap_states(labelled, config.num_pairs)
    yield from edit_states(labelled, config.num_training, config.num_edits)
    yield from ablate_parts(labelled, config.num_edits)
