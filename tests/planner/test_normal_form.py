"""Forms that mean the same: they get the same plan, show the same, and answer as DuckDB does.

A query is drawn once as data, and written in its plain form and in another one: keys as ordinals,
aliases or ALL, joins by USING or NATURAL, CASE as FILTER, tables as subqueries, common table
expressions or views.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.generated import cases
from tests.twin import Twin

SCHEMA = (
    "CREATE TABLE f (id INTEGER, k VARCHAR ENC, dist INTEGER ENC, delay INTEGER ENC, month INTEGER,"
    " tail VARCHAR ENC, day DATE ENC)",
    "CREATE TABLE c (k VARCHAR ENC, name VARCHAR ENC, n INTEGER)",
    "INSERT INTO f SELECT i, 'C' || (i * 7 % 5), i * 37 % 1000, nullif(i * 13 % 90, 7) - 20,"
    " i % 12, 'N' || (i * 11 % 99), DATE '2013-01-01' + (i * 3 % 300)::INTEGER"
    " FROM range(120) r(i)",
    "INSERT INTO c SELECT 'C' || i, nullif('name' || (i % 3), 'name2'), i FROM range(4) r(i)",
    "CREATE VIEW fv AS SELECT * FROM f",
    "CREATE VIEW cv(k, name, n) AS SELECT k, name, n FROM c",
    "CREATE MACRO above(x, least) AS x > least",
    "CREATE MACRO later(n) AS TABLE SELECT * FROM f WHERE dist > n",
    "CREATE MACRO largest(m) AS (SELECT max(dist) FROM f WHERE month = m)",
    "CREATE MACRO lower(x) AS upper(x)",
    "CREATE MACRO nested(x) AS above(x, 3)",
    "CREATE VIEW mv AS SELECT k, largest(3) AS most FROM c",
)
POLICY = '["*"]\nk = {join = "k"}\n'

F_COLUMNS = ("id", "k", "dist", "delay", "month", "tail", "day")
C_COLUMNS = ("k", "name", "n")
KEYS = ("f.k", "f.month", "f.day")
JOINED_KEYS = (*KEYS, "c.name", "c.n")
AGGREGATES = (
    "count(*)", "count(f.delay)", "sum(f.dist)", "max(f.delay)", "min(f.dist)",
    "count(DISTINCT f.k)", "avg(f.delay)",
)  # fmt: skip
CONDITIONS = (
    "f.dist > 300", "f.month < 7", "f.delay BETWEEN 0 AND 40", "f.tail LIKE 'N7%'", "f.k = 'C2'",
    "f.day >= DATE '2013-03-01'", "f.delay IS NOT NULL",
)  # fmt: skip


@dataclass(frozen=True)
class Query:
    """A query, before it is written in any form."""

    keys: tuple[str, ...] = ()
    aggregates: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    join: str = ""
    order: tuple[tuple[int, str], ...] = ()
    limit: int = 0
    sets: str = ""


@dataclass(frozen=True)
class Form:
    """How a query is written."""

    keys: str = "plain"
    order: str = "plain"
    join: str = "ON"
    filter: str = "CASE"
    source: str = "table"
    qualified: bool = True
    aliases: bool = False
    inside: bool = False
    names: tuple[str, ...] = field(default=("x", "y", "z", "u", "v", "w"))


def write(query: Query, form: Form) -> str:
    """The query in a form."""
    items = [*query.keys, *query.columns, *(_aggregate(a, form) for a in query.aggregates)]
    aliases = [form.names[n] if form.aliases else "" for n in range(len(items))]
    head, source = _source(query, form)
    shown = [f"{i} AS {a}" if a else i for i, a in zip(items, aliases, strict=True)]
    text = f"{head}SELECT {', '.join(shown)} FROM {source}"
    if query.conditions and not form.inside:
        text += " WHERE " + " AND ".join(query.conditions)
    if query.keys:
        text += " GROUP BY " + _keys(query, form, aliases)
    if query.order:
        written = []
        for position, word in query.order:
            by = items[position]
            if form.order == "ordinal":
                by = str(position + 1)
            elif form.order == "alias" and aliases[position]:
                by = aliases[position]
            written.append(f"{by} {word}".strip())
        text += " ORDER BY " + ", ".join(written)
    if query.limit:
        text += f" LIMIT {query.limit}"
    if not form.qualified and not query.join:
        text = re.sub(r"\bf\.", "", text)
    return text


def _aggregate(aggregate: tuple[str, str], form: Form) -> str:
    call, condition = aggregate
    if not condition:
        return call
    if form.filter == "FILTER":
        return f"{call} FILTER (WHERE {condition})"
    name, inner = call.removesuffix(")").split("(", 1)
    word = "DISTINCT " if inner.startswith("DISTINCT ") else ""
    value = "1" if inner == "*" else inner.removeprefix("DISTINCT ")
    return f"{name}({word}CASE WHEN {condition} THEN {value} END)"


def _keys(query: Query, form: Form, aliases: list[str]) -> str:
    if query.sets:
        keys = [str(n + 1) for n in range(len(query.keys))] if form.keys != "plain" else query.keys
        return f"{query.sets} ({', '.join(keys)})"
    if form.keys == "ALL":
        return "ALL"
    written = []
    for position, key in enumerate(query.keys):
        if form.keys == "ordinal":
            written.append(str(position + 1))
        else:
            alias = aliases[position] if form.keys == "alias" else ""
            written.append(alias or key)
    return ", ".join(written)


def _source(query: Query, form: Form) -> tuple[str, str]:
    where = f" WHERE {' AND '.join(query.conditions)}" if form.inside and query.conditions else ""
    head = ""
    match form.source:
        case "subquery":
            source = f"(SELECT * FROM f{where}) AS f"
        case "chosen":
            source = f"(SELECT {', '.join(F_COLUMNS)} FROM f{where}) AS f"
        case "cte":
            head, source = f"WITH q AS (SELECT * FROM f{where}) ", "q AS f"
        case "view":
            source = "fv AS f" if not where else f"(SELECT * FROM fv AS f{where}) AS f"
        case _:
            source = "f" if not where else f"(SELECT * FROM f{where}) AS f"
    if not query.join:
        return head, source
    other = "cv AS c" if form.source == "view" else "c"
    match form.join:
        case "USING":
            return head, f"{source} {query.join} {other} USING (k)"
        case "NATURAL":
            return head, f"{source} NATURAL {query.join} {other}"
    return head, f"{source} {query.join} {other} ON f.k = c.k"


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Queries over f, or f and c."""
    join = draw(st.sampled_from(("", "", "JOIN", "LEFT JOIN")))
    conditions = tuple(draw(st.lists(st.sampled_from(CONDITIONS), max_size=2, unique=True)))
    if draw(st.booleans()):
        pool: tuple[str, ...] = JOINED_KEYS if join else KEYS
        keys = tuple(draw(st.lists(st.sampled_from(pool), max_size=2, unique=True)))
        calls = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True))
        pairs = tuple((call, draw(st.sampled_from(("", "", *CONDITIONS)))) for call in calls)
        count = len(keys) + len(pairs)
        order = _order(draw, count)
        sets = draw(st.sampled_from(("", "", "ROLLUP", "CUBE"))) if keys else ""
        query = Query(keys, pairs, (), conditions, join, order, 0, sets)
    else:
        pool = tuple(f"f.{c}" for c in F_COLUMNS) + (("c.name", "c.n") if join else ())
        columns = tuple(draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique=True)))
        order = _order(draw, len(columns))
        query = Query((), (), columns, conditions, join, order)
        if order and not join and draw(st.booleans()):
            # All columns decide the order, so that the first rows are the same everywhere.
            columns = tuple(dict.fromkeys((*columns, "f.id")))
            by = (*order, (columns.index("f.id"), "")) if "f.id" not in query.columns else order
            wanted = {position for position, _ in by}
            by += tuple((n, "") for n in range(len(columns)) if n not in wanted)
            query = replace(query, columns=columns, order=by, limit=draw(st.integers(1, 9)))
    return query


