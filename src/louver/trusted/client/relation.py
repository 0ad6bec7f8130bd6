"""A lazy query: planned when it is created, run when its rows are first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from louver import errors
from louver.names import fold
from louver.trusted.client import composition
from louver.trusted.client.composition import Composition
from louver.trusted.client.result import Result, warned
from louver.trusted.client.rows import Rows
from louver.trusted.client.windows import Windows
from louver.trusted.executor import local_frames, progress
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.containment import contained, face
from louver.trusted.executor.local.frames import held
from louver.trusted.executor.parameters import Parameters, bound, split
from louver.trusted.planner.sql import lexer

if TYPE_CHECKING:
    from louver.trusted.executor.front import Front

Lookup = Callable[[str], object]


@face
class Relation(Rows, Windows):
    """A query, other queries made of it, and its rows, which are fetched on first use.

    Nothing is sent before that. ``columns`` and ``types`` are known before, unless the rows decide
    them, as of a PIVOT without values. Errors are `louver.Error`: where a query does not bind, when
    it is created; where a server or a ceiling refuses it, when it runs.
    """

    def __init__(
        self,
        session: Front,
        query: Composition | None,
        text: lexer.Text,
        parameters: list[object],
        columns: list[tuple[str, str]] | None,
        answer: Answer | None = None,
    ) -> None:
        """Use `Connection.sql`."""
        self._session, self._dialect = session, session.dialect
        self._query = query
        self._text = text
        self._parameters = parameters
        self._columns = columns
        self._result = None if answer is None else Result(session, answer)
        self._planning_ms: dict[str, float] = {}

    # -- what it is -----------------------------------------------------------------------------

    @property
    def alias(self) -> str:
        """The name of the relation in conditions; see `set_alias`."""
        return self._composed().alias

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self._described()]

    @property
    def types(self) -> list[str]:
        """DuckDB's names of the columns' types."""
        return [type_ for _, type_ in self._described()]

    @property
    def dtypes(self) -> list[str]:
        """The same as `types`."""
        return self.types

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, None]]:
        """Name and type of each column, in PEP 249's tuples of seven."""
        return [(name, type_, None, None, None, None, None) for name, type_ in self._described()]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, see `len`, and of columns."""
        return len(self), len(self.columns)

    @property
    def times_ms(self) -> dict[str, float]:
        """Milliseconds of each step including planning; runs the query."""
        return {**self._ran().answer.times_ms, **self._planning_ms}

    def sql_query(self) -> str:
        """The text of the query, with numbered placeholders; local data keeps its names."""
        return self._composed().sql

    def remote_sql(self) -> list[str]:
        """The SQL that each server receives; computed without sending anything."""
        if self._result is not None:
            return list(self._result.answer.remote_sql)
        with self._standing():
            return self._session.would_send(self._text, self._parameters)

    def explain(self, leakage: bool = False, format: str = "text") -> str:  # noqa: A002
        """The plan as text, json or mermaid; with ``leakage`` including what it newly reveals."""
        with self._standing():
            return self._session.explained(
                self._text, self._parameters, leakage=leakage, form=format
            )

    # -- other queries --------------------------------------------------------------------------

    def filter(self, filter_expr: object) -> Relation:
        """The rows for which a condition holds, as in ``filter("age > 30")``."""
        return self._of(self._composed().filtered(str(filter_expr)))

    def project(self, *args: object) -> Relation:
        """Expressions of each row: one text with a list, or names of columns."""
        return self._of(self._composed().projected(composition.names(args)))

    def select(self, *args: object) -> Relation:
        """The same as `project`."""
        return self.project(*args)

    def select_types(self, types: Sequence[object]) -> Relation:
        """The columns of some types."""
        wanted = {fold(str(type_)) for type_ in types}
        names = [name for name, type_ in self._described() if fold(type_) in wanted]
        if not names:
            raise errors.make("relation.types", types=", ".join(map(str, types)))
        return self._of(self._composed().projected(composition.columns(names)))

    select_dtypes = select_types

    def aggregate(self, aggr_expr: object, group_expr: str = "") -> Relation:
        """Expressions of each group. Without ``group_expr``, rows are grouped by the expressions
        that are not aggregates.
        """
        items = composition.expression(aggr_expr)
        return self._of(self._composed().aggregated(items, group_expr))

    def unique(self, unique_aggr: str) -> Relation:
        """The different values of expressions."""
        items = composition.expression(unique_aggr)
        return self._of(self._composed().projected(items, distinct=True))

    def distinct(self) -> Relation:
        """The rows without repetitions."""
        return self._of(self._composed().projected("*", distinct=True))

    def order(self, order_expr: str) -> Relation:
        """The rows in an order, as in ``order("age desc, name")``."""
        return self._of(self._composed().ordered(composition.expression(order_expr)))

    def sort(self, *args: object) -> Relation:
        """The rows in the order of columns, which are given by name."""
        return self._of(self._composed().ordered(composition.columns(args)))

    def limit(self, n: int, offset: int = 0) -> Relation:
        """At most ``n`` rows, after ``offset`` others."""
        return self._of(self._composed().limited(int(n), int(offset)))

    def union(self, union_rel: Relation) -> Relation:
        """The rows of both (UNION ALL)."""
        return self._of(self._composed().set_operation("UNION", self._other(union_rel)))

    def except_(self, other_rel: Relation) -> Relation:
        """The rows that are not in the other (EXCEPT ALL)."""
        return self._of(self._composed().set_operation("EXCEPT", self._other(other_rel)))

    def intersect(self, other_rel: Relation) -> Relation:
        """The rows that are in both (INTERSECT ALL)."""
        return self._of(self._composed().set_operation("INTERSECT", self._other(other_rel)))

    def join(self, other_rel: Relation, condition: object, how: str = "inner") -> Relation:
        """A join. ``condition`` is an expression, with columns after the alias of each side, or the
        names of columns that both have. ``how``: inner, left, right, outer, semi or anti.
        """
        return self._of(self._composed().joined_with(self._other(other_rel), str(condition), how))

    def cross(self, other_rel: Relation) -> Relation:
        """All pairs of rows."""
        return self._of(self._composed().joined_with(self._other(other_rel), None, ""))

    def describe(self) -> Relation:
        """Count, mean, standard deviation, extremes and median of each column."""
        from louver.trusted.client import relation_html

        items = relation_html.statistics(self._described())
        return self._of(self._composed().aggregated(items, ""))

    def set_alias(self, alias: str) -> Relation:
        """The same query under another name in conditions."""
        return self._of(self._composed().named(alias))

    def query(self, virtual_table_name: str, sql_query: str) -> Relation:
        """A query in whose text this relation has a name."""
        (text,) = lexer.split(sql_query) or [lexer.Text("", "", ())]
        inner = composition.statement(text, [])
        return self._of(self._composed().within(virtual_table_name, inner))

    def execute(self) -> Relation:
        """Run the query now."""
        self._ran()
        return self

    def close(self) -> None:
        """Drop the rows; they are fetched again when they are needed."""
        if self._query is not None:
            self._result = None

    # -- files, tables and views ----------------------------------------------------------------

    def to_parquet(self, file_name: str, **options: object) -> None:
        """Write a Parquet file; ``options`` are those of COPY, such as ``compression="zstd"``."""
        self._copied(file_name, {"format": "parquet", **options})

    write_parquet = to_parquet

    def to_csv(self, file_name: str, **options: object) -> None:
        """Write a CSV file; ``options`` are those of COPY, such as ``sep=";"``."""
        self._copied(file_name, {"format": "csv", "header": True, **options})

    write_csv = to_csv

    def to_table(self, table_name: str) -> None:
        """CREATE TABLE: columns that depend on an ENC column are ENC, as for CREATE TABLE AS."""
        self._stored(f"CREATE TABLE {_target(table_name)} AS ", "")

    create = to_table

    def to_view(self, view_name: str, replace: bool = True) -> Relation:
        """CREATE VIEW; the relation of the view."""
        self._stored(f"CREATE {'OR REPLACE ' * replace}VIEW {_target(view_name)} AS ", "")
        return self._of(composition.named_table(view_name))

    create_view = to_view

    def insert_into(self, table_name: str) -> None:
        """Append the rows to a table."""
        self._stored(f"INSERT INTO {_target(table_name)} ", "")

    def _copied(self, file_name: str, options: Mapping[str, object]) -> None:
        pairs = [f"{name} {composition.literal(value)}" for name, value in options.items()]
        self._stored("COPY (", f") TO {composition.literal(file_name)} ({', '.join(pairs)})")

    def _stored(self, before: str, after: str) -> Answer:
        query = self._composed()
        (text,) = lexer.split(f"{before}{query.sql}{after}")
        with self._standing():
            return warned(self._session.run(text, bound(text, query.values)))

    # -- within ---------------------------------------------------------------------------------

    def _composed(self) -> Composition:
        if self._query is None:
            raise errors.make("relation.statement")
        return self._query

    def _other(self, other: Relation) -> Composition:
        if other._session is not self._session:
            raise errors.make("relation.foreign")
        return other._composed()

    def _of(self, query: Composition) -> Relation:
        return of_query(self._session, query)

    def _described(self) -> list[tuple[str, str]]:
        if self._columns is None:
            self._columns = self._ran().columns
        return self._columns

    @contextmanager
    def _standing(self) -> Iterator[None]:
        """The local data that the query names has its names."""
        if self._session.closed:
            raise errors.make("connection.closed")
        frames = {} if self._query is None else dict(self._query.frames)
        with contained(self._session), self._session.local_data(frames):
            yield

    def _ran(self) -> Result:
        if self._session.closed:
            raise errors.make("connection.closed")
        if self._result is None:
            with self._standing(), progress.steps("query"):
                answer = warned(self._session.run(self._text, self._parameters))
            self._result = Result(self._session, answer)
        return self._result

    def __len__(self) -> int:
        """The number of rows. Counted by a query of its own where the rows are not fetched yet."""
        if self._result is None and self._query is not None:
            count = self.aggregate("count(*)").fetchone()
            return int(count[0]) if count else 0
        return int(self._ran().rows.num_rows)

    def __getitem__(self, name: str) -> Relation:
        return self._of(self._composed().projected(composition.columns([name])))

    def __getattr__(self, name: str) -> Relation:
        """The relation of a column's values; Python asks for names that are not methods."""
        from louver.trusted.client import duckdb_names

        columns = [] if name.startswith("_") else self.columns
        if columns and name in self:
            return self[name]
        raise duckdb_names.of_relation(name, columns)

    def __contains__(self, name: object) -> bool:
        return any(fold(str(name)) == fold(column) for column in self.columns)

    def __repr__(self) -> str:
        if self._result is not None:
            return self.text()
        listed = "…" if self._columns is None else ", ".join(f"{n} {t}" for n, t in self._columns)
        return f"<louver.Relation ({listed}), not run yet>"

    def _repr_html_(self) -> str:
        """The first rows as HTML, with a mark on each column whose values the query reveals to a
        server. Runs the query, once.
        """
        from louver.trusted.client import relation_html

        if self._query is None:
            return relation_html.table(self._ran(), [])
        marks = relation_html.marks(self.explain(leakage=True, format="json"))
        return relation_html.table(self._ran(), marks)


