"""Temporary tables: rows in the workspace, an empty twin in the binder, gone with the session."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any, Protocol

import pyarrow as pa

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor.local.carried_tables import CarriedTables
from louver.trusted.executor.local.engine import TemporaryState
from louver.trusted.executor.local.postgres import declarations
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.planner.sql import lexer

_TABLES = (
    "SELECT relname::text, oid FROM pg_class WHERE relnamespace = pg_my_temp_schema()"
    " AND relkind = 'r' AND relname !~ '^louver_' ORDER BY oid"
)
_INDEXES = (
    "SELECT c.relname::text, pg_get_indexdef(i.indexrelid) FROM pg_index AS i"
    " JOIN pg_class AS c ON c.oid = i.indexrelid WHERE c.relnamespace = pg_my_temp_schema()"
    " AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid) ORDER BY c.oid"
)
_NO_COLUMN = "louver_none"
#: The sequences of serial and identity columns, by the table.
_SEQUENCES = """
SELECT q.relname::text, quote_ident(c.relname), e.deptype = 'i', format_type(s.seqtypid, NULL),
    quote_ident(a.attname), s.seqincrement, s.seqmin, s.seqmax, s.seqstart, s.seqcache, s.seqcycle,
    pg_sequence_last_value(c.oid)
FROM pg_class AS c JOIN pg_sequence AS s ON s.seqrelid = c.oid
JOIN pg_depend AS e ON e.classid = 'pg_class'::regclass AND e.objid = c.oid
    AND e.refclassid = 'pg_class'::regclass AND e.deptype IN ('a', 'i') AND e.refobjsubid > 0
JOIN pg_class AS q ON q.oid = e.refobjid
JOIN pg_attribute AS a ON a.attrelid = q.oid AND a.attnum = e.refobjsubid
WHERE c.relnamespace = pg_my_temp_schema() ORDER BY c.oid
"""
_EVERY_SEQUENCE = (
    "SELECT relname::text, quote_ident(relname) FROM pg_class"
    " WHERE relnamespace = pg_my_temp_schema() AND relkind = 'S'"
)
#: Those that go with no column, as they are declared, and where each of them is.
_ALONE = """
SELECT c.relname::text, quote_ident(c.relname), format_type(s.seqtypid, NULL), s.seqincrement,
    s.seqmin, s.seqmax, s.seqstart, s.seqcache, s.seqcycle
FROM pg_class AS c JOIN pg_sequence AS s ON s.seqrelid = c.oid
WHERE c.relnamespace = pg_my_temp_schema() AND c.relname !~ '^louver_'
    AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid
    AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i') AND refobjsubid > 0)