def _order(draw: st.DrawFn, count: int) -> tuple[tuple[int, str], ...]:
    positions = draw(st.lists(st.integers(0, count - 1), max_size=2, unique=True))
    words = st.sampled_from(("", "DESC", "DESC NULLS LAST"))
    return tuple((position, draw(words)) for position in positions)


FORMS = st.builds(
    Form,
    keys=st.sampled_from(("plain", "ordinal", "ALL", "alias")),
    order=st.sampled_from(("plain", "ordinal", "alias")),
    join=st.sampled_from(("ON", "USING", "NATURAL")),
    filter=st.sampled_from(("CASE", "FILTER")),
    source=st.sampled_from(("table", "subquery", "chosen", "cte", "view")),
    qualified=st.booleans(),
    aliases=st.booleans(),
    inside=st.booleans(),
)


@pytest.fixture
def onions(open_connection, tmp_path) -> Twin:
    """Every layer may open."""
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    twin = Twin.beside(open_connection("cryptdb", policy=policy))
    twin.fill(*SCHEMA)
    return twin


@pytest.fixture
def sealed(open_connection) -> Twin:
    """No layer may open."""
    twin = Twin.beside(open_connection("sealed"))
    twin.fill(*SCHEMA)
    return twin


def planned(connection: Any, sql: str) -> tuple[list[list[str]], list[str]]:
    """What the server is asked, and what it sees. In which order conditions are written depends on
    the layers that were open when a plan was made.
    """
    relation = connection.sql(sql)
    texts = [re.sub(r"\$\d+", "$", text) for text in relation.remote_sql()]
    sent = sorted(sorted(re.findall(r"[^\s(),]+", text)) for text in texts)
    shown = relation.explain(leakage=True).splitlines()
    leaks = [line for line in shown if "the server" in line and "]" in line]
    return sent, sorted(line.split("]")[0] for line in leaks)


