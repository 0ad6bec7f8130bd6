"""What every engine offers.

The control statements (`wire.control`) have one text for all engines; one whose types have other
names, or whose placeholders are not ``$1``, translates what it is sent. Definitions of tables take
part in transactions. What is written through `side` must not wait for an open transaction.

An engine's module also has ``open_url(url)``, which gives one, ``place_of_url(url)``, which checks
a URL and gives the stable name of its database ("" in memory), and ``require_database(url)``, which
raises where something else is there. What it stores is read without a session by
``stored_at(url)``, a context manager, and through a connection by ``stored_of(engine)`` (see
`stored.Stored`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from louver import errors
from louver.wire.messages import Constant, Statement


@dataclass(slots=True)
class Traffic:
    """What has crossed so far, for EXPLAIN and bench: raw bytes, without framing."""

    statements: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    rows_out: int = 0
    rows_in: int = 0

    def count(self, statement: Statement) -> None:
        """Add a statement that is sent."""
        self.statements += 1
        self.bytes_out += len(statement.sql.encode())
        for constant in statement.constants:
            self.bytes_out += len(constant) if isinstance(constant, bytes | str) else 8
        for table in statement.tables.values():
            self.bytes_out += table.nbytes
            self.rows_out += table.num_rows


Otherwise = Callable[[], errors.Error]
"""The error of a statement whose outcome is another one than expected."""


@runtime_checkable
class Engine(Protocol):
    """One connection to an untrusted database."""

    @property
    def backend(self) -> str:
        """The name of the backend that describes this engine (`trusted.backends`)."""
        ...

    @property
    def traffic(self) -> Traffic:
        """Bytes and rows so far, on this connection."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether `begin` was called and neither `commit` nor `rollback` since."""
        ...

    @property
    def address(self) -> str:
        """A stable name of the database, to remember it by; "" when it lives in memory only."""
        ...

    @property
    def created(self) -> bool:
        """Whether this connection brought the database into being (its file did not exist)."""
        ...

    def query(self, statement: Statement) -> pa.Table:
        """Run a query and return all of its rows."""
        ...

    def stream(self, statement: Statement) -> pa.RecordBatchReader:
        """Run a query and return its rows batch by batch, in bounded memory."""
        ...

    def value(self, statement: Statement) -> Constant:
        """The first column of a query's first row, None without rows: a cheap path."""
        ...

    def table_names(self) -> list[str]:
        """The names of all tables, those outside the current schema as schema.name."""
        ...

    def run(self, statement: Statement) -> int:
        """Run a statement and return the number of rows it touched (0 for DDL)."""
        ...

    def expect(self, statement: Statement, outcome: int, otherwise: Otherwise) -> None:
        """Run a statement that must have this outcome: of a write the number of rows that it
        touches, of a query the only value of its only row. If it has another one, the error of
        ``otherwise`` is raised, and nothing that follows in its transaction is done.

        Where a round trip takes time, the statement goes together with the next one, and what
        comes of it is raised by the call that sends it. All calls but `expect` and `append` are
        such, and `catch_up` does nothing else.
        """
        ...

    def catch_up(self) -> None:
        """Return when all that `expect` and `append` were given is done."""
        ...

    def append(self, table: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Insert Arrow rows into a server table (SQL name, quoted), columns by name. Within a
        transaction a table of few rows may go together with the next statement, as of `expect`.

        A reader is one statement in bounded memory, read in the calling thread while it runs;
        what making its rows raises comes out as itself. It must not use this connection.
        """
        ...

    def begin(self) -> None:
        """Open a transaction."""
        ...

    def commit(self) -> None:
        """Commit the open transaction."""
        ...

    def rollback(self) -> None:
        """Undo the open transaction."""
        ...

    def side(self) -> Engine:
        """A second connection, whose commits do not depend on this one's transaction."""
        ...

    def lost_race(self, error: errors.Error) -> bool:
        """Whether a statement failed only because another connection was faster."""
        ...

    def interrupt(self) -> None:
        """Stop the running statement; may be called from another thread."""
        ...

    def close(self) -> None:
        """Let go of the database; may be called twice."""
        ...


@runtime_checkable
class Named(Protocol):
    """An engine whose database and user have names."""

    @property
    def identity(self) -> tuple[str, str]:
        """The names of the database and of the user."""
        ...


@runtime_checkable
class Nesting(Protocol):
    """An engine whose transactions have savepoints, told by numbers, and another isolation."""

    def serialize(self) -> None:
        """Let the transaction that was begun, in which nothing was sent yet, be serializable."""
        ...

    def forget_plans(self) -> None:
        """Tables were made anew by another connection: no statement stays prepared for them."""
        ...

    def begin_anew(self) -> None:
        """Let the open transaction see what is committed by its next statement; what it did is
        undone.
        """
        ...

    def remember(self) -> None:
        """From here on keep what the transaction does, so that it can be done again."""
        ...

    def forget(self) -> None:
        """What the open transaction does cannot be done again."""
        ...

    @property
    def remembers(self) -> bool:
        """Whether all that the transaction has done is kept."""
        ...

    def remembered(self) -> int | None:
        """How many statements are kept; None where they are not all of it."""
        ...

    def repeat(self, count: int) -> None:
        """Begin the transaction anew and do so many statements again: `server.conflict` if one of
        them ends otherwise, and then nothing is left of it.
        """
        ...

    def attempt(self, statement: Statement) -> bool:
        """Run a write in the open transaction, that waits for a lock for a moment only; False, and
        nothing has happened, where another connection was faster or holds a lock.
        """
        ...

    def lock_tables(self, texts: Sequence[str]) -> None:
        """Run LOCK TABLE statements in the open transaction, before what waits; what it does cannot
        be done again.
        """
        ...

    @property
    def only_locks(self) -> bool:
        """Whether the open transaction has locked tables and nothing else yet, so that it sees what
        is committed by its next statement.
        """
        ...

    def add_savepoint(self, number: int) -> None:
        """Set a savepoint in the open transaction."""
        ...

    def undo_to_savepoint(self, number: int) -> None:
        """Undo what came after a savepoint, which stays; after a failure too."""
        ...

    def release_savepoint(self, number: int) -> None:
        """Forget a savepoint and those after it; what was done stays."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """An engine whose transactions can change what is not Louver's, too."""

    def lock(self, texts: Sequence[str]) -> None:
        """Statements that take locks, for each transaction to come: before its snapshot, so that it
        sees all that was committed before.
        """
        ...

    def entered(self) -> Any:
        """The session, as the wire client gives it, within the open transaction."""
        ...


@runtime_checkable
class Limited(Protocol):
    """An engine that ends what takes too long."""

    def limit(self, name: str, value: str | None) -> None:
        """How long a statement may take (statement_timeout) or wait for a lock (lock_timeout), as
        PostgreSQL writes it; None for what the connection says.
        """
        ...


@runtime_checkable
class Messaging(Protocol):
    """An engine that hands messages of clients on, and holds locks for them."""

    def listen(self, channel: str) -> None:
        """Receive what is sent to a channel from now on, outside of a transaction; over another
        session as well if this one is lost. The name has letters and digits only.
        """
        ...

    def unlisten(self, channel: str) -> None:
        """Receive it no more; "" of all channels."""
        ...

    def arrived(self) -> list[tuple[str, str]]:
        """The channels and payloads of messages that came since the last call."""
        ...

    def keep_session(self, held: bool) -> None:
        """Whether losing the session loses locks, so that it must not be replaced unsaid."""
        ...

    @property
    def holds_session(self) -> bool:
        """Whether it would."""
        ...


class Prompt:
    """An engine to which a round trip is nothing: what is expected is run at once."""

    def expect(self: Engine, statement: Statement, outcome: int, otherwise: Otherwise) -> None:
        """See `Engine`."""
        result = self.value(statement) if statement.kind == "query" else self.run(statement)
        if result != outcome:
            raise otherwise()

    def catch_up(self) -> None:
        """See `Engine`."""


@runtime_checkable
class Replying(Protocol):
    """An engine whose answers the compiled module reads as they came."""

    def reply(self, statement: Statement) -> Any:
        """Run a query; what came of it is for `louver._rust.look_ups`."""
        ...


class TakesRows(Protocol):
    """An engine that takes sealed rows as the compiled module made them (`postgres.SealedRow`), if
    it says so: a recorder has the methods of all engines.
    """

    @property
    def takes_rows(self) -> bool:
        """Whether it does."""
        ...

    def write_row(
        self, sql: str, row: Any, more: Sequence[Constant], otherwise: Otherwise | None
    ) -> None:
        """Run a write, with the next statement, whose values are those of a row, and more behind
        them. It must touch one row, if there is an ``otherwise``: see `Engine.expect`.
        """
        ...
