"""What questions to a lake have fetched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one question fetched, for EXPLAIN ANALYZE and `louver lake`."""

    table: str
    files_total: int
    files_kept: int
    paths: tuple[str, ...]
    fetched_bytes: int
    total_bytes: int
    false_positives: int | None = None

    def lines(self) -> list[str]:
        """For EXPLAIN ANALYZE."""
        vain = "" if self.false_positives is None else f", {self.false_positives} of them in vain"
        return [
            f"files    {self.table}: {self.files_kept} of {self.files_total} kept{vain}",
            f"fetched  {self.table}: {self.fetched_bytes:,} bytes; all its files have "
            f"{self.total_bytes:,} bytes",
        ]