def _same(twin: Twin, query: Query, form: Form) -> None:
    plain, other = write(query, Form()), write(query, form)
    for sql in (plain, other):
        twin.run(sql, ordered=False)
    first, second = planned(twin.louver, plain), planned(twin.louver, other)
    assert first == second, f"{plain}\n{other}"


@pytest.mark.parametrize("tables", ["onions", "sealed"])
def test_forms_of_one_query_have_one_plan(tables: str, request: pytest.FixtureRequest) -> None:
    twin = request.getfixturevalue(tables)

    @settings(max_examples=cases(60), suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(query=queries(), form=FORMS)
    def check(query: Query, form: Form) -> None:
        _same(twin, query, form)

    check()


PAIRS = [
    ("SELECT count(*) FROM f WHERE (dist > 500)", "SELECT count(*) FROM f WHERE above(dist, 500)"),
    ("SELECT count(*) FROM f WHERE dist > 500", "SELECT count(*) FROM later(500)"),
    ("SELECT k, count(*) FROM f GROUP BY k", "SELECT k, count(*) FROM f GROUP BY 1"),
    ("SELECT k, count(*) FROM f GROUP BY k", "SELECT k, count(*) FROM f GROUP BY ALL"),
    ("SELECT k, max(dist) FROM f GROUP BY k", "SELECT k AS key, max(dist) FROM f GROUP BY key"),
    (
        "SELECT id, dist FROM f ORDER BY dist DESC LIMIT 10",
        "SELECT id, dist FROM f ORDER BY 2 DESC LIMIT 10",
    ),
    (
        "SELECT c.name, f.id FROM f JOIN c ON f.k = c.k",
        "SELECT name, id FROM f JOIN c USING (k)",
    ),
    (
        "SELECT c.name, f.id FROM f JOIN c ON f.k = c.k",
        "SELECT name, id FROM f NATURAL JOIN c",
    ),
    (
        "SELECT count(CASE WHEN dist > 500 THEN 1 END) FROM f",
        "SELECT count(*) FILTER (dist > 500) FROM f",
    ),
    ("SELECT count(*) FROM f", "SELECT count(*) FROM fv"),
    ("SELECT count(*) FROM f WHERE month = 3", "SELECT count(*) FROM fv WHERE month = 3"),
    (
        "SELECT k, month, count(*) FROM f GROUP BY k, month",
        "SELECT k, month, count(*) FROM f GROUP BY ROLLUP (k, month)",
    ),
    (
        "SELECT k, sum(dist) FROM f WHERE month < 3 GROUP BY k",
        "WITH s AS (SELECT k, dist FROM f WHERE month < 3) SELECT k, sum(dist) FROM s GROUP BY 1",
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=[other for _, other in PAIRS])
def test_everyday_forms_cost_what_the_plain_form_costs(onions, pair) -> None:
    for sql in pair:
        onions.run(sql, ordered=False)
    assert planned(onions.louver, pair[0]) == planned(onions.louver, pair[1])


def test_a_prefix_is_a_range_of_codes(onions) -> None:
    """The server sends the rows of a range, which the client tests."""
    for pattern in ("N7%", "N7_", "N%", "N10%", "\ud7ff%", "z\U0010ffff%", "%7", "\U0010ffff%"):
        onions.run("SELECT id FROM f WHERE tail LIKE $1", [pattern])
        literal = pattern.replace("'", "''")
        onions.run(f"SELECT id FROM f WHERE tail LIKE '{literal}'")
    (text,) = onions.louver.sql("SELECT id FROM f WHERE tail LIKE 'N7%'").remote_sql()
    assert ">=" in text
    assert "<=" in text


def test_a_sample_is_taken_where_the_rows_are(sealed) -> None:
    """The server sends as many rows as are wanted, of a sample that is drawn before WHERE."""
    for size in (0, 1, 7, 120, 500):
        relation = sealed.louver.sql(f"SELECT id, dist FROM f USING SAMPLE {size} ROWS")
        rows = relation.fetchall()
        assert len(rows) == len(set(rows)) == min(size, 120)
    (text,) = sealed.louver.sql("SELECT id FROM f USING SAMPLE 7 ROWS").remote_sql()
    assert text.endswith("LIMIT 7")
    every = set(sealed.run("SELECT id, dist FROM f"))
    drawn = {
        tuple(sealed.louver.sql("SELECT id, dist FROM f USING SAMPLE 3 ROWS").fetchall())
        for _ in range(9)
    }
    assert len(drawn) > 1
    assert all(set(rows) <= every for rows in drawn)
    ((count,),) = sealed.louver.sql("SELECT count(*) FROM f USING SAMPLE 9 ROWS").fetchall()
    assert count == 9
    sealed.run("SELECT count(*) FROM f WHERE id >= 0 USING SAMPLE 120 ROWS")
    sealed.run("SELECT sum(dist), max(id) FROM f USING SAMPLE 120 ROWS")
    sealed.run("SELECT id FROM f USING SAMPLE reservoir(5 ROWS) REPEATABLE (3)")


TRICKY = [
    "SELECT month > 4 AS o, sum(dist) FROM f GROUP BY month > 4",
    "SELECT month > 4 AND id < 7, count(delay) FROM f GROUP BY ALL",
    "SELECT month IS NULL, month BETWEEN 2 AND 4, max(dist) FROM f GROUP BY 1, 2",
    "SELECT sum(month + 1), min(dist), max(day) FROM f",
    "SELECT month, max(month + 2), min(delay) FROM f GROUP BY 1",
    "SELECT k, largest(3) FROM c",
    "SELECT k, largest(n) FROM c",
    "SELECT * FROM mv",
    "SELECT lower(k) FROM f WHERE lower(k) = 'C2'",
    "SELECT count(*) FROM f WHERE nested(month)",
    "SELECT above(dist, 500), above(500, dist) AS above FROM f",
    "SELECT max(dist) FROM later(100) AS later, c WHERE later.k = c.k",
    "SELECT id FROM later(delay := 3)",
    "SELECT k, month, count(*) FROM f GROUP BY ROLLUP (k, month) UNION ALL SELECT 'x', 1, 2",
    "SELECT max(n) FROM (SELECT k, count(*) AS n FROM f GROUP BY CUBE (k, month) HAVING n > 2)",
    # A number that is a key by itself is no ordinal.
    "SELECT 5 AS five, count(*) FROM f GROUP BY 1",
    "SELECT 2 AS two, k FROM f ORDER BY 1, 2",
    # An alias that is a column's name.
    "SELECT -dist AS dist FROM f ORDER BY dist LIMIT 3",
    "SELECT month AS id, id AS month FROM f ORDER BY id, month LIMIT 5",
    "SELECT k AS tail, count(*) FROM f GROUP BY tail",
    "SELECT month, sum(dist) AS dist FROM f GROUP BY month HAVING dist > 900",
    "SELECT month AS m, count(*) AS month FROM f GROUP BY month",
    "SELECT dist + 1 AS s, s * 2 AS t FROM f WHERE s > 900",
    # A common table expression of a table's name.
    "WITH f AS (SELECT * FROM f WHERE dist > 500) SELECT count(*) FROM f",
    "WITH c AS (SELECT k FROM f), f AS (SELECT k FROM c) SELECT count(*) FROM f",
    "WITH q AS (SELECT k, dist FROM f) SELECT (SELECT count(*) FROM q), max(dist) FROM q",
    # What NULLs fill up.
    "SELECT q.one FROM c LEFT JOIN (SELECT k, 1 AS one FROM f WHERE dist > 950) q ON q.k = c.k",
    "SELECT c.k, q.dist FROM c LEFT JOIN (SELECT k, dist FROM f WHERE dist > 950) q USING (k)",
    "SELECT k, n FROM f RIGHT JOIN c USING (k) WHERE month = 3 OR month IS NULL",
    "SELECT k, count(*) FROM f FULL JOIN c USING (k) GROUP BY k",
    "SELECT * FROM f NATURAL JOIN c WHERE dist > 980",
    "SELECT * EXCLUDE (day, tail) REPLACE (dist + 1 AS dist) FROM f WHERE id < 3",
    "SELECT c.*, f.id FROM f JOIN c USING (k) WHERE f.id < 9",
    # Columns of the block around.
    "SELECT k FROM c WHERE EXISTS (SELECT 1 FROM f WHERE f.k = c.k AND dist > n * 300)",
    "SELECT k, (SELECT max(dist) FROM f WHERE f.k = c.k) FROM c",
    "SELECT n, (SELECT count(*) FROM (SELECT * FROM f WHERE month = n)) FROM c",
    # No rows.
    "SELECT count(*), sum(dist), max(delay) FROM f WHERE dist > 5000 GROUP BY ROLLUP (k)",
    "SELECT k, count(delay) FROM f WHERE dist > 5000 GROUP BY CUBE (k, month)",
    "SELECT count(*) FILTER (dist > 5000), sum(dist) FILTER (dist > 5000) FROM f",
    "SELECT k, grouping(k), count(*) FROM f GROUP BY GROUPING SETS ((k), ()) ORDER BY ALL",
    "SELECT sum(CASE WHEN dist > 500 THEN 1 ELSE 0 END) FROM f",
    "SELECT sum(CASE WHEN delay > 5 THEN dist ELSE 0 END) FROM f",
    "SELECT k, count(*) FROM f GROUP BY 1 UNION ALL SELECT name, n FROM c ORDER BY 1, 2",
    "FROM fv SELECT count(*), max(dist) WHERE dist < 300",
    "SELECT max(x) FROM (SELECT DISTINCT dist AS x, k FROM f)",
    "SELECT x FROM (SELECT dist AS x FROM f ORDER BY dist LIMIT 3) ORDER BY 1",
]


@pytest.mark.parametrize("tables", ["onions", "sealed"])
def test_what_looks_alike_and_is_not(tables: str, request: pytest.FixtureRequest) -> None:
    twin = request.getfixturevalue(tables)
    for sql in TRICKY:
        twin.either(sql, ordered=False)
