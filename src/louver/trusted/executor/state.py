"""What changes while a session lasts; the one mutable object of a context."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import duckdb

from louver.trusted.planner.settings import DEFAULT, PlannerSettings
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write.local import Local
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.facts import Fact

Cache = TypeVar("Cache")


@dataclass(slots=True, eq=False)
class State:
    """Catalog, open transaction, prepared statements and caches of one session."""

    catalog: Catalog
    #: what the session has chosen for its plans
    planning: PlannerSettings = DEFAULT
    #: the catalog that ROLLBACK returns to; None outside of a transaction
    saved: Catalog | None = None
    #: whether the open transaction may have changed the schema of the local engine
    redefined: bool = False
    aborted: bool = False
    #: the profile of new columns of which nothing is said; "none" leaves them plain
    default_encryption: str = "none"
    #: whether the session was told that a table is all plain
    warned_plain: bool = False
    #: whether the open transaction only reads
    read_only: bool = False
    #: whether the connection may change the database and its ledger
    writable: bool = True
    #: what fails now has changed nothing: the transaction goes on
    untouched: bool = False
    #: when the open transaction began
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    #: the binder in which the time stands still at ``began``
    fixed: duckdb.DuckDBPyConnection | None = None
    #: what changes show, by the table and the shape of the statement
    flows: dict[tuple[tuple[str, str], str], tuple[Fact, ...]] = field(default_factory=dict)
    #: the statements of PREPARE by folded name, each with the search path that it had
    prepared: dict[str, tuple[lexer.Text, tuple[str, ...]]] = field(default_factory=dict)
    #: the columns that variables and temporary tables depend on
    origins: Local = field(default_factory=Local)
    _caches: dict[type, Any] = field(default_factory=dict)

    @property
    def in_transaction(self) -> bool:
        """Whether the user has said BEGIN."""
        return self.saved is not None

    def cache(self, kind: type[Cache]) -> Cache:
        """The session's cache of a kind, empty at the first use."""
        if kind not in self._caches:
            self._caches[kind] = kind()
        results: Cache = self._caches[kind]
        return results
