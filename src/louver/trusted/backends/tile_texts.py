"""Statements on the server's tables of tiles (spec/tile.md), for backends that have them.

    first_row | a layout | the tiles of each column, by the name of its sealed copy

A row that is in a tile has an empty string in the place of each sealed copy.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from louver.trusted.backends.backend import Backend
from louver.trusted.vault import stored_types
from louver.trusted.vault.catalog import Table

FIRST = "first_row"
_PREFIX = "louver_tiles_"


def fresh_name() -> str:
    """A name for a table of tiles, which is one of Louver's own."""
    return f"{_PREFIX}{secrets.token_hex(6)}"


def layout_of(table: Table) -> str:
    """The column of layouts in a table's table of tiles. Their numbers are random, as are names."""
    return f"l_{table.tile_table.removeprefix(_PREFIX)}"


def path(backend: Backend, table: Table) -> str:
    """Its name in SQL."""
    return backend.quote(table.tile_table)


def create(backend: Backend, table: Table) -> str:
    """The table. Its tiles look random: to try to compress them takes longer than to read them."""
    row, bytes_ = map(backend.stored_type, (stored_types.ROW_ID, stored_types.BYTES))
    as_they_are = f"{bytes_} USING COMPRESSION uncompressed"
    columns = [f"{backend.quote(stored)} {as_they_are}" for stored in table.tile_columns]
    listed = ", ".join((f"{FIRST} {row}", f"{layout_of(table)} {row}", *columns))
    return f"CREATE TABLE {path(backend, table)} ({listed})"


def drop_column(backend: Backend, table: Table, stored: str) -> str:
    """One column less."""
    return f"ALTER TABLE {path(backend, table)} DROP COLUMN {backend.quote(stored)}"


def drop(backend: Backend, table: Table) -> str:
    """Without the table."""
    return f"DROP TABLE {path(backend, table)}"


def insert_rows(
    backend: Backend, table: Table, names: Sequence[str], tiled: Sequence[str], rows: str
) -> str:
    """The rows of an Arrow input whose sealed copies are in tiles."""
    listed = ", ".join(map(backend.quote, (*names, *tiled)))
    taken = ", ".join([*map(backend.quote, names), *["''::BLOB"] * len(tiled)])
    return f"INSERT INTO {backend.table(table)} ({listed}) SELECT {taken} FROM {rows}"


def alone(backend: Backend, table: Table, *, within: bool = False) -> str:
    """The ids of rows that are in no tile, in order; those ``within`` two bound numbers."""
    copy = backend.quote(table.tile_columns[0])
    where = f"octet_length({copy}) > 0" + (" AND row_id BETWEEN $1 AND $2" if within else "")
    return f"SELECT row_id FROM {backend.table(table)} WHERE {where} ORDER BY row_id"


def clear(backend: Backend, table: Table, rows: str) -> str:
    """Empty strings in place of the sealed copies of rows whose ids are in an Arrow input, and
    which are in no tile.
    """
    blanks = ", ".join(f"{backend.quote(name)} = ''::BLOB" for name in table.tile_columns)
    copy = backend.quote(table.tile_columns[0])
    return (
        f"UPDATE {backend.table(table)} SET {blanks}"
        f" WHERE row_id IN (SELECT row_id FROM {rows}) AND octet_length({copy}) > 0"
    )


def firsts(backend: Backend, table: Table, *, within: bool = False) -> str:
    """The first row ids of all tiles, in order, or of those ``within`` two bound numbers."""
    where = f" WHERE {FIRST} BETWEEN $1 AND $2" if within else ""
    return f"SELECT {FIRST} FROM {path(backend, table)}{where} ORDER BY {FIRST}"


def read(backend: Backend, table: Table, stored: Sequence[str], chosen: str = "") -> str:
    """Columns of all tiles, or of those whose first row ids are in a column of an Arrow input, in
    whatever order: to sort them would copy them once more.
    """
    listed = ", ".join((FIRST, layout_of(table), *map(backend.quote, stored)))
    where = f" WHERE {FIRST} IN (SELECT {FIRST} FROM {chosen})" if chosen else ""
    return f"SELECT {listed} FROM {path(backend, table)}{where}"


def read_spans(backend: Backend, table: Table, stored: Sequence[str], count: int) -> str:
    """Columns of the tiles whose first row ids are between bound numbers, in so many places."""
    listed = ", ".join((FIRST, layout_of(table), *map(backend.quote, stored)))
    spans = (f"{FIRST} BETWEEN ${2 * at + 1} AND ${2 * at + 2}" for at in range(count))
    where = " OR ".join(spans)
    return f"SELECT {listed} FROM {path(backend, table)} WHERE {where}"


def last_row(backend: Backend, table: Table) -> str:
    """The highest row id of a table; NULL where it has no row."""
    return f"SELECT max(row_id) FROM {backend.table(table)}"


def counts(backend: Backend, table: Table) -> str:
    """How many rows are in tiles, and how many tiles there are."""
    copy = backend.quote(table.tile_columns[0])
    return (
        f"SELECT (SELECT count(*) FROM {backend.table(table)} WHERE octet_length({copy}) = 0),"
        f" (SELECT count(*) FROM {path(backend, table)})"
    )


def without_rows(backend: Backend, table: Table) -> str:
    """Without the tiles of which no row is left.

    A tile's row ids are fewer than 2^10 and end before the next tile. So they have at most two
    values of row_id >> 10, their group: of most tiles the lowest or highest row of a group tells
    that a row is left, and rows are compared with the others' only.
    """
    rows, tiles = backend.table(table), path(backend, table)
    held = f"{backend.quote(table.tile_columns[0])} = ''::BLOB"
    groups = (
        "SELECT row_id >> 10 AS g, min(row_id) AS low, max(row_id) AS high"
        f" FROM {rows} WHERE {held} GROUP BY g"
    )
    ranges = (
        f"SELECT {FIRST} AS f, unnest([f >> 10, (f >> 10) + 1]) AS g,"
        f" least(f + 1023, lead(f - 1, 1, f + 1023) OVER (ORDER BY f)) AS l FROM {tiles}"
    )
    known = (
        "SELECT f FROM louver_ranges JOIN louver_groups USING (g)"
        " WHERE low BETWEEN f AND l OR high BETWEEN f AND l"
    )
    return (
        f"DELETE FROM {tiles} WHERE {FIRST} IN (WITH louver_groups AS MATERIALIZED ({groups}),"
        f" louver_ranges AS MATERIALIZED ({ranges}),"
        f" louver_others AS MATERIALIZED (FROM louver_ranges WHERE f NOT IN ({known}))"
        f" SELECT f FROM louver_others EXCEPT SELECT f FROM louver_others JOIN {rows}"
        f" ON row_id >> 10 = g AND row_id BETWEEN f AND l WHERE {held})"
    )


def without(sql: str, names: Sequence[str]) -> str:
    """A query of rows without some of its columns."""
    return f"SELECT * EXCLUDE ({', '.join(names)}) FROM ({sql}) AS louver_part"


def rows_alone(sql: str, row: str, copies: Sequence[str]) -> str:
    """Numbers and sealed copies of those rows of a query that are in no tile."""
    listed = ", ".join((row, *copies))
    return f"SELECT {listed} FROM ({sql}) AS louver_part WHERE octet_length({copies[0]}) > 0"
