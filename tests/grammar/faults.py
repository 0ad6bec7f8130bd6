"""Faults of plaintext DuckDB 1.5, and habits of its optimizer, that random statements come upon."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import duckdb

from tests.slt.runner import Outcome

#: Kinds of errors that differ, and the fault that they wait for.
PENDING = {
    (
        "error transaction",
        "error transaction.key",
    ): "COMMIT names no key that only the server knows",
    ("error conversion", "error dependency"): "of two errors in one statement, the other",
    ("error constraint", "error dependency"): "of two errors in one statement, the other",
    ("error constraint", "error conversion"): "of two errors in one statement, the other",
    ("error catalog", "error invalidinput"): "of two errors in one statement, the other",
    ("error catalog", "error table.missing"): "COPY … FROM has a message of its own",
    ("error binder", "error catalog"): "a view that no longer binds is gone after a reconnect",
}
#: DuckDB's optimizer converts the bounds of a column, which may be infinite or too far away for the
#: other type, though no value is converted: whether it does depends on how the rows came.
STATISTICS = re.compile(
    r"Could not convert Timestamp\(|value infinity can't be cast to the destination type INT64"
    r"|value 340282366920938463463374607431768211455 can't be cast because the value is out of"
)
_QUOTED_TYPE = re.compile(r'(?<= AS )"([A-Z]+)"(?=\))')
_ALTERED = re.compile(r"ALTER TABLE (?P<table>\S+) (?P<change>.*)", re.DOTALL)


def unsigned(outcome: Outcome) -> Outcome:
    """The same without the sign of -0.0, which the server's DuckDB forgets of a plain column."""
    rows = outcome.rows
    if rows is not None:
        rows = [tuple(map(_without_sign, row)) for row in rows]
    return replace(outcome, rows=rows)


def without_quotes(described: Outcome) -> Outcome:
    """The same without quotes around a default's types, which DuckDB writes until it binds it."""
    rows = [
        tuple(_QUOTED_TYPE.sub(r"\1", item) if isinstance(item, str) else item for item in row)
        for row in described.rows or ()
    ]
    return replace(described, rows=None if described.rows is None else rows)


def _without_sign(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_sign(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_without_sign, value))
    return 0.0 if value == 0 and isinstance(value, float) else value


def lost(outcome: Outcome) -> bool:
    """Whether a statement failed because of what another connection does."""
    said = re.sub(r"\bon conflict\b|\bconflict target\b", "", outcome.message.lower())
    altered = ("altered by a different", "another transaction has altered")
    words = ("conflict" in outcome.kind, "conflict" in said, *(text in said for text in altered))
    return outcome.rows is None and any(words)


def repeated(connection: Any) -> list[str]:
    """The tables that show a connection two rows with one key."""
    keys = (
        "SELECT table_name, constraint_column_names FROM duckdb_constraints()"
        " WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE')"
    )
    results = []
    for table, columns in connection.execute(keys).fetchall():
        listed = ", ".join(f'"{column}"' for column in columns)
        given = " AND ".join(f'"{column}" IS NOT NULL' for column in columns)
        sql = f'SELECT {listed} FROM "{table}" WHERE {given} GROUP BY ALL HAVING count(*) > 1'
        results += [table] if connection.execute(sql).fetchall() else []
    return results


def alters_rows_that_stay(connection: Any, sql: str) -> bool:
    """Whether DuckDB takes an ALTER of the rows alone: of a table it casts deleted ones too."""
    match = _ALTERED.match(sql)
    if match is None:
        return False
    copied = connection.cursor()
    copied.execute(f"CREATE TEMP TABLE louver_copy AS FROM {match['table']}")
    with suppress(duckdb.Error):
        copied.execute(f"ALTER TABLE louver_copy {match['change']}")
        return True
    return False


@contextmanager
def stored(connection: Any) -> Iterator[Any]:
    """Another connection, to which the tables that have generated columns are ones with the same
    rows that have none; None where there are no such tables.

    DuckDB puts the expression of a generated column where the column is read. If it is constant,
    GROUP BY ALL does not group by it, so that no rows make one group and not none; and what the
    column is compared with is not converted.
    """
    other = connection.cursor()
    tables = other.execute(
        "SELECT database_name, schema_name, table_name FROM duckdb_tables()"
        " WHERE NOT internal AND NOT temporary AND contains(sql, 'GENERATED ALWAYS AS')"
    ).fetchall()
    try:
        for database, schema, name in tables:
            # A temporary table comes before one of the same name.
            whole = f'"{database}"."{schema}"."{name}"'
            other.execute(f'CREATE TEMP TABLE "{name}" AS FROM {whole}')
        yield other if tables else None
    finally:
        other.close()
