"""Values of rows that are in tiles.

The server is asked for the tiles of rows; what a tile holds, and of which rows, it proves itself. A
row that is in no tile, or a tile without its form, is an alteration, unless the catalog is another
by now (`session`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from louver import errors
from louver.trusted.backends import tile_texts
from louver.trusted.backends.backend import Backend
from louver.trusted.vault import native, scheme, tile_forms
from louver.trusted.vault.arrays import joined
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.engine import Engine
from louver.wire.messages import Statement

Numbers = npt.NDArray[np.int64]
_WANTED = "louver_wanted"
#: Of the rows of tiles that were read, fewer than one of so many are opened by themselves.
_SPARSE = 32
#: So many rows are looked for by their numbers, in so many places.
_FEW_IDS, _MOST_SPANS = 64, 4
_DIGITS_OF_64 = 18
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
        stored = [scheme.read_from(column) for column in columns]
        spans = _spans(row_ids)
        if spans is not None:
            (sql,) = question(self.backend, table, stored, spans=len(spans) // 2)
            return self.received(table, stored, self.engine.query(Statement(sql, spans)))
        firsts = _numbers(self.engine.query(Statement(tile_texts.firsts(self.backend, table))), 0)
        wanted = firsts[self._wanted(firsts, row_ids)]
        whole = len(wanted) > _MOST_SHARE * len(firsts)
        chosen = {} if whole else {_WANTED: pa.table({tile_texts.FIRST: wanted})}
        *_, sql = question(self.backend, table, stored, whole=whole)
        statement = Statement(sql, tables=chosen)
        return self.received(table, stored, self.engine.query(statement))

    @staticmethod
    def _wanted(firsts: Numbers, row_ids: pa.Array) -> Numbers:
        """The numbers of the tiles in which rows are."""
        if len(row_ids) >= len(firsts) * tile_forms.MOST_ROWS * _MOST_SHARE:
            return np.arange(len(firsts))
        ids = np.asarray(row_ids.to_numpy(zero_copy_only=False))
        return np.unique(_located(firsts, ids).tiles)

    def received(self, table: Table, stored: Sequence[str], reply: pa.Table) -> Fetched:
        """Tiles that a server has answered with."""
        if reply.column_names != [tile_texts.FIRST, tile_texts.layout_of(table), *stored]:
            raise errors.make("reply.format", detail="tiles with other columns")
        for name in stored:
            if not pa.types.is_binary(reply.schema.field(name).type):
                raise errors.make("reply.format", detail="a tile of another type")
        firsts, layouts = _numbers(reply, 0), _numbers(reply, 1)
        if not np.all(firsts[1:] > firsts[:-1]):
            # They mostly are stored in their order.
            order = np.argsort(firsts)
            reply, firsts, layouts = reply.take(pa.array(order)), firsts[order], layouts[order]
        if len(firsts) and (firsts[0] < 0 or not np.all(firsts[1:] > firsts[:-1])):
            raise errors.make("reply.format", detail="a tile that is there twice")
        sealed = {name: joined(reply.column(name)) for name in stored}
        return Fetched(table, firsts, layouts, sealed, self.keyring())


def question(
    backend: Backend, table: Table, stored: Sequence[str], *, spans: int = 0, whole: bool = False
) -> list[str]:
    """What asks for tiles: for those in so many places at once; else for the numbers of all tiles,
    and then for the ``whole`` table or for those that have rows.
    """
    if spans:
        return [tile_texts.read_spans(backend, table, stored, spans)]
    chosen = "" if whole else _WANTED
    return [tile_texts.firsts(backend, table), tile_texts.read(backend, table, stored, chosen)]


def texts(backend: Backend, table: Table, stored: Sequence[str], rows: float) -> list[str]:
    """The same for so many rows, if each is in a tile of its own as far as there are tiles."""
    if 0 < rows <= _MOST_SPANS:
        return question(backend, table, stored, spans=max(1, round(rows)))
    whole = rows * tile_forms.MOST_ROWS >= table.row_count * _MOST_SHARE
    return question(backend, table, stored, whole=whole)


@dataclass(frozen=True, slots=True)
class _Rows:
    """In which tiles rows are, and where there; ``lost`` is the id of one that is in none."""

    ids: Numbers
    tiles: Numbers
    offsets: Numbers
    lost: int | None = None


def _located(firsts: Numbers, ids: Numbers) -> _Rows:
    none = np.empty(0, np.int64)
    if not len(ids) or not len(firsts):
        return _Rows(ids, none, none, int(ids[0]) if len(ids) else None)
    if np.all(ids[1:] > ids[:-1]):
        # Rows mostly come in their order: a search for each tile, not for each row.
        ends = np.append(np.searchsorted(ids, firsts), len(ids))
        tiles = np.repeat(np.arange(-1, len(firsts)), np.diff(np.append(0, ends)))
    else:
        tiles = np.searchsorted(firsts, ids, side="right") - 1
    offsets = ids - firsts[tiles]
    lost = (tiles < 0) | (offsets < 0) | (offsets >= tile_forms.MOST_ROWS)
    return _Rows(ids, tiles, offsets, int(ids[lost][0]) if lost.any() else None)


@dataclass(frozen=True, slots=True)
class Fetched:
    """Tiles of some columns, in the order of their first row ids."""

    table: Table
    firsts: Numbers
    layouts: Numbers
    sealed: Mapping[str, pa.Array]
    keyring: KeyRing
    #: where rows are that were asked for
    places: list[tuple[pa.Array, _Rows]] = field(default_factory=list)
    #: which rows were found to be all rows of these tiles or not, of which each has so many
    compared: list[tuple[pa.Array, list[int], bool]] = field(default_factory=list)
    chosen: list[tuple[pa.Array, Numbers, pa.Array]] = field(default_factory=list)

    def narrowed(self, column: Column, field: pa.Field) -> pa.Field:
        """A field for values that the local engine takes as they are: decimals of few digits in 8
        bytes, which DuckDB too has in so many.
        """
        type_ = field.type
        if not pa.types.is_decimal128(type_) or type_.precision > _DIGITS_OF_64:
            return field
        in_tiles = self.table.has_in_tiles(scheme.read_from(column))
        if not in_tiles or not tile_forms.is_narrow(self.table, column):
            return field
        return field.with_type(pa.decimal64(type_.precision, type_.scale))

    def rows_of(self, row_ids: pa.Array, alone: Numbers) -> pa.Array:
        """The ids of rows but for those at some positions; one array where columns agree."""
        for known, positions, rows in self.chosen:
            if known is row_ids and np.array_equal(positions, alone):
                return rows
        rows = without(row_ids, alone)
        self.chosen.append((row_ids, alone, rows))
        return rows

    def reach(self, row_ids: pa.Array) -> bool:
        """Whether there may be a tile for each of these rows."""
        return self._rows(row_ids).lost is None

    def values(self, column: Column, row_ids: pa.Array, type_: pa.DataType) -> pa.ChunkedArray:
        """The values of these rows in a column."""
        if len(row_ids) * _SPARSE < len(self.firsts) * tile_forms.MOST_ROWS:
            return pa.chunked_array([self._sparse(column, self._found(column, row_ids), type_)])
        return self._dense(column, row_ids, type_)

    def _found(self, column: Column, row_ids: pa.Array) -> _Rows:
        located = self._rows(row_ids)
        if located.lost is not None:
            raise self._missing(column, located.lost)
        return located

    def _rows(self, row_ids: pa.Array) -> _Rows:
        """Where rows are; columns of one answer are of the same rows."""
        for known, located in self.places:
            if known is row_ids:
                return located
        located = _located(self.firsts, np.asarray(row_ids.to_numpy(zero_copy_only=False)))
        self.places.append((row_ids, located))
        return located

    def _are_all(self, row_ids: pa.Array, counts: list[int]) -> bool:
        """Whether rows are all of these tiles, of which each has so many, in their order. Columns
        of one answer are of the same rows, and agree in that.
        """
        for known, rows, outcome in self.compared:
            if known is row_ids and rows == counts:
                return outcome
        result: bool = native.module().tiles.all_rows(row_ids, pa.array(self.firsts), counts)
        self.compared.append((row_ids, counts, result))
        return result

    def _dense(self, column: Column, row_ids: pa.Array, type_: pa.DataType) -> pa.ChunkedArray:
        """All tiles opened, and of that these rows."""
        parts = list[pa.Array]()
        starts, counts = np.zeros_like(self.firsts), np.zeros_like(self.firsts)
        done = 0
        for layout in np.unique(self.layouts):
            (tiles,) = np.nonzero(self.layouts == layout)
            values, rows = self._opened(column, int(layout), tiles, type_, None)
            counts[tiles] = rows
            starts[tiles] = done + np.cumsum(rows) - rows
            parts.append(values)
            done += len(values)
        in_order = bool(np.all(starts[1:] >= starts[:-1]))
        if in_order and self._are_all(row_ids, counts.tolist()):
            # Those of an ENUM come as its texts.
            return pa.chunked_array(parts) if parts else pa.chunked_array([], type_)
        opened = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return pa.chunked_array([self._taken(column, row_ids, opened, starts, counts)])

    def _taken(
        self, column: Column, row_ids: pa.Array, opened: pa.Array, starts: Numbers, counts: Numbers
    ) -> pa.Array:
        """Rows of opened tiles, of which each begins there and has so many."""
        located = self._found(column, row_ids)
        outside = located.offsets >= counts[located.tiles]
        if outside.any():
            raise self._missing(column, int(located.ids[outside][0]))
        return opened.take(pa.array(starts[located.tiles] + located.offsets))

    def _sparse(self, column: Column, located: _Rows, type_: pa.DataType) -> pa.Array:
        """Few rows of each tile opened."""
        slots = located.tiles * tile_forms.MOST_ROWS + located.offsets
        unique, positions = np.unique(slots, return_inverse=True)
        of_slot = unique // tile_forms.MOST_ROWS
        parts, order = list[pa.Array](), list[Numbers]()
        for layout in np.unique(self.layouts[of_slot]):
            (chosen,) = np.nonzero(self.layouts[of_slot] == layout)
            tiles = np.unique(of_slot[chosen])
            within = np.searchsorted(tiles, of_slot[chosen]) * tile_forms.MOST_ROWS
            wanted = within + unique[chosen] % tile_forms.MOST_ROWS
            values, rows = self._opened(column, int(layout), tiles, type_, wanted.tolist())
            counts = np.asarray(rows)
            outside = wanted % tile_forms.MOST_ROWS >= counts[wanted // tile_forms.MOST_ROWS]
            if outside.any() or len(values) != len(wanted):
                raise self._missing(column, int(located.ids[0]))
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
            raise self._missing(column, int(self.firsts[places[0]]))
        sealed = self.sealed[scheme.read_from(column)]
        if len(places) != len(sealed):
            sealed = sealed.take(pa.array(places))
        identity = (self.table.id, column.id, form.generation)
        firsts = pa.array(self.firsts[places])
        return self.keyring.open_tiles(identity, form.handle, sealed, firsts, type_, slots)

    def _missing(self, column: Column, row: int) -> errors.Error:
        names = {"table": self.table.label, "column": column.name}
        return errors.make("value.tampered", **names, row=row)


def _spans(row_ids: pa.Array) -> tuple[int, ...] | None:
    """Between which numbers the first rows of tiles must be that have these rows, as pairs; None
    where these are many.
    """
    if len(row_ids) > _FEW_IDS:
        return None
    spans = list[int]()
    for row in sorted(row_ids.to_pylist()):
        low = row - tile_forms.MOST_ROWS + 1
        if spans and low <= spans[-1]:
            spans[-1] = row
        else:
            spans += [low, row]
    return tuple(spans) if 0 < len(spans) <= 2 * _MOST_SPANS else None


def without(row_ids: pa.Array, alone: Numbers) -> pa.Array:
    """Row ids without those at some positions, which ascend."""
    if not len(alone):
        return row_ids
    if alone[0] == len(row_ids) - len(alone):
        return row_ids.slice(0, len(row_ids) - len(alone))
    return row_ids.take(pa.array(others(alone, len(row_ids))))


def others(alone: Numbers, count: int) -> Numbers:
    """All positions below a count but for some."""
    rest = np.ones(count, bool)
    rest[alone] = False
    return np.flatnonzero(rest)


def _numbers(reply: pa.Table, position: int) -> Numbers:
    values = reply.column(position) if position < reply.num_columns else pa.chunked_array([[]])
    if not pa.types.is_int64(values.type) or values.null_count:
        raise errors.make("reply.format", detail="tiles without numbers")
    return np.asarray(values.to_numpy())
