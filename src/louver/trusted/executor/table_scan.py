"""Tables read for a change: opened rows together with their row numbers, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from louver import errors
from louver.trusted.executor.binding import bind_remote
from louver.trusted.planner import choose
from louver.trusted.planner.ir import Node
from louver.trusted.planner.plan import Remote
from louver.trusted.planner.sql.scope import Source
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import condition_of, with_condition

if TYPE_CHECKING:
    from louver.trusted.executor.session import Session

ROW_ID = "louver_row_id"


@dataclass(frozen=True, slots=True)
class Filter:
    """What the server applies before it sends rows, with the statement's numbers."""

    source: Source
    nodes: list[Node]
    literals: Sequence[str]


def whole(
    session: Session,
    table: Table,
    columns: Sequence[str] | None = None,
    where: Filter | None = None,
) -> pa.Table:
    """All rows of a table, or those that pass a filter, with their numbers (column
    ``louver_row_id``), every row once.
    """
    return pa.concat_tables(list(batches(session, table, columns, where)))


def batches(
    session: Session,
    table: Table,
    columns: Sequence[str] | None = None,
    where: Filter | None = None,
) -> Iterator[pa.Table]:
    """The rows of a table in batches, the first of which may be empty."""
    return session.storage.batches(table, columns, where)


def from_server(
    session: Session, table: Table, columns: Sequence[str] | None, where: Filter | None
) -> Iterator[pa.Table]:
    """The same of a server's table.

    A scan without a filter shows sizes only. A repeated row is found out at the end and, where
    there is no filter, a missing one too.
    """
    names = [c.name for c in table.columns] if columns is None else list(columns)
    source = where.source if where else Source(0, table.name, table, session.backend)
    outputs = [choose.stored(name, source, name) for name in names]
    nodes = where.nodes if where else []
    remote = Remote((table.schema, table.name), [source], [], outputs, nodes)
    remote.whole_table = True
    statement = bind_remote(session, remote, where.literals if where else [])
    parts = (statement.sql, statement.constants)
    condition = condition_of(parts, [table], session.storage.stamp)
    session.ledger.record(with_condition(choose.reads(remote), condition), "a change (scan)")
    count, numbers = 0, []
    reader = session.engine.stream(statement)
    for batch in reader:
        rows = _opened(session, remote, pa.Table.from_batches([batch]))
        count += rows.num_rows
        numbers.append(rows.column(ROW_ID))
        yield rows
    if not numbers:
        yield _opened(session, remote, pa.Table.from_batches([], reader.schema))
    unique = pa.chunked_array([c for n in numbers for c in n.chunks], pa.int64()).unique()
    complete = count <= table.row_count if where else count == table.row_count
    if not complete or len(unique) != count:
        raise errors.make("row.missing", table=table.label, expected=table.row_count, found=count)


def _opened(session: Session, remote: Remote, reply: pa.Table) -> pa.Table:
    if not remote.outputs:
        return pa.table({ROW_ID: reply.column("r0")})
    rows = session.columns.open(remote, reply, [], session.home.arrow_field)
    return rows.append_column(ROW_ID, reply.column("r0"))


@contextmanager
def understood() -> Iterator[None]:
    """What cannot be taken from a reply is the reply's fault. What Louver wrote binds, unless the
    server's tables are others now.
    """
    try:
        yield
    except errors.ProgrammingError as error:
        detail = f"its tables are not as they were made ({error.message.partition(chr(10))[0]})"
        raise errors.make("reply.format", detail=detail) from error
    except (ValueError, pa.ArrowException) as error:
        raise errors.make("reply.format", detail=str(error)) from error
