"""A column's representations made anew from its sealed values: when its ceiling changes.

All of them are sealed under another generation of the column's keys: the server may still know
the keys of layers that it once opened, and must not open new codes by them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor import row_writer
from louver.trusted.executor.columns import unwrapped
from louver.trusted.executor.define import constraints, representations, tables
from louver.trusted.vault import schemes
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.protection import Protection
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.executor.session import Session

BATCH_ROWS = 131_072
"""Rows read, sealed and written at a time."""
_FRESH = "louver_fresh"
_GENERATIONS = 1 << 32


def fit(session: Session, table: Table, column: Column) -> tuple[list[str], list[str]]:
    """Give a column what its ceiling allows, and drop what it does not, within a transaction.

    ``table`` is the working catalog's. Returns the representations that came, and the server's
    columns that went.
    """
    kept = Protection(True, column.scheme, column.ceiling)
    kept = session.policy.detailed(kept, table.label, column.name)
    declared = constraints.read(session.home.schema, table.schema, table.name)
    known = declared.get(fold(column.name), constraints.Known())
    fresh, gone = representations.fit(column, kept, known)
    # DuckDB commits no change of a table's columns behind a change of its rows.
    session.storage.drop_columns(table, gone + tables.settle_helpers(table))
    if fresh:
        session.ledger.record(row_writer.at_rest(table), f"ALTER TABLE {table.label}")
        for name, type_ in representations.columns_of(column, session.backend, fresh):
            sql = session.backend.add_column(table, name, type_)
            session.engine.run(Statement(sql, kind="ddl"))
        if table.row_count:
            _seal_again(session, table, column)
    return fresh, gone


def _seal_again(session: Session, table: Table, column: Column) -> None:
    before, fresh = column.generation, _generation(column)
    done = 0
    for first, last in _ranges(session, table):
        column.generation = before
        row_ids, values = _read(session, table, column, first, last)
        column.generation = fresh
        # A database of an earlier release did not note which columns of text hold a NULL.
        row_writer.widen(column, pa.chunked_array([values]))
        made = schemes.seal(session.columns, table, column, values, row_ids)
        done += _write(session, table, pa.table({"louver_row": row_ids, **made}))
    if done != table.row_count:
        raise errors.make("row.missing", table=table.label, expected=table.row_count, found=done)


def _generation(column: Column) -> int:
    """Another generation, at random: the rows keep their ids, and another history of the database
    may seal the same rows anew, for another ceiling.
    """
    drawn = secrets.randbelow(_GENERATIONS - 1)
    return drawn if drawn < column.generation else drawn + 1


def _ranges(session: Session, table: Table) -> Iterator[tuple[int, int]]:
    """First and last row number of every batch."""
    reply = session.engine.query(Statement(session.backend.row_ids(table)))
    numbers = reply.column(0)
    for start in range(0, len(numbers), BATCH_ROWS):
        end = min(start + BATCH_ROWS, len(numbers)) - 1
        yield numbers[start].as_py(), numbers[end].as_py()


def _read(
    session: Session, table: Table, column: Column, first: int, last: int
) -> tuple[pa.Array, pa.Array]:
    """Row numbers and opened values, in Arrow's storage types."""
    sql = session.backend.row_range(table, column.stored["rnd"])
    reply = session.engine.query(Statement(sql, (first, last)))
    row_ids, held = (pa.concat_arrays(reply.column(place).chunks) for place in (0, 1))
    field = session.home.arrow_field(column.type)
    values = session.columns.open_column(table, column, held, row_ids, field)
    return row_ids, unwrapped(values)


def _write(session: Session, table: Table, made: pa.Table) -> int:
    names = [name for name in made.column_names if name != "louver_row"]
    sql = session.backend.update_from(table, names, _FRESH, "louver_row")
    return session.engine.run(Statement(sql, kind="write", tables={_FRESH: made}))
