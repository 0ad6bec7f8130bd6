"""Loads into tiles: of many rows the sealed copies are stored 1,024 at a time.

The row itself stays in the server's table, with its number, codes and plain columns; an empty
string stands there for each copy that is in a tile. What is over is stored row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from louver import arrow_streams
from louver.trusted.backends import tile_texts
from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.state import State
from louver.trusted.executor.storage import Parts
from louver.trusted.vault import arrays, scheme, tile_forms
from louver.trusted.vault.catalog import Column, Table
from louver.wire.messages import Statement

CHUNK_ROWS, CHUNK_BYTES = 2 * arrow_streams.BATCH_ROWS, 64 << 20
"""Rows that are sealed at a time, and how much they take, so that memory does not grow with a load.
DuckDB writes those that fill its row groups at once, by two threads, and never again.
"""
_INPUT = "louver_rows"


def chunks(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Rows in larger batches, of which all but the last fill tiles; in smaller ones, which need
    not, where few rows take much memory.
    """
    pending, count, size = list[pa.Table](), 0, 0
    for rows in batches:
        pending.append(rows)
        count, size = count + rows.num_rows, size + rows.nbytes
        if count < CHUNK_ROWS and size < CHUNK_BYTES:
            continue
        joint = pa.concat_tables(pending)
        filled = whole(joint) or count
        for start in range(0, filled, CHUNK_ROWS):
            yield joint.slice(start, min(CHUNK_ROWS, filled - start))
        rest = joint.slice(filled)
        pending, count, size = [rest], rest.num_rows, rest.nbytes
    if count:
        yield pa.concat_tables(pending)


def whole(rows: pa.Table) -> int:
    """How many of these rows fill tiles."""
    return int(rows.num_rows - rows.num_rows % tile_forms.ROWS)


def fits(table: Table, rows: pa.Table) -> bool:
    """Whether no tile of these rows would be too long."""
    values = (arrays.stored(rows.column(column.name)) for column in tile_forms.tiled(table))
    return not any(
        tile_forms.is_long(held.slice(start, tile_forms.ROWS))
        for held in values
        if tile_forms.has_no_width(held.type)
        for start in range(0, len(held), tile_forms.ROWS)
    )


def store(parts: Parts, table: Table, rows: pa.Table, row_ids: pa.Array) -> None:
    """Send rows with consecutive ids whose number fills tiles, and which fit these."""
    columns = tile_forms.tiled(table)
    values = [arrays.stored(rows.column(column.name)) for column in columns]
    layout = begun(parts.state, table, columns, values)
    first, keys = row_ids[0].as_py(), parts.columns.keyring
    tiles: dict[str, pa.Array] = {
        tile_texts.FIRST: pa.arange(first, first + len(row_ids), tile_forms.ROWS)
    }
    layouts = pa.repeat(pa.scalar(layout, pa.int64()), len(tiles[tile_texts.FIRST]))
    tiles[tile_texts.layout_of(table)] = layouts
    for column, held in zip(columns, values, strict=True):
        stored = scheme.read_from(column)
        form = tile_forms.forms(table, layout)[stored]
        identity = (table.id, column.id, form.generation)
        tiles[stored] = keys.seal_tiles(identity, form.handle, held, first, tile_forms.ROWS)
    names = [scheme.read_from(column) for column in columns]
    beside = arrow_values.readable(parts.columns.seal(_without(table, columns), rows, row_ids))
    sql = tile_texts.insert_rows(parts.backend, table, beside.column_names, names, _INPUT)
    parts.engine.run(Statement(sql, kind="write", tables={_INPUT: beside}))
    parts.engine.append(tile_texts.path(parts.backend, table), pa.table(tiles))


def begun(
    state: State, table: Table, columns: list[Column], values: Sequence[pa.Array | pa.ChunkedArray]
) -> int:
    """The layout of rows that come; a new one the catalog knows before they are committed."""
    layout, said = tile_forms.settle(table, columns, values)
    if said:
        if not table.counted:
            state.growth.hold(table)
            state.growth.tables.add(table.id)
            state.catalog.touch()
        table.tiles |= said
    return layout


def _without(table: Table, columns: list[Column]) -> Table:
    """A table without the sealed copies of some columns."""
    ids = {column.id for column in columns}
    left = [_uncopied(column) if column.id in ids else column for column in table.columns]
    return replace(table, columns=left)


def _uncopied(column: Column) -> Column:
    copy = scheme.read_from(column)
    return replace(column, stored={k: v for k, v in column.stored.items() if v != copy})
