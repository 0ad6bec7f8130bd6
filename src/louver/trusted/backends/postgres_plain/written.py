"""The declarations of the local engine as statements of a plaintext PostgreSQL database.

Texts compare by their bytes there too. What has no equal is refused where values would be lost, or
left and named where only a rule is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from louver import errors
from louver.names import fold, quoted
from louver.trusted.backends import postgres
from louver.trusted.backends.postgres_plain import expressions
from louver.trusted.backends.postgres_plain.declared import label_of
from louver.trusted.planner.sql import trees

_HOME = "public"
_RESERVED = ("information_schema", "louver")
_INTEGERS = frozenset("TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER".split())
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_NEXT = re.compile(r"nextval\('((?:[^']|'')+)'\)")
_BOOLEANS = {"CAST('t' AS BOOLEAN)": "true", "CAST('f' AS BOOLEAN)": "false"}
_CALLS = {"now()": "now()", "current_date": "CURRENT_DATE", "uuid()": "gen_random_uuid()"}
#: Types that the server has under another name, and how the local engine gives their values so
#: that the server's binary form is made of them.
_OTHERS = {
    "TIMESTAMP WITH TIME ZONE": ("timestamptz", "CAST({0} AS TIMESTAMP WITH TIME ZONE)"),
    "TIMESTAMP_S": ("timestamp(0)", "CAST({0} AS TIMESTAMP)"),
    "TIMESTAMP_MS": ("timestamp(3)", "CAST({0} AS TIMESTAMP)"),
    "TIME": ("time", "epoch_us({0})"),
    "INTERVAL": ("interval", "{0}"),
    "UBIGINT": ("numeric(20, 0)", "CAST({0} AS DECIMAL(20, 0))"),
    "HUGEINT": ("numeric(38, 0)", "CAST({0} AS DECIMAL(38, 0))"),
    "UHUGEINT": ("numeric(38, 0)", "CAST({0} AS DECIMAL(38, 0))"),
    "UUID": ("uuid", "from_hex(replace(CAST({0} AS VARCHAR), '-', ''))"),
    "JSON": ("json", "CAST({0} AS VARCHAR)"),
}
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table: its local schema and name, its name on the server, and of each column the name and
    how the local engine gives its values.
    """

    schema: str
    name: str
    path: str
    columns: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Written:
    """Statements before the rows and after them."""

    before: list[str] = field(default_factory=list)
    tables: list[WrittenTable] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    left: dict[str, list[str]] = field(default_factory=dict)

    def leave(self, kind: str, name: str) -> None:
        """Note something that is not written."""
        self.left.setdefault(kind, []).append(name)


def written(local: Mapping[str, Sequence[Row]], *, as_text: bool = False) -> Written:
    """The statements for the objects of the local engine, as rows of its catalog by kind."""
    result = Written()
    types = _types(local, as_text=as_text)
    schemas = {row["schema"] for kind in local.values() for row in kind}
    for schema in sorted(schemas):
        result.before += _schema(schema)
    result.before += types.created
    for row in local["sequences"]:
        cycle = " CYCLE" if row["cycle"] else ""
        result.before.append(
            f"CREATE SEQUENCE {_path(row)} INCREMENT BY {row['increment_by']}"
            f" MINVALUE {row['min_value']} MAXVALUE {row['max_value']}"
            f" START WITH {row['next']}{cycle}"
        )
    for row in local["tables"]:
        columns = [c for c in local["columns"] if _same(c, row)]
        rules = [c for c in local["constraints"] if _same(c, row)]
        _table(result, row, columns, rules, types.by_column)
    for row in local["indexes"]:
        _index(result, row)
    for row in local["views"]:
        _view(result, row, local)
    for row in (*local["tables"], *local["columns"]):
        if row["comment"]:
            _comment(result, row)
    return result


def _schema(schema: str) -> list[str]:
    folded = fold(schema)
    if folded == "main":
        return []
    if folded in (_HOME, *_RESERVED) or folded.startswith("pg_"):
        raise errors.make("engine.schema", engine=postgres.BACKEND.name, schema=schema)
    return [f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}"]


def _path(row: Row, name: str = "name") -> str:
    schema = _HOME if fold(row["schema"]) == "main" else row["schema"]
    return f"{quoted(schema)}.{quoted(row[name])}"


def _same(row: Row, table: Row) -> bool:
    return (row["schema"], row["table"]) == (table["schema"], table["name"])


# ---------------------------------------------------------------------- types


@dataclass(slots=True)
class _Types:
    """By schema, table and column the server's type and how its values are given."""

    by_column: dict[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)


def _types(local: Mapping[str, Sequence[Row]], *, as_text: bool) -> _Types:
    """The types of all columns; raises for all that have none."""
    result, unknown = _Types(), []
    named = {tuple(row["labels"]): _path(row) for row in local["types"] if row["labels"]}
    for labels, path in named.items():
        listed = ", ".join("'" + label.replace("'", "''") + "'" for label in labels)
        result.created.append(f"CREATE TYPE {path} AS ENUM ({listed})")
    for row in local["columns"]:
        type_ = _type(row, named, as_text=as_text)
        label = f"{label_of(row['schema'], row['table'])}.{row['name']}"
        if type_ is None:
            unknown.append(f"{label} ({row['type']})")
        else:
            result.by_column[row["schema"], row["table"], row["name"]] = type_
    if unknown:
        raise errors.make("source.types", columns=", ".join(unknown))
    return result