def of_statements(
    session: Front, sql: str, parameters: Parameters, lookup: Lookup | None = None
) -> Relation:
    """The relation of the last statement of a text; earlier statements run now, and so does the
    last one if it is not a query. ``lookup`` gives the objects of the caller's variables.
    """
    *before, last = split(sql, parameters) or [lexer.Text("", "", ())]
    for earlier in before:
        text, values, frames = resolved(
            session, earlier, session.bound(earlier, parameters), lookup
        )
        with session.local_data(frames):
            warned(session.run(text, values))
    text, values, frames = resolved(session, last, session.bound(last, parameters), lookup)
    with session.local_data(frames):
        described = session.described(text, values)
        if described is None:
            answer = warned(session.run(text, values))
            return Relation(session, None, text, values, answer.columns, answer)
    query = composition.statement(text, values, frames)
    relation = Relation(session, query, text, values, described.columns)
    relation._planning_ms = described.times_ms
    return relation


def of_query(session: Front, query: Composition) -> Relation:
    """The relation of a composed query, which is bound now and planned when it runs."""
    (text,) = lexer.split(query.sql)
    values = bound(text, query.values)
    with contained(session), session.local_data(query.frames):
        described = session.described(text, values, plan=False)
    if described is None:
        raise errors.make("relation.statement")
    return Relation(session, query, text, values, described.columns)


