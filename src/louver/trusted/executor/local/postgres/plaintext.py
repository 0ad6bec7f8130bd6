"""A plaintext PostgreSQL database: what it declares, as the statements that make it, and its rows.

Everything is read in one transaction. The declarations are read by the same queries as those of the
private server, so what is run here is PostgreSQL's own text of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from louver import errors
from louver._rust import postgres
from louver.names import fold, quoted
from louver.trusted.executor.local.local import Place
from louver.trusted.executor.local.postgres import catalog_queries, declarations
from louver.trusted.executor.local.postgres import plaintext_queries as queries
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.declarations import Form, fetched, path_of
from louver.trusted.executor.local.postgres.schema import PostgresSchema
from louver.trusted.executor.local.postgres.type_names import TypeNames

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BATCH_ROWS = 8192
#: Objects in the order in which most of them can be made.
KINDS = (
    "SCHEMA", "TYPE", "SEQUENCE", "FUNCTION", "TABLE", "KEY", "OWNER", "POSITION", "INDEX", "VIEW",
    "COMMENT",
)  # fmt: skip
_FIRST_OF_USERS = 16_384
_MOST_PRECISION = 38
_TIMESTAMPS = frozenset((1114, 1184))
_NUMERIC = 1700
#: Of what stands before the name in the text of a comment, what it is on.
_COMMENTED = {"COLUMN": "TABLE", "DOMAIN": "TYPE"}


@dataclass(frozen=True, slots=True)
class Item:
    """One object, and the statement that makes it."""

    kind: str
    schema: str
    name: str
    sql: str
    oid: int = 0
    #: the table that it is a part of, by number; of a KEY also the one that it refers to
    table: int = 0
    parent: int = 0

    @property
    def label(self) -> str:
        """Its kind and name for people."""
        kind = {"KEY": "constraint", "POSITION": "position of sequence"}.get(self.kind)
        where = "" if self.schema in ("public", self.name) else f"{self.schema}."
        return f"{kind or fold(self.kind)} {where}{self.name}"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table whose rows are taken."""

    oid: int
    schema: str
    name: str
    kind: str
    #: the schema where it waits, if that is another one
    home: str = ""

    @property
    def path(self) -> str:
        """Its name as text."""
        return path_of(self.schema, self.name)

    @property
    def source(self) -> str:
        """Where its rows are, as text."""
        path = path_of(self.home or self.schema, self.name)
        return f"ONLY {path}" if self.kind == "r" else path

    @property
    def label(self) -> str:
        """Its name for people."""
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column, and its values' type: of a domain what that is of."""

    name: str
    type_: int
    kind: str
    modifier: int
    type_name: str
    #: whether the type comes with an extension, so that it is not there on another server
    is_foreign: bool

    @property
    def as_text(self) -> bool:
        """Whether values travel as texts: their binary form has numbers of this server's types."""
        return self.type_ >= _FIRST_OF_USERS and self.kind != "e"

    def odd(self, path: str) -> tuple[str, str] | None:
        """Values that cannot be held: what they are called, and the condition for them."""
        if self.type_ == _NUMERIC and self.modifier >= 0:
            if (self.modifier - 4) >> 16 <= _MOST_PRECISION:
                return "NaN", f"{path} = 'NaN'"
        elif self.type_ in _TIMESTAMPS:
            return "after the year 294246", f"isfinite({path}) AND {path} >= '294247-01-01'"
        return None


