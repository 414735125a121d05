"""What an identification found: data that is saved, loaded, tabulated and said."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from algoscope.checkpoints import DamagedFileError, read_json, write_json
from algoscope.strict_json import number

FORMAT = "algoscope identification"


@dataclass(frozen=True)
class Candidate:
    """One hypothesis, fitted, and how far it is from what was observed."""

    family: str
    name: str
    parameters: dict[str, Any]
    distance: float  # ρ of `fitting`, on datasets that were not fitted
    low: float  # 95 % bootstrap interval of the distance
    high: float
    regimes: dict[str, float]  # ρ per regime
    median_spd: dict[str, float]  # SPD/d per regime, the median over datasets


@dataclass(frozen=True)
class Regime:
    """The answer for one range of the number of examples."""

    name: str
    first: int
    last: int
    verdict: str
    nearest: str
    distance: float


@dataclass(frozen=True)
class Identification:
    """The ranked answer, with what it rests on."""

    target: str
    verdict: str
    parameters: dict[str, Any]
    parameter_ranges: dict[str, tuple[float, float]]
    confidence: float
    candidates: list[Candidate]
    regimes: list[Regime]
    domain: str
    threshold: float
    task: str
    dim: int
    num_examples: int
    num_datasets: int
    seed: int
    versions: dict[str, str]
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def nearest(self) -> Candidate:
        """The best candidate, whether it fits or not."""
        return self.candidates[0]

    @property
    def runner_up(self) -> Candidate:
        """The best candidate of another family."""
        family = self.nearest.family
        return next(c for c in self.candidates if c.family != family)

    @property
    def sentence(self) -> str:
        """The answer in words."""
        first, second = self.nearest, self.runner_up
        where = "on its task" if self.domain == "task" else "on all kinds of data"
        if self.verdict == "none":
            return (
                f"{self.target} runs none of these algorithms {where}. The nearest, "
                f"{first.name}, is at a distance of {first.distance:.2g}; at most "
                f"{self.threshold:g} would count as the same."
            )
        return (
            f"{self.target} runs {first.name} {where}: distance {first.distance:.2g} "
            f"(95 % {first.low:.2g}…{first.high:.2g}). The next family is "
            f"{second.name} at {second.distance:.2g}."
        )

    def save(self, path: Path) -> None:
        """Write the identification as JSON."""
        write_json(path, {"format": FORMAT, **asdict(self)})

    @classmethod
    def load(cls, path: Path) -> "Identification":
        """Read an identification that `save` wrote."""
        values = read_json(path)
        try:
            if values.pop("format") != FORMAT:
                raise KeyError("format")
            candidates = [_candidate(c) for c in values.pop("candidates")]
            regimes = [
                Regime(**r | {"distance": number(r["distance"])})
                for r in values.pop("regimes")
            ]
            ranges = {k: tuple(v) for k, v in values.pop("parameter_ranges").items()}
            return cls(
                candidates=candidates,
                regimes=regimes,
                parameter_ranges=ranges,
                **values,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DamagedFileError(
                str(path), "hold a saved identification", f"an error in {error}"
            ) from error


def _candidate(values: dict[str, Any]) -> Candidate:
    restored: dict[str, Any] = {
        name: number(values[name]) for name in ("distance", "low", "high")
    }
    for name in ("regimes", "median_spd"):
        restored[name] = {key: number(each) for key, each in values[name].items()}
    return Candidate(**values | restored)
