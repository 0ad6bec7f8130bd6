"""Values of rows that are in tiles.

The server is asked for the tiles of rows; what a tile holds, and of which rows, it proves itself. A
row that is in no tile, or a tile without its form, is an alteration, unless the catalog is another
by now (`session`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.backends import tile_texts
from louver.trusted.backends.backend import Backend
from louver.trusted.vault import scheme, tile_forms
from louver.trusted.vault.arrays import joined
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.engine import Engine
from louver.wire.messages import Statement

Numbers = npt.NDArray[np.int64]
_WANTED = "louver_wanted"
#: Of the rows of tiles that were read, fewer than one of so many are opened by themselves.
_SPARSE = 4
_MOST_SHARE = 0.5
"""From this share of a table's tiles on, all are asked for."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Reads tiles through one connection."""

    engine: Engine
    backend: Backend
    keyring: Callable[[], KeyRing]

    def fetch(self, table: Table, columns: Sequence[Column], row_ids: pa.Array) -> Fetched:
        """The tiles of these columns in which these rows are, none of them NULL."""
        firsts = _numbers(self.engine.query(Statement(tile_texts.firsts(self.backend, table))), 0)
        ids = np.asarray(row_ids.unique().to_numpy(zero_copy_only=False))
        wanted = np.unique(firsts[np.maximum(np.searchsorted(firsts, ids, side="right") - 1, 0)])
        stored = [scheme.read_from(column) for column in columns]
        if len(wanted) > _MOST_SHARE * len(firsts):
            statement = Statement(tile_texts.read(self.backend, table, stored))
        else:
            chosen = {_WANTED: pa.table({tile_texts.FIRST: wanted})}
            sql = tile_texts.read(self.backend, table, stored, _WANTED)
            statement = Statement(sql, tables=chosen)
        return self.received(table, stored, self.engine.query(statement))

    def received(self, table: Table, stored: Sequence[str], reply: pa.Table) -> Fetched:
        """Tiles that a server has answered with."""
        if reply.column_names != [tile_texts.FIRST, tile_texts.LAYOUT, *stored]:
            raise errors.make("reply.format", detail="tiles with other columns")
        for name in stored:
            if not pa.types.is_binary(reply.schema.field(name).type):
                raise errors.make("reply.format", detail="a tile that is no string of bytes")
        firsts, layouts = _numbers(reply, 0), _numbers(reply, 1)
        if len(firsts) > 1 and not np.all(firsts[1:] > firsts[:-1]):
            raise errors.make("reply.format", detail="tiles that are not in their order")
        sealed = {name: joined(reply.column(name)) for name in stored}
        return Fetched(table, firsts, layouts, sealed, self.keyring())


