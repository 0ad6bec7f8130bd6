"""Rows that are stored by themselves are folded into tiles (docs/decisions/0044): all of them by
CHECKPOINT, and those of a session by itself, when it has stored many.

A row keeps its number, its codes and its place: its sealed copies are opened, sealed again in a
tile with those of the rows before and behind it, and replaced by empty strings. A tile has values
of consecutive numbers only, since a value in it counts for a row that has its number, be it gone.
Shorter runs of rows stay as they are: a tile of few rows takes as much as one of many.

Rows of some tiles are one transaction. A reader that saw a row before it and asks for the tile
after it asks for both again (`storage.in_one_state`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from louver import errors
from louver.trusted.backends import tile_texts
from louver.trusted.executor import row_writer, server_scans, tiled_loads, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.state import Span
from louver.trusted.executor.tiles import tables
from louver.trusted.executor.tiles.reading import Numbers
from louver.trusted.vault import arrays, scheme, tile_forms
from louver.trusted.vault.arrays import joined
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.writers import outrun
from louver.wire.messages import Statement

_LEAST_SHARE = 4
"""Of the rows of a tile one of so many must be there."""
_TILES = 128
"""Tiles that are one transaction, so that memory does not grow with the table."""
STEP_TILES, STEP_COLUMNS = 16, 24
"""Tiles that follow one statement, and columns of all of these: one takes about 1.5 ms."""
_ROWS = "louver_rows"


def fold(context: Context) -> None:
    """Fold rows of all tables. What another client changes meanwhile stays as it is."""
    for key in [*context.catalog.tables]:
        table = context.catalog.tables.get(key)
        if table is None or not tile_forms.columns_of(table):
            continue
        try:
            _fold_table(context, table)
        except errors.Error as error:
            if error.code != "catalog.conflict":
                raise


def _fold_table(context: Context, table: Table) -> None:
    if not table.tile_table:
        if table.counted and table.row_count < tile_forms.ROWS // _LEAST_SHARE:
            return
        with transaction.writing(context) as catalog:
            own = catalog.by_id(table.id)
            for sql in tables.create(context.backend, own):
                context.engine.run(Statement(sql, kind="ddl"))
        table = context.catalog.by_id(table.id)
    if not table.tile_columns:
        return
    ids, chosen = _foldable(context, table)
    for start in range(0, len(chosen), _TILES):
        _fold_groups(context, table, ids, chosen[start : start + _TILES])


def step(context: Context) -> None:
    """After a statement, outside of transactions: fold some of the many rows that the session has
    stored by themselves. Whatever keeps it from that, such as another client, it is tried again
    when as many rows have come; the statement is over, and its answer stands.
    """
    unfolded = context.state.unfolded
    for id_ in [*unfolded.due]:
        span = unfolded.later(id_)
        table = next((t for t in context.catalog.tables.values() if t.id == id_), None)
        if table is None or not table.tile_columns:
            unfolded.forget(id_)
            continue
        with suppress(errors.Error):
            left, more = _fold_some(context, table, span)
            unfolded.folded(id_, left, more=more)
        return


def _fold_some(context: Context, table: Table, span: Span) -> tuple[int, bool]:
    """Fold rows between two numbers, as many as one statement may wait for. Where the last of them
    do not fill a tile, they stay: more may follow. The number of the first that is left, and
    whether some of them can be folded now.
    """
    ids, chosen = _foldable(context, table, (span.low, span.high))
    most = max(1, min(STEP_TILES, STEP_COLUMNS // len(table.tile_columns)))
    if chosen:
        _fold_groups(context, table, ids, chosen[:most])
    if len(chosen) > most:
        return int(ids[chosen[most][0]]), True
    last = _last_run(ids)
    rest = len(ids) - (len(ids) - last) % tile_forms.ROWS
    return int(ids[rest]) if rest < len(ids) else span.high + 1, False


def _fold_groups(
    context: Context, table: Table, ids: Numbers, chosen: Sequence[tuple[int, int]]
) -> None:
    """Fold rows in one transaction, which make a tile each from one position to before another."""
    facts = server_scans.scan_facts(context.backend, table)
    # Rows of an earlier release's table come into tiles here for the first time.
    facts += row_writer.at_rest(table, context.backend)
    context.ledger.record(facts, "folding of rows")
    with transaction.writing_rows(context, table) as catalog:
        _fold_rows(context, catalog.by_id(table.id), [ids[low:high] for low, high in chosen])


def _foldable(
    context: Context, table: Table, within: tuple[int, ...] = ()
) -> tuple[Numbers, list[tuple[int, int]]]:
    """The ids of rows that are in no tile, all or those ``within`` two numbers, and which of them
    make a tile each, as positions from one to before another. Those behind the last whole tile
    make none where more may follow them, which is so within numbers.
    """
    backend, least = context.backend, max(2, tile_forms.ROWS // _LEAST_SHARE)
    ids = _numbers(context, tile_texts.alone(backend, table, within=bool(within)), within)
    if np.any(ids[1:] <= ids[:-1]):
        raise errors.make("row.repeated", table=table.label, row="?")
    if len(ids) < least:
        return ids, []
    firsts = _numbers(context, tile_texts.firsts(backend, table, within=bool(within)), within)
    return ids, list(_spans(ids, firsts, least, tile_forms.ROWS if within else least))


def _spans(ids: Numbers, firsts: Numbers, least: int, last: int) -> Iterator[tuple[int, int]]:
    """Ids that make a tile each: consecutive ones, as many as a tile has, and before the next tile
    that there is; no fewer than the ``least``, and than the ``last`` at the end.
    """
    breaks = np.flatnonzero(np.diff(ids) != 1) + 1
    before = np.searchsorted(ids, firsts)
    ends = np.unique(np.concatenate([breaks, before[before > 0], [len(ids)]]))
    low = 0
    for end in ends.tolist():
        fewest = last if end == len(ids) else least
        while low < end:
            high = min(low + tile_forms.ROWS, end)
            if high - low >= fewest:
                yield low, high
            low = high


def _last_run(ids: Numbers) -> int:
    """The position from which on ids are consecutive."""
    breaks = np.flatnonzero(np.diff(ids) != 1)
    return int(breaks[-1]) + 1 if len(breaks) else 0


def _numbers(context: Context, sql: str, within: tuple[int, ...]) -> Numbers:
    reply = context.engine.query(Statement(sql, within))
    values = reply.column(0) if reply.num_columns == 1 else pa.chunked_array([[]])
    if not pa.types.is_int64(values.type) or values.null_count:
        raise errors.make("reply.format", detail="rows without numbers")
    return np.asarray(values.to_numpy())


def _fold_rows(context: Context, table: Table, groups: Sequence[Numbers]) -> None:
    """Put rows into tiles, a group each, within a transaction; ``table`` is its catalog's."""
    columns = tile_forms.tiled(table)
    names = [scheme.read_from(column) for column in columns]
    ends = np.cumsum([len(group) for group in groups])
    opened = _opened(context, table, columns, names, np.concatenate(groups))
    spans = [
        (int(group[0]), int(end) - len(group), len(group))
        for group, end in zip(groups, ends, strict=True)
        if not any(tile_forms.is_long(v.slice(end - len(group), len(group))) for v in opened)
    ]
    if not spans:
        return
    cut = [pa.chunked_array([v.slice(at, rows) for _, at, rows in spans]) for v in opened]
    layout = tiled_loads.begun(context.state, table, columns, cut)
    tiles: dict[str, pa.Array] = {
        tile_texts.FIRST: pa.array([first for first, _, _ in spans], pa.int64()),
        tile_texts.layout_of(table): pa.repeat(pa.scalar(layout, pa.int64()), len(spans)),
    }
    forms, keys = tile_forms.forms(table, layout), context.columns.keyring
    for column, name, values in zip(columns, names, opened, strict=True):
        form = forms[name]
        identity = (table.id, column.id, form.generation)
        sealed = [
            keys.seal_tiles(identity, form.handle, values.slice(at, rows), first, rows)
            for first, at, rows in spans
        ]
        tiles[name] = pa.concat_arrays(sealed)
    ids = np.concatenate([np.arange(first, first + rows) for first, _, rows in spans])
    sql = tile_texts.clear(context.backend, table, _ROWS)
    gone = {_ROWS: pa.table({"row_id": pa.array(ids, pa.int64())})}
    context.engine.expect(Statement(sql, kind="write", tables=gone), len(ids), outrun)
    context.engine.append(tile_texts.path(context.backend, table), pa.table(tiles))


def _opened(
    context: Context, table: Table, columns: Sequence[Column], names: Sequence[str], ids: Numbers
) -> list[pa.Array]:
    """The values of rows, which must all be there, in no tile."""
    sql = context.backend.numbered_rows(table, names, _ROWS)
    wanted = pa.table({"row_id": pa.array(ids, pa.int64())})
    reply = context.engine.query(Statement(sql, tables={_ROWS: wanted}))
    if reply.column_names != ["row_id", *names] or not pa.types.is_int64(reply.schema[0].type):
        raise errors.make("reply.format", detail="columns that were not asked for")
    reply = reply.sort_by("row_id")
    rows = joined(reply.column("row_id"))
    if not rows.equals(pa.array(ids, pa.int64())):
        raise outrun()
    results = list[pa.Array]()
    for column, name in zip(columns, names, strict=True):
        field = context.local.arrow_field(column.type)
        copies = joined(reply.column(name))
        values = context.columns.open_column(table, column, copies, rows, field)
        results.append(arrays.stored(pa.chunked_array([values])))
    return results
