"""The dry run of a change: tables of the binder, filled with the rows that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from louver import errors
from louver.names import fold, own_schemas, quoted
from louver.trusted.executor import constraint_check
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import ForeignKey, LocalConnection
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.vault.catalog import Table

#: Types of which equal values are the same value.
EXACT = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
    "UINTEGER", "UBIGINT", "UHUGEINT", "DATE", "TIMESTAMP", "BLOB", "UUID",
)  # fmt: skip


@dataclass(slots=True)
class Difference:
    """What a change does: numbers of rows that go, rows that come, its answer."""

    gone: pa.Array
    fresh: pa.Table
    answer: Answer


def differs(before: str, after: str, type_: str) -> str:
    """Where two values are not the very same: -0.0 and 0.0, or 'a' and 'A' under a collation,
    are equal and yet two values.
    """
    if type_ in EXACT or type_.startswith("DECIMAL"):
        return f"{before} IS DISTINCT FROM {after}"
    if type_ == "VARCHAR":
        return f"encode({before}) IS DISTINCT FROM encode({after})"
    return f"encode({before}::VARCHAR) IS DISTINCT FROM encode({after}::VARCHAR)"


def with_parents(context: Context, tables: Sequence[Table]) -> list[Table]:
    """Tables with all that they refer to; parents come before their children."""
    ordered: dict[int, Table] = {}

    def add(table: Table, above: frozenset[int]) -> None:
        if table.id in ordered or table.id in above:
            return
        for foreign in constraint_check.rules(context, table).foreign:
            add(constraint_check.parent_of(context, foreign), above | {table.id})
        ordered[table.id] = table

    for table in tables:
        add(table, frozenset())
    return list(ordered.values())


def fill(context: Context, connection: LocalConnection, table: Table, rows: pa.Table) -> None:
    """Put the rows of a table into its empty local twin."""
    known = constraint_check.rules(context, table)
    names = [quoted(c.name) for c in table.columns if fold(c.name) not in known.generated]
    if not names or not rows.num_rows:
        return
    listed = ", ".join(names)
    connection.register("louver_fill", rows)
    into = f"INSERT INTO {table.local_name} ({listed}) SELECT {listed} FROM"
    own = [f for f in known.foreign if constraint_check.parent_of(context, f).id == table.id]
    try:
        if not own:
            connection.execute(f"{into} louver_fill")
        else:
            _fill_in_waves(connection, table, into, own)
    except errors.IntegrityError as error:
        # The server lets a transaction use a key again that another one has freed since, while the
        # row that had it can still be seen here: two rows that are never committed together. What
        # else the rows break they would break again, as a CHECK that depends on a setting.
        if not context.in_transaction or "uplicate key" not in error.message:
            raise
        raise errors.make("catalog.conflict") from None
    connection.unregister("louver_fill")


def fill_stand_in(
    context: Context, connection: LocalConnection, table: Table, rows: pa.Table
) -> None:
    """Put rows into the temporary table that takes a table's place; columns that were not read
    are NULL there.
    """
    if not rows.num_rows:
        return
    known, generated = set(rows.column_names), constraint_check.rules(context, table).generated
    columns = [column for column in table.columns if fold(column.name) not in generated]
    listed = ", ".join(quoted(column.name) for column in columns)
    items = ", ".join(quoted(c.name) if c.name in known else "NULL" for c in columns)
    connection.register("louver_fill", rows)
    connection.execute(f"INSERT INTO {stand_in(table)} ({listed}) SELECT {items} FROM louver_fill")
    connection.unregister("louver_fill")


def stand_for(context: Context, connection: LocalConnection, table: Table, rows: pa.Table) -> None:
    """Let a temporary table without rules take the place of one that a change only reads."""
    connection.execute(f"CREATE TEMP TABLE {quoted(table.name)} AS FROM {table.local_name} LIMIT 0")
    fill_stand_in(context, connection, table, rows)


def stand_in(table: Table) -> str:
    """The name of the temporary table that takes a table's place."""
    return f"{own_schemas().stand_in}.{quoted(table.name)}"


def _fill_in_waves(
    connection: LocalConnection,
    table: Table,
    into: str,
    own: Sequence[ForeignKey],
) -> None:
    """A table that refers to itself takes a row only after the row that it refers to."""
    connection.execute("CREATE TEMP TABLE louver_left AS SELECT * FROM louver_fill")
    ready = " AND ".join(
        "("
        + " OR ".join(f"l.{quoted(name)} IS NULL" for name in f.columns)
        + f" OR EXISTS (SELECT 1 FROM {table.local_name} AS p WHERE "
        + " AND ".join(
            f"p.{quoted(there)} = l.{quoted(here)}"
            for here, there in zip(f.columns, f.parent_columns, strict=True)
        )
        + "))"
        for f in own
    )
    moved = 1
    while moved:
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE louver_wave AS SELECT * FROM louver_left AS l"
            f" WHERE {ready}"
        )
        connection.execute(f"{into} louver_wave")
        row = connection.fetchone(
            f"DELETE FROM louver_left WHERE {ROW_ID} IN (SELECT {ROW_ID} FROM louver_wave)"
        )
        moved = int(row[0]) if row else 0
    row = connection.fetchone("SELECT count(*) FROM louver_left")
    connection.execute("DROP TABLE louver_left; DROP TABLE louver_wave")
    if row and row[0]:
        raise errors.make("internal", detail=f"rows of {table.label} refer to missing rows")
