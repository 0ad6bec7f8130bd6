"""Rows of a server's table, written: sealed, numbered and counted, or removed by number."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from itertools import chain, islice
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.executor import cardinality
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.plan_leakage import of_openings
from louver.trusted.executor.storage import Parts
from louver.trusted.planner.ir import Opening
from louver.trusted.vault import bounds, row_id_ranges
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.recipes import Recipe
from louver.trusted.vault.scheme import has_shares, scheme_of
from louver.trusted.vault.seen_values import MANY
from louver.trusted.vault.types import can_share, shifted, value_range
from louver.trusted.vault.writers import outrun
from louver.untrusted.engines.engine import TakesRows
from louver.wire.messages import Constant, Statement

_FEW = 16
"""Values that Python compares sooner than Arrow."""
BATCH_ROWS = 65_536
"""Rows sealed at a time, so that memory does not grow with a load."""
MOST_BOUND = 16
"""Rows that are deleted by bound numbers; more go as an Arrow table, which costs more at first."""
SHARED_ROWS = 8_192
"""As many where shares, which are a hundred times as wide, are made of them."""
_MOST_CONSTANTS = 256
#: Arrow types whose Python values are a statement's constants.
_CONSTANT = (
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_float64, pa.types.is_binary,
    pa.types.is_string,
)  # fmt: skip


def append(parts: Parts, table: Table, batches: Iterator[pa.Table]) -> None:
    """Append rows to a server's table: what fills tiles in these, where the server has them, and
    the rest row by row in one statement, which runs while they are sealed. One row at the beginning
    may be a statement of its own.
    """
    if parts.backend.has_tiles and table.tile_columns:
        batches = _beside_tiles(parts, table, batches)
    first = next(batches, None)
    if first is None or _append_row(parts, table, first):
        first = None
    sealed = _sealed(parts, table, batches if first is None else chain((first,), batches))
    begun = list(islice(sealed, 2))
    if len(begun) == 1:
        parts.engine.append(parts.backend.table(table), begun[0])
    elif begun:
        reader = pa.RecordBatchReader.from_batches(
            begun[0].schema, (b for rows in chain(begun, sealed) for b in rows.to_batches())
        )
        parts.engine.append(parts.backend.table(table), reader)


def _beside_tiles(parts: Parts, table: Table, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """What is over at the end of rows that were stored in tiles; or all from where these do not fit
    any more.
    """
    from louver.trusted.executor import tiled_loads as tiled

    source = tiled.chunks(batches)
    for rows in source:
        # What is known of the columns is not to depend on where rows are parted.
        _receive(parts, table, rows)
        whole = rows.slice(0, tiled.whole(rows))
        if not whole.num_rows or not tiled.fits(table, whole):
            return chain((rows,), source)
        ids = parts.row_ids.take(whole.num_rows, parts.state.catalog)
        tiled.store(parts, table, _as_stored(parts, table, whole), ids)
        _added(parts, table, ids)
        if whole.num_rows < rows.num_rows:
            return chain((rows.slice(len(ids)),), source)
    return iter(())


def _sealed(parts: Parts, table: Table, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    step = min(BATCH_ROWS, SHARED_ROWS) if has_shares(table) else BATCH_ROWS
    for rows in batches:
        for start in range(0, rows.num_rows, step):
            batch = rows.slice(start, step)
            ids = _numbered(parts, table, batch)
            sealed = parts.columns.seal(table, _as_stored(parts, table, batch), ids)
            _added(parts, table, ids)
            if table.tile_columns:
                parts.state.unfolded.add(table.id, ids[0].as_py(), len(ids))
            # The server's DuckDB gives up its database for what the one locally does.
            yield arrow_values.readable(sealed)


def _numbered(parts: Parts, table: Table, rows: pa.Table) -> pa.Array:
    """The ids of new rows, whose values are within the columns' bounds from here on."""
    _receive(parts, table, rows)
    tiled = table.id if table.tile_columns else None
    return parts.row_ids.take(rows.num_rows, parts.state.catalog, tiled)