class Plaintext:
    """The database behind an open session, which is only read."""

    def __init__(self, session: postgres.Session, *, begun: bool = False) -> None:
        """Begin the transaction in which everything is read, unless one is ``begun``."""
        self.connection = PostgresConnection(session, TypeNames())
        if not begun:
            session.keep_no_statements()
            self.connection.execute(_BEGIN)
        for name, value in queries.SETTINGS:
            self.connection.execute("SELECT set_config($1, $2, true)", [name, value])
        self.schema = PostgresSchema(self.connection)
        #: foreign keys that are added when all tables are there, by table and name
        self._late: set[tuple[int, str]] = set()

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Rows of the catalog."""
        return fetched(self.connection, sql, *parameters)

    # ------------------------------------------------------------------ what there is

    @cached_property
    def tables(self) -> list[SourceTable]:
        """The tables; the rows of a partitioned one are those of its parts."""
        return [SourceTable(*row[:4]) for row in self.rows(queries.TABLES) if not row[4]]

    @cached_property
    def parts(self) -> set[int]:
        """The parts of partitioned tables, by number."""
        return {row[0] for row in self.rows(queries.TABLES) if row[4]}

    @cached_property
    def invalid(self) -> set[tuple[int, str]]:
        """Constraints that rows may break, and (without a name) indexes that lack rows."""
        return {(oid, name) for oid, name in self.rows(queries.INVALID)}

    @cached_property
    def collation(self) -> str:
        """By what texts are compared here."""
        return str(self.rows(queries.COLLATION)[0][0])

    def chosen(self, names: Sequence[str]) -> list[SourceTable]:
        """The tables of these names, or all; raises for one that is missing, and for one that a
        foreign key of another needs.
        """
        wanted = {fold(name.replace('"', "")) for name in names}
        if not wanted:
            return self.tables
        chosen = [table for table in self.tables if fold(table.label) in wanted]
        missing = wanted - {fold(table.label) for table in chosen}
        if missing:
            raise errors.make("table.missing", table=min(missing))
        known, labels = {t.oid for t in chosen}, {t.oid: t.label for t in self.tables}
        for _, child, parent, _ in self.rows(queries.KEYS):
            if child in known and parent not in known:
                raise errors.make(
                    "file.parent", table=labels[child], parent=labels.get(parent, "another table")
                )
        return chosen

    def refused(self, tables: Collection[SourceTable], *, every: bool) -> list[str]:
        """What no statement here could make."""
        known = {table.oid for table in tables}
        return [
            f"{kind} {'' if schema == 'public' else schema + '.'}{name}"
            for kind, table, schema, name in self.rows(queries.REFUSED)
            if table in known or every
        ]

    def columns(self, table: SourceTable) -> list[SourceColumn]:
        """The columns of a table."""
        return [SourceColumn(*row) for row in self.rows(queries.COLUMNS, table.oid)]

    # ------------------------------------------------------------------ statements

    def items(
        self, tables: Sequence[SourceTable], forms: Mapping[int, Form], *, every: bool
    ) -> list[Item]:
        """The statements for these tables and what goes with them; ``every``: they are all."""
        known, owners = {t.oid for t in tables}, self._owners()
        ordered, self._late = self._ordered(tables)
        results = [
            Item("TABLE", t.schema, t.name, self.table_text(t, forms[t.oid]), t.oid, t.oid)
            for t in ordered
        ]
        results += [
            Item("KEY", *_place_of(tables, child), sql, 0, child, parent)
            for name, child, parent, sql in self.rows(queries.KEYS)
            if (child, name) in self._late - self.invalid
        ]
        members = {(where, oid) for where, oid in self.rows(queries.MEMBERS)}
        for kind, schema, name, oid, detail, _ in self.rows(catalog_queries.OBJECTS):
            where = {"SCHEMA": "pg_namespace", "TYPE": "pg_type"}.get(kind, "pg_class")
            ours = schema != "louver" and (where, oid) not in members
            if kind in ("SCHEMA", "TYPE", "VIEW") and ours:
                text = self.schema._text(kind, oid, detail)
                results.append(Item(kind, schema, name, text, oid))
            elif kind == "INDEX" and owners.get(oid) in known and (oid, "") not in self.invalid:
                results.append(Item(kind, schema, name, detail, oid, owners[oid]))
        results += self._sequences(owners, known, every=every)
        results += [
            Item("FUNCTION", schema, name, text.strip(), oid)
            for schema, name, oid, text in self.rows(catalog_queries.FUNCTIONS)
            if schema != "louver"
        ]
        results += self._comments(results)
        return sorted(results, key=lambda item: KINDS.index(item.kind))

    def table_text(self, table: SourceTable, form: Form) -> str:
        """CREATE TABLE, without the foreign keys that are added later, and invalid constraints."""
        left = {name for oid, name in (*self._late, *self.invalid) if oid == table.oid}
        form = replace(form, constraints=form.constraints | left, alone=True)
        return declarations.table(self.connection, table.oid, form=form)

    def pieces(self, table: SourceTable) -> list[tuple[str, str]]:
        """What can be left out of a table's statement: kind and name."""
        return [(kind, name) for kind, name in self.rows(queries.PARTS, table.oid)]

    def _owners(self) -> dict[int, int]:
        return dict(self.rows(queries.OWNERS))

    def _ordered(
        self, tables: Sequence[SourceTable]
    ) -> tuple[list[SourceTable], set[tuple[int, str]]]:
        """Tables behind those that they refer to; and the foreign keys for which there is no such
        order, by table and name.
        """
        keys = self.rows(queries.KEYS)
        known = {table.oid for table in tables}
        waiting, results, late = list(tables), list[SourceTable](), set[tuple[int, str]]()
        while waiting:
            there = {table.oid for table in results}
            needed = {
                t.oid: {parent for _, child, parent, _ in keys if child == t.oid} & known
                for t in waiting
            }
            table = next((t for t in waiting if needed[t.oid] <= there | {t.oid}), waiting[0])
            late |= {
                (child, name) for name, child, parent, _ in keys
                if child == table.oid and parent in known - there - {child}
            }  # fmt: skip
            waiting.remove(table)
            results.append(table)
        return results, late

    def _sequences(
        self, owners: dict[int, int], known: Collection[int], *, every: bool
    ) -> Iterator[Item]:
        numbers = {
            (schema, name): oid
            for kind, schema, name, oid, _, _ in self.rows(catalog_queries.OBJECTS)
            if kind == "SEQUENCE"
        }
        for row in self.rows(catalog_queries.SEQUENCES):
            schema, name, temporary, start = row[:4]
            oid = numbers.get((schema, name), 0)
            table = owners.get(oid, 0)
            if temporary or schema == "louver" or (table not in known if table else not every):
                continue
            text, _, owned = declarations.sequence(row).partition("; ")
            if not row[10]:
                yield Item("SEQUENCE", schema, name, text, oid)
            if owned:
                yield Item("OWNER", schema, name, owned, oid, table)
            ((last, is_called),) = self.rows(row[-1])
            if is_called or last != start:
                path = path_of(schema, name).replace("'", "''")
                called = "true" if is_called else "false"
                sql = f"SELECT pg_catalog.setval('{path}', {last}, {called})"
                yield Item("POSITION", schema, name, sql, oid, table)

    def _comments(self, items: Sequence[Item]) -> Iterator[Item]:
        """The comments on what is brought along."""
        owners = {(i.kind, i.schema, i.name): i.table for i in items}
        owners |= {("SEQUENCE", i.schema, i.name): i.table for i in items if i.kind == "POSITION"}
        for schema, name, text, temporary in self.rows(catalog_queries.COMMENTS):
            of_view = text.startswith(catalog_queries.OF_VIEW)
            word = "VIEW" if of_view else text.split(" ", 3)[2]
            kinds = ("TABLE", "VIEW") if word == "COLUMN" else (_COMMENTED.get(word, word),)
            keys = [(kind, schema, name) for kind in kinds if (kind, schema, name) in owners]
            if keys and not temporary:
                yield Item("COMMENT", schema, name, text, 0, owners[keys[0]])

    # ------------------------------------------------------------------ rows

    def census(self, table: SourceTable) -> tuple[int, list[str]]:
        """The number of rows, and the columns with values that cannot be held."""
        odd = [(column, column.odd(quoted(column.name))) for column in self.columns(table)]
        named = [(column, said) for column, said in odd if said is not None]
        counts = "".join(f", count(*) FILTER (WHERE {sql})" for _, (_, sql) in named)
        ((rows, *numbers),) = self.rows(f"SELECT count(*){counts} FROM {table.source}")
        return rows, [
            f"{table.label}.{column.name} ({what}: {number} rows)"
            for (column, (what, _)), number in zip(named, numbers, strict=True)
            if number
        ]

    def stream(
        self, table: SourceTable, texts: Collection[str], limit: int | None
    ) -> Iterator[pa.Table]:
        """All rows in batches; columns of these names as texts."""
        listed = ", ".join(
            f"{quoted(name)}::text AS {quoted(name)}" if name in texts else quoted(name)
            for name in (column.name for column in self.columns(table))
        )
        most = "" if limit is None else f" LIMIT {limit}"
        sql = f"SELECT {listed} FROM {table.source}{most}"
        for batch in self.connection.stream(sql, batch_rows=_BATCH_ROWS):
            yield pa.Table.from_batches([batch])


def _place_of(tables: Sequence[SourceTable], oid: int) -> Place:
    table = next(table for table in tables if table.oid == oid)
    return table.schema, table.name


@contextmanager
def reading(session: postgres.Session) -> Iterator[Plaintext]:
    """The database behind a session, which is closed at the end."""
    try:
        yield Plaintext(session)
    finally:
        session.close()
