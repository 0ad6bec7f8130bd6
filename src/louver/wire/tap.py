"""A recorder between client and server: what was sent and what came back, in order.

Tests search it for canaries, and `louver demo` shows it. It has the interface of an engine, so a
session cannot distinguish it from one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar
from uuid import UUID

import pyarrow as pa

from louver import errors
from louver.wire import codec
from louver.wire.messages import (
    Append,
    Constant,
    Control,
    Count,
    Failure,
    Message,
    Reply,
    Request,
    Rows,
    Statement,
)

_Found = TypeVar("_Found")


class Tapped(Protocol):
    """The interface of what can be tapped: an engine (see `untrusted.engines.engine`)."""

    def query(self, statement: Statement) -> pa.Table: ...
    def stream(self, statement: Statement) -> pa.RecordBatchReader: ...
    def value(self, statement: Statement) -> Constant: ...
    def table_names(self) -> list[str]: ...
    def run(self, statement: Statement) -> int: ...
    def expect(
        self, statement: Statement, outcome: int, otherwise: Callable[[], errors.Error]
    ) -> None: ...
    def catch_up(self) -> None: ...
    def append(self, table: str, rows: pa.Table | pa.RecordBatchReader) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def side(self) -> Any: ...
    def lost_race(self, error: errors.Error) -> bool: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Record:
    """One message that crossed."""

    direction: Literal["sent", "received"]
    message: Message


class Tap:
    """An engine that records everything on its way to and from another engine."""

    def __init__(self, engine: Any, records: list[Record] | None = None) -> None:
        """Tap `engine`; a side connection shares the records of the one it came from."""
        self.engine: Tapped = engine
        self.records: list[Record] = [] if records is None else records
        self._attributes: Any = engine

    @property
    def backend(self) -> str:
        """The name of the backend that describes the tapped engine."""
        return str(self._attributes.backend)

    @property
    def traffic(self) -> Any:
        """The tapped engine's own count."""
        return self._attributes.traffic

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._attributes.in_transaction)

    @property
    def address(self) -> str:
        """The tapped engine's address."""
        return str(self._attributes.address)

    @property
    def created(self) -> bool:
        """Whether the tapped engine created its database."""
        return bool(self._attributes.created)

    def query(self, statement: Statement) -> pa.Table:
        """Run a query; statement and rows are recorded."""
        return self._crossing(statement, lambda: self.engine.query(statement), Rows)

    def stream(self, statement: Statement) -> pa.RecordBatchReader:
        """Run a query; each batch is recorded when it is read."""
        reader = self._crossing(statement, lambda: self.engine.stream(statement), None)

        def passed() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                self._received(Rows(pa.Table.from_batches([batch])))
                yield batch

        return pa.RecordBatchReader.from_batches(reader.schema, passed())

    def value(self, statement: Statement) -> Constant:
        """Fetch one value; it is recorded as a table of one row."""
        return self._crossing(
            statement,
            lambda: self.engine.value(statement),
            lambda value: Rows(pa.table({"value": pa.array([value])})),
        )

    def table_names(self) -> list[str]:
        """The names of all tables; they are recorded as a table."""
        return self._crossing(
            Statement("the names of all tables"),
            self.engine.table_names,
            lambda names: Rows(pa.table({"name": pa.array(names, pa.string())})),
        )

    def run(self, statement: Statement) -> int:
        """Run a statement; it is recorded together with its count."""
        return self._crossing(statement, lambda: self.engine.run(statement), Count)

    def expect(
        self, statement: Statement, outcome: int, otherwise: Callable[[], errors.Error]
    ) -> None:
        """Run a statement, now or with the next one; it is recorded now, as if it succeeded."""
        self._crossing(
            statement,
            lambda: self.engine.expect(statement, outcome, otherwise),
            lambda _: Count(outcome),
        )

    def catch_up(self) -> None:
        """Wait for what is expected."""
        self.engine.catch_up()

    def append(self, table: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Append rows; they are recorded, those of a stream batch by batch."""
        if isinstance(rows, pa.Table):
            self._crossing(
                Append(table, rows),
                lambda: self.engine.append(table, rows),
                lambda _: Count(rows.num_rows),
            )
            return
        count = 0

        def passed() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in rows:
                count += batch.num_rows
                self.records.append(Record("sent", Append(table, pa.Table.from_batches([batch]))))
                yield batch

        self._crossing(
            Append(table, rows.schema.empty_table()),
            lambda: self.engine.append(
                table, pa.RecordBatchReader.from_batches(rows.schema, passed())
            ),
            lambda _: Count(count),
        )

    @property
    def takes_rows(self) -> bool:
        """Whether the tapped engine takes sealed rows as they were made."""
        return bool(getattr(self._attributes, "takes_rows", False))

    def write_row(
        self,
        sql: str,
        row: Any,
        more: Sequence[Constant],
        otherwise: Callable[[], errors.Error] | None,
    ) -> None:
        """Write one row; it is recorded as the constants that it is bound as."""
        bound = [column[0].as_py() for column in row.batch().columns]
        values = [str(value) if isinstance(value, UUID) else value for value in bound]
        self._crossing(
            Statement(sql, (*values, *more), kind="write"),
            lambda: self._attributes.write_row(sql, row, more, otherwise),
            lambda _: Count(1),
        )

    def begin(self) -> None:
        """Open a transaction."""
        self._crossing(Control("begin"), self.engine.begin, lambda _: Count(0))

    def commit(self) -> None:
        """Commit the transaction."""
        self._crossing(Control("commit"), self.engine.commit, lambda _: Count(0))

    def rollback(self) -> None:
        """Roll the transaction back."""
        self._crossing(Control("rollback"), self.engine.rollback, lambda _: Count(0))

    def side(self) -> Tap:
        """A tapped side connection; its records go into the same list."""
        return Tap(self.engine.side(), self.records)

    def lost_race(self, error: errors.Error) -> bool:
        """Whether the tapped engine failed only because another connection was faster."""
        return self.engine.lost_race(error)

    def interrupt(self) -> None:
        """Stop the running statement."""
        self.engine.interrupt()

    def close(self) -> None:
        """Close the tapped engine; the records stay."""
        self.engine.close()

    def sent(self) -> list[Message]:
        """All requests, in order."""
        return [record.message for record in self.records if record.direction == "sent"]

    def received(self) -> list[Message]:
        """All replies, in order."""
        return [record.message for record in self.records if record.direction == "received"]

    def bytes_sent(self) -> int:
        """The size of the requests as wire messages."""
        return sum(len(codec.encode(message)) for message in self.sent())

    def bytes_received(self) -> int:
        """The size of the replies as wire messages."""
        return sum(len(codec.encode(message)) for message in self.received())

    def search(self, needle: bytes) -> list[Message]:
        """The requests that contain `needle`: in text, constants, names or Arrow buffers."""
        return [message for message in self.sent() if _contains(message, needle)]

    def _crossing(
        self,
        request: Request,
        act: Callable[[], _Found],
        reply: Callable[[_Found], Reply] | None,
    ) -> _Found:
        self.records.append(Record("sent", request))
        try:
            result = act()
        except errors.Error as error:
            self._received(Failure(error.code, error.message))
            raise
        if reply is not None:
            self._received(reply(result))
        return result

    def _received(self, reply: Reply) -> None:
        self.records.append(Record("received", reply))


def _contains(message: Message, needle: bytes) -> bool:
    """Search the bytes as they are sent: text, names, constants and whole Arrow buffers."""
    if needle in codec.encode(message):
        return True
    # Numbers are binary on the wire, but a canary may be given in digits.
    return isinstance(message, Statement) and any(
        needle in str(constant).encode()
        for constant in message.constants
        if isinstance(constant, int | float)
    )