def _type(
    row: Row, named: Mapping[tuple[str, ...], str], *, as_text: bool
) -> tuple[str, str] | None:
    type_ = row["type"]
    if row["labels"]:
        path = named.get(tuple(row["labels"]))
        return (path or postgres.BACKEND.plain_type("VARCHAR"), "CAST({0} AS VARCHAR)")
    if type_ in _OTHERS:
        return _OTHERS[type_]
    try:
        return postgres.BACKEND.plain_type(type_), "{0}"
    except errors.Error:
        text = (postgres.BACKEND.plain_type("VARCHAR"), "CAST({0} AS VARCHAR)")
        return text if as_text else None


# ---------------------------------------------------------------------- tables


def _table(
    result: Written, row: Row, columns: Sequence[Row], rules: Sequence[Row],
    types: Mapping[tuple[str, str, str], tuple[str, str]],
) -> None:  # fmt: skip
    path, parts, given = _path(row), [], []
    label = label_of(row["schema"], row["name"])
    for column in columns:
        if column["generated"]:
            result.leave("generated column", f"{label}.{column['name']}")
            continue
        type_, value = types[column["schema"], column["table"], column["name"]]
        not_null = "" if column["nullable"] else " NOT NULL"
        parts.append(f"{quoted(column['name'])} {type_}{_default(result, column)}{not_null}")
        given.append((column["name"], value.format(quoted(column["name"]))))
    kinds = {column["name"]: _kind(column["type"]) for column in columns}
    for rule in rules:
        names = ", ".join(map(quoted, rule["columns"]))
        if rule["kind"] in ("PRIMARY KEY", "UNIQUE"):
            parts.append(f"{rule['kind']} ({names})")
        elif rule["kind"] == "CHECK":
            text = expressions.condition(rule["expression"], kinds)
            if text is None:
                result.leave("constraint", f"{label} {rule['text']}")
            else:
                parts.append(f"CHECK {text}")
        elif rule["kind"] == "FOREIGN KEY":
            parent = _path({"schema": rule["schema"], "name": rule["parent"] or row["name"]})
            listed = ", ".join(map(quoted, rule["parent_columns"]))
            result.after.append(
                f"ALTER TABLE {path} ADD FOREIGN KEY ({names}) REFERENCES {parent} ({listed})"
            )
    result.before.append(f"CREATE TABLE {path} ({', '.join(parts)})")
    result.tables.append(WrittenTable(row["schema"], row["name"], path, tuple(given)))


def _default(result: Written, column: Row) -> str:
    text, type_ = column["default"], column["type"]
    if text is None or text == "NULL":
        return ""
    if match := _NEXT.fullmatch(text):
        tree = trees.parse(f"SELECT * FROM {match[1]}".replace("''", "'"))
        table = tree.find(exp.Table) if tree is not None else None
        if table is not None:
            path = _path({"schema": table.db or "main", "name": table.name}).replace("'", "''")
            return f" DEFAULT nextval('{path}')"
    value = _BOOLEANS.get(text) or _CALLS.get(text)
    value = value or expressions.default(text, type_, is_enum=bool(column["labels"]))
    if value is None:
        result.leave("default", f"{label_of(column['schema'], column['table'])}.{column['name']}")
        return ""
    return f" DEFAULT {value}"


def _kind(type_: str) -> str | None:
    match = _DECIMAL.fullmatch(type_)
    if type_ in _INTEGERS or (match and int(match[1]) <= expressions.MOST_DIGITS):
        return "number"
    return {"VARCHAR": "bytes", "DATE": "date", "DOUBLE": "double"}.get(type_)


# ---------------------------------------------------------------------- other objects


def _index(result: Written, row: Row) -> None:
    tree = trees.parse(row["sql"].rstrip("; "))
    params = tree.find(exp.IndexParameters) if tree is not None else None
    columns = [_bare(part) for part in params.args["columns"]] if params else []
    plain = [column for column in columns if isinstance(column, exp.Column)]
    if not plain or len(plain) < len(columns):
        result.leave("index", label_of(row["schema"], row["name"]))
        return
    unique = "UNIQUE " if row["is_unique"] else ""
    names = ", ".join(quoted(column.name) for column in plain)
    result.after.append(
        f"CREATE {unique}INDEX {quoted(row['name'])} ON {_path(row, 'table')} ({names})"
    )


def _view(result: Written, row: Row, local: Mapping[str, Sequence[Row]]) -> None:
    kinds: dict[str, str | None] = {}
    for column in local["columns"]:
        kind = _kind(column["type"])
        kinds[column["name"]] = kind if kinds.get(column["name"], kind) == kind else None
    tree = trees.parse(row["sql"].rstrip("; "))
    query = tree.expression if isinstance(tree, exp.Create) else None
    schemas = {r["schema"]: r["schema"] for r in local["tables"]} | {"main": _HOME}
    here = {fold(r["name"]) for r in local["tables"] if r["schema"] == row["schema"]}
    text = None
    if query is not None:
        for table in query.find_all(exp.Table):
            if not table.db:
                home = row["schema"] if fold(table.name) in here else "main"
                table.set("db", exp.to_identifier(home, quoted=True))
        text = expressions.view(trees.local_text(query), kinds, schemas)
    if text is None:
        result.leave("view", label_of(row["schema"], row["name"]))
        return
    names = ", ".join(map(quoted, row["columns"]))
    result.after.append(f"CREATE VIEW {_path(row)} ({names}) AS {text}")


def _comment(result: Written, row: Row) -> None:
    text = row["comment"].replace("'", "''")
    if "table" not in row:
        result.after.append(f"COMMENT ON TABLE {_path(row)} IS '{text}'")
    elif not row["generated"]:
        path = f"{_path(row, 'table')}.{quoted(row['name'])}"
        result.after.append(f"COMMENT ON COLUMN {path} IS '{text}'")


def _bare(part: exp.Expr) -> exp.Expr:
    """What an index is over, without its order and brackets."""
    while isinstance(part, exp.Ordered | exp.Paren):
        part = part.this
    return part
