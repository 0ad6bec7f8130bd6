"""PostgreSQL as the server, without any extension of ours. Of the user's own expressions only
those go whose meaning is the same in the local engine, which may be another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from louver import errors
from louver.names import fold, is_home
from louver.trusted.backends import comparisons, postgres_layers, postgres_native
from louver.trusted.backends.backend import Backend, Costs, Leaf, TypeOf
from louver.trusted.planner.sql.postgres_types import own_type
from louver.trusted.vault import stored_types
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.scheme import representation

_HOME = "public"
_INTEGERS = frozenset("TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER".split())
#: By the local engine's name of a plain type, the server's, which loses nothing. Texts are compared
#: by their bytes, as in the local engine.
_PLAIN = {
    "BOOLEAN": "boolean", "TINYINT": "smallint", "UTINYINT": "smallint", "SMALLINT": "smallint",
    "USMALLINT": "integer", "INTEGER": "integer", "UINTEGER": "bigint", "BIGINT": "bigint",
    "FLOAT": "real", "DOUBLE": "double precision", "VARCHAR": 'text COLLATE "C"', "BLOB": "bytea",
    "UUID": "uuid", "DATE": "date", "TIMESTAMP": "timestamp",
}  # fmt: skip
#: PostgreSQL's own types that are compared by a collation, beside `text`.
_TEXTUAL = re.compile(r"(?:text|bpchar|character(?: varying)?)(?:\(\d+\))?(?:\[\])?")
_COLLATION = ' COLLATE "C"'
_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
#: Kinds of values that both engines compare alike.
_KINDS = {**dict.fromkeys(_INTEGERS, "integer"), "VARCHAR": "text", "DATE": "date"}
_REPEATED = re.compile(r'Key \("?\w+"?\)=\((?P<value>[0-9a-f-]{36})\) already exists')
#: Dates that PostgreSQL writes and reads as DuckDB does.
_DAY = re.compile(r"(?!0000)\d{4}-\d\d-\d\d")
_DROP_INDEX = (
    "DECLARE found regclass; BEGIN FOR found IN SELECT i.indexrelid FROM"
    " pg_catalog.pg_index i WHERE i.indrelid = {table}::regclass AND NOT i.indisunique AND"
    " (SELECT array_agg(a.attname ORDER BY k.place) FROM"
    " unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place) JOIN pg_catalog.pg_attribute a"
    " ON a.attrelid = i.indrelid AND a.attnum = k.number) = ARRAY[{columns}]::name[]"
    " LOOP EXECUTE 'DROP INDEX ' || found; END LOOP; END"
)
_RENAME_INDEXES = (
    "DECLARE found regclass; BEGIN FOR found IN SELECT c.oid FROM pg_catalog.pg_index i"
    " JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid"
    " WHERE i.indrelid = {table}::regclass AND c.relname <> 'louver_' || c.oid"
    " LOOP EXECUTE format('ALTER INDEX %s RENAME TO louver_%s', found, found::oid); END LOOP; END"
)
_WIDE = stored_types.WIDE_CODE
_OWN = "postgres"
#: Of plain columns, whose values the local engine adds and compares in the same way.
_AGGREGATES = {name: f"{name}(⟦0⟧)" for name in ("sum", "avg", "min", "max")}
_NATIVE_WORDS = frozenset("interval day week month year hour minute second".split())


@dataclass(frozen=True, slots=True)
class Postgres(Backend):
    """A PostgreSQL server."""

    def render(self, node: exp.Expr, leaf: Leaf, type_of: TypeOf) -> str | None:
        """Comparisons of two integers, texts or dates, and what joins them; a small vocabulary
        where the local engine is a PostgreSQL too. Default deny.
        """
        if self.local_dialect == _OWN:
            return postgres_native.rendered(node, leaf, type_of)
        return comparisons.rendered(node, lambda part: _operand(part, leaf, type_of))

    def speaking(self, language: str) -> Backend:
        """With aggregates of plain columns where the local engine is a PostgreSQL too."""
        backend = Backend.speaking(self, language)
        if language != _OWN:
            return backend
        more, words = {**self.operations, **_AGGREGATES}, self.words | _NATIVE_WORDS
        functions = self.functions | {"avg", "coalesce"}
        return replace(backend, operations=more, words=words, functions=functions)

    def table(self, table: Table) -> str:
        """A table's name on the server."""
        return f"{self.quote(_schema(table.schema))}.{self.quote(table.name)}"

    def table_words(self, table: Table) -> set[str]:
        """The folded identifiers that a table's name on the server consists of."""
        return {fold(_schema(table.schema)), fold(table.name)}

    def compares(self, declared: str) -> bool:
        """All types that are stored in DuckDB's language; of PostgreSQL's, see there."""
        return self.local_dialect != _OWN or postgres_native.is_compared(declared)

    def plain_type(self, declared: str) -> str:
        """The server's type of the same values. PostgreSQL's own types keep their names."""
        match = _DECIMAL.fullmatch(declared)
        if match:
            return f"numeric({match[1]}, {match[2]})"
        known = _PLAIN.get(declared)
        if known is None and self.local_dialect == _OWN:
            own = own_type(declared)
            return own + _COLLATION if _TEXTUAL.fullmatch(own) else own
        return known or Backend.plain_type(self, declared)

    def move_table(self, before: Table, table: Table) -> list[str]:
        """First its indexes get names that no other has there: they move along."""
        body = _RENAME_INDEXES.format(table=_text(self.table(before)))
        schema = self.quote(_schema(table.schema))
        return [f"DO {_text(body)}", f"ALTER TABLE {self.table(before)} SET SCHEMA {schema}"]

    def create_schema(self, schema: str) -> list[str]:
        """The statements that make sure of a schema; some names are the server's, or ours there."""
        folded = fold(schema)
        if is_home(schema):
            return []
        if folded in (_HOME, "louver", "information_schema") or folded.startswith("pg_"):
            raise errors.make("engine.schema", engine=self.name, schema=schema)
        return Backend.create_schema(self, schema)

    def index(self, table: Table, columns: Sequence[str]) -> str:
        """An index whose name is the server's."""
        return f"CREATE INDEX ON {self.table(table)} ({', '.join(map(self.quote, columns))})"

    def drop_index(self, table: Table, columns: Sequence[str]) -> str:
        """Whatever index is over these columns, but for those that keep values apart."""
        names = ", ".join(map(_text, columns))
        body = _DROP_INDEX.format(table=_text(self.table(table)), columns=names)
        return f"DO {_text(body)}"

    def lock_rows(self, table: Table, count: int, numbers: str, how: str) -> str:
        """Locks of PostgreSQL's own."""
        listed = ", ".join(f"${number}" for number in range(1, count + 1))
        chosen = f"SELECT row_id FROM {numbers}" if numbers else listed
        return (
            f"SELECT row_id FROM {self.table(table)} WHERE row_id IN ({chosen})"
            f" ORDER BY row_id {how}"
        )

    def lock_table(self, tables: Sequence[Table], mode: str, *, waits: bool) -> str:
        """PostgreSQL's own."""
        names = ", ".join(map(self.table, tables))
        return f"LOCK TABLE {names} IN {mode} MODE{'' if waits else ' NOWAIT'}"

    def session_call(self, function: str) -> str:
        """Of advisory locks and messages; and of the sizes of tables, whose names are a list in
        JSON: of each its rows, these with what belongs to them, its indexes, and all.
        """
        if function == "sizes of tables":
            sizes = ("pg_relation_size", "pg_table_size", "pg_indexes_size")
            calls = [f"pg_catalog.{f}(t.n::regclass)" for f in (*sizes, "pg_total_relation_size")]
            source = "pg_catalog.json_array_elements_text($1::json) WITH ORDINALITY AS t(n, o)"
            return f"SELECT {', '.join(calls)} FROM {source} ORDER BY t.o"
        if function == "pg_notify":
            return f"SELECT pg_catalog.{function}($1, $2) IS NOT NULL"
        if function == "pg_advisory_unlock_all":
            return f"SELECT pg_catalog.{function}() IS NOT NULL"
        call = f"pg_catalog.{function}($1::bigint)"
        is_void = not ("_try_" in function or "unlock" in function)
        return f"SELECT {call} IS NOT NULL" if is_void else f"SELECT {call}"

    def replace_row(self, table: Table, names: Sequence[str]) -> str:
        """One row set anew; what is bound as a text need not be one."""
        uuids = {name for column in table.columns for name in _uuids(column)} | set(table.tags)
        bound = [f"${number}" + "::uuid" * (name in uuids) for number, name in enumerate(names, 1)]
        sets = (f"{self.quote(name)} = {value}" for name, value in zip(names, bound, strict=True))
        return f"UPDATE {self.table(table)} SET {', '.join(sets)} WHERE row_id = ${len(names) + 1}"

    def update_from(self, table: Table, names: Sequence[str], rows: str, key: str) -> str:
        """Columns set to those of an Arrow input, whose ``key`` holds row ids."""
        changes = ", ".join(f"{self.quote(n)} = {rows}.{self.quote(n)}" for n in names)
        target = f"{self.table(table)} AS t"
        return f"UPDATE {target} SET {changes} FROM {rows} WHERE t.row_id = {rows}.{key}"

    def tidied(self, table: Table, *, whole: bool = False) -> str:
        """A table whose rows were all changed holds each of them twice; what was theirs is used by
        later ones, or with ``whole`` given back, for which no other client may be at work on it.
        """
        options = "FULL, ANALYZE" if whole else "ANALYZE, SKIP_LOCKED"
        return f"VACUUM ({options}) {self.table(table)}"

    def adjusted(self, code: str, layer: str, keys: str, *, wide: bool) -> str:
        """A code without its outermost layer, or under its group's key."""
        if layer == "open":
            return postgres_layers.opened(code, keys, wide=wide)
        if layer != "join" or not self.has("rejoin"):
            return Backend.adjusted(self, code, layer, keys, wide=wide)
        return postgres_layers.joined(self.operations["rejoin"], code, keys, wide=wide)

    def having(self, extensions: Sequence[str]) -> Backend:
        """With AES for join groups where the server has pgcrypto."""
        more = postgres_layers.rejoin(list(extensions))
        return replace(self, operations={**self.operations, **more}) if more else self

    def repeated(self, message: str) -> tuple[str, bool] | None:
        """The value of a unique column that a refusal names."""
        match = _REPEATED.search(message)
        return (match["value"], True) if match else None


