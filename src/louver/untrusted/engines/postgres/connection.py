"""One session of a PostgreSQL server as an engine.

A transaction is REPEATABLE READ: what a statement sees does not change while it runs. A server
waits where another transaction holds a row, up to the target's `lock_ms`; then this one has lost
the race.
Definitions are not part of a snapshot: a table that was made anew under its name looks empty to an
older one. So a transaction holds the gate, a table without columns, before it takes its snapshot,
and one that replaces a table or a column has the gate for itself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import pyarrow as pa

from louver import errors
from louver._rust import postgres
from louver.untrusted.engines.engine import Otherwise, Traffic
from louver.untrusted.engines.postgres import values
from louver.untrusted.engines.postgres.address import Target
from louver.untrusted.engines.postgres.control_texts import (
    CREATE_GATE,
    CREATE_SCHEMA,
    CREATE_WRITERS,
    DEFINE,
    GATE_NAME,
    HOLD,
    TABLE_NAMES,
    control_text,
    is_control,
)
from louver.untrusted.engines.postgres.counting import Counted
from louver.untrusted.engines.postgres.direct import Direct
from louver.untrusted.engines.postgres.failures import translated
from louver.untrusted.engines.postgres.journal import Journal
from louver.untrusted.engines.postgres.loading import Loading
from louver.untrusted.engines.postgres.messaging import Messaging
from louver.untrusted.engines.postgres.nested import Nested
from louver.untrusted.engines.postgres.opening import opened
from louver.untrusted.engines.postgres.pipeline import (
    MOST_WAITING,
    Reply,
    Step,
    Waiting,
    exchanged,
    guarded,
)
from louver.untrusted.engines.postgres.portal import PortalStream
from louver.wire import control
from louver.wire.messages import Constant, Statement

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ"
_READ = _BEGIN + " READ ONLY"
_SERIALIZABLE = "BEGIN ISOLATION LEVEL SERIALIZABLE"
_COUNTED = re.compile(r"^(?:INSERT \d+|[A-Z]+) (?P<rows>\d+)$")
#: After these a name may mean other rows than in an older snapshot.
_REPLACING = ("ALTER ", "DROP ", "TRUNCATE ")
#: Where many clients meet, or the machine is busy, the one that lost may lose again.
_LEAST_PATIENCE_S = 5.0
_portals = itertools.count()


class PostgresEngine(Nested, Messaging, Loading, Counted, Direct):
    """One connection to a server, opened with its first statement; `side()` gives further ones."""

    backend = "postgresql"
    #: Databases of a server are not made by connecting.
    created = False

    def __init__(self, target: Target, *, read_only: bool = False) -> None:
        """For a database of a server; nothing is sent yet."""
        Messaging.__init__(self)
        self._target, self._lock_ms = target, target.lock_ms
        self._read_only = read_only
        self.identity = target.database, target.user
        #: A stable name of the database.
        self.address = target.address
        self.traffic = Traffic()
        #: Whether `begin` was called and neither `commit` nor `rollback` since.
        self.in_transaction = False
        self._ends = self._begun = self._closed = self._defines = self._serializable = False
        #: Whether there is a gate to hold; of side connections none holds it.
        self._has_gate = self._makes_gate = False
        self._session: postgres.Session | None = None
        self._stream: PortalStream | None = None
        self._sides: list[PostgresEngine] = []
        self._waiting: list[Waiting] = []
        self._journal = Journal()

    @property
    def patience_s(self) -> float:
        """How long what failed for others is tried again, which may have waited for a lock."""
        return max(3 * self._lock_ms / 1000, _LEAST_PATIENCE_S)

    def side(self) -> PostgresEngine:
        """A second connection, opened when it is used, and closed together with this one."""
        other = PostgresEngine(self._target, read_only=self._read_only)
        other.address = self.address
        self._sides = [side for side in self._sides if not side._closed]
        self._sides.append(other)
        return other

    def query(self, statement: Statement) -> pa.Table:
        """Run a query and return all of its rows."""
        _, columns, arrays = self.reply(statement)
        return values.answer(columns, arrays)

    def reply(self, statement: Statement) -> postgres.Reply:
        """See `Replying`."""
        reply = self._run(statement)
        self._received(*reply.size())
        return reply

    def stream(self, statement: Statement) -> pa.RecordBatchReader:
        """Run a query and return its rows batch by batch. Before the connection ends the
        transaction that they are read in, the rest is read into memory.
        """
        self._settle()
        self.catch_up()
        own = not self.in_transaction
        sql, bound = self._text(statement)
        portal = f"louver_{next(_portals)}"
        stream = PortalStream(self, portal, own=own)
        try:
            with translated(self.address):
                self._live().run([(_READ, [])] if own else self._opening())
                self._begun, self._ends = self.in_transaction, False
                columns = self._live().open_portal(portal, sql, bound)
            schema = stream.opened(columns)
        except BaseException:
            self._stream = None
            if own:
                self.stream_ended(stream, portal, own=True)
            raise
        # Where all rows came at once it has ended, and nothing stands in the way of others.
        self._stream = stream if stream.is_open else None
        return pa.RecordBatchReader.from_batches(schema, iter(stream))

    def fetch(self, portal: str, columns: list[Any], most: int) -> tuple[pa.Table, bool]:
        """The next rows of a portal, and whether there may be more."""
        with translated(self.address):
            arrays, more = self._live().fetch(portal, columns, most)
        table = values.answer(columns, arrays)
        self._received(table.nbytes, table.num_rows)
        return table, more

    def stream_ended(self, stream: PortalStream, portal: str, *, own: bool) -> None:
        """All rows of a stream are read, or it failed: an open portal would keep its tables."""
        if self._stream is stream:
            self._stream = None
        session = self._session
        if session is None or session.is_broken():
            return
        state = session.state()
        with translated(self.address):
            if own and state != "idle":
                session.run([("ROLLBACK", [])])
            elif state == "within":
                session.run([(f"CLOSE {portal}", [])])

    def end_stream(self) -> None:
        """Let go of rows that were not read."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.leave()

    def value(self, statement: Statement) -> Constant:
        """The first column of a query's first row, None without rows."""
        _, _, arrays = self._run(statement)
        result = arrays[0][0].as_py() if arrays and len(arrays[0]) else None
        self._received(len(result) if isinstance(result, bytes) else 8, 1)
        return cast(Constant, result)

    def table_names(self) -> list[str]:
        """The names of the control tables; tables of others in the database are not listed."""
        names = cast(list[str], self.query(TABLE_NAMES).column(0).to_pylist())
        self._has_gate = GATE_NAME in names
        return names

    def run(self, statement: Statement) -> int:
        """Run a statement and return the number of rows it touched (0 for DDL)."""
        if statement.kind == "ddl":
            self._define(statement)
        try:
            tag, _, _ = self._run(statement)
        except errors.Error as error:
            # Of two who make a control table at once one comes too late.
            if is_control(statement.sql) and error.code in ("server.exists", "server.constraint"):
                raise self._outrun(error.detail) from error
            raise
        match = _COUNTED.match(tag) if statement.kind == "write" else None
        return int(match["rows"]) if match else 0

    def expect(self, statement: Statement, outcome: int, otherwise: Otherwise) -> None:
        """Run a statement, with the next one, that must have this outcome."""
        writes = statement.kind != "query"
        step = guarded(*self._text(statement), outcome, writes=writes)
        self._wait(Waiting(step, writes, otherwise))

    def begin(self) -> None:
        """Open a transaction, on the server with its first statement."""
        self._settle()
        self.catch_up()
        self.in_transaction = True
        self._defines = self._serializable = self._ends = False
        self._journal.forget()

    def commit(self) -> None:
        """Commit the open transaction; when that fails, it is rolled back."""
        self._settle()
        opening, waiting, within = self._opening(), self._taken(), self._begun
        self._begun = self.in_transaction = False
        makes, self._makes_gate = self._makes_gate, False
        if not within and not any(item.writes for item in waiting):
            return  # what only asks was for what would have followed it
        try:
            session = self._live(within=within)
            last: list[Step] = [("COMMIT", [])]
            ((tag, _, _),) = exchanged(session, self.address, opening, waiting, last, unsure=True)
        except BaseException:
            self._undo()
            raise
        if tag != "COMMIT":
            raise self._outrun("it was rolled back")
        self._has_gate |= makes

    def rollback(self) -> None:
        """Undo the open transaction."""
        self._settle()
        self._waiting.clear()
        self._makes_gate = False
        begun, self._begun, self.in_transaction = self._begun, False, False
        if begun:
            self._undo()

    def _undo(self) -> None:
        session = self._session
        if session is not None and not session.is_broken() and session.state() != "idle":
            with translated(self.address):
                session.run([("ROLLBACK", [])])

    def lost_race(self, error: errors.Error) -> bool:
        """Whether a statement failed only because another connection was faster."""
        races = ["server.conflict", "server.schema"]
        if "lock_timeout" not in self._limits:
            races.append("server.locked")  # who set it wants to know
        return isinstance(error, errors.IntegrityError) or error.code in races

    def interrupt(self) -> None:
        """Stop the running statement; may be called from another thread."""
        session = self._session
        if session is not None:
            with translated(self.address):
                session.cancel()

    def close(self) -> None:
        """Let go of the database; an open transaction is undone."""
        self._closed, self._stream = True, None
        self._waiting.clear()
        for side in self._sides:
            side.close()
        self._sides.clear()
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # ------------------------------------------------------------------ what is sent

    def _text(self, statement: Statement) -> Step:
        """A statement as it is sent, counted."""
        self._count(statement)
        sql = control_text(statement.sql)
        return values.with_inputs(sql, statement.constants, statement.tables)

    def _run(self, statement: Statement) -> Reply:
        writes = statement.kind != "query"
        with self._filled(statement) as sent:
            return self._send_all([self._text(sent)], writes=writes, reads=not writes)[0]

    def _send_now(self, last: Sequence[Step], *, writes: bool) -> list[Reply]:
        self._settle()
        fresh = self._is_fresh
        again = self._session is not None
        session = self._live()  # before what waits is taken: it must not be left out
        opening, waiting = self._opening(), self._taken()
        writes = writes or any(item.writes for item in waiting)
        # Before the first statement of a transaction, or a query, nothing is lost but the answer.
        again = again and (fresh or not (self.in_transaction or writes))
        unsure = writes and not self.in_transaction
        try:
            replies = exchanged(session, self.address, opening, waiting, last, unsure=unsure)
            self._limits_sent(opening)
            return replies
        except errors.Error as error:
            if not again or error.code not in ("server.lost", "server.unsure"):
                raise
            with suppress(errors.Error):
                self._undo()
            session = self._live()
            return exchanged(session, self.address, opening, waiting, last, unsure=unsure)
        finally:
            self._begun, self._ends = self.in_transaction, False

    def _wait(self, item: Waiting) -> None:
        """Keep a statement for the next one; a write outside of a transaction does not wait."""
        self._settle()
        self._waiting.append(item)
        if (item.writes and not self.in_transaction) or len(self._waiting) > MOST_WAITING:
            self.catch_up()

    def _taken(self) -> list[Waiting]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def _outrun(self, detail: str) -> errors.Error:
        return errors.make("server.conflict", place=self.address, detail=detail)

    @property
    def _is_fresh(self) -> bool:
        """Whether the next statement is the first one of the transaction."""
        return self.in_transaction and (self._ends or not self._begun)

    def _enter(self) -> None:
        """Open the transaction now, before what cannot be in a pipeline."""
        if self._waiting or self._is_fresh or self._only_locks:
            self._send_all([], writes=False)

    def _opening(self) -> list[Step]:
        """What goes before a statement: the transaction is not the same after it."""
        self._only_locks = False
        if not self.in_transaction:
            return self._limits_outside()
        if self._begun and not self._ends:
            return []
        last: list[Step] = [("ROLLBACK", [])] if self._ends else []
        begins = self._beginning(_SERIALIZABLE if self._serializable else _BEGIN)
        return [*last, *begins, *((text, []) for text in self._locks)]

    def _beginning(self, begin: str = _BEGIN) -> list[Step]:
        held: list[Step] = [(HOLD, [])] if self._has_gate else []
        return [(begin + " READ ONLY" * self._read_only, []), *self._limits_within(), *held]

    def _define(self, statement: Statement) -> None:
        """What goes before a definition."""
        if statement.sql == control.CATALOG_CREATE.sql:
            for sql in (CREATE_SCHEMA, CREATE_GATE):
                self._send(sql, (), writes=True)
            self._has_gate, self._makes_gate = not self.in_transaction, self.in_transaction
            return
        if statement.sql == control.WRITERS_CREATE.sql:
            self._send(CREATE_WRITERS, (), writes=True)
            return
        waits = self.in_transaction and self._has_gate and not self._defines
        if waits and statement.sql.startswith(_REPLACING):
            self._defines = True
            self._send(DEFINE, (), writes=True)

    def _live(self, *, within: bool = False) -> postgres.Session:
        """The session; a lost one is opened anew where no transaction was lost with it."""
        if self._closed:
            raise errors.make("database.closed")
        session = self._session
        begun = self._begun and not self._ends
        if session is not None and session.is_broken() and not (begun or within):
            session.close()
            session = self._session = None
        if session is None:
            if begun:
                raise errors.make(
                    "server.lost", place=self.address, detail="with it the transaction"
                )
            self._require_kept()
            session = self._session = opened(self._target)
            self._resume(session)
        return session

    def _settle(self) -> None:
        """Before the connection is used again: bring an unfinished stream to safety."""
        if self._closed:
            raise errors.make("database.closed")
        if self._stream is not None:
            stream, self._stream = self._stream, None
            stream.detach()
