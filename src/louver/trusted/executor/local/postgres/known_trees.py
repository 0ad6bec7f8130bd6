"""What the trees of statements say, remembered while names and settings mean the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from louver import errors
from louver.trusted.executor.local.postgres import equalities
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.trusted.executor.local.postgres.relaying import Passed
from louver.trusted.executor.local.postgres.statements import PostgresStatements

_Tree = TypeVar("_Tree")
_MOST, _LONGEST = 512, 8_192
"""Texts that are remembered, and characters of one."""


class KnownTrees:
    """Of a session's statements, by their texts; what is wrong or not of the kind is None."""

    def __init__(self, local: PostgresLocalEngine) -> None:
        """Nothing is known at first."""
        self._local, self._revision = local, -1
        self._passed: dict[str, Passed | None] = {}
        self._equalities: dict[str, equalities.Query | None] = {}
        self._doubted = set[str]()

    def forget(self) -> None:
        """Names may mean something else from now on."""
        self._passed.clear()
        self._equalities.clear()

    def passed(self, sql: str, *, doubtful: bool) -> Passed | None:
        """See `PostgresStatements.passed`; a ``doubtful`` text is looked at when it comes again."""
        if doubtful and sql not in self._doubted:
            if len(self._doubted) >= _MOST:
                self._doubted.clear()
            self._doubted.add(sql)
            return None
        return self._known(self._passed, self._statements().passed, sql)

    def equalities(self, sql: str) -> equalities.Query | None:
        """See `PostgresStatements.equalities`."""
        return self._known(self._equalities, self._statements().equalities, sql)

    def _statements(self) -> PostgresStatements:
        return cast(PostgresStatements, self._local.statements)

    def _known(
        self, known: dict[str, _Tree | None], look: Callable[[str], _Tree | None], sql: str
    ) -> _Tree | None:
        if self._revision != self._local.revision:
            self._revision = self._local.revision
            self.forget()
        if sql in known:
            return known[sql]
        try:
            result = look(sql)
        except errors.Error:
            return None
        if len(sql) <= _LONGEST:
            while len(known) >= _MOST:
                known.pop(next(iter(known)))
            known[sql] = result
        return result
