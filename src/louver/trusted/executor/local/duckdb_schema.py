"""What a DuckDB database declares, read off DuckDB's own tables that describe the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
from sqlglot.tokens import Token, TokenType

from louver.names import HERE, TABLE_IS, fold, folded_sql, quoted
from louver.trusted.executor.local import object_texts
from louver.trusted.executor.local.connection import translated
from louver.trusted.executor.local.local import (
    RANKS,
    ColumnDeclaration,
    Constraint,
    Index,
    Key,
    Place,
    Reference,
    Schema,
    Seen,
    SequenceState,
)
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import HomeObject, Table

_S = object_texts.SCHEMA
_TABLES = f"SELECT 'TABLE', {_S}, table_name, table_oid, sql FROM duckdb_tables()"
_VIEWS = f"SELECT 'VIEW', {_S}, view_name, view_oid, sql FROM duckdb_views()"
_OTHERS = (
    f"SELECT 'INDEX', {_S}, index_name, index_oid, sql FROM duckdb_indexes() WHERE {HERE}",
    "SELECT 'SCHEMA', schema_name, schema_name, oid, '' FROM duckdb_schemas()"
    f" WHERE NOT internal AND {HERE}",
    f"SELECT 'TYPE', {_S}, type_name, type_oid, '' FROM duckdb_types()"
    f" WHERE NOT internal AND {HERE}",
    f"SELECT 'SEQUENCE', {_S}, sequence_name, sequence_oid, '' FROM duckdb_sequences()"
    f" WHERE {HERE}",
)
_MACROS = (
    "SELECT DISTINCT if(function_type = 'table_macro', 'MACRO TABLE', 'MACRO'),"
    f" {_S}, function_name, function_oid, '' FROM duckdb_functions()"
    f" WHERE NOT internal AND {HERE}"
)
#: Temporary tables are not among them: they are kept with their rows.
_ALL = " UNION ALL ".join(
    [
        f"{_TABLES} WHERE NOT temporary AND {HERE}",
        f"{_VIEWS} WHERE NOT internal AND {HERE}",
        *_OTHERS,
    ]
)
_CONSTRAINTS = (
    "SELECT constraint_type, constraint_column_names, constraint_text, expression, schema_name,"
    " referenced_table, referenced_column_names FROM duckdb_constraints()"
    f" WHERE {TABLE_IS}"
)
_REFERENCES = (
    "SELECT schema_name, table_name, referenced_table FROM duckdb_constraints()"
    f" WHERE {HERE} AND constraint_type = 'FOREIGN KEY'"
)
#: In the order of their making, in which DuckDB looks into them.
_CHILDREN = (
    "SELECT schema_name, table_name FROM duckdb_constraints()"
    f" WHERE {HERE} AND constraint_type = 'FOREIGN KEY' AND {folded_sql('schema_name')} = $1"
    f" AND {folded_sql('referenced_table')} = $2 GROUP BY ALL ORDER BY min(table_oid)"
)
_UNIQUE = (
    "SELECT index_name, expressions::VARCHAR[] FROM duckdb_indexes()"
    f" WHERE is_unique AND {TABLE_IS}"
)
_INDEXES = (
    "SELECT schema_name, index_name, table_name, sql FROM duckdb_indexes()"
    f" WHERE sql IS NOT NULL AND {HERE} ORDER BY index_name"
)


class DuckDBSchema(Schema):
    """The objects of one database, by a connection to it."""

    def __init__(self, raw: duckdb.DuckDBPyConnection) -> None:
        """Over an open connection."""
        self._raw = raw

    def _rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with translated():
            done = self._raw.execute(sql, parameters) if parameters else self._raw.execute(sql)
            return done.fetchall()

    def snapshot(self, *, macros: bool) -> dict[Key, Seen]:
        """See `Schema`; DuckDB's list of functions is slow."""
        rows = self._rows(f"{_ALL} UNION ALL {_MACROS}" if macros else _ALL)
        return {(kind, schema, name): Seen(oid, text) for kind, schema, name, oid, text in rows}

    def objects(self) -> list[HomeObject]:
        """See `Schema`."""
        seen = self.snapshot(macros=False)
        results = []
        for (kind, schema, name), what in sorted(seen.items(), key=lambda other: other[1].oid):
            sql = what.sql
            if kind == "SCHEMA":
                sql = f"CREATE SCHEMA {quoted(name)}"
            elif kind == "TYPE":
                qualified_name = f"{quoted(schema)}.{quoted(name)}"
                rows = self._rows(f"DESCRIBE SELECT NULL::{qualified_name} AS c")
                sql = f"CREATE TYPE {qualified_name} AS {rows[0][1]}" if rows else ""
            elif kind == "SEQUENCE":
                state = self.sequences().get((fold(schema), fold(name)))
                sql = object_texts.stored_sequence(state) if state is not None else ""
            elif kind == "TABLE":
                sql = self.text_of(kind, schema, name)
            results.append(HomeObject(kind, schema, name, sql))
        results.sort(key=lambda item: RANKS.index(item.kind))
        return results + self.comments()

    def comments(self, *, temporary: bool = False) -> list[HomeObject]:
        """See `Schema`."""
        from louver.trusted.executor.local import duckdb_comments

        with translated():
            return duckdb_comments.of(self._raw, temporary=temporary)

    def text_of(self, kind: str, schema: str, name: str) -> str:
        """See `Schema`."""
        with translated():
            return object_texts.introspected(self._raw, kind, schema, name)

    def columns(self, schema: str, name: str) -> list[ColumnDeclaration]:
        """See `Schema`; duckdb_columns() looks at every table and view that there is."""
        rows = self._rows(f"DESCRIBE {quoted(schema)}.{quoted(name)}")
        return [ColumnDeclaration(row[0], row[1], row[4]) for row in rows]

    def generated(self, schema: str, name: str) -> dict[str, str]:
        """See `Schema`; read off DuckDB's own text of the table."""
        sql = self.text_of("TABLE", schema, name)
        return _generated(sql) if "GENERATED ALWAYS" in sql else {}

    def constraints(self, schema: str, name: str) -> list[Constraint]:
        """See `Schema`."""
        return [
            Constraint(
                kind, tuple(columns), text, expression, own, parent, tuple(parent_columns or ())
            )
            for kind, columns, text, expression, own, parent, parent_columns in self._rows(
                _CONSTRAINTS, [fold(schema), fold(name)]
            )
        ]

    def references(self) -> list[Reference]:
        """See `Schema`."""
        return [Reference(*row) for row in self._rows(_REFERENCES)]

    def children(self, key: Place) -> list[Place]:
        """See `Schema`."""
        return [(schema, name) for schema, name in self._rows(_CHILDREN, key)]

    def self_keys(self, schema: str, name: str) -> list[tuple[list[str], list[str]]]:
        """See `Schema`."""
        with translated():
            return object_texts.self_keys(self._raw, schema, name)

    def unique_indexes(self, key: Place) -> list[tuple[str, list[str]]]:
        """See `Schema`."""
        return [(name, listed) for name, listed in self._rows(_UNIQUE, key)]

    def indexes(self) -> list[Index]:
        """See `Schema`."""
        return [
            Index(schema, name, table, str(sql).rstrip("; \n"))
            for schema, name, table, sql in self._rows(_INDEXES)
        ]

    def without_references(self, table: Table, texts: Sequence[str]) -> str:
        """See `Schema`."""
        from louver.trusted.executor.local import unreferenced

        with translated():
            return unreferenced.text(self._raw, table, texts)

    def constant(self, expression: str) -> object | None:
        """See `Schema`."""
        try:
            row = self._raw.execute(f"SELECT {expression}").fetchone()
        except duckdb.Error:
            return None
        return None if row is None else row[0]

    def sequences(self) -> dict[Place, SequenceState]:
        """See `Schema`."""
        with translated():
            return object_texts.sequences(self._raw)

    def resumed(self, sequence: SequenceState) -> str:
        """See `Schema`."""
        return object_texts.resumed_sequence(sequence)

    def declared(self, text: str) -> str:
        """See `Schema`; there is no ALTER SEQUENCE."""
        return text[:0]

    def catch_up(self, behind: SequenceState, ahead: SequenceState) -> None:
        """See `Schema`."""
        count = object_texts.steps_between(behind, ahead)
        if count <= 0:
            return
        # What tells a stored sequence from a temporary one, which would come first.
        database = "" if behind.temporary else "memory."
        text = f"{database}{object_texts.sequence_place(behind)}".replace("'", "''")
        self._rows(f"SELECT max(nextval('{text}')) FROM range({count})")

    def go_on(self, sequence: SequenceState, text: str) -> bool:  # noqa: ARG002 - as others do
        """See `Schema`."""
        return False

    def last_in(self, sequence: SequenceState, text: str) -> int:  # noqa: ARG002 - as others do
        """See `Schema`; here no one goes on elsewhere."""
        return sequence.start - sequence.increment

    def draws(self, schema: str, name: str) -> dict[str, Place]:  # noqa: ARG002 - as others do
        """See `Schema`; here defaults are read as expressions."""
        return {}

    def count(self, path: str) -> int:
        """See `Schema`."""
        return int(self._rows(f"SELECT count(*) FROM {path}")[0][0])


def _generated(sql: str) -> dict[str, str]:
    """The generated columns of DuckDB's text of a table, by folded name."""
    by_name: dict[str, str] = {}
    depth, first = 0, ""
    tokens = lexer.tokens(sql)
    for position, token in enumerate(tokens):
        kind = token.token_type
        depth -= kind == TokenType.R_PAREN
        if depth == 1 and not first:
            first = fold(token.text)
        elif depth == 1 and kind == TokenType.COMMA:
            first = ""
        elif depth == 1 and kind != TokenType.IDENTIFIER and token.text == "GENERATED":
            by_name[first] = _bracketed(sql, tokens, position)
        depth += kind == TokenType.L_PAREN
    return by_name


def _bracketed(sql: str, tokens: list[Token], position: int) -> str:
    """The text within the next brackets."""
    depth, start = 0, 0
    for token in tokens[position:]:
        if token.token_type == TokenType.L_PAREN:
            depth += 1
            start = start or token.end + 1
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
            if not depth:
                return sql[start : token.start].strip()
    return ""
