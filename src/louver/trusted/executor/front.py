"""What a connection needs of a session: of one database, or of providers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from louver.trusted.executor.answer import Answer, Described
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.parameters import Parameters
from louver.trusted.planner.settings import PlannerSettings
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import Dialect
from louver.trusted.vault.catalog import Catalog

Resolve = Callable[[lexer.Text, list[object]], tuple[lexer.Text, list[object], dict[str, object]]]
"""From a statement and its values to what runs, its values, and the local data that it names."""


class Machine(Protocol):
    """Whatever answers out there."""

    @property
    def address(self) -> str:
        """Its address."""
        ...

    def interrupt(self) -> None:
        """Stop what is under way."""


class Disclosed(Protocol):
    """What a ledger says to its reader."""

    def facts(self, kinds: Collection[str] = (), /) -> list[Fact]:
        """Every fact, in the order in which it was revealed."""
        ...

    def new(self, facts: Iterable[Fact]) -> list[Fact]:
        """Those that were not known yet, each once."""
        ...

    def conditions(self, fact: Fact, /) -> int:
        """How many conditions a fact has been shown for."""
        ...

    def gone(self, fact: Fact, /) -> bool:
        """Whether a fact is of a table that was dropped."""
        ...

    def table(self) -> pa.Table:
        """The ledger as an Arrow table."""
        ...


class Recording(Disclosed, Protocol):
    """A ledger that is written to: what a context holds (see `ledger.Ledger`)."""

    @property
    def length(self) -> int:
        """How many records there are."""
        ...

    @property
    def head(self) -> str:
        """The hash over all records."""
        ...

    def record(self, facts: Iterable[Fact], statement_shape: str) -> list[Fact]:
        """Append what is new durably, before anything is sent."""
        ...

    def kinds(self, table: int, column: int) -> Collection[str]:
        """The kinds of facts that are known of a column, by ids."""
        ...

    def level(self, table: str, column: str) -> str:
        """What is known of a column at most."""
        ...

    def carry(self, moved: Mapping[Fact, Fact], statement_shape: str, /) -> None:
        """Append facts as they are reported from now on."""

    def refresh(self) -> None:
        """Take in what other clients have recorded since."""


class Tunable(Protocol):
    """What changes in a context, as far as settings go."""

    planning: PlannerSettings


class Configurable(Protocol):
    """The storage, as far as settings and EXPLAIN ANALYZE go."""

    def measure(self, on: bool, /) -> list[str]:
        """Measure from now on, or no more; lines on the last query."""
        ...

    def option(self, name: str, /) -> str:
        """A setting of lakes."""
        ...

    def change_option(self, name: str, value: str | None, /) -> None:
        """Set it, or reset it."""


class Common(Protocol):
    """What the context of a database and that of providers have in common."""

    @property
    def engine(self) -> Machine: ...
    @property
    def local(self) -> LocalEngine: ...
    @property
    def catalog(self) -> Catalog: ...
    @property
    def ledger(self) -> Disclosed: ...
    @property
    def state(self) -> Tunable: ...
    @property
    def storage(self) -> Configurable: ...


class Front(Protocol):
    """A session as a connection sees it."""

    #: whether BEGIN means anything
    transactional: bool
    closed: bool

    @property
    def dialect(self) -> Dialect:
        """The language of its statements."""
        ...

    @property
    def context(self) -> Common: ...
    @property
    def in_transaction(self) -> bool: ...

    def execute(
        self, sql: str, parameters: Parameters = None, resolve: Resolve | None = None
    ) -> Answer:
        """Run every statement of a text; the last one's answer. ``resolve`` says what the names of
        a statement mean that are not of the database.
        """
        ...

    def run(self, text: lexer.Text, parameters: list[object]) -> Answer:
        """Run one statement."""
        ...

    def bound(self, text: lexer.Text, parameters: Parameters) -> list[object]:
        """The values of a statement's placeholders, in the order of the text."""
        ...

    def described(
        self, text: lexer.Text, parameters: list[object], *, plan: bool = True
    ) -> Described | None:
        """What is known of a query before it runs, which is only bound without ``plan``; None for
        what is not a query.
        """
        ...

    def frames_of(self, text: lexer.Text, objects: Mapping[str, object]) -> dict[str, object]:
        """The objects of the caller's that a statement reads as tables, by name."""
        ...

    def local_data(self, frames: Mapping[str, object]) -> AbstractContextManager[None]:
        """Let statements read objects of the caller's by these names, for as long as this lasts."""
        ...

    def would_send(self, text: lexer.Text, parameters: list[object]) -> list[str]:
        """What each server would be sent for a query; nothing is sent."""
        ...

    def explained(
        self, text: lexer.Text, parameters: list[object], *, leakage: bool = False,
        form: str = "text",
    ) -> str:  # fmt: skip
        """What would happen on a query, and with ``leakage`` what it would newly show."""
        ...

    def begin(self) -> None:
        """BEGIN."""

    def commit(self) -> None:
        """COMMIT."""

    def rollback(self) -> None:
        """ROLLBACK."""

    def python_rows(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        """Rows as Python values."""
        ...

    def recover(self) -> None:
        """Make the local engine fit for the next statement after one that failed."""

    def close(self) -> None:
        """End the session."""