def _receive(parts: Parts, table: Table, rows: pa.Table) -> None:
    """The values of new rows into the columns' bounds."""
    for column in table.columns:
        parts.local.require_received(rows.column(column.name))
        _take_in(parts, table, column, rows.column(column.name))


def _append_row(parts: Parts, table: Table, rows: pa.Table) -> bool:
    """Append one row with the next statement; whether that was all."""
    sealed = _sealed_row(parts, table, rows)
    if sealed is None:
        return False
    recipe, row = sealed
    text = recipe.text("insert", table, parts.backend.insert_row, row)
    cast(TakesRows, parts.engine).write_row(text, row, (), None)
    return True


def _sealed_row(parts: Parts, table: Table, rows: pa.Table) -> tuple[Recipe, Any] | None:
    """One row as the engine takes it, numbered and counted, and how it was sealed; None of more
    rows, where the engine takes none so, and of values that it does not take.
    """
    if rows.num_rows != 1 or not getattr(parts.engine, "takes_rows", False):
        return None
    if not parts.columns.recipes.seals_rows(table):
        return None
    ids = _numbered(parts, table, rows)
    stored, number = _as_stored(parts, table, rows), ids[0].as_py()
    sealed = parts.columns.recipes.seal_row(parts.columns, table, stored, number)
    if sealed is not None:
        _added(parts, table, ids)
    return sealed


def _as_stored(parts: Parts, table: Table, rows: pa.Table) -> pa.Table:
    """Rows with the values of plain columns as the server's type holds them."""
    for column in table.columns:
        if not column.encrypted:
            values = rows.column(column.name)
            stored = parts.local.as_stored(column.type, values)
            if stored is not values:
                rows = rows.set_column(rows.column_names.index(column.name), column.name, stored)
    return rows


def _added(parts: Parts, table: Table, row_ids: pa.Array) -> None:
    """Count new rows; their numbers are consecutive."""
    if table.counted:
        table.row_count += len(row_ids)
        if len(row_ids):
            row_id_ranges.append(table, row_ids[0].as_py(), len(row_ids))
    else:
        parts.state.growth.add(table, len(row_ids))
    table.kept_complete = not table.kept


def remove(parts: Parts, table: Table, row_ids: pa.Array) -> None:
    """Delete rows of a server's table by number. If one is not there any more, another client has
    changed it since it was read: `catalog.conflict`.
    """
    backend, name = parts.backend, "louver_gone"
    if len(row_ids) <= MOST_BOUND:
        numbers = tuple(row_ids.to_pylist())
        statement = Statement(backend.delete_few(table, len(numbers)), numbers, kind="write")
    else:
        gone = {name: pa.table({"row_id": row_ids})}
        statement = Statement(backend.delete_rows(table, name), kind="write", tables=gone)
    _expect_removed(parts, table, row_ids, statement)


def _expect_removed(parts: Parts, table: Table, row_ids: pa.Array, statement: Statement) -> None:
    """Run a statement that takes all of these rows away, or none of the transaction is done."""
    parts.engine.expect(statement, len(row_ids), outrun)
    _removed(parts, table, row_ids)


def _removed(parts: Parts, table: Table, row_ids: pa.Array) -> None:
    """Count rows that are gone."""
    if table.counted:
        table.row_count -= len(row_ids)
        row_id_ranges.remove(table, row_ids)
    else:
        parts.state.growth.add(table, -len(row_ids))


def replace(parts: Parts, table: Table, row_ids: pa.Array, rows: pa.Table) -> None:
    """One row of a server's table for another one: in one statement, where the server does with it
    what it does with two, and has nothing of the old row that the new one lacks.
    """
    if not parts.backend.replaces or not table.tags or table.kept:
        remove(parts, table, row_ids)
        append(parts, table, iter([rows]))
        return
    sealed_row = _sealed_row(parts, table, rows)
    if sealed_row is not None:
        _replace_row(parts, table, row_ids, *sealed_row)
        return
    (sealed,) = _sealed(parts, table, iter([rows]))
    constants = _constants_of(sealed)
    if constants is None:
        remove(parts, table, row_ids)
        parts.engine.append(parts.backend.table(table), sealed)
        return
    sql = parts.backend.replace_row(table, sealed.column_names)
    statement = Statement(sql, (*constants, row_ids[0].as_py()), kind="write")
    _expect_removed(parts, table, row_ids, statement)


