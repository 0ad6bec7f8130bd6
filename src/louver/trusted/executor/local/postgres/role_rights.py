"""What one user may do with tables and columns: rights of a role of the private PostgreSQL.

The role is there without any right. Where something is to be decided, it is given those of the
user on what is declared now, within a transaction that is undone: names that are not there yet, or
not any more, give no right, and nothing is left behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor.local.postgres import bodies, node_tree
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.failures import said, translated
from louver.trusted.executor.local.postgres.statements import PostgresStatements

_TOKEN = re.compile(r'\s*(?:("(?:[^"]|"")+")|([A-Za-z_\u0080-\U0010ffff][\w$]*)|([(),.]))')
#: What may be granted, and whether it may be of columns.
_PRIVILEGES = {"SELECT": True, "INSERT": True, "UPDATE": True, "DELETE": False}
_COLUMNS = """
SELECT r.ordinal::integer, n.nspname::text, c.relname::text, a.attname::text
FROM unnest($1::text[]) WITH ORDINALITY AS r(path, ordinal)
JOIN pg_class AS c ON c.oid = to_regclass(r.path) AND c.relkind IN ('r', 'p', 'v')
JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.oid <> pg_my_temp_schema()
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY 1, a.attnum
"""


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights on one table or view: each a privilege with the columns that it is of, none for all of
    them. ``schema`` is public where none is given.
    """

    privileges: tuple[tuple[str, tuple[str, ...]], ...]
    schema: str
    table: str

    def __str__(self) -> str:
        """As `parsed` reads it."""
        parts = (
            name + (f" ({', '.join(map(quoted, columns))})" if columns else "")
            for name, columns in self.privileges
        )
        return f"{', '.join(parts)} ON {self.path}"

    @property
    def path(self) -> str:
        """The table's name as SQL."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"


@dataclass(frozen=True, slots=True)
class Rights:
    """Those of a user, whose role has the user's name."""

    user: str
    grants: tuple[Grant, ...]


def parsed(text: str) -> Grant:
    """Read `SELECT (a, b), DELETE ON t`, as GRANT has it, names as PostgreSQL reads them.

    Raises:
        ValueError: for anything else; says what.
    """
    words = _Words(text)
    privileges: list[tuple[str, tuple[str, ...]]] = []
    while True:
        name = keyword(words.name())
        if name == "ALL":
            if keyword(words.peek()) == "PRIVILEGES":
                words.name()
            privileges += [(other, ()) for other in _PRIVILEGES]
        elif name in _PRIVILEGES:
            columns = words.columns() if words.peek() == "(" else ()
            if columns and not _PRIVILEGES[name]:
                raise ValueError(f"{name} is of whole tables")
            privileges.append((name, columns))
        else:
            raise ValueError(f"{', '.join(_PRIVILEGES)} and ALL may be granted")
        if words.peek() != ",":
            break
        words.sign(",")
    if keyword(words.name()) != "ON":
        raise ValueError("ON and the name of a table follow what is granted")
    if keyword(words.peek()) == "TABLE":
        words.name()
    schema, table = "public", words.name()
    if words.peek() == ".":
        words.sign(".")
        schema, table = table, words.name()
    words.ends()
    return Grant(tuple(privileges), schema, table)


class _Words:
    """Names and signs of a text."""

    def __init__(self, text: str) -> None:
        self._items: list[tuple[str, str]] = []
        text, at = text.strip(), 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"what begins at character {at + 1} is neither name nor sign")
            name, word, sign = match.groups()
            self._items.append(
                (name[1:-1].replace('""', '"') if name else fold(word or ""), sign or "")
            )
            at = match.end()

    def peek(self) -> str:
        return (self._items[0][0] or self._items[0][1]) if self._items else ""

    def name(self) -> str:
        if not self._items or self._items[0][1]:
            raise ValueError("a name is missing")
        return self._items.pop(0)[0]

    def sign(self, wanted: str) -> None:
        if not self._items or self._items.pop(0)[1] != wanted:
            raise ValueError(f"{wanted} is missing")

    def columns(self) -> tuple[str, ...]:
        self.sign("(")
        names = [self.name()]
        while self.peek() == ",":
            self.sign(",")
            names.append(self.name())
        self.sign(")")
        return tuple(names)

    def ends(self) -> None:
        if self._items:
            raise ValueError("nothing follows the name of the table")


def enter(binder: PostgresConnection, rights: Rights) -> None:
    """Give the role its rights, and take its place: within a transaction that is undone."""
    paths = [grant.path for grant in rights.grants]
    rows = binder.fetchall(_COLUMNS, [_array(paths)]) if paths else []
    steps = list(_granting(rights, rows))
    with translated():
        binder.raw.run([(sql, []) for sql in (*steps, f"SET LOCAL ROLE {quoted(rights.user)}")])


def _granting(rights: Rights, rows: Sequence[tuple[int, str, str, str | None]]) -> Iterator[str]:
    role, columns = quoted(rights.user), dict[int, list[str]]()
    for ordinal, schema, table, column in rows:
        grant = rights.grants[ordinal - 1]
        if (schema, table) != (grant.schema, grant.table):
            raise errors.make("internal", detail="a right on another table than was named")
        columns.setdefault(ordinal, []).extend([column] if column is not None else [])
    for ordinal, there in columns.items():
        grant = rights.grants[ordinal - 1]
        yield f"GRANT USAGE ON SCHEMA {quoted(grant.schema)} TO {role}"
        for name, wanted in grant.privileges:
            listed = ", ".join(quoted(column) for column in there if column in wanted)
            if listed or not wanted:
                yield f"GRANT {name}{f' ({listed})' if wanted else ''} ON {grant.path} TO {role}"


def _array(texts: Sequence[str]) -> str:
    items = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{item}"' for item in items) + "}"


def require_functions(binder: PostgresConnection, workspace: PostgresConnection, sql: str) -> bool:
    """Raise where a function of a user's reads something: PostgreSQL decides that when it runs.
    Whether the statement may read what a text or number names.
    """
    reach = PostgresStatements(binder, workspace).reach(sql)
    for function in reach.functions:
        if function.is_own:
            continue
        if function.body is None:
            reads = not bodies.reads_arguments(binder, function.name)
        else:
            reads = bool(node_tree.read(function.body).relations)
        if reads:
            message = f"permission denied for function {function.name}"
            raise said({"code": "42501", "message": message})
    return reach.takes_names or not reach.read.is_known
