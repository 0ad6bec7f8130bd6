"""Temporary tables over the life of local engines: what was before a transaction, and what is taken
along from an engine that is closed to the one that comes after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import ClassVar

from louver.trusted.executor.local.engine import TemporaryState


class CarriedTables(ABC):
    """Which temporary tables there are, by folded name, and how they were before a transaction."""

    #: what an engine that is broken raises
    failures: ClassVar[type[Exception]]

    def __init__(self) -> None:
        """There are none yet."""
        self.names: frozenset[str] = frozenset()
        self.before: TemporaryState | None = None
        #: whether the transaction is being undone
        self.going_back = False
        self.carried: TemporaryState = ({}, {}, {})

    @abstractmethod
    def state(self) -> TemporaryState:
        """All of them with their rows."""

    @abstractmethod
    def restore(self, state: TemporaryState) -> None:
        """Have these and no others."""

    def has_index(self, _name: str) -> bool:
        """Whether an index of this folded name is of a temporary table, where that counts."""
        return False

    @property
    def sequences(self) -> frozenset[str]:
        """The folded names of temporary sequences, where these come along with the tables."""
        return frozenset()

    def deferrable(self) -> tuple[bool, bool]:
        """See `TemporaryTables`."""
        return False, False

    def mentioned(self, words: set[str]) -> bool:
        """Whether some folded words name a temporary table."""
        return not self.names.isdisjoint(words)

    def keep(self) -> None:
        """Remember how they are before a transaction first changes one."""
        if self.before is None:
            self.before = self.state()

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """Go back to how they were before the transaction, with an engine that goes back too,
        perhaps by being made anew.
        """
        self.going_back = True
        try:
            yield
        finally:
            self.going_back = False
        if self.before is not None:
            before, self.before = self.before, None
            self.restore(before)

    def leave(self) -> None:
        """Take all along from an engine that will be closed; from one that is broken, nothing."""
        self.carried = {}, {}, {}
        if self.going_back and self.before is not None:
            self.carried = self.before
        else:
            with suppress(self.failures):
                if self.names:
                    self.carried = self.state()
        self.names = frozenset()

    def arrive(self) -> None:
        """Put them into the engine that comes after."""
        if self.carried[0]:
            self.restore(self.carried)
