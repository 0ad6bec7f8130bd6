"""Values that Arrow does not hold as DuckDB does: they are refused, never passed on changed.

DuckDB counts the microseconds of an INTERVAL in 64 bits and Arrow the nanoseconds, so more than 292
years of hours overflow there; a UNION whose member is NULL has no tag there any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import duckdb
import pyarrow as pa

from louver import errors
from louver.trusted.executor.local import arrow_values
from louver.trusted.vault.catalog import Table

#: Types of which some value is another one in Arrow.
_CHANGED = re.compile(r"\b(INTERVAL|UNION)\b")
_PASSED = "louver_passed"
_RESULT = "louver_result"
_STORED: ContextVar[bool] = ContextVar("louver_stored", default=False)


def may_change(type_: str) -> bool:
    """Whether a value of a type may be another one in Arrow."""
    return _CHANGED.search(type_) is not None


def require(
    connection: duckdb.DuckDBPyConnection, source: str, table: Table, rows: pa.Table
) -> None:
    """Raise where new rows of a table, fetched from a source, are not what the source holds."""
    _require(connection, source, [c.name for c in table.columns if may_change(c.type)], rows)


def _require(
    connection: duckdb.DuckDBPyConnection, source: str, names: Sequence[str], rows: pa.Table
) -> None:
    if not names or not rows.num_rows:
        return
    # As JSON, in which a UNION has its tag.
    listed = ['"' + name.replace('"', '""') + '"' for name in names]
    items = ", ".join(f"to_json({name})" for name in listed)
    arrow_values.register(connection, _PASSED, rows.select(names))
    try:
        changed = connection.execute(
            f"SELECT {items} FROM {_PASSED} EXCEPT ALL SELECT {items} FROM {source} LIMIT 1"
        ).fetchone()
    finally:
        connection.unregister(_PASSED)
    if changed is not None:
        raise errors.make("value.form")


@contextmanager
def stored() -> Iterator[None]:
    """Within it, answers become rows of a table: of a UNION the tag is needed too."""
    token = _STORED.set(True)
    try:
        yield
    finally:
        _STORED.reset(token)


def fetched(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: object, types: Sequence[str]
) -> tuple[list[tuple[str, str]], pa.Table]:
    """The columns and rows of a query whose answer has such types. Of a UNION only the member is
    told, and a NULL is a NULL, unless they are `stored`.
    """
    statement = f"CREATE OR REPLACE TEMP TABLE {_RESULT} AS\n{sql}"
    connection.execute(statement, parameters) if parameters else connection.execute(statement)
    try:
        done = connection.execute(f"SELECT * FROM {_RESULT}")
        columns, rows = arrow_values.described(done), done.to_arrow_table()
        pairs = zip(rows.column_names, types, strict=True)
        tags = _STORED.get()
        exact = [n for n, type_ in pairs if may_change(type_) and (tags or "UNION" not in type_)]
        _require(connection, _RESULT, exact, rows)
    finally:
        connection.execute(f"DROP TABLE IF EXISTS {_RESULT}")
    return columns, rows
