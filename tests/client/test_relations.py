"""Relations: chains of operations give what DuckDB's own relations give, lazily, as one query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import louver
from louver.names import quoted
from louver.trusted.client.connect import open_session
from louver.trusted.client.dbapi import Connection
from tests.client.harness import connection, key_file
from tests.generated import cases, generator
from tests.twin import same

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")

SETUP = """
CREATE TABLE staff (name VARCHAR ENC, salary BIGINT ENC, dept VARCHAR ENC, age INTEGER);
CREATE TABLE depts (dept VARCHAR ENC, floor INTEGER ENC MAY REVEAL order);
INSERT INTO staff VALUES ('Ada', 9000, 'it', 36), ('Grace', 8500, 'it', 45), ('Edsger', 8500, 'hr',
    NULL), (NULL, 100, 'hr', 9), ('Ada', NULL, NULL, 36), ('Ada', 9000, 'it', 36);
INSERT INTO depts VALUES ('it', 1), ('hr', 2), ('pr', 3)
"""
PLAIN = SETUP.replace(" ENC MAY REVEAL order", "").replace(" ENC", "")
PROFILES = ("sealed", "cryptdb", "sdb")


class Pair:
    """Louver and plaintext DuckDB with the same tables."""

    def __init__(self, profile: str) -> None:
        self.louver = connection(profile=profile)
        self.louver.execute(SETUP)
        self.plain = duckdb.connect()
        self.plain.execute(PLAIN)


@pytest.fixture(scope="module", params=PROFILES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    both = Pair(request.param)
    with both.louver:
        yield both


NUMBERS, TEXTS = ("BIGINT", "INTEGER", "HUGEINT", "DOUBLE"), ("VARCHAR",)


def compared(mine: Any, theirs: Any, *, ordered: bool = False) -> None:
    """Fail unless names, types and rows are equal."""
    shown = mine.sql_query()
    assert mine.columns == theirs.columns, shown
    assert mine.types == [str(type_) for type_ in theirs.types], shown
    assert same(theirs.fetchall(), mine.fetchall(), ordered), shown


def chain(random: Random, mine: Any, theirs: Any, others: list[tuple[Any, Any]]) -> Any:
    """Apply random operations to both; a relation on each side, and whether the order counts."""
    ordered, renamed = False, 0
    for _ in range(random.randint(1, 6)):
        typed = list(zip(theirs.columns, [str(t) for t in theirs.types], strict=True))
        names = [name for name, _ in typed]
        if len(set(names)) < len(names):
            break  # Two columns of one name: no operation could name them.
        numbers = [quoted(n) for n, t in typed if t in NUMBERS]
        texts = [quoted(n) for n, t in typed if t in TEXTS]
        every = [quoted(n) for n in names]
        columns = random.sample(every, random.randint(1, len(every)))
        number = random.choice(numbers) if numbers else "1"
        text = random.choice(texts) if texts else "'it'"
        steps: list[tuple[str, tuple[Any, ...]]] = [
            ("filter", (f"{number} > {random.choice([1, 36, 8500])}",)),
            ("filter", (f"{text} = 'it' OR {number} IS NULL",)),
            ("filter", (f"{text} LIKE 'A%' AND {number} BETWEEN 10 AND 9000",)),
            ("project", (", ".join(columns),)),
            ("project", (f'{", ".join(every)}, {number} + 1 AS "more {renamed}"',)),
            ("select", (f'{text} AS "t\'{renamed}"',)),
            ("aggregate", (f"{columns[0]}, count(*) AS n, max({number}) AS m",)),
            ("aggregate", (f"count(*) AS n, sum({number}) AS s", columns[0])),
            ("distinct", ()),
            ("union", ("self",)),
            ("except_", ("limited",)),
            ("intersect", ("self",)),
            ("set_alias", ("other one",)),
            ("order", (", ".join(every),)),
            ("limit", (random.randint(0, 4), random.randint(0, 2))),
            ("sum", (number,)),
            ("value_counts", (text,)),
            ("count", (columns[0],)),
            ("unique", (columns[0],)),
            ("join", (random.choice(["inner", "left", "semi", "anti"]),)),
        ]
        name, given = random.choice(steps)
        renamed += 1
        if name == "join":
            mine, theirs = joined(random, mine, theirs, others, given[0])
            ordered = False
            continue
        if name in ("limit", "except_"):
            # Which rows come first is decided by an order alone.
            by = ", ".join(every)
            mine, theirs = mine.order(by), theirs.order(by)
        if name in ("union", "except_", "intersect"):
            partner = (mine, theirs) if given == ("self",) else (mine.limit(1), theirs.limit(1))
            mine, theirs = getattr(mine, name)(partner[0]), getattr(theirs, name)(partner[1])
        else:
            mine, theirs = getattr(mine, name)(*given), getattr(theirs, name)(*given)
        ordered = name in ("order", "limit") or (ordered and name in ("filter", "set_alias"))
    return mine, theirs, ordered


def joined(
    random: Random, mine: Any, theirs: Any, others: list[tuple[Any, Any]], how: str
) -> tuple[Any, Any]:
    """A join by a name that both have, or by an expression over both aliases."""
    right = random.choice(others)
    shared = [n for n in theirs.columns if n in right[1].columns]
    left = mine.set_alias("l"), theirs.set_alias("l")
    right = right[0].set_alias("r r"), right[1].set_alias("r r")
    if shared:
        name = random.choice(shared)
        own = quoted(name)
        both = f'l.{own} = "r r".{own}'
        condition = random.choice([name, both]) if name.isidentifier() else both
    else:
        first, second = quoted(theirs.columns[0]), quoted(right[1].columns[0])
        condition = f'l.{first}::VARCHAR = "r r".{second}::VARCHAR'
    return left[0].join(right[0], condition, how), left[1].join(right[1], condition, how)


@pytest.mark.parametrize("number", range(cases(20)))
def test_chains_give_what_duckdbs_relations_give(pair: Pair, number: int) -> None:
    random = generator(f"relations {number}")
    starts = [
        (pair.louver.table("staff"), pair.plain.table("staff")),
        (pair.louver.sql("FROM depts"), pair.plain.sql("FROM depts")),
        (
            pair.louver.sql("SELECT dept, age FROM staff WHERE age > ? -- all", params=[10]),
            pair.plain.sql("SELECT dept, age FROM staff WHERE age > ? -- all", params=[10]),
        ),
        (pair.louver.values(["it", 1]), pair.plain.sql("VALUES ('it', 1)")),
    ]
    mine, theirs = random.choice(starts)
    mine, theirs, ordered = chain(random, mine, theirs, starts[:3])
    compared(mine, theirs, ordered=ordered)


SHORTCUTS = (
    "any_value avg bit_and bit_or bit_xor count favg fsum geomean histogram list max mean median"
    " min mode product stddev std stddev_pop stddev_samp sum var variance var_pop var_samp"
)


@pytest.mark.parametrize("name", SHORTCUTS.split())
def test_shortcuts_of_aggregates(pair: Pair, name: str) -> None:
    mine, theirs = pair.louver.table("staff").order("ALL"), pair.plain.table("staff").order("ALL")
    column = "age" if name in ("product", "histogram") else "salary"
    compared(getattr(mine, name)(column), getattr(theirs, name)(column))
    grouped = {"groups": "dept", "projected_columns": "dept"}
    compared(getattr(mine, name)(column, **grouped), getattr(theirs, name)(column, **grouped))
    if hasattr(theirs, name) and name not in ("any_value", "favg", "fsum", "geomean"):
        window = {"window_spec": "over (partition by dept)", "projected_columns": "name"}
        compared(getattr(mine, name)(column, **window), getattr(theirs, name)(column, **window))


OTHERS: list[tuple[str, tuple[Any, ...]]] = [
    ("string_agg", ("name", "|")),
    ("arg_max", ("name", "age")),
    ("arg_min", ("name", "age")),
    ("bool_and", ("age > 3",)),
    ("bool_or", ("age > 40",)),
    ("first", ("name",)),
    ("last", ("name",)),
    ("row_number", ("over (order by age, name, salary)", "name")),
    ("rank", ("over (order by age)", "name")),
    ("dense_rank", ("over (order by age)", "name")),
    ("percent_rank", ("over (order by age)", "name")),
    ("cume_dist", ("over (order by age)", "name")),
    ("n_tile", ("over (order by age, name)", 2, "name")),
    ("lag", ("age", "over (order by age, name)", 1, "7")),
    ("lead", ("age", "over (order by age, name)")),
    ("first_value", ("age", "over (order by age)")),
    ("last_value", ("age", "over (order by age)")),
    ("nth_value", ("age", "over (order by age)", 2)),
    ("bitstring_agg", ("age",)),
    ("describe", ()),
    ("apply", ("sum", "age")),
    ("sort", ("age", "name", "salary", "dept")),
    ("select_types", (["VARCHAR"],)),
    ("project", ("age", "name")),
    ("__getitem__", ("age",)),
    ("sum", ("age, salary",)),
]


@pytest.mark.parametrize(("name", "given"), OTHERS, ids=[name for name, _ in OTHERS])
def test_other_operations(pair: Pair, name: str, given: tuple[Any, ...]) -> None:
    mine, theirs = pair.louver.table("staff").order("ALL"), pair.plain.table("staff").order("ALL")
    compared(getattr(mine, name)(*given), getattr(theirs, name)(*given), ordered=name == "sort")


@pytest.mark.parametrize("q", [0.5, [0.25, 0.75]])
@pytest.mark.parametrize("name", ["quantile", "quantile_cont", "quantile_disc"])
def test_quantiles(pair: Pair, name: str, q: Any) -> None:
    mine, theirs = pair.louver.table("staff"), pair.plain.table("staff")
    mine, theirs = getattr(mine, name)("age", q), getattr(theirs, name)("age", q)
    assert mine.types == [str(type_) for type_ in theirs.types]
    assert mine.fetchall() == theirs.fetchall()


def test_forms_of_rows_are_duckdbs(pair: Pair) -> None:
    mine = pair.louver.table("staff").order("ALL")
    theirs = pair.plain.table("staff").order("ALL")
    assert mine.arrow().equals(theirs.to_arrow_table())
    assert pa.table(mine).equals(theirs.to_arrow_table())
    assert [b.num_rows for b in mine.fetch_record_batch(4)] == [4, 2]
    assert [list(map(str, v)) for v in mine.fetchnumpy().values()] == [
        list(map(str, v)) for v in theirs.fetchnumpy().values()
    ]
    assert (len(mine), mine.shape) == (len(theirs), theirs.shape)
    assert [(n, t) for n, t, *_ in mine.description] == [
        (n, str(t)) for n, t, *_ in theirs.description
    ]
    assert list(mine) == theirs.fetchall()
    assert "Salary" in mine
    assert "wage" not in mine


def test_join_errors(pair: Pair) -> None:
    staff = pair.louver.table("staff")
    with pytest.raises(louver.ProgrammingError, match="have the alias staff"):
        staff.join(staff, "name")
    with pytest.raises(louver.ProgrammingError, match="kind of join"):
        staff.join(pair.louver.table("depts"), "dept", how="sideways")
    for broken in ("", "age > 1) OR (true", "age > 1; DROP TABLE staff", "age > ?", "age > $1"):
        with pytest.raises(louver.ProgrammingError, match="is not an expression"):
            staff.filter(broken)
    with pytest.raises(louver.ProgrammingError, match="wage"):
        staff.filter("wage > 1")
    with connection() as other:
        other.execute(SETUP)
        with pytest.raises(louver.ProgrammingError, match="another connection"):
            staff.union(other.table("staff"))
    answer = pair.louver.sql("SET threads = 1")
    with pytest.raises(louver.NotSupportedError, match="not a query"):
        answer.limit(1)


LAZY = (
    "WITH x AS (SELECT * FROM staff WHERE salary > 100) SELECT * FROM x",
    "FROM staff WHERE salary > 100",
    "VALUES (1), (2)",
    "SELECT * EXCLUDE (extra) FROM (DESCRIBE staff)",
    "SUMMARIZE staff",
    "PIVOT staff ON dept USING sum(salary)",
    "PIVOT staff ON dept IN ('it') USING sum(salary) GROUP BY age",
    "UNPIVOT (SELECT name, dept FROM staff) ON name, dept",
    "TABLE staff",
    "(SELECT name FROM staff) UNION ALL (SELECT dept FROM depts)",
    "SELECT table_name FROM information_schema.tables",
)


def asked_of(tap: Any) -> list[str]:
    """The queries over tables that a server was sent."""
    return [m for m in map(repr, tap.sent()) if " AS louver_c0" in m or "row_id AS r0" in m]


def test_queries_are_lazy_and_other_statements_are_not(tmp_path: Path) -> None:
    session = open_session("duckdb:///:memory:", key_file(), "cryptdb", tapped=True)
    plain = duckdb.connect()
    plain.execute(PLAIN)
    with Connection(session) as con:
        con.execute(SETUP)
        tap: Any = session.context.engine
        for sql in LAZY:
            facts = session.context.ledger.length
            tap.records.clear()
            relation = con.sql(sql)
            relation.explain()
            relation.remote_sql()
            assert not asked_of(tap), sql
            assert session.context.ledger.length == facts, sql
            theirs = plain.sql(sql)
            assert same(theirs.fetchall(), relation.fetchall(), ordered=False), sql
            assert relation.columns == theirs.columns, sql
            assert relation.types == [str(t) for t in theirs.types], sql
            assert same(
                plain.sql(sql).limit(99).fetchall(), con.sql(sql).limit(99).fetchall(), False
            ), sql
        con.sql("INSERT INTO depts VALUES ('new', 9)")
        assert con.execute("SELECT count(*) FROM depts").fetchone() == (4,)


def test_conditions_of_a_chain_reach_the_server(pair: Pair) -> None:
    whole = pair.louver.sql(
        "SELECT name FROM staff WHERE (age > 10) AND (salary > 8500)"
    ).remote_sql()
    chained = pair.louver.table("staff").filter("age > 10").filter("salary > 8500").project("name")
    assert chained.remote_sql() == whole
    assert pair.louver.table("staff").count().remote_sql() == (
        pair.louver.sql("SELECT count(*) FROM staff").remote_sql()
    )


def test_files_tables_and_views(pair: Pair, tmp_path: Path) -> None:
    con = pair.louver
    query = con.sql("SELECT name, salary, age FROM staff WHERE age > $a", params={"a": 10})
    rows = sorted(map(repr, query.fetchall()))
    query.to_parquet(str(tmp_path / "x.parquet"), compression="zstd")
    query.to_csv(str(tmp_path / "x.csv"), sep=";")
    assert sorted(map(repr, con.read_parquet(tmp_path / "x.parquet").fetchall())) == rows
    assert (tmp_path / "x.csv").read_text().splitlines()[0] == "name;salary;age"
    assert sorted(map(repr, con.read_csv(str(tmp_path / "x.csv"), delim=";").fetchall())) == rows
    query.to_table("copied")
    assert sorted(map(repr, con.table("copied").fetchall())) == rows
    query.insert_into("copied")
    assert len(con.table("copied")) == 2 * len(rows)
    view = con.table("staff").filter("age > 10").to_view("grown")
    assert view.filter("name = 'Grace'").project("salary").fetchall() == [(8500,)]
    con.execute("DROP VIEW grown; DROP TABLE copied")


def test_notebooks_show_what_a_query_reveals_and_run_it_once() -> None:
    session = open_session("duckdb:///:memory:", key_file(), "cryptdb", tapped=True)
    with Connection(session) as con:
        con.execute(SETUP)
        con.execute("INSERT INTO staff VALUES ('<b>&', 9999, 'it', 1)")
        relation = con.sql("SELECT name, salary FROM staff WHERE salary > 8500")
        assert "not run yet" in repr(relation)
        tap: Any = session.context.engine
        tap.records.clear()
        drawn = relation._repr_html_()
        queries = asked_of(tap)
        assert len(queries) == 1
        assert "salary: order (new)" in drawn
        assert "&lt;b&gt;&amp;" in drawn
        assert "<b>" not in drawn
        again = relation._repr_html_()
        relation.fetchall()
        assert asked_of(tap) == queries
        assert "salary: order." in again
        assert "│ Ada" in repr(relation)


def test_list_of_a_relation_runs_it_once() -> None:
    session = open_session("duckdb:///:memory:", key_file(), tapped=True)
    with Connection(session) as con:
        con.execute(SETUP)
        tap: Any = session.context.engine
        tap.records.clear()
        assert len(list(con.table("depts"))) == 3
        assert len([m for m in map(repr, tap.sent()) if 'FROM "main"."depts"' in m]) == 1
