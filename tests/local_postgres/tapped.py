"""What crosses between a client and a PostgreSQL server: the requests, and each round trip of them.

The requests are recorded as by `louver.wire.tap`, with those of PostgreSQL's language besides:
savepoints, channels, limits. Of a round trip the texts are recorded that go in it, with what opens
its transaction, the lengths of the values, the tags and lengths of the answers, and how many bytes
crossed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import pyarrow as pa

from louver import errors
from louver._rust import postgres
from louver._rust.postgres import SealedRow
from louver.untrusted.engines.postgres import PostgresEngine, values
from louver.untrusted.engines.postgres.address import target_of
from louver.wire.messages import Count, Failure, Request, Rows, Statement
from louver.wire.tap import Record, Tap
from tests.worlds.crossing import Crossing

_Result = TypeVar("_Result")
_ROW_IDS = re.compile(r"r\d+|row_id")
_CHANNEL, _PORTAL = re.compile(r"\bc[0-9a-f]{40}\b"), re.compile(r"(?<=^CLOSE )louver_\d+$")
#: What a session call is about: pseudonyms and sealed payloads, which are ciphertext.
_CALLS = "SELECT pg_catalog.pg_"


class WatchedEngine(PostgresEngine):
    """An engine that writes its round trips down."""

    def __init__(self, target: Any, trips: list[Any], *, read_only: bool = False) -> None:
        super().__init__(target, read_only=read_only)
        self.trips = trips

    def side(self) -> PostgresEngine:
        """A second connection, whose round trips go into the same list."""
        other = WatchedEngine(self._target, self.trips, read_only=self._read_only)
        other.address = self.address
        self._sides.append(other)
        return other

    def _live(self, *, within: bool = False) -> postgres.Session:
        session: Any = super()._live(within=within)
        if not isinstance(session, _Watched):
            session = self._session = cast(postgres.Session, _Watched(session, self.trips))
        return cast(postgres.Session, session)


class _Watched:
    """A session whose calls that send something are written down. Names of portals count those of
    the process, so they are given names that count those of the session.
    """

    def __init__(self, session: postgres.Session, trips: list[Any]) -> None:
        self._session, self._trips = session, trips
        self._portals = dict[str, str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, steps: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        steps = [
            (_PORTAL.sub(lambda m: self._named(m.group()), sql), values) for sql, values in steps
        ]
        sent = [(sql, [_size(value) for value in values]) for sql, values in steps]
        return self._watched("run", sent, lambda: self._session.run(steps), _answered)

    def open_portal(self, portal: str, sql: str, values: Sequence[Any]) -> list[Any]:
        name, sent = self._named(portal), [sql, [_size(value) for value in values]]
        return self._watched(
            "portal", sent, lambda: self._session.open_portal(name, sql, values), len
        )

    def fetch(self, portal: str, columns: Sequence[Any], most: int) -> tuple[list[Any], bool]:
        name = self._named(portal)
        return self._watched(
            "fetch", most, lambda: self._session.fetch(name, columns, most),
            lambda reply: ([_size(array) for array in reply[0]], reply[1]),
        )  # fmt: skip

    def copy_in(self, sql: str, types: Sequence[int], batches: Any) -> int:
        return self._watched(
            "copy", (sql, list(types)), lambda: self._session.copy_in(sql, types, batches), int
        )

    def _named(self, portal: str) -> str:
        return self._portals.setdefault(portal, f"louver_{len(self._portals):06}")

    def _watched(
        self, what: str, sent: Any, act: Callable[[], _Result], seen: Callable[[_Result], Any]
    ) -> _Result:
        before = self._session.traffic()
        try:
            reply = act()
        except postgres.ServerError as error:
            self._trips.append((what, sent, error.args[0].get("code")))
            raise
        crossed = [b - a for a, b in zip(before, self._session.traffic(), strict=True)]
        self._trips.append((what, sent, seen(reply), crossed))
        return reply


def _answered(replies: Sequence[Any]) -> list[Any]:
    return [
        (tag, [column[0] for column in columns], [_size(array) for array in arrays])
        for tag, columns, arrays in replies
    ]


def _size(value: Any) -> Any:
    if isinstance(value, SealedRow):
        return (len(value), value.size())
    if isinstance(value, tuple):
        value = value[0]
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return (str(value.type), len(value), value.null_count, value.nbytes)
    length = len(value) if isinstance(value, bytes | str) else 0
    return (type(value).__name__, length)


class ServerTap(Tap):
    """A tap of a PostgreSQL server's engine, which is all that one is."""

    def __init__(self, engine: Any, records: list[Record] | None = None) -> None:
        super().__init__(engine, records)
        self._own = engine

    @classmethod
    def at(cls, url: str) -> ServerTap:
        """Of a database that no client remembers."""
        engine = WatchedEngine(target_of(url), [])
        engine.address = ""
        return cls(engine)

    @property
    def trips(self) -> list[Any]:
        """The round trips so far."""
        return cast(list[Any], self._own.trips)

    def side(self) -> ServerTap:
        """A tapped side connection."""
        return ServerTap(self._own.side(), self.records)

    def reply(self, statement: Statement) -> postgres.Reply:
        """See `Replying`; the rows are recorded as those of a query."""
        replies = list[postgres.Reply]()

        def answered() -> pa.Table:
            replies.append(self._own.reply(statement))
            return values.answer(replies[0][1], replies[0][2])

        self._crossing(statement, answered, Rows)
        return replies[0]

    def _said(self, what: str, act: Callable[[], _Result]) -> _Result:
        self.records.append(Record("sent", cast(Request, Statement(what))))
        try:
            result = act()
        except errors.Error as error:
            self.records.append(Record("received", Failure(error.code, error.message)))
            raise
        self.records.append(Record("received", Count(0)))
        return result

    # Nesting

    def serialize(self) -> None:
        self._said("serialize", self._own.serialize)

    def begin_anew(self) -> None:
        self._said("begin anew", self._own.begin_anew)

    def remember(self) -> None:
        self._own.remember()

    def forget(self) -> None:
        self._own.forget()

    def remembered(self) -> int | None:
        return cast("int | None", self._own.remembered())

    def repeat(self, count: int) -> None:
        self._said(f"repeat {count}", lambda: self._own.repeat(count))

    def attempt(self, statement: Statement) -> bool:
        return self._crossing(
            statement, lambda: cast(bool, self._own.attempt(statement)), lambda done: Count(done)
        )

    def lock_tables(self, texts: Sequence[str]) -> None:
        self._said(f"lock {'; '.join(texts)}", lambda: self._own.lock_tables(texts))

    @property
    def only_locks(self) -> bool:
        return bool(self._own.only_locks)

    def add_savepoint(self, number: int) -> None:
        self._said(f"savepoint {number}", lambda: self._own.add_savepoint(number))

    def undo_to_savepoint(self, number: int) -> None:
        self._said(f"undo to {number}", lambda: self._own.undo_to_savepoint(number))

    def release_savepoint(self, number: int) -> None:
        self._said(f"release {number}", lambda: self._own.release_savepoint(number))

    # Limited

    def limit(self, name: str, value: str | None) -> None:
        self._said(f"limit {name} {value}", lambda: self._own.limit(name, value))

    # Messaging

    def listen(self, channel: str) -> None:
        self._said("listen", lambda: self._own.listen(channel))

    def unlisten(self, channel: str) -> None:
        self._said("unlisten", lambda: self._own.unlisten(channel))

    def arrived(self) -> list[tuple[str, str]]:
        messages: list[tuple[str, str]] = self._said("arrived", self._own.arrived)
        rows = {"channel": [m[0] for m in messages], "payload": [m[1] for m in messages]}
        self.records.append(Record("received", Rows(pa.table(rows, schema=_MESSAGES))))
        return messages

    def keep_session(self, held: bool) -> None:
        self._own.keep_session(held)


