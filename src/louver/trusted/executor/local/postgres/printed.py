"""Rows as PostgreSQL prints them: the texts of values, and the CSV of COPY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from louver import errors
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.planner.sql.postgres_dialect import DIALECT

if TYPE_CHECKING:
    from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine

Done = TypeVar("Done")
_NO_TYPE = "42704"
_ROWS = 8_192
"""Rows of CSV that are written at once."""
_QUOTED = frozenset('",\n\r')


def texts(rows: pa.Table, connection: PostgresConnection) -> list[tuple[str | None, ...]]:
    """The rows with every value as text."""
    if not rows.num_columns:
        return [()] * rows.num_rows
    columns = [_texts(column, connection) for column in rows.columns]
    return list(zip(*columns, strict=True))


def _texts(column: pa.ChunkedArray, connection: PostgresConnection) -> list[str | None]:
    if pa.types.is_list(column.type):
        # Of the session's own, as the columns of the ledger; arrays of PostgreSQL's are opaque.
        lists = column.to_pylist()
        return [None if v is None else "{" + ",".join(map(str, v)) + "}" for v in lists]
    return connection.texts(column)


def write_csv(
    rows: Sequence[tuple[str | None, ...]], names: Sequence[str], write: Callable[[bytes], object]
) -> None:
    """Write texts under a header: NULL as nothing, an empty text in quotes."""
    write((",".join(map(_cell, names)) + "\n").encode())
    for start in range(0, len(rows), _ROWS):
        lines = (",".join(map(_cell, row)) + "\n" for row in rows[start : start + _ROWS])
        write("".join(lines).encode())


def _cell(text: str | None) -> str:
    if text is None:
        return ""
    if text and not _QUOTED.intersection(text) and text != "\\.":
        return text
    return '"' + text.replace('"', '""') + '"'


def in_either(
    engine: PostgresLocalEngine, rows: pa.Table, run: Callable[[PostgresConnection], Done]
) -> Done:
    """Print rows in the workspace, or in the binder: it alone has the tables that values of types
    like `regclass` mean, and whose rows are values.
    """
    names = (f.type.type_name for f in rows.schema if isinstance(f.type, pa.OpaqueType))
    if not DIALECT.names_objects.isdisjoint(name.removesuffix("[]") for name in names):
        return run(engine.binder)
    try:
        return run(engine.workspace)
    except errors.Error as error:
        if error.sqlstate != _NO_TYPE or not engine.statements.names_row_type(error):
            raise
    return run(engine.binder)