def _schema(schema: str) -> str:
    return _HOME if is_home(schema) else schema


def _uuids(column: Column) -> list[str]:
    """The stored columns of a column that are of type uuid."""
    plain = column.type == "UUID"
    return [
        name
        for kind, name in column.stored.items()
        if (plain if kind == "plain" else representation(kind).type(column) == _WIDE)
    ]


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _operand(node: exp.Expr, leaf: Leaf, type_of: TypeOf) -> tuple[str, str] | None:
    """A column or constant as the server's text, and the kind of its values."""
    if isinstance(node, exp.Paren):
        return _operand(node.this, leaf, type_of)
    if isinstance(node, exp.Neg):
        inner = _operand(node.this, leaf, type_of)
        numeric = isinstance(node.this, exp.Literal) and inner and inner[1] == "integer"
        return (f"(-{inner[0]})", "integer") if numeric and inner else None
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        return _day(node)
    if not isinstance(node, exp.Column | exp.Literal):
        return None
    kind = _KINDS.get(type_of(node))
    text = leaf(node)
    if text is None and isinstance(node, exp.Literal) and node.is_string and kind == "text":
        value = node.name.replace("'", "''")
        text = None if "\0" in value else f"'{value}'"
    return (text, kind) if text is not None and kind else None


def _day(node: exp.Cast) -> tuple[str, str] | None:
    """A date that is written out."""
    literal = node.this
    if not node.to.is_type("date") or not isinstance(literal, exp.Literal) or not literal.is_string:
        return None
    return (f"DATE '{literal.name}'", "date") if _DAY.fullmatch(literal.name) else None


