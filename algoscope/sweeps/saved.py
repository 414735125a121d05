"""The sweeps of a store: `STORE/sweeps/<id>.json`, a grid and how it is measured."""

from dataclasses import asdict, dataclass
from pathlib import Path

from algoscope.sweeps.grid import Grid
from algoscope.validation import InvalidTypeError, InvalidValueError, require_at_least

SWEEPS = "sweeps"
FORMAT = "algoscope sweep"


@dataclass(frozen=True)
class SavedSweep:
    """A grid that is trained in a store."""

    grid: Grid
    evaluation_datasets: int = 1000

    def __post_init__(self):
        require_at_least("evaluation_datasets", self.evaluation_datasets, 1)

    def save(self, store: Path) -> None:
        """Write the sweep into the store; the same grid replaces itself."""
        from algoscope.checkpoints import write_json

        path = store / SWEEPS / f"{self.grid.sweep_id}.json"
        write_json(path, {"format": FORMAT, **asdict(self)})

    @classmethod
    def load(cls, path: Path) -> "SavedSweep":
        """Read what `save` wrote."""
        from algoscope.checkpoints import DamagedFileError, read_json

        values = read_json(path)
        try:
            if values.pop("format") != FORMAT:
                raise KeyError("format")
            return cls(Grid.from_dict(values.pop("grid")), **values)
        except (KeyError, TypeError, InvalidTypeError, InvalidValueError) as error:
            problem = f"an error: {error}"
            raise DamagedFileError(str(path), "hold a saved sweep", problem) from error


def saved_sweeps(store: Path) -> dict[str, SavedSweep]:
    """Return the sweeps of a store by id; a store without any is refused."""
    paths = sorted((store / SWEEPS).glob("*.json"))
    if not paths:
        raise InvalidValueError("store", "hold a saved sweep", store)
    return {path.stem: SavedSweep.load(path) for path in paths}
