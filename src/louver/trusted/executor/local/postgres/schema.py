"""What a database of the private server declares, read off `pg_catalog`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from louver import errors
from louver.names import fold
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
from louver.trusted.executor.local.postgres import catalog_queries as queries
from louver.trusted.executor.local.postgres import declarations
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.vault.catalog import HomeObject, Table

_KINDS = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK", "f": "FOREIGN KEY", "n": "NOT NULL"}

#: What stands between how a sequence is declared and where it is.
_GOES_ON = "; SELECT pg_catalog.setval"
_PLACE = re.compile(r", (-?\d+)(, false)?\)$")


class PostgresSchema(Schema):
    """The objects of one database, by a connection to it."""

    def __init__(self, connection: PostgresConnection) -> None:
        """Over an open connection."""
        self._connection = connection

    def _rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        return declarations.fetched(self._connection, sql, *parameters)

    def snapshot(self, *, macros: bool) -> dict[Key, Seen]:
        """See `Schema`."""
        seen = {}
        for kind, schema, name, oid, _, text in self._rows(queries.OBJECTS):
            seen[kind, schema, name] = Seen(oid, text)
        if macros:
            for schema, name, oid, text in self._rows(queries.FUNCTIONS):
                seen["MACRO", schema, name] = Seen(oid, text)
        return seen

    def objects(self) -> list[HomeObject]:
        """See `Schema`."""
        results = []
        positions = {(s.schema, s.name): self.resumed(s) for s in self.sequences().values()}
        for kind, schema, name, oid, detail, _ in self._rows(queries.OBJECTS):
            text = positions[schema, name] if kind == "SEQUENCE" else self._text(kind, oid, detail)
            results.append(HomeObject(kind, schema, name, text))
        results.sort(key=lambda item: RANKS.index(item.kind))
        return results + self.comments()

    def _text(self, kind: str, oid: int, detail: str) -> str:
        connection = self._connection
        if kind == "SCHEMA":
            return f"CREATE SCHEMA {detail}"
        if kind == "TYPE":
            type_kind, _, ordinal = detail.partition(" ")
            return declarations.type_(connection, oid, type_kind, ordinal)
        if kind == "TABLE":
            return declarations.table(connection, oid)
        return declarations.view(connection, oid) if kind == "VIEW" else detail

    def comments(self, *, temporary: bool = False) -> list[HomeObject]:
        """See `Schema`."""
        return [
            HomeObject("COMMENT", schema, name, text)
            for schema, name, text, of_temporary in self._rows(queries.COMMENTS)
            if of_temporary == temporary
        ]

    def text_of(self, kind: str, schema: str, name: str) -> str:
        """See `Schema`."""
        if kind in ("TABLE", "VIEW"):
            rows = self._rows(queries.RELATION, schema, name, "v" if kind == "VIEW" else "rp")
            return self._text(kind, rows[0][0], "") if rows else ""
        if kind == "SEQUENCE":
            state = self.sequences().get((fold(schema), fold(name)))
            return "" if state is None else self.resumed(state)
        if kind == "MACRO":
            texts = {row[:2]: row[3] for row in self._rows(queries.FUNCTIONS)}
            return str(texts.get((schema, name), "")).rstrip()
        for row in self._rows(queries.OBJECTS):
            if row[:3] == (kind, schema, name):
                return self._text(kind, row[3], row[4])
        return ""

    def columns(self, schema: str, name: str) -> list[ColumnDeclaration]:
        """See `Schema`."""
        return [ColumnDeclaration(*row) for row in self._rows(queries.COLUMNS, schema, name)]

    def generated(self, schema: str, name: str) -> dict[str, str]:
        """See `Schema`."""
        return {fold(column): text for column, text in self._rows(queries.GENERATED, schema, name)}

    def constraints(self, schema: str, name: str) -> list[Constraint]:
        """See `Schema`."""
        results = []
        for row in self._rows(queries.CONSTRAINTS, fold(schema), fold(name)):
            kind, columns, text, expression, own, parent, parent_columns, home, acts = row[:9]
            feature, *naming = row[9:]
            if feature:
                # Keys are decided by tags, and when a statement ends.
                raise errors.make("sql.unsupported", statement=feature)
            results.append(
                Constraint(
                    _KINDS[kind], _names(columns), text, expression or "", own, parent or "",
                    _names(parent_columns), home or "", acts, *naming,
                )
            )  # fmt: skip
        return results

    def references(self) -> list[Reference]:
        """See `Schema`."""
        return [Reference(*row[:3]) for row in self._rows(queries.REFERENCES)]

    def children(self, key: Place) -> list[Place]:
        """See `Schema`."""
        return [
            (schema, name)
            for schema, name, parent, parent_schema in self._rows(queries.REFERENCES)
            if (fold(parent_schema), fold(parent)) == tuple(map(fold, key))
        ]

    def self_keys(self, schema: str, name: str) -> list[tuple[list[str], list[str]]]:
        """See `Schema`."""
        return [
            (list(key.columns), list(key.parent_columns))
            for key in self.constraints(schema, name)
            if key.kind == "FOREIGN KEY"
            and (key.parent_schema, key.parent) == (key.schema, name)
            and key.schema == schema
        ]

    def unique_indexes(self, key: Place) -> list[tuple[str, list[str]]]:
        """See `Schema`; outside of a partial one's predicate there is no key, as for NULL."""
        results: list[tuple[str, list[str]]] = []
        for oid, name, width, predicate, nulls_equal in self._rows(queries.UNIQUE, *map(fold, key)):
            if nulls_equal:
                raise errors.make("sql.unsupported", statement="UNIQUE NULLS NOT DISTINCT")
            listed = [
                self._rows(queries.INDEXED, oid, ordinal + 1)[0][0] for ordinal in range(width)
            ]
            if predicate:
                listed = [f"CASE WHEN {predicate} THEN {text} END" for text in listed]
            results.append((name, listed))
        return results

    def indexes(self) -> list[Index]:
        """See `Schema`."""
        return [Index(*row) for row in self._rows(queries.INDEXES)]

    def without_references(self, table: Table, texts: Sequence[str]) -> str:
        """See `Schema`."""
        rows = self._rows(queries.RELATION, table.schema, table.name, "rp")
        return declarations.table(self._connection, rows[0][0], temporary=True, references=False)

    def constant(self, expression: str) -> object | None:
        """See `Schema`."""
        with suppress(errors.Error):
            with self._connection.undone():
                row = self._connection.fetchone(f"SELECT {expression}")
            return None if row is None else row[0]
        return None

    def sequences(self) -> dict[Place, SequenceState]:
        """See `Schema`; those of identity columns are among them. There is always a last value, if
        only the one before the first.
        """
        rows = self._rows(queries.SEQUENCES)
        if not rows:
            return {}
        places = self._rows(" UNION ALL ".join(row[-1] for row in rows))
        results = {}
        for row, (value, is_called) in zip(rows, places, strict=True):
            schema, name, temporary, start, increment, low, high, cycle = row[:8]
            last = value if is_called else value - increment
            results[fold(schema), fold(name)] = SequenceState(
                schema, name, temporary, start, increment, low, high, cycle, last,
                declarations.sequence(row),
            )  # fmt: skip
        return results

    def cache_none(self) -> None:
        """Have sequences drawn number by number. Those that a connection holds ready are known
        neither to the other one nor to the session's block, so that `currval` would be of another
        number than was stored; blocks are claimed whatever CACHE says.
        """
        for (path,) in self._rows(queries.CACHING):
            self._connection.execute(f"ALTER SEQUENCE {path} CACHE 1")

    def resumed(self, sequence: SequenceState) -> str:
        """See `Schema`; what is said behind its declaration needs the tables, see `settled`."""
        last, following = sequence.last, (sequence.last or 0) + sequence.increment
        if last is None or following == sequence.start:
            return sequence.sql
        path = declarations.path_of(sequence.schema, sequence.name).replace("'", "''")
        if sequence.low <= last <= sequence.high:
            return f"{sequence.sql}{_GOES_ON}('{path}', {last})"
        return f"{sequence.sql}{_GOES_ON}('{path}', {following}, false)"

    def declared(self, text: str) -> str:
        """See `Schema`."""
        return text.rpartition(_GOES_ON)[0] or text

    def catch_up(self, behind: SequenceState, ahead: SequenceState) -> None:
        """See `Schema`; forward or back, since `setval` and RESTART go back as well."""
        if ahead.last is None or behind.last == ahead.last:
            return
        ordinal = declarations.path_of(ahead.schema, ahead.name)
        if ahead.low <= ahead.last <= ahead.high:
            # `currval` and `lastval` are of the session, and know only what it has drawn.
            self._rows("SELECT setval($1, $2::bigint, false), nextval($1)", ordinal, ahead.last)
        else:
            self._rows(
                "SELECT setval($1, $2::bigint, false)", ordinal, ahead.last + ahead.increment
            )

    def go_on(self, sequence: SequenceState, text: str) -> bool:
        """See `Schema`."""
        following = self.last_in(sequence, text) + sequence.increment
        path = declarations.path_of(sequence.schema, sequence.name)
        if sequence.low <= following <= sequence.high:
            # Not as if it were drawn: that would be what `currval` and `lastval` give.
            self._rows("SELECT setval($1, $2::bigint, false)", path, following)
        else:
            last = following - sequence.increment
            self._rows("SELECT setval($1, $2::bigint)", path, last)
        return True

    def last_in(self, sequence: SequenceState, text: str) -> int:
        """See `Schema`."""
        match = _PLACE.search(text.rpartition(_GOES_ON)[2])
        if match is None:
            return sequence.start - sequence.increment
        return int(match[1]) - (0 if match[2] is None else sequence.increment)

    def draws(self, schema: str, name: str) -> dict[str, Place]:
        """See `Schema`."""
        rows = self._rows(queries.DRAWS, schema, name)
        return {fold(column): (fold(of), fold(sequence)) for column, of, sequence in rows}

    def count(self, path: str) -> int:
        """See `Schema`."""
        return int(self._connection.fetchall(f"SELECT count(*) FROM {path}")[0][0])


def _names(texts: str | None) -> tuple[str, ...]:
    """Names that a query lists, each behind its length."""
    names = []
    while texts:
        length, _, rest = texts.partition(":")
        names.append(rest[: int(length)])
        texts = rest[int(length) :]
    return tuple(names)