ORDER BY c.oid
"""
_DEFERRABLE = (
    "SELECT count(*) > 0, count(*) FILTER (WHERE condeferred) > 0 FROM pg_constraint"
    " WHERE connamespace = pg_my_temp_schema() AND condeferrable"
)


class Instances(Protocol):
    """The two sessions."""

    binder: PostgresConnection
    workspace: PostgresConnection

    def remake_views(self) -> None:
        """Have the temporary views again that went with tables which were made anew."""

    def forget_types(self) -> None:
        """Forget what is known of types, and of statements, of the tables as they were."""


class PostgresTemporary(CarriedTables):
    """The temporary tables of both."""

    failures = errors.Error

    def __init__(self, home: Instances) -> None:
        """There are none yet."""
        super().__init__()
        self.home = home
        self._drawn: dict[str, int | None] = {}
        self._stood: dict[str, tuple[int, bool]] = {}

    def texts(self, words: set[str]) -> list[str]:
        """The definitions of those that a statement names. A draw from a sequence that goes with
        one of them is not among them: no other session has that sequence.
        """
        if not self.mentioned(words):
            return []
        own = [f"nextval('{literal}'::regclass)" for literal in self._positions()]
        own += [f"nextval('{row[1]}'::regclass)" for row in self._alone()]
        results = []
        for name, text in self._tables().items():
            if fold(name) in words:
                for draw in own:
                    text = text.replace(draw, "0")
                results.append(text)
        return results

    def _tables(self) -> dict[str, str]:
        workspace = self.home.workspace
        tables = workspace.fetchall(_TABLES)
        return {name: declarations.table(workspace, oid) for name, oid in tables}

    def _sequences(self) -> list[tuple[Any, ...]]:
        return self.home.workspace.fetchall(_SEQUENCES)

    def _alone(self) -> list[tuple[Any, ...]]:
        return self.home.workspace.fetchall(_ALONE)

    def _places(self) -> dict[str, tuple[int, bool]]:
        """The values of sequences that go with no column, and whether these were given."""
        results = {}
        for _, path, *_ in self._alone():
            sql = f"SELECT last_value, is_called FROM pg_temp.{path}"
            results[path] = self.home.workspace.fetchall(sql)[0]
        return results

    def _positions(self) -> dict[str, int | None]:
        """The last numbers of sequences, by their names as they stand in a text."""
        return {row[1].replace("'", "''"): row[-1] for row in self._sequences()}

    def _texts(self) -> dict[str, str]:
        """The statements of each table: its sequences, and itself."""
        parts = {
            name: [f"CREATE TEMP SEQUENCE {path} AS {type_} {declarations.options(*options)}"]
            for name, path, type_, *options in self._alone()
        }
        parts |= {name: [text] for name, text in self._tables().items()}
        for table, name, of_identity, type_, column, *options, _ in self._sequences():
            if not of_identity:
                listed = declarations.options(*options)
                parts[table].insert(0, f"CREATE TEMP SEQUENCE {name} AS {type_} {listed}")
                owner = f"pg_temp.{quoted(table)}.{column}"
                parts[table].append(f"ALTER SEQUENCE pg_temp.{name} OWNED BY {owner}")
        return {name: "; ".join(texts) for name, texts in parts.items()}

    @property
    def sequences(self) -> frozenset[str]:
        """See `CarriedTables`."""
        if not self.names:
            return frozenset()
        rows = self.home.workspace.fetchall(_EVERY_SEQUENCE)
        return frozenset(fold(name) for name, _ in rows)

    def show_places(self) -> None:
        """Have the binder's sequences stand where the workspace's do, from which numbers are drawn;
        it is asked of them.
        """
        for _, path in self.home.workspace.fetchall(_EVERY_SEQUENCE) if self.names else ():
            sql = f"SELECT last_value, is_called FROM pg_temp.{path}"
            value, is_called = self.home.workspace.fetchall(sql)[0]
            literal = path.replace("'", "''")
            self.home.binder.execute(f"SELECT setval('pg_temp.{literal}', {value}, {is_called})")

    def has_index(self, name: str) -> bool:
        """See `CarriedTables`."""
        return any(fold(index) == name for index, _ in self.home.workspace.fetchall(_INDEXES))

    def deferrable(self) -> tuple[bool, bool]:
        """See `CarriedTables`."""
        if not self.names:
            return False, False
        may, are = self.home.workspace.fetchall(_DEFERRABLE)[0]
        return bool(may), bool(are)

    def keep(self) -> None:
        """See `CarriedTables`; a sequence that is dropped now may come back, and goes on then."""
        super().keep()
        self._note_places()

    def _note_places(self) -> None:
        if self.names:
            self._drawn |= self._positions()
            self._stood |= self._places()

    def leave(self) -> None:
        """See `CarriedTables`; what is undone gives back no number."""
        with suppress(self.failures):
            self._note_places()
        super().leave()

    def state(self) -> TemporaryState:
        """All of them with their rows."""
        workspace = self.home.workspace
        tables = self._texts()
        indexes = dict(workspace.fetchall(_INDEXES))
        rows = {name: _rows(workspace, name) for name in self._tables()}
        return tables, indexes, rows

    def restore(self, state: TemporaryState) -> None:
        """Have these and no others; their sequences go on where they are."""
        tables, indexes, rows = state
        self._note_places()
        for connection in (self.home.binder, self.home.workspace):
            self._drop(connection)
            for sql in tables.values():
                _run(connection, sql)
        for name, held in rows.items():
            fill(self.home.workspace, name, held)
        for connection in (self.home.binder, self.home.workspace):
            for sql in indexes.values():
                connection.execute(sql)
        self.names = frozenset(map(fold, tables))
        self.home.remake_views()
        self.home.forget_types()
        for literal in self._positions():
            if (last := self._drawn.get(literal)) is not None:
                # `currval` is known as well.
                self.home.workspace.execute(
                    f"SELECT setval('{literal}', {last}, false), nextval('{literal}')"
                )
        for path in self._places().keys() & self._stood.keys():
            value, is_called = self._stood[path]
            literal = path.replace("'", "''")
            draw = f", nextval('{literal}')" if is_called else ""
            self.home.workspace.execute(f"SELECT setval('{literal}', {value}, false){draw}")

    def _drop(self, connection: PostgresConnection) -> None:
        """Drop all that one of the two has, first tables, with the sequences of their columns."""
        for sql, kind in ((_TABLES, "TABLE"), (_ALONE, "SEQUENCE")):
            for name, *_ in connection.fetchall(sql):
                connection.execute(f"DROP {kind} IF EXISTS pg_temp.{quoted(name)} CASCADE")

    def mirror(self) -> None:
        """Have in the binder, empty, what the workspace has got."""
        tables, indexes, _ = self.state()
        self._drop(self.home.binder)
        for sql in (*tables.values(), *indexes.values()):
            _run(self.home.binder, sql)
        self.names = frozenset(map(fold, tables))
        self.home.remake_views()

    def fill(self, words: Collection[str]) -> None:
        """Put the rows of those that a statement names into the binder too, within a transaction
        that is undone.
        """
        for name in self._tables():
            if fold(name) not in words:
                continue
            rows = _rows(self.home.workspace, name)
            fill(self.home.binder, name, rows)


def _run(connection: PostgresConnection, sql: str) -> None:
    for statement in lexer.split(sql):
        connection.execute(statement.home)


def _rows(connection: PostgresConnection, name: str) -> pa.Table:
    """The rows of a table; Arrow does not count those without columns."""
    rows = connection.fetch_arrow(f"SELECT * FROM pg_temp.{quoted(name)}")
    if rows.num_columns:
        return rows
    counted = connection.fetchall(f"SELECT count(*) FROM pg_temp.{quoted(name)}")
    return pa.table({_NO_COLUMN: pa.nulls(counted[0][0])})


def fill(connection: PostgresConnection, name: str, rows: pa.Table) -> None:
    """Put rows into a temporary table, except what it computes itself."""
    generated = {
        column
        for (column,) in connection.fetchall(
            "SELECT attname::text FROM pg_attribute WHERE attgenerated <> ''"
            " AND attrelid = format('pg_temp.%I', $1::text)::regclass",
            [name],
        )
    }
    if rows.column_names == [_NO_COLUMN]:
        listed = f"SELECT FROM generate_series(1, {rows.num_rows})"
        connection.execute(f"INSERT INTO pg_temp.{quoted(name)} {listed}")
        return
    names = [column for column in rows.column_names if column not in generated]
    connection.fill(f"pg_temp.{quoted(name)}", names, rows.select(names))
