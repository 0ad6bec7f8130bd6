"""The server's tables of tiles, made and changed beside the tables that they are of."""

from __future__ import annotations

from collections.abc import Iterable

from louver.trusted.backends import tile_texts
from louver.trusted.backends.backend import Backend
from louver.trusted.vault import scheme, tile_forms
from louver.trusted.vault.catalog import Table
from louver.untrusted.engines.engine import Engine
from louver.wire.messages import Statement


def create(backend: Backend, table: Table) -> list[str]:
    """The statements that make the table of a table's tiles, if it is to have any."""
    columns = tile_forms.columns_of(table)
    if table.tile_table or not columns:
        return []
    table.tile_table = tile_texts.fresh_name()
    table.tile_columns = [scheme.read_from(column) for column in columns]
    return [tile_texts.create(backend, table)]


def drop(backend: Backend, table: Table) -> list[str]:
    """Those that remove it."""
    return [tile_texts.drop(backend, table)] if table.tile_table else []


def drop_column(backend: Backend, table: Table, stored: str) -> list[str]:
    """Those that remove a stored column's tiles, if there are any."""
    if stored not in table.tile_columns:
        return []
    tile_forms.forget(table, stored)
    return [tile_texts.drop_column(backend, table, stored)]


def tidy(engine: Engine, backend: Backend, tables: Iterable[Table]) -> None:
    """Remove tiles of which no row is left. Where as many rows are in tiles as these may have at
    most, none was removed.
    """
    for table in tables:
        if not (table.tiles and table.tile_columns):
            continue
        reply = engine.query(Statement(tile_texts.counts(backend, table)))
        rows, tiles = (reply.column(at)[0].as_py() for at in range(2))
        if rows < tiles * tile_forms.MOST_ROWS:
            engine.run(Statement(tile_texts.without_rows(backend, table), kind="write"))
