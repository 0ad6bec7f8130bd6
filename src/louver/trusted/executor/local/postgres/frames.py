"""Rows for DuckDB's library, which makes frames and files of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal

import duckdb
import pyarrow as pa

from louver.trusted.executor.local import arrow_values
from louver.trusted.executor.local.connection import DuckDBConnection, translated
from louver.trusted.executor.local.duckdb_instances import options
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.executor.local.postgres import plain_values
from louver.trusted.executor.local.postgres.connection import PostgresConnection

_ROWS = "louver_rows"
_MOST_DIGITS = 38


@contextmanager
def reading(connection: PostgresConnection, rows: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """The rows in DuckDB, under names that are all different; what only PostgreSQL has as text."""
    names = [f"c{position}" for position in range(rows.num_columns)]
    arrays = [_known(connection, column) for column in plain_values.plain(rows).columns]
    with translated(), closing(duckdb.connect(":memory:")) as plain:
        arrow_values.register(plain, _ROWS, pa.Table.from_arrays(arrays, names))
        yield plain.execute(f"SELECT * FROM {_ROWS}")


def reader(directory: str) -> LocalConnection:
    """What reads files."""
    return DuckDBConnection(duckdb.connect(":memory:", config=options(directory)))


def printed(connection: PostgresConnection, rows: pa.Table) -> pa.Table:
    """All values as PostgreSQL writes them."""
    names = [f"c{position}" for position in range(rows.num_columns)]
    if not rows.num_columns or not rows.num_rows:
        arrays = [pa.nulls(rows.num_rows, pa.string()) for _ in names]
        return pa.Table.from_arrays(arrays, rows.column_names)
    position = pa.array(range(rows.num_rows), pa.int64())
    given = rows.rename_columns(names).append_column("position", position)
    listed = ", ".join(f"{name}::text" for name in names)
    sql = f"SELECT {listed} FROM pg_temp.{_ROWS} ORDER BY position"
    return connection.over(_ROWS, given, sql).rename_columns(rows.column_names)


def _known(connection: PostgresConnection, column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    if not isinstance(type_, pa.OpaqueType):
        return column
    if type_.type_name == "numeric":
        texts = [text for chunk in column.chunks for text in chunk.storage.to_pylist()]
        return _decimals(texts)
    return pa.chunked_array([pa.array(connection.texts(column), pa.string())])


def _decimals(texts: list[str | None]) -> pa.ChunkedArray:
    """Numbers of one scale, if they have a common one; else texts."""
    try:
        values = [None if text is None else Decimal(text) for text in texts]
        scales = [-int(v.as_tuple().exponent) for v in values if v is not None]
        scale = max([0, *scales])
        return pa.chunked_array([pa.array(values, pa.decimal128(_MOST_DIGITS, scale))])
    except (ValueError, TypeError, pa.ArrowInvalid):
        return pa.chunked_array([pa.array(texts, pa.string())])
