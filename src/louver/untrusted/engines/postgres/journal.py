"""What a transaction has done on the server, to be done again behind another beginning.

Only what reads is left out. Repeating is right where every statement ends as it did before: the
same numbers of rows, and the same answers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from louver.untrusted.engines.postgres.pipeline import Reply, Step, Waiting

MOST_STEPS = 256
MOST_BYTES = 1 << 20


@dataclass(slots=True)
class Journal:
    """The statements of one transaction and how they ended; None where they cannot be repeated."""

    steps: list[tuple[Step, Reply | None]] | None = None
    _bytes: int = field(default=0)

    def begin(self) -> None:
        """A transaction begins whose statements are to be remembered."""
        self.steps, self._bytes = [], 0

    def forget(self) -> None:
        """What was done cannot be repeated, or ended."""
        self.steps = None

    def add(self, waiting: Sequence[Waiting], last: Sequence[tuple[Step, Reply]]) -> None:
        """Statements that have run: those that waited have no replies of their own."""
        if self.steps is None:
            return
        fresh: list[tuple[Step, Reply | None]] = [(w.step, None) for w in waiting if w.writes]
        fresh += last
        self._bytes += sum(map(_size, fresh))
        self.steps += fresh
        if len(self.steps) > MOST_STEPS or self._bytes > MOST_BYTES:
            self.forget()

    def undo_to(self, savepoint: str) -> None:
        """What came after a savepoint is undone; ``savepoint`` is the statement that set it."""
        if self.steps is not None:
            places = [at for at, ((text, _), _) in enumerate(self.steps) if text == savepoint]
            del self.steps[places[-1] + 1 :]

    def release(self, savepoints: Collection[str]) -> None:
        """Savepoints are gone: no one returns to them. What was done after them stays."""
        if self.steps is not None:
            self.steps = [step for step in self.steps if step[0][0] not in savepoints]


def is_same(before: Reply | None, now: Reply) -> bool:
    """Whether a statement ended as it did before."""
    if before is None:
        return True
    same = before[0] == now[0] and len(before[2]) == len(now[2])
    return same and all(a.equals(b) for a, b in zip(before[2], now[2], strict=True))


def _size(entry: tuple[Step, Reply | None]) -> int:
    (text, given), _ = entry
    return len(text) + sum(map(_bytes_of, given))


def _bytes_of(value: Any) -> int:
    parts = value if isinstance(value, tuple | list) else (value,)
    return sum(
        len(part) if isinstance(part, str | bytes) else int(getattr(part, "nbytes", 8))
        for part in parts
    )
