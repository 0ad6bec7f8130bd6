"""Statements that make objects, as DuckDB's catalog writes them, mended where it leaves holes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import duckdb
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import HERE, fold, keyword, quoted
from louver.trusted.executor.local.local import Place, SequenceState
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import TEMPORARY, Catalog, Column

_PLACES = {
    "TABLE": ("duckdb_tables()", "table_name"),
    "VIEW": ("duckdb_views()", "view_name"),
}
SCHEMA = f"if(database_name = '{TEMPORARY}', '{TEMPORARY}', schema_name)"
"""The schema of an object as the catalog names it, of DuckDB's tables that describe the schema."""
_SELF_KEYS = (
    "SELECT constraint_column_names, referenced_column_names FROM duckdb_constraints()"
    f" WHERE {HERE} AND schema_name = ? AND table_name = ? AND constraint_type = 'FOREIGN KEY'"
    " AND referenced_table = table_name AND constraint_text = '' ORDER BY constraint_index"
)
_KEYS = (
    "SELECT constraint_text, constraint_column_names, referenced_table, referenced_column_names"
    f" FROM duckdb_constraints() WHERE {HERE} AND schema_name = ? AND table_name = ?"
    " AND constraint_type = 'FOREIGN KEY' AND constraint_text <> '' ORDER BY constraint_index"
)


def is_table_macro(tokens: Sequence[Token]) -> bool:
    """Whether a CREATE MACRO says AS TABLE."""
    depth = 0
    for token, following in itertools.pairwise(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.ALIAS:
            return keyword(following.text) == "TABLE"
    return False


def introspected(connection: duckdb.DuckDBPyConnection, kind: str, schema: str, name: str) -> str:
    """The statement that makes a table or view; "" when there is none."""
    source, column = _PLACES[kind]
    row = connection.execute(
        f"SELECT sql FROM {source} WHERE {HERE} AND {SCHEMA} = ? AND {column} = ?", [schema, name]
    ).fetchone()
    if row is None:
        return ""
    sql = str(row[0]).rstrip("; \n")
    return _mended(connection, schema, name, sql) if kind == "TABLE" else sql


def _mended(connection: duckdb.DuckDBPyConnection, schema: str, name: str, sql: str) -> str:
    """DuckDB writes nothing for a foreign key to the table itself: two commas stand bare. It writes
    the names of other tables without quotes.
    """
    for text, own, parent, referenced in connection.execute(_KEYS, [schema, name]).fetchall():
        key = f"FOREIGN KEY ({_listed(own)}) REFERENCES {quoted(schema)}.{quoted(parent)}"
        sql = sql.replace(text, f"{key}({_listed(referenced)})", 1)
    keys = self_keys(connection, schema, name)
    if not keys:
        return sql
    qualified_name = f"{quoted(schema)}.{quoted(name)}"
    for hole, (own, referenced) in sorted(zip(_holes(sql), keys, strict=True), reverse=True):
        key = f" FOREIGN KEY ({_listed(own)}) REFERENCES {qualified_name}({_listed(referenced)})"
        sql = sql[:hole] + key + sql[hole:]
    return sql


def without_holes(sql: str) -> str:
    """DuckDB's text of a table without the commas that stand for foreign keys to itself."""
    for hole in reversed(_holes(sql)):
        sql = sql[: hole - 1] + sql[hole:]
    return sql


def _holes(sql: str) -> list[int]:
    """The places behind commas that nothing follows."""
    ends = (TokenType.COMMA, TokenType.R_PAREN)
    return [
        token.end + 1
        for token, following in itertools.pairwise(lexer.tokens(sql))
        if token.token_type == TokenType.COMMA and following.token_type in ends
    ]


def self_keys(
    connection: duckdb.DuckDBPyConnection, schema: str, name: str
) -> list[tuple[list[str], list[str]]]:
    """The foreign keys of a table to itself: own columns and referenced ones."""
    rows = connection.execute(_SELF_KEYS, [schema, name]).fetchall()
    return [(own, referenced) for own, referenced in rows]


def _listed(names: list[str]) -> str:
    return ", ".join(quoted(name) for name in names)


_SEQUENCES = (
    f"SELECT {SCHEMA}, sequence_name, temporary, start_value, increment_by, min_value, max_value,"
    f" cycle, last_value, sql FROM duckdb_sequences() WHERE {HERE}"
)


def sequences(connection: duckdb.DuckDBPyConnection) -> dict[Place, SequenceState]:
    """All sequences by folded schema and name."""
    states = (SequenceState(*row) for row in connection.execute(_SEQUENCES).fetchall())
    return {(fold(state.schema), fold(state.name)): state for state in states}


def resumed_sequence(state: SequenceState) -> str:
    """A sequence of this process that starts at its last value and draws it at once: the next
    value, `currval` and the end of the range are then what they were.
    """
    if state.last is None:
        return _sequence_text(state, state.start)
    escaped = sequence_place(state).replace("'", "''")
    return f"{_sequence_text(state, state.last)}; SELECT nextval('{escaped}')"


def steps_between(behind: SequenceState, ahead: SequenceState) -> int:
    """How many numbers bring a sequence to another state of it."""
    step, last, wanted = behind.increment, behind.last, ahead.last
    if wanted is None:
        raise errors.make("internal", detail="a sequence of which nothing was drawn")
    if last == wanted:
        return 0
    first, drawn = (behind.start, 1) if last is None else (last, 0)
    way = wanted - first
    if way * step >= 0 and way % step == 0:
        return int(drawn + way // step)
    if not behind.cycle:
        return 0
    low, high = behind.low, behind.high
    again, end = (low, high) if step > 0 else (high, low)
    return int(drawn + (end - first) // step + 1 + (wanted - again) // step)


def sequence_place(state: SequenceState) -> str:
    """The full name of a sequence."""
    return place_of(state.schema, state.name)


def place_of(schema: str, name: str) -> str:
    """The name of an object locally."""
    before = f"{TEMPORARY}.main" if schema == TEMPORARY else quoted(schema)
    return f"{before}.{quoted(name)}"


def stored_sequence(state: SequenceState) -> str:
    """A sequence of a file that starts where it goes on. There DuckDB says the next value in
    its own text only, which lacks the quotes of names.
    """
    following = state.sql.rpartition(" START ")[2].split(" ")[0]
    return _sequence_text(state, following)


def _sequence_text(state: SequenceState, start: object) -> str:
    return (
        f"CREATE {'TEMP ' if state.temporary else ''}SEQUENCE {sequence_place(state)}"
        f" INCREMENT BY {state.increment}"
        f" MINVALUE {state.low} MAXVALUE {state.high}"
        f" START {start} {'' if state.cycle else 'NO '}CYCLE"
    )


def built_of(catalog: Catalog) -> object:
    """All that the local engine is built of."""
    tables = [
        (table.schema, table.name, table.id, [_built_of(column) for column in table.columns])
        for table in catalog.tables.values()
    ]
    # Temporary objects are the session's own, wherever they stand.
    objects = sorted(catalog.objects, key=lambda item: item.temporary)
    return tables, objects, catalog.settings


def _built_of(column: Column) -> object:
    return (column.name, column.type, column.id, column.nullable, column.expression)
