"""Sealed copies of an answer: those that are in it, and those that are in tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.executor.tiles.reading import Fetched, Tiles, in_tiles, is_tiled
from louver.trusted.planner.ir import SEALED, RemoteQuery
from louver.trusted.planner.render import answer_name
from louver.trusted.vault import schemes
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
        if not is_tiled(table, column):
            continue
        inside = in_tiles(joined(answer.column(answer_name(output.name, remote))))
        if inside is None or inside.true_count:
            item = wanted.setdefault(output.slot, _Wanted(table))
            item.columns[column.id] = column
            ids = row_ids[output.slot]
            item.rows.append(ids if inside is None else ids.filter(inside))
    return {
        slot: tiles.fetch(item.table, [*item.columns.values()], item.ids())
        for slot, item in wanted.items()
    }


def copies(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array,
    type_: pa.DataType, tiles: Fetched | Tiles,
) -> pa.Array:  # fmt: skip
    """Sealed copies of rows opened, of a table with tiles, which are at hand or to be fetched."""
    own = keys, table, column
    if not is_tiled(table, column):
        return schemes.open_copy(*own, values, row_ids, type_)
    inside = in_tiles(values)
    if inside is not None and not inside.true_count:
        return schemes.open_copy(*own, values, row_ids, type_)
    ids = row_ids if inside is None else row_ids.filter(inside)
    held = tiles.fetch(table, [column], ids) if isinstance(tiles, Tiles) else tiles
    tiled = held.values(column, ids, type_)
    if inside is None:
        return tiled
    outside = pc.invert(inside)
    rest = schemes.open_copy(*own, values.filter(outside), row_ids.filter(outside), type_)
    places = pc.if_else(
        inside,
        pc.subtract(pc.cumulative_sum(inside.cast(pa.int64())), 1),
        pc.add(pc.cumulative_sum(outside.cast(pa.int64())), len(ids) - 1),
    )
    return pa.concat_arrays([tiled, rest]).take(places)
