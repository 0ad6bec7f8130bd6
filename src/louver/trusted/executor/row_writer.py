"""Rows on their way to the server: numbered, bounded, noted in the ledger, sealed, appended."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.executor import cardinality
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.plan_leakage import of_openings
from louver.trusted.planner.sql.values import Opening
from louver.trusted.vault import row_id_ranges
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.facts import Fact, fact
from louver.trusted.vault.scheme import scheme_of
from louver.trusted.vault.types import can_share, has_fixed_length, shifted, value_range
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.executor.session import Session

BATCH_ROWS = 65_536
"""Rows sealed at a time, so that memory does not grow with a load."""
SHARED_ROWS = 8_192
"""As many where shares, which are a hundred times as wide, are made of them."""


def append(session: Session, table: Table, rows: pa.Table) -> None:
    """Append rows of declared columns (Arrow without loss) within a transaction.

    ``table`` is the working catalog's; its bounds and row count follow.
    """
    append_stream(session, table, iter([rows]))


def append_stream(session: Session, table: Table, batches: Iterator[pa.Table]) -> None:
    """Append rows as they come, all or nothing; making them must not use the session's connection
    to the server.
    """
    session.ledger.record(at_rest(table), f"INSERT INTO {table.label}")
    session.storage.append(table, batches)
    session.planner.forget()


def append_sealed(session: Session, table: Table, batches: Iterator[pa.Table]) -> None:
    """Append rows to a server's table in one statement; they are sealed while it runs."""
    sealed = _sealed(session, table, batches)
    begun = list(islice(sealed, 2))
    if len(begun) == 1:
        session.engine.append(session.backend.table(table), begun[0])
    elif begun:
        reader = pa.RecordBatchReader.from_batches(
            begun[0].schema, (b for rows in chain(begun, sealed) for b in rows.to_batches())
        )
        session.engine.append(session.backend.table(table), reader)


def _sealed(session: Session, table: Table, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    shared = any("sdb" in column.stored for column in table.columns)
    step = min(BATCH_ROWS, SHARED_ROWS) if shared else BATCH_ROWS
    for rows in batches:
        for start in range(0, rows.num_rows, step):
            batch = rows.slice(start, step)
            for column in table.columns:
                _take_in(session, table, column, batch.column(column.name))
            ids = session.row_ids.take(batch.num_rows, session.catalog)
            sealed = session.columns.seal(table, batch, ids)
            table.row_count += batch.num_rows
            if batch.num_rows:
                row_id_ranges.append(table, ids[0].as_py(), batch.num_rows)
            table.kept_complete = not table.kept
            # The server's DuckDB gives up its database for what the one at home does.
            yield arrow_values.readable(sealed)


def remove(session: Session, table: Table, row_ids: pa.Array) -> None:
    """Delete rows by number within a transaction."""
    if len(row_ids):
        session.storage.remove(table, row_ids)
        session.planner.forget()


def remove_numbered(session: Session, table: Table, row_ids: pa.Array) -> None:
    """Delete rows of a server's table by number."""
    gone = pa.table({"row_id": row_ids})
    session.engine.run(
        Statement(
            session.backend.delete_rows(table, "louver_gone"),
            kind="write",
            tables={"louver_gone": gone},
        )
    )
    table.row_count -= len(row_ids)
    row_id_ranges.remove(table, row_ids)


def at_rest(table: Table) -> list[Fact]:
    """What the stored forms of a table's encrypted columns show before any query."""
    found: dict[tuple[str, str], list[Column]] = {}
    for column in table.columns:
        packed = ["hom"] if any(column.id in ids for ids in table.packs.values()) else []
        for representation in (*column.stored, *packed) if column.encrypted else ():
            scheme = scheme_of(representation)
            for leak in (scheme.at_rest, None if has_fixed_length(column.type) else scheme.lengths):
                if leak is not None:
                    # What is said of a table as a whole is one fact of all its columns.
                    alone = column.name if "{column}" in leak.text else ""
                    columns = found.setdefault((leak.name, alone), [])
                    if column not in columns:
                        columns.append(column)
    return [fact(name, table, columns) for (name, _), columns in found.items()]


def _take_in(session: Session, table: Table, column: Column, values: pa.ChunkedArray) -> None:
    """New values into a column's bounds. Under an open layer the first NULL shows itself."""
    had_null = column.has_null
    widen(column, values)
    if column.has_null and not had_null:
        # A layer that was opened in a transaction that was undone is closed, but the server has
        # its key.
        told = session.ledger.kinds(table.id, column.id)
        shown = [
            Opening(table.id, column.id, onion, state)
            for onion, state in column.layers.items()
            if state != "closed" or _was_open(onion, told)
        ]
        if shown:
            facts = of_openings(shown, session.catalog)
            session.ledger.record(facts, f"INSERT INTO {table.label}")


def _was_open(onion: str, told: Collection[str]) -> bool:
    opened = scheme_of(onion).opened
    return opened is not None and opened.kind in told


def widen(column: Column, values: pa.ChunkedArray) -> None:
    """Take new values into a column's bounds, and into its count of different ones."""
    cardinality.see(column, values)
    if not can_share(column.type):
        column.widen(None, None, values.null_count > 0)
        return
    low, high = _bounds(values, column.type)
    column.widen(low, high, values.null_count > 0)


def _bounds(values: pa.ChunkedArray, type_: str) -> tuple[int | None, int | None]:
    """Smallest and largest unscaled value; the type's own limits where Arrow cannot compare."""
    if values.null_count == len(values):
        return None, None
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    elif not pa.types.is_integer(kind) and not pa.types.is_decimal(kind):
        limits = value_range(type_)
        return limits or (None, None)
    found = pc.min_max(values)
    low, high = found["min"].as_py(), found["max"].as_py()
    if pa.types.is_decimal(kind):
        scale = kind.scale
        return int(shifted(low, scale)), int(shifted(high, scale))
    return low, high