def _replace_row(
    parts: Parts, table: Table, row_ids: pa.Array, recipe: Recipe, row: Any
) -> None:  # fmt: skip
    text = recipe.text("replace", table, parts.backend.replace_row, row)
    cast(TakesRows, parts.engine).write_row(text, row, (row_ids[0].as_py(),), outrun)
    _removed(parts, table, row_ids)


def _constants_of(row: pa.Table) -> list[Constant] | None:
    """The values of a sealed row, where each is a constant of a statement as it is."""
    if row.num_columns > _MOST_CONSTANTS or not all(map(_is_constant, row.schema.types)):
        return None
    values = [column[0].as_py() for column in row.columns]
    return [str(value) if isinstance(value, uuid.UUID) else value for value in values]


def _is_constant(type_: pa.DataType) -> bool:
    return isinstance(type_, pa.UuidType) or any(is_one(type_) for is_one in _CONSTANT)


def _take_in(parts: Parts, table: Table, column: Column, values: pa.ChunkedArray) -> None:
    """New values into a column's bounds. Under an open layer the first NULL shows itself."""
    if _is_within(column, values):
        return
    had_null = column.has_null
    if not table.counted:
        parts.state.growth.hold(table)
    if widen(column, values) and not table.counted:
        parts.state.growth.tables.add(table.id)
        parts.state.catalog.touch()
    if column.has_null and not had_null:
        # A layer that was opened in a transaction that was undone is closed, but the server has
        # its key.
        sentences = parts.ledger.kinds(table.id, column.id)
        shown = [
            Opening(table.id, column.id, onion, state)
            for onion, state in column.layers.items()
            if state != "closed" or _was_open(onion, sentences)
        ]
        if shown:
            facts = of_openings(shown, parts.state.catalog)
            parts.ledger.record(facts, f"INSERT INTO {table.label}")


def _was_open(onion: str, facts: Collection[str]) -> bool:
    opened = scheme_of(onion).opened
    return opened is not None and opened.kind in facts


def widen(column: Column, values: pa.ChunkedArray) -> bool:
    """Take new values into a column's bounds, and into its count of different ones; says whether
    that changed anything that other clients must know at once.
    """
    before = bounds.shared(column)
    cardinality.see(column, values)
    low, high = _bounds(values, column.type) if can_share(column.type) else (None, None)
    bounds.widen(column, low, high, values.null_count > 0)
    return before != bounds.shared(column)


def _is_within(column: Column, values: pa.ChunkedArray) -> bool:
    """Whether new values add nothing to a column's bounds, nor to its count of different ones."""
    if (column.encrypted and column.seen != [MANY]) or (values.null_count and not column.has_null):
        return False
    low, high = _bounds(values, column.type) if can_share(column.type) else (None, None)
    least, most = column.minimum, column.maximum
    if low is None or high is None:
        # Of an ENC column they begin with the first row: that it has a value must not show later.
        return least is not None or not (column.encrypted and can_share(column.type))
    return least is not None and most is not None and least <= low and high <= most


def _bounds(values: pa.ChunkedArray, type_: str) -> tuple[int | None, int | None]:
    """Smallest and largest unscaled value; the type's own limits where Arrow cannot compare."""
    if values.null_count == len(values):
        return None, None
    kind = values.type
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        values = pa.chunked_array([chunk.view(whole) for chunk in values.chunks], whole)
    elif not pa.types.is_integer(kind) and not pa.types.is_decimal(kind):
        limits = value_range(type_)
        return limits or (None, None)
    if len(values) <= _FEW:
        numbers = [number for number in values.to_pylist() if number is not None]
        low, high = min(numbers), max(numbers)
    else:
        combined = pc.min_max(values)
        low, high = combined["min"].as_py(), combined["max"].as_py()
    if pa.types.is_decimal(kind):
        scale = kind.scale
        return int(shifted(low, scale)), int(shifted(high, scale))
    return low, high