_MESSAGES = pa.schema([("channel", pa.string()), ("payload", pa.string())])


class ServerCrossing(Crossing):
    """What crossed, with what stands for channels, payloads and numbers of locks masked."""

    def _message(self, message: Any) -> Any:
        if isinstance(message, Statement) and message.sql.startswith(_CALLS):
            self._last = message
            yield ("statement", message.kind, message.sql)
            yield [
                self.mask(v.to_bytes(8, "big", signed=True) if isinstance(v, int) else v)
                for v in message.constants
            ]
            return
        if isinstance(message, Rows) and message.table.schema == _MESSAGES:
            yield [[self.mask(value) for value in c.to_pylist()] for c in message.table.columns]
            return
        if isinstance(message, Rows) and " ORDER BY " not in self._last.sql:
            # The order of the heap depends on when the server took old rows away.
            numbers = [name for name in message.table.column_names if _ROW_IDS.fullmatch(name)]
            if numbers:
                message = Rows(message.table.sort_by([(name, "ascending") for name in numbers]))
        yield from super()._message(message)

    def _reply(self, table: pa.Table, secret: set[Any], shuffled: bool) -> list[Any]:
        has_order = " ORDER BY " in self._last.sql or any(
            map(_ROW_IDS.fullmatch, table.column_names)
        )
        return super()._reply(table, secret, shuffled or not has_order)

    def trips(self, trips: Sequence[Any]) -> list[Any]:
        """Round trips, whose names are numbered."""
        return [self._named(trip) for trip in trips]

    def _named(self, item: Any) -> Any:
        if isinstance(item, str):
            return self._renamed(_CHANNEL.sub(self._channel, item))
        if isinstance(item, list | tuple):
            return [self._named(part) for part in item]
        return item

    def _channel(self, match: Any) -> str:
        return f"channel {self._numbers.setdefault(match.group(), len(self._numbers))}"
