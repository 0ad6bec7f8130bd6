"""Rows of a table with tiles part by part, so that memory does not grow with the table.

A stream of rows and the tiles that it needs are two questions at once, which one connection does
not answer. Outside of a transaction tiles are read through a second connection, whose state is
fixed before the rows are asked for. Within one, whose state is fixed, the rows are asked for in
ranges of their numbers, each with its tiles; the transaction changes none meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import pyarrow as pa

from louver import errors
from louver.trusted.backends import tile_texts
from louver.trusted.executor.tiles.reading import Fetched, Tiles
from louver.trusted.vault.catalog import Column, Table
from louver.wire.messages import Constant, Statement

TILES = 128
"""Tiles that are read at a time."""


class Beside(Tiles):
    """Reads tiles through a second connection, in a state that is no later than that of the rows:
    where it lacks those of a row, in a later one.
    """

    def fetch(self, table: Table, columns: Sequence[Column], row_ids: pa.Array) -> Fetched:
        """See `Tiles`."""
        tiles = super().fetch(table, columns, row_ids)
        if not tiles.reach(row_ids):
            self.engine.rollback()
            self.engine.begin()
            tiles = super().fetch(table, columns, row_ids)
        return tiles


@contextmanager
def beside(
    reader: Callable[[], Tiles] | None, tables: Mapping[int, Table]
) -> Iterator[Tiles | None]:
    """A reader of the tiles of a table for as long as its rows are streamed."""
    tiled = next((table for table in tables.values() if table.tiles), None)
    if reader is None or tiled is None:
        yield None
        return
    tiles = reader()
    side = tiles.engine.side()
    try:
        side.begin()
        # DuckDB fixes the state with the first question.
        side.query(Statement(tile_texts.firsts(tiles.backend, tiled)))
        yield Beside(side, tiles.backend, tiles.keyring)
    finally:
        with suppress(errors.Error):
            side.rollback()
        side.close()


def replies(tiles: Tiles, table: Table, statement: Statement, row: str) -> Iterator[pa.Table]:
    """The answer to a query of one table in parts, within a transaction; ``row`` is the column of
    its row ids.
    """
    engine = tiles.engine
    firsts = engine.query(Statement(tile_texts.firsts(tiles.backend, table))).column(0)
    # Not `value`: of a prepared max() DuckDB keeps the result that statistics gave at first.
    most = engine.query(Statement(tile_texts.last_row(tiles.backend, table))).column(0)[0].as_py()
    if not isinstance(most, int):
        yield engine.query(statement)
        return
    starts = [first.as_py() for first in firsts[TILES::TILES]]
    low: int | None = None
    for high in (*(start - 1 for start in starts if start <= most), most):
        yield engine.query(_within(statement, row, low, high))
        low = high + 1


def _within(statement: Statement, row: str, low: int | None, high: int) -> Statement:
    """A query's rows of a range of numbers."""
    constants: list[Constant] = [*statement.constants, high]
    where = f"{row} <= ${len(constants)}"
    if low is not None:
        constants.append(low)
        where += f" AND {row} >= ${len(constants)}"
    sql = f"SELECT * FROM ({statement.sql}) AS louver_part WHERE {where}"
    return replace(statement, sql=sql, constants=tuple(constants))