def _extremes(word: str) -> dict[str, str]:
    """The sealed value and the id of the row with the least or greatest code."""
    operations = {}
    bits = "int8send(⟦2⟧ # (-9223372036854775807 - 1))"
    for suffix, code, width in (("", bits, 8), ("_wide", "uuid_send(⟦2⟧)", 16)):
        entry = f"ARRAY[{code} || int8send(⟦1⟧) || ⟦0⟧]"
        picked = f"({word}({entry}) FILTER (WHERE ⟦2⟧ IS NOT NULL))[1]"
        digits = f"'x' || encode(substr({picked}, {width + 1}, 8), 'hex')"
        operations[f"{word}_value{suffix}"] = f"substr({picked}, {width + 9})"
        operations[f"{word}_row{suffix}"] = f"CAST(CAST({digits} AS bit(64)) AS bigint)"
    return operations


BACKEND = Postgres(
    "postgresql",
    {
        # Of plain columns: sums of integers are exact in both engines.
        "least_row": "min(⟦0⟧)",
        # Arrays have a least one in every version, and need no sorting of the group.
        "of_least": "substr((min(ARRAY[int8send(⟦1⟧) || ⟦0⟧]))[1], 9)",
        **_extremes("min"),
        **_extremes("max"),
        # Of limbs. A sum of none is NULL; the ids of rows are those that a sum is of.
        "limb_sum": "CAST(sum(⟦0⟧) AS numeric(38, 0))",
        # Stored as the signed number of the same 64 bits.
        "wide_limb_sum": "CAST(sum(⟦0⟧) + 18446744073709551616"
        " * count(*) FILTER (WHERE ⟦0⟧ < 0) AS numeric(38, 0))",
        "row_set": "'\\x0103'::bytea || string_agg(int8send(⟦0⟧), ''::bytea)",
        "adjust": "sha256(⟦0⟧, ⟦1⟧, ⟦2⟧)",
    },
    {
        stored_types.ROW_ID: "bigint",
        stored_types.BYTES: "bytea",
        stored_types.CODE: "bigint",
        stored_types.WIDE_CODE: "uuid",
        stored_types.LIMB: "bigint",
        stored_types.WIDE_LIMB: "bigint",
    },
    words=frozenset(
        "array bigint bit bytea uuid date filter order numeric case when then end".split()
    ),
    functions=frozenset(
        ("min", "max", "sum", "string_agg", "int8send", "uuid_send", "substr", "encode")
    ),
    probe=postgres_layers.PROBE,
    keys_choose=False,
    unique="UNIQUE",
    replaces=True,
    tags_plain_keys=True,
    has_indexes=True,
    row_key="PRIMARY KEY",
    concurrent=True,
    languages=("postgres", "duckdb"),
    # By the index, a page for each; all rows of a table in turn take less than a microsecond each.
    costs=Costs(number_s=3e-6),
    unaffected=frozenset(
        (
            "timezone", "calendar", "default_null_order", "null_order", "default_order",
            "integer_division", "ieee_floating_point_ops",
        )
    ),
)  # fmt: skip
