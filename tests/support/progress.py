"""A progress callback that remembers what it received."""


class Reports(list[tuple[str, int, int | None, str]]):
    """All reports, in order: stage, steps done, all steps, note."""

    def __call__(
        self, stage: str, done: int, total: int | None, note: str = ""
    ) -> None:
        self.append((stage, done, total, note))

    @property
    def counts(self) -> list[tuple[str, int, int | None]]:
        """All reports without their notes."""
        return [report[:3] for report in self]

    def of(self, stage: str) -> list[tuple[int, int | None]]:
        """Return the steps done and all steps of one stage, report by report."""
        return [(done, total) for name, done, total in self.counts if name == stage]
