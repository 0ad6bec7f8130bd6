"""What PostgreSQL says of a statement without running it, and of its own names and settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor.local.local import (
    Described,
    Parameters,
    Source,
    Statements,
    SystemNames,
)
from louver.trusted.executor.local.postgres import (
    bodies,
    dependence,
    effects,
    equalities,
    keys,
    node_tree,
    passed,
    relaying,
)
from louver.trusted.executor.local.postgres import parameters as values_given
from louver.trusted.executor.local.postgres.called import (
    CALLED,
    FIRST_OF_USERS,
    OPERATORS,
    RELATIONS,
    Called,
)
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.failures import translated
from louver.trusted.executor.local.postgres.node_tree import Read
from louver.trusted.executor.local.postgres.relaying import MOST_ARGUMENTS, Passed
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.postgres_dialect import DIALECT

_SYNTAX, _UNSUPPORTED = "42601", "0A000"
_PRINTED = "louver_printed"
_NAMED = re.compile(r'"(.+?)(\[\])*"')


@dataclass(frozen=True, slots=True)
class Reach:
    """What a statement reads, with what its views and functions read."""

    read: Read
    relations: frozenset[tuple[str, str]]
    functions: tuple[Called, ...]
    #: whether all that it changes, by itself, are temporary tables
    changes_temporary: bool = False

    @property
    def is_known(self) -> bool:
        """Whether that is all: not where a function runs what only it knows."""
        return self.read.is_known and not any(map(_hides, self.functions))

    @property
    def takes_names(self) -> bool:
        """Whether a function of PostgreSQL's own may read what a text or number names."""
        return any(function.is_own and _hides(function) for function in self.functions)


