"""Columns of types that PostgreSQL prints but does not send in binary form, as `aclitem`, or whose
values mean nothing once their table is gone: whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from louver import errors
from louver._rust import postgres
from louver.names import quoted
from louver.trusted.executor.local.local import Parameters

#: aclitem and gtsvector, and their arrays: the types of PostgreSQL's own without ``typsend``.
_PRINTED = frozenset({1033, 1034, 3642, 3644})
_OF_ROWS = (
    "SELECT t.oid::bigint FROM pg_catalog.pg_type AS t"
    " LEFT JOIN pg_catalog.pg_type AS e ON e.oid = t.typelem WHERE t.oid = ANY($1::oid[])"
    " AND 'c' IN (t.typtype, e.typtype) OR t.typname IN ('record', '_record')"
)
_MESSAGE = "no binary output function available"


class Fetching(Protocol):
    """A connection."""

    def fetchall(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]: ...


def needs_text(error: errors.Error) -> bool:
    """Whether a query failed for such a column."""
    return _MESSAGE in error.message


def is_of_rows(connection: Fetching, type_: str) -> bool:
    """Whether values of a type, by its name, are whole rows, or arrays of such."""
    name = type_.removesuffix("[]")
    if name == "record":
        return True
    sql = "SELECT typtype = 'c' FROM pg_catalog.pg_type WHERE oid = pg_catalog.to_regtype($1)"
    return connection.fetchall(sql, [name]) == [(True,)]


def as_text(session: postgres.Session, sql: str, types: Sequence[int] = ()) -> str:
    """A query around the user's own whose rows are the same, with such columns as texts."""
    columns = session.describe(sql, types)[1]
    numbers = "{" + ",".join(str(column[1]) for column in columns) + "}"
    printed = _PRINTED.union(session.run([(_OF_ROWS, [numbers])])[0][2][0].to_pylist())
    names = [f"c{position}" for position in range(len(columns))]
    items = ", ".join(
        f"{name}{'::text' if column[1] in printed else ''} AS {quoted(column[0])}"
        for name, column in zip(names, columns, strict=True)
    )
    # A semicolon at the end may stand there too.
    query = sql.rstrip().removesuffix(";")
    return f"SELECT {items} FROM (\n{query}\n) AS louver_rows({', '.join(names)})"
