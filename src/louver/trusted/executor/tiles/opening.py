"""Sealed copies of an answer: those that are in it, and those that are in tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.executor.tiles.reading import Fetched, Numbers, Tiles, others, without
from louver.trusted.planner.ir import SEALED, RemoteQuery
from louver.trusted.planner.render import answer_name
from louver.trusted.vault import scheme, schemes
from louver.trusted.vault.arrays import joined
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.key_source import KeySource


@dataclass(slots=True)
class _Wanted:
    """Columns of one occurrence of a table, and the rows of which tiles have their values."""

    table: Table
    columns: dict[int, Column] = field(default_factory=dict)
    rows: list[pa.Array] = field(default_factory=list)

    def ids(self) -> pa.Array:
        """The rows of all columns."""
        longest = max(self.rows, key=len)
        # Columns of one table are in its tiles together, but for those that came later.
        if all(len(ids) == len(longest) for ids in self.rows):
            return longest
        return pa.concat_arrays(self.rows)


def fetched(
    remote: RemoteQuery, tables: Mapping[int, Table], answer: pa.Table,
    row_ids: Mapping[int, pa.Array], tiles: Tiles,
) -> dict[int, Fetched]:  # fmt: skip
    """The tiles that hold values of an answer, by the occurrence of their table."""
    wanted = dict[int, _Wanted]()
    for output in remote.outputs:
        if output.kind != SEALED or output.row is not None:
            continue
        table = tables[remote.table_of(output.slot)]
        column = next(c for c in table.columns if c.id == output.column)
        if not table.has_in_tiles(scheme.read_from(column)):
            continue
        values, ids = answer.column(answer_name(output.name, remote)), row_ids[output.slot]
        own = outside(values)
        if len(own) < len(values):
            require_rows(ids, own)
            item = wanted.setdefault(output.slot, _Wanted(table))
            item.columns[column.id] = column
            item.rows.append(without(ids, own))
    return {
        slot: tiles.fetch(item.table, [*item.columns.values()], item.ids())
        for slot, item in wanted.items()
    }


def copies(
    keys: KeySource, table: Table, column: Column, values: pa.ChunkedArray, row_ids: pa.Array,
    type_: pa.DataType, tiles: Fetched | Tiles,
) -> pa.Array | pa.ChunkedArray:  # fmt: skip
    """Sealed copies of rows opened, of a table with tiles, which are at hand or to be fetched."""
    own = keys, table, column
    if not table.has_in_tiles(scheme.read_from(column)):
        return _single(*own, joined(values), row_ids, type_)
    alone = outside(values)
    if len(alone) == len(values):
        return _single(*own, joined(values), row_ids, type_)
    require_rows(row_ids, alone)
    if isinstance(tiles, Tiles):
        tiles = tiles.fetch(table, [column], without(row_ids, alone))
    tiled = tiles.values(column, tiles.rows_of(row_ids, alone), type_)
    if not len(alone):
        return tiled
    if alone[0] == len(tiled):
        # Single rows come behind those of the load.
        rest, ids = joined(values.slice(len(tiled))), row_ids.slice(len(tiled))
        return pa.chunked_array([*tiled.chunks, _single(*own, rest, ids, type_)])
    chosen = pa.array(alone)
    rest = _single(*own, joined(values.take(chosen)), row_ids.take(chosen), type_)
    places = np.empty(len(values), np.int64)
    places[alone] = np.arange(len(tiled), len(values))
    places[others(alone, len(values))] = np.arange(len(tiled))
    return pa.concat_arrays([*tiled.chunks, rest]).take(pa.array(places))


def _single(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array,
    type_: pa.DataType,
) -> pa.Array:  # fmt: skip
    """Values that are in no tile, in the type of those that are."""
    if not pa.types.is_decimal64(type_):
        return schemes.open_copy(keys, table, column, values, row_ids, type_)
    sealed_as = pa.decimal128(type_.precision, type_.scale)
    return schemes.open_copy(keys, table, column, values, row_ids, sealed_as).cast(type_)


def require_rows(row_ids: pa.Array, alone: Numbers) -> None:
    """Raise where a value in a tile has no row; only an outer join has rows without numbers."""
    if row_ids.null_count and without(row_ids, alone).null_count:
        raise errors.make("reply.format", detail="a value without its row")


def outside(values: pa.ChunkedArray) -> Numbers:
    """The positions of sealed copies that do not stand for a value in a tile."""
    parts, start = list[Numbers](), 0
    for chunk in values.chunks:
        parts.append(_outside(chunk) + start)
        start += len(chunk)
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])


def _outside(values: pa.Array) -> Numbers:
    if values.null_count:
        there = pc.fill_null(pc.not_equal(pc.binary_length(values), 0), True)
        return np.flatnonzero(there.to_numpy(zero_copy_only=False))
    if not len(values):
        return np.empty(0, np.int64)
    kind = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    ends = np.frombuffer(values.buffers()[1], kind)[values.offset :][: len(values) + 1]
    if ends[0] == ends[-1]:
        return np.empty(0, np.int64)
    # Those of a load come first.
    first = int(np.searchsorted(ends, ends[0], side="right")) - 1
    return np.flatnonzero(np.diff(ends[first:])) + first
