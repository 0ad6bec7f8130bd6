"""Columns of types that PostgreSQL prints but does not send in binary form, as `aclitem`."""

from __future__ import annotations

from collections.abc import Sequence

from louver import errors
from louver._rust import postgres
from louver.names import quoted

#: aclitem and gtsvector, and their arrays: the types of PostgreSQL's own without ``typsend``.
_PRINTED = frozenset({1033, 1034, 3642, 3644})
_MESSAGE = "no binary output function available"


def needs_text(error: errors.Error) -> bool:
    """Whether a query failed for such a column."""
    return _MESSAGE in error.message


def as_text(session: postgres.Session, sql: str, types: Sequence[int] = ()) -> str:
    """A query around the user's own whose rows are the same, with such columns as texts."""
    columns = session.describe(sql, types)[1]
    names = [f"c{position}" for position in range(len(columns))]
    items = ", ".join(
        f"{name}{'::text' if column[1] in _PRINTED else ''} AS {quoted(column[0])}"
        for name, column in zip(names, columns, strict=True)
    )
    # A semicolon at the end may stand there too.
    query = sql.rstrip().removesuffix(";")
    return f"SELECT {items} FROM (\n{query}\n) AS louver_rows({', '.join(names)})"
