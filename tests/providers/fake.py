"""A provider that is no provider: plain DuckDB computes the partial results of a question."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import duckdb

from louver.trusted.planner.planner import home_values
from louver.trusted.planner.private import functions
from louver.trusted.planner.private.planner import plan
from louver.trusted.planner.private.question import Clause, Question
from louver.trusted.planner.sql import lexer
from louver.untrusted.providers.expressions import check
from louver.wire.questions import Dataset, Partial, Protocol, Shape, TableFacts

SUMS = (Protocol.SUM, Protocol.PAILLIER)


@dataclass
class Fake:
    """A DuckDB with tables, asked in private and in plain."""

    connection: duckdb.DuckDBPyConnection
    parts: int = 2
    """into how many parts an interval's rows are cut, as nodes cut them"""

    @classmethod
    def of(cls, **tables: tuple[str, list[tuple[Any, ...]]]) -> Fake:
        connection = duckdb.connect(":memory:", config={"threads": "1"})
        functions.register(connection)
        connection.execute("CREATE MACRO private(x) AS x")
        connection.execute("CREATE MACRO stdev(x) AS stddev(x)")
        fake = cls(connection)
        for name, (columns, rows) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            fake.fill(name, rows)
        return fake

    def fill(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        self.connection.execute(f"DELETE FROM {name}")
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            self.connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)

    @functools.cached_property
    def dataset(self) -> Dataset:
        """The tables as they are when they are first asked for."""
        tables = []
        for (name,) in self.connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE NOT temporary AND table_name NOT LIKE "
            "'louver%'"
        ).fetchall():
            columns = self.connection.execute(f'DESCRIBE "{name}"').fetchall()
            tables.append(TableFacts(name, tuple((c[0], c[1]) for c in columns), 1000))
        return Dataset(b"i" * 16, (b"v" * 32,), tuple(tables))

    def plan(self, sql: str, values: Any = (), parties: int = 2, scheme: str = "owf") -> Question:
        names = frozenset(values) if isinstance(values, dict) else frozenset()
        (text,) = lexer.split(sql, names)
        return plan(text, _bound(text, values), self.dataset, parties, scheme)

    def plain(self, sql: str, values: Any = ()) -> duckdb.DuckDBPyConnection:
        names = frozenset(values) if isinstance(values, dict) else frozenset()
        (text,) = lexer.split(sql, names)
        return self.connection.execute(text.home, home_values(text, _bound(text, values)) or None)

    def ask(self, question: Question, alternative: int | None = None) -> list[tuple[Any, ...]]:
        """The answer, through the partial results of every clause."""
        shape, finish = question.shape, question.finish
        if alternative is not None:
            shape = question.alternatives[alternative].shape
            finish = question.alternatives[alternative].finish
        check(shape, self.dataset.tables)
        conditions = self._disjoint([self._condition(c, shape) for c in question.clauses])
        if shape.protocol is Protocol.SEARCH:
            conditions = [" OR ".join(f"({c})" for c in conditions)]
        elif shape.interval and shape.protocol not in SUMS:
            cut = f"hash({shape.interval}) % {self.parts}"
            conditions = [f"({c}) AND {cut} = {i}" for c in conditions for i in range(self.parts)]
        selects = [self._select(shape, condition) for condition in conditions]
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE louver_partials AS "
            + " UNION ALL ".join(f"(FROM ({s}))" for s in selects)
        )
        rows = self.connection.execute(finish)
        assert [d[0] for d in rows.description] == list(question.names)
        types = [str(d[1]) for d in rows.description]
        assert types == list(question.types), (types, question.types)
        return rows.fetchall()

    def value(self, sql: str, parameters: tuple[object, ...]) -> Any:
        row = self.connection.execute(f"SELECT {sql}", list(parameters) or None).fetchone()
        assert row is not None
        return row[0]

    def _disjoint(self, conditions: list[str]) -> list[str]:
        """Clauses less those before them, as the runtime merges them."""
        return [
            " AND ".join([f"({c})", *(f"coalesce(NOT ({before}), true)" for before in so_far)])
            for i, c in enumerate(conditions)
            for so_far in [conditions[:i]]
        ]

    def _condition(self, clause: Clause, shape: Shape) -> str:
        parts = ["true"]
        for expression, secret in zip(shape.equal, clause.equals, strict=True):
            parts.append(f"{expression} = {self._literal(secret.sql, secret.parameters)}")
        for end, sign in ((clause.low, ">"), (clause.high, "<")):
            if end is not None:
                value = self._literal(end.secret.sql, end.secret.parameters)
                parts.append(f"{shape.interval} {sign}{'=' if end.inclusive else ''} {value}")
        if shape.interval:
            parts.append(f"{shape.interval} IS NOT NULL")
        return " AND ".join(parts)

    def _literal(self, sql: str, parameters: tuple[object, ...]) -> str:
        row = self.connection.execute(
            f"SELECT CAST(v AS VARCHAR), typeof(v) FROM (SELECT {sql} AS v)",
            list(parameters) or None,
        ).fetchone()
        assert row is not None
        if row[0] is None:
            return "NULL"
        text = row[0].replace("'", "''")
        return f"CAST('{text}' AS {row[1]})"

    def _select(self, shape: Shape, condition: str) -> str:
        where = f"({shape.where}) AND ({condition})" if shape.where else condition
        if shape.columns:
            listed = [f"{c} AS c{i}" for i, c in enumerate(shape.columns)]
            listed += [f"{o.expression} AS o{i}" for i, o in enumerate(shape.orders)]
            row_number = "rowid" if " JOIN " not in shape.source else "row_number() OVER ()"
            orders = "".join(
                f"o{i} {'DESC' if o.descending else 'ASC'} NULLS "
                f"{'FIRST' if o.nulls_first else 'LAST'}, "
                for i, o in enumerate(shape.orders)
            )
            return (
                f"SELECT {', '.join(listed)}, {row_number} AS position FROM {shape.source} "
                f"WHERE {where} ORDER BY {orders}position LIMIT {shape.limit}"
            )
        groups = [f"{g} AS g{i}" for i, g in enumerate(shape.groups)]
        sums = shape.protocol in SUMS
        # The condition stands in a CASE where groups without a match are opened too.
        inside = condition if sums else ""
        partials = [f"{_call(p, inside)} AS p{i}" for i, p in enumerate(shape.partials)]
        by = f" GROUP BY {', '.join(f'{i + 1}' for i in range(len(groups)))}" if groups else ""
        selection = (shape.where or "true") if sums else where
        having = "" if sums or groups else " HAVING count(*) > 0"
        items = ", ".join([*groups, *partials])
        return f"SELECT {items} FROM {shape.source} WHERE {selection}{by}{having}"


def _bound(text: lexer.Text, values: Any) -> list[object]:
    if isinstance(values, dict):
        return [values[str(key)] for key in text.parameters]
    return [values[int(key) - 1] for key in text.parameters]


def _call(partial: Partial, condition: str) -> str:
    filters = [f"({c})" for c in (partial.filter, condition) if c]
    text = f"{partial.function}({', '.join(partial.arguments) or '*'})"
    if filters:
        text += f" FILTER (WHERE {' AND '.join(filters)})"
    # A sum of shares knows no NULL.
    return f"coalesce({text}, 0)" if condition and partial.function == "sum" else text