def resolved(
    session: Front, text: lexer.Text, values: list[object], lookup: Lookup | None
) -> tuple[lexer.Text, list[object], dict[str, object]]:
    """A statement with the relations that it names in its text, its values, and its local data."""
    objects = {} if lookup is None else local_frames.candidates(text, lookup)
    if objects:
        objects = session.frames_of(text, objects)
    relations = {name: x for name, x in objects.items() if isinstance(x, Relation)}
    frames = {name: held(x) for name, x in objects.items() if name not in relations}
    if not relations:
        return text, values, frames
    if any(relation._session is not session for relation in relations.values()):
        raise errors.make("relation.foreign")
    whole = composition.statement(text, values, frames)
    for name, relation in relations.items():
        whole = relation._composed().within(name, whole)
    (fresh,) = lexer.split(whole.sql)
    return fresh, bound(fresh, whole.values), dict(whole.frames)


def answer_of(relation: Relation) -> Answer:
    """The executor's answer; runs the query."""
    return relation._ran().answer


def stored(relation: Relation, table: str, *, create: bool) -> int:
    """Store a relation in a table, which is created if that is said; the number of rows."""
    word = f"CREATE TABLE {_target(table)} AS" if create else f"INSERT INTO {_target(table)}"
    return relation._stored(f"{word} ", "").affected


def _target(name: str) -> str:
    """A table's name, with its schema perhaps, as it was written."""
    return composition.named_table(name).source