class PostgresStatements(Statements):
    """By a connection to the binder, and one to the workspace."""

    def __init__(self, binder: PostgresConnection, workspace: PostgresConnection) -> None:
        """Over open connections."""
        self.binder = binder
        self._workspace = workspace

    def require_syntax(self, sql: str) -> None:
        """See `Statements`; PostgreSQL's parser comes before its analyser, which may refuse too."""
        try:
            self.bind(sql)
        except errors.Error as error:
            if error.sqlstate == _SYNTAX:
                raise

    def bind(self, sql: str, parameters: Parameters = ()) -> None:
        """See `Statements`."""
        raw = self.binder.raw
        # What fails must not end the transaction of a dry run.
        with nullcontext() if raw.state() == "idle" else self.binder.undone(), translated(sql):
            own = values_given.listed(parameters)
            raw.describe(sql, values_given.own_types(own, raw.describe(sql)[0]))

    def sources(self, sql: str) -> list[Source] | None:
        """See `Statements`; of the analyser's tree, so a table has its schema. What is unknown is
        a "statement".
        """
        try:
            reach = self.reach(sql)
        except errors.Error as error:
            if error.sqlstate == _UNSUPPORTED:
                return None  # no query, nor a change
            raise
        if not reach.read.only_selects:
            return None
        results: list[Source] = [("table", fold(s), fold(n)) for s, n in sorted(reach.relations)]
        results += [("call", fold(other.schema), fold(other.name)) for other in reach.functions]
        return results if reach.is_known else [*results, ("statement", "", "")]

    def names_read(self, sql: str) -> set[str]:
        """See `Statements`."""
        return {fold(name) for _, name in self.reach(sql).relations}

    def prepared(self, sql: str, declared: Sequence[str]) -> tuple[tuple[str, ...], Described]:
        """See `Statements`."""
        raw, own = self.binder.raw, list[int]()
        with self.binder.guarded(), translated(sql):
            if declared:
                listed = ", ".join(f"NULL::{type_}" for type_ in declared)
                own = [column[1] for column in raw.describe(f"SELECT {listed}")[1]]
                # A type that is not known yet is what the statement makes of it.
                own = [0 if fold(t) == "unknown" else n for t, n in zip(declared, own, strict=True)]
            types, columns = raw.describe(sql, own)
            return tuple(self._type_names(types)), self.binder.described(columns)

    def coerced(self, expressions: Sequence[str], types: Sequence[str]) -> pa.Table:
        """See `Statements`; by EXECUTE, which coerces as an assignment does."""
        numbers = range(1, len(types) + 1)
        items = [f"${n} AS v{n}" for n in numbers] + [f"${n}::text AS t{n}" for n in numbers]
        self.binder.execute(
            f"PREPARE {passed.NAME} ({', '.join(types)}) AS SELECT {', '.join(items)}"
        )
        try:
            return self.binder.fetch_arrow(f"EXECUTE {passed.NAME} ({', '.join(expressions)})")
        finally:
            # It is not undone with a transaction, even with one that has failed.
            with suppress(errors.Error), self.binder.guarded():
                self.binder.execute(f"DEALLOCATE {passed.NAME}")

    def refused(self, sql: str, *, draws: bool = True, temporary: bool = False) -> str:
        """See `Statements`."""
        try:
            reach = self.reach(sql, users_only=True)
            drawn = "" if draws else effects.drawing(reach)
            return drawn or effects.refused(
                reach, partial(bodies.only_computes, self.binder), temporary=temporary
            )
        except errors.Error as error:
            return effects.of_utility(error)

    def names_row_type(self, error: errors.Error) -> bool:
        """See `Statements`."""
        name = _NAMED.search(error.message)
        sql = "SELECT pg_catalog.to_regclass($1) IS NOT NULL"
        return name is not None and self.binder.fetchall(sql, [name[1]]) == [(True,)]

    def depends_on_rows_alone(self, sql: str) -> bool:
        """See `Statements`; by the analyser's tree."""
        try:
            reach = self.reach(sql)
        except errors.Error:
            return False
        objects = sorted(DIALECT.names_objects - dependence.OF_TEXT_SEARCH)
        names = "{" + ",".join(f"{name},_{name}" for name in objects) + "}"
        rows = self.binder.fetchall(
            "SELECT oid::bigint FROM pg_type WHERE typname = ANY($1::text[])", [names]
        )
        of_names = {oid for (oid,) in rows}
        reads_arguments = partial(bodies.reads_arguments, self.binder)
        return reach.read.types.isdisjoint(of_names) and dependence.on_rows_alone(
            reach, reads_arguments
        )

    def reach(self, sql: str, *, users_only: bool = False) -> Reach:
        """All that a SELECT, INSERT, UPDATE, DELETE or MERGE reads; views and functions in SQL are
        looked into, or only those that are the user's. Any other statement raises PostgreSQL's own
        error.
        """
        with self.binder.undone():
            whole = node_tree.read(self.tree(sql))
            relations: dict[int, tuple[str, str]] = {}
            functions: dict[int, Called] = {}
            temporary: set[int] = set()
            while True:
                opened = self._opened(whole, relations, functions, temporary, users_only=users_only)
                if not opened:
                    return Reach(
                        whole, frozenset(relations.values()), tuple(functions.values()),
                        not whole.calls_changes and whole.written <= temporary,
                    )  # fmt: skip
                for text in opened:
                    whole.add(node_tree.read(text))

    def passed(self, sql: str) -> Passed | None:
        """See `relaying.passed_of`."""
        with self.binder.undone():
            return relaying.passed_of(self, sql)

    def equalities(self, sql: str) -> equalities.Query | None:
        """What a query of the rows with certain values says; None of any other statement."""
        with self.binder.undone():
            return equalities.query_of(self.binder, self.tree(sql))

    def _opened(
        self,
        whole: Read,
        relations: dict[int, tuple[str, str]],
        functions: dict[int, Called],
        temporary: set[int],
        *,
        users_only: bool,
    ) -> list[str]:
        """Look up what is new; the trees of what is a view, or a function with a tree."""
        opened = []
        whole.functions |= {int(oid) for (oid,) in self.looked_up(OPERATORS, whole.operators)}
        for oid, schema, name, kind, rule in self.looked_up(
            RELATIONS, whole.relations - {*relations}
        ):
            relations[oid] = schema, name
            if (schema, kind) == ("pg_temp", "r"):
                temporary.add(oid)
            opened += [rule] if rule and not (users_only and oid < FIRST_OF_USERS) else []
        for row in self.looked_up(CALLED, whole.functions - {*functions}):
            functions[row[0]] = Called(*row)
            skipped = users_only and functions[row[0]].is_own
            opened += [row[5]] if row[5] and not skipped else []
        return opened

    def looked_up(self, sql: str, oids: Iterable[int]) -> list[tuple[Any, ...]]:
        """What a query says of the objects with these numbers, all of which it takes at once."""
        numbers = "{" + ",".join(map(str, oids)) + "}"
        return self.binder.fetchall(sql, [numbers]) if numbers != "{}" else []

    def tree(self, sql: str, types: Sequence[int] | None = None) -> str:
        """The tree of a statement: as the body of a function that is gone again. Its parameters are
        the function's; they have ``types`` where the text is one that was printed.

        The function is among PostgreSQL's own: a schema of temporary ones would be new each time,
        and the session would remember something of each.
        """
        body = passed.NAME if types is None else _PRINTED
        if types is None:
            # Alone, so that the text is one statement, and an error that of the text.
            with translated(sql):
                types = self.binder.raw.describe(sql)[0]
        names = self._type_names(types)
        if len(names) > MOST_ARGUMENTS:
            sql = lexer.filled(sql, {str(n): f"NULL::{name}" for n, name in enumerate(names, 1)})
            names = []
        self.binder.execute(
            f"CREATE FUNCTION pg_catalog.{body}({', '.join(names)}) RETURNS void LANGUAGE sql"
            f" BEGIN ATOMIC\n{sql}\n; END"
        )
        rows = self.binder.fetchall(
            "SELECT prosqlbody::text FROM pg_proc WHERE proname = $1"
            " AND pronamespace = 'pg_catalog'::regnamespace", [body]
        )  # fmt: skip
        return str(rows[0][0])

    def _type_names(self, types: Sequence[int]) -> list[str]:
        if not types:
            return []
        rows = self.binder.fetchall(
            "SELECT format_type(u.type, NULL) FROM unnest($1::oid[]) WITH ORDINALITY"
            " AS u(type, ordinal) ORDER BY u.ordinal",
            ["{" + ",".join(map(str, types)) + "}"],
        )
        return [name for (name,) in rows]

    def exact_value(self, expression: str) -> tuple[bool, object]:
        """See `Statements`."""
        row = self.binder.fetchone(
            f"SELECT pg_typeof(v)::text, v::text, v FROM (SELECT {expression}) AS e(v)"
        )
        type_, text, value = row or ("", None, None)
        own = values_given.own_type(value)
        if not own or value is None:
            # PostgreSQL takes a text without a type for what it needs.
            return False, value
        with translated():
            given = (values_given.text_of(value) or "", own)
            reply = self.binder.raw.run([("SELECT pg_typeof($1)::text, $1::text", [given])])[0]
        again = self.binder.table(reply).to_pylist()[0]
        return tuple(again.values()) == (type_, text), value

    def values(self, items: Sequence[str], parameters: Parameters = ()) -> pa.Table:
        """See `Statements`."""
        return self.binder.fetch_arrow(f"SELECT {', '.join(items)}", parameters)

    def has_function(self, name: str) -> bool:
        """See `Statements`."""
        return self._is_there("SELECT 1 FROM pg_proc WHERE proname = $1 LIMIT 1", name)

    def has_setting(self, name: str) -> bool:
        """See `Statements`."""
        return self._is_there("SELECT 1 FROM pg_settings WHERE lower(name) = $1", name)

    def _is_there(self, sql: str, name: str) -> bool:
        return bool(self.binder.fetchall(sql, [name]))

    def setting(self, name: str) -> pa.Table | None:
        """See `Statements`."""
        rows = self._workspace.fetch_arrow("SELECT current_setting($1, true) AS value", [name])
        return rows if rows.column(0)[0].is_valid else None

    def system_names(self) -> SystemNames:
        """See `Statements`."""
        views = (
            "SELECT relname::text FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace"
            " AND relkind IN ('r', 'v')"
        )
        functions = (
            "SELECT DISTINCT proname::text FROM pg_proc"
            " WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~"
            " '^(pg_|has_|to_reg|row_security|.*_description$|format_type|current_schema)'"
        )
        return SystemNames(self._names(views), self._names(functions))

    def _names(self, sql: str) -> frozenset[str]:
        if sql not in _own_names():
            _own_names()[sql] = frozenset(fold(name) for (name,) in self.binder.fetchall(sql))
        return _own_names()[sql]

    def broken(self, message: str) -> errors.Error:
        """See `Statements`."""
        return keys.broken(message)

    def own_functions(self) -> frozenset[str]:
        """See `Statements`."""
        return self._names(
            "SELECT DISTINCT proname::text FROM pg_proc"
            " WHERE pronamespace = 'pg_catalog'::regnamespace"
        )


@cache
def _own_names() -> dict[str, frozenset[str]]:
    """Names of PostgreSQL's own, by the query for them: a process has servers of one kind."""
    return {}


def _hides(function: Called) -> bool:
    """Whether a function may read what its tree does not say."""
    return function.name in dependence.TAKE_NAMES if function.is_own else function.body is None