@dataclass(frozen=True, slots=True)
class Fetched:
    """Tiles of some columns, in the order of their first row ids."""

    table: Table
    firsts: Numbers
    layouts: Numbers
    sealed: Mapping[str, pa.Array]
    keyring: KeyRing

    def reaches(self, row_ids: pa.Array) -> bool:
        """Whether there may be a tile for each of these rows."""
        ids = np.asarray(row_ids.to_numpy(zero_copy_only=False))
        tiles = np.searchsorted(self.firsts, ids, side="right") - 1
        if not len(ids) or not len(self.firsts):
            return not len(ids)
        return bool(tiles.min() >= 0 and (ids - self.firsts[tiles]).max() < tile_forms.MOST_ROWS)

    def values(self, column: Column, row_ids: pa.Array, type_: pa.DataType) -> pa.Array:
        """The values of these rows in a column."""
        ids = np.asarray(row_ids.to_numpy(zero_copy_only=False))
        tiles = np.searchsorted(self.firsts, ids, side="right") - 1
        if len(ids) and (not len(self.firsts) or tiles.min() < 0):
            raise self._missing(column, ids[0] if not len(self.firsts) else ids[tiles < 0][0])
        offsets = ids - self.firsts[tiles] if len(ids) else ids
        if len(offsets) and offsets.max() >= tile_forms.MOST_ROWS:
            raise self._missing(column, ids[offsets >= tile_forms.MOST_ROWS][0])
        if len(ids) * _SPARSE < len(self.firsts) * tile_forms.MOST_ROWS:
            return self._sparse(column, ids, tiles, offsets, type_)
        return self._dense(column, ids, tiles, offsets, type_)

    def _dense(
        self, column: Column, ids: Numbers, tiles: Numbers, offsets: Numbers, type_: pa.DataType
    ) -> pa.Array:
        """All tiles opened, and of that these rows."""
        parts = list[pa.Array]()
        starts, counts = np.zeros_like(self.firsts), np.zeros_like(self.firsts)
        done = 0
        for layout in np.unique(self.layouts):
            (places,) = np.nonzero(self.layouts == layout)
            values, rows = self._opened(column, int(layout), places, type_, None)
            counts[places] = rows
            starts[places] = done + np.cumsum(rows) - rows
            parts.append(values)
            done += len(values)
        outside = offsets >= counts[tiles]
        if outside.any():
            raise self._missing(column, ids[outside][0])
        opened = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        positions = starts[tiles] + offsets
        if len(positions) == len(opened) and np.array_equal(positions, np.arange(len(opened))):
            return opened
        return opened.take(pa.array(positions))

    def _sparse(
        self, column: Column, ids: Numbers, tiles: Numbers, offsets: Numbers, type_: pa.DataType
    ) -> pa.Array:
        """Few rows of each tile opened."""
        slots = tiles * tile_forms.MOST_ROWS + offsets
        unique, positions = np.unique(slots, return_inverse=True)
        of_slot = unique // tile_forms.MOST_ROWS
        parts, order = list[pa.Array](), list[Numbers]()
        for layout in np.unique(self.layouts[of_slot]):
            (chosen,) = np.nonzero(self.layouts[of_slot] == layout)
            places = np.unique(of_slot[chosen])
            within = np.searchsorted(places, of_slot[chosen]) * tile_forms.MOST_ROWS
            wanted = within + unique[chosen] % tile_forms.MOST_ROWS
            values, rows = self._opened(column, int(layout), places, type_, wanted.tolist())
            counts = np.asarray(rows)
            outside = wanted % tile_forms.MOST_ROWS >= counts[wanted // tile_forms.MOST_ROWS]
            if outside.any() or len(values) != len(wanted):
                raise self._missing(column, ids[0])
            parts.append(values)
            order.append(chosen)
        if not parts:
            return pa.array([], type_)
        opened = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        places_of = np.empty(len(unique), np.int64)
        places_of[np.concatenate(order)] = np.arange(len(unique))
        return opened.take(pa.array(places_of[positions]))

    def _opened(
        self, column: Column, layout: int, places: Numbers, type_: pa.DataType,
        slots: list[int] | None,
    ) -> tuple[pa.Array, list[int]]:  # fmt: skip
        """Tiles of one layout opened."""
        form = tile_forms.form_of(self.table, layout, column)
        if form is None:
            raise self._missing(column, self.firsts[places[0]])
        sealed = self.sealed[scheme.read_from(column)]
        if len(places) != len(sealed):
            sealed = sealed.take(pa.array(places))
        identity = (self.table.id, column.id, form.generation)
        firsts = pa.array(self.firsts[places])
        return self.keyring.open_tiles(identity, form.handle, sealed, firsts, type_, slots)

    def _missing(self, column: Column, row: np.int64) -> errors.Error:
        names = {"table": self.table.label, "column": column.name}
        return errors.make("value.tampered", **names, row=int(row))


def is_tiled(table: Table, column: Column) -> bool:
    """Whether values of a column may be in tiles."""
    return bool(table.tiles) and scheme.read_from(column) in table.tile_columns


def in_tiles(values: pa.Array) -> pa.Array:
    """Which of a column's sealed copies stand for a value in a tile; never NULL."""
    return pc.fill_null(pc.equal(pc.binary_length(values), 0), False)


def _numbers(reply: pa.Table, position: int) -> Numbers:
    values = reply.column(position)
    if not pa.types.is_int64(values.type) or values.null_count:
        raise errors.make("reply.format", detail="tiles without numbers")
    return np.asarray(values.to_numpy())
