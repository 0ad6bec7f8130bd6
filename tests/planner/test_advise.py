"""Advice for a workload like TPC-H's, on a schema whose sizes are those of scale factor 1."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import pytest

import louver.trusted.vault.schemes  # noqa: F401 - has the sentences of leaks
from louver.trusted.backends.backend import Backend
from louver.trusted.backends.duckdb import BACKEND as DUCKDB
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine
from louver.trusted.planner.advisor import advise, candidates
from louver.trusted.planner.advisor.what_if import Computed, Grouped, Raised, Searchable
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.scope import Servers
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table
from louver.trusted.vault.scheme import scheme_of
from louver.trusted.vault.seen_values import MANY
from louver.trusted.vault.types import family
from tests.toy.backend import BACKEND as TOY


def day(text: str) -> int:
    return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days


DATES = ("DATE", day("1992-01-02"), day("1998-12-01"))
MONEY = ("DECIMAL(15,2)", 90_000, 10_494_950)
TEXT = ("VARCHAR", None, None)
SCHEMA: dict[str, tuple[int, dict[str, tuple[str, int | None, int | None]]]] = {
    "lineitem": (
        6_000_000,
        {
            "l_orderkey": ("BIGINT", 1, 6_000_000),
            "l_quantity": ("DECIMAL(15,2)", 100, 5_000),
            "l_extendedprice": MONEY,
            "l_discount": ("DECIMAL(15,2)", 0, 10),
            "l_returnflag": TEXT,
            "l_linestatus": TEXT,
            "l_shipdate": DATES,
            "l_comment": TEXT,
        },
    ),
    "orders": (
        1_500_000,
        {
            "o_orderkey": ("BIGINT", 1, 6_000_000),
            "o_custkey": ("BIGINT", 1, 150_000),
            "o_orderdate": DATES,
            "o_totalprice": MONEY,
            "o_shippriority": ("INTEGER", 0, 0),
        },
    ),
    "customer": (
        150_000,
        {"c_custkey": ("BIGINT", 1, 150_000), "c_name": TEXT, "c_mktsegment": TEXT},
    ),
}
FEW = {"l_returnflag": 3, "l_linestatus": 2, "c_mktsegment": 5}
Q1 = (
    "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS q, sum(l_extendedprice) AS p,"
    " sum(l_extendedprice * (1 - l_discount)) AS d, avg(l_quantity) AS a, count(*) AS n"
    " FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'"
    " GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus"
)
Q3 = (
    "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate,"
    " o_shippriority FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING'"
    " AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15'"
    " AND l_shipdate > DATE '1995-03-15' GROUP BY l_orderkey, o_orderdate, o_shippriority"
    " ORDER BY revenue DESC, o_orderdate LIMIT 10"
)
Q6 = (
    "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem"
    " WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'"
    " AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"
)
YEARS = (
    "SELECT year(o_orderdate) AS y, sum(o_totalprice) AS s FROM orders GROUP BY year(o_orderdate)"
)


def world() -> tuple[Catalog, DuckDBLocalEngine]:
    catalog, home = Catalog("advice"), DuckDBLocalEngine()
    for number, (name, (rows, columns)) in enumerate(SCHEMA.items(), 1):
        sql = f"CREATE TABLE {name} ({', '.join(f'{c} {t}' for c, (t, _, _) in columns.items())})"
        home.binder.execute(sql)
        table = Table("main", name, number, row_count=rows, runs=[[0, rows]], runs_known=True)
        for column, (type_, low, high) in columns.items():
            stored = Column(column, type_, catalog.take_column_id(), True, "sealed", "access")
            stored.minimum, stored.maximum, stored.nullable = low, high, False
            stored.stored = {"rnd": f"e_{column}"}
            stored.seen = [str(n) for n in range(FEW[column])] if column in FEW else [MANY]
            if family(type_) == "number":
                stored.stored |= {"sum": f"s_{column}", "sum_high": f"h_{column}"}
            table.columns.append(stored)
        catalog.add(table)
        catalog.objects.append(HomeObject("TABLE", "main", name, sql))
    return catalog, home


def hold(table: Table, expression: str) -> tuple[str, str] | None:
    with duckdb.connect() as duck:
        listed = ", ".join(f'"{column.name}" {column.type}' for column in table.columns)
        try:
            duck.execute(f"CREATE TABLE t ({listed})")
            described = duck.execute(f"DESCRIBE SELECT {expression} FROM t").fetchone()
            assert described is not None
            return described[1], f"({expression})"
        except duckdb.Error:
            return None


@pytest.fixture(scope="module")
def advised() -> Any:
    catalog, home = world()

    def ask(*texts: str) -> advise.Advice:
        queries = [advise.Query(n, lexer.split(text)[0]) for n, text in enumerate(texts, 1)]
        return advise.advise(queries, catalog, home, Servers(lambda _: DUCKDB, 2048), hold)

    ask.catalog, ask.home = catalog, home  # type: ignore[attr-defined]
    yield ask
    home.close()


def advised_by(advised: Any, *texts: str) -> dict[str, str]:
    """What is recommended, in words, with its level."""
    texts_by_kind = {}
    for item in advised(*texts).recommendations:
        match item.change:
            case Raised(path):
                texts_by_kind[advised.catalog.column(*path)[1].name] = item.level
            case Grouped(places):
                names = sorted(advised.catalog.column(*path)[1].name for path in places)
                texts_by_kind[" = ".join(names)] = item.level
            case Searchable(path):
                texts_by_kind[f"{advised.catalog.column(*path)[1].name} LIKE"] = item.level
            case Computed():
                texts_by_kind[item.change.written] = item.level
    return texts_by_kind


def test_a_filtered_sum_wants_order_and_its_product(advised: Any) -> None:
    assert advised_by(advised, Q6) == {
        "l_shipdate": "order",
        "l_discount": "order",
        "l_quantity": "order",
        "l_extendedprice * l_discount": "access",
    }
    advice = advised(Q6)
    assert advice.before[1].plan.kind == "scans"
    assert advice.after[1].plan.kind == "whole"
    assert advice.after[1].cost.seconds < advice.before[1].cost.seconds / 20
    assert advice.after[1].cost.sent_bytes < advice.before[1].cost.sent_bytes / 20


def test_groups_want_equality_of_what_they_are_made_of(advised: Any) -> None:
    assert advised_by(advised, Q1) == {
        "l_returnflag": "equality",
        "l_linestatus": "equality",
        "l_shipdate": "order",
        "l_extendedprice * (1 - l_discount)": "access",
    }
    assert advised(Q1).after[1].plan.kind == "whole"


def test_a_join_wants_equality_and_one_group_per_pair_of_keys(advised: Any) -> None:
    joined = "FROM orders, lineitem WHERE l_orderkey = o_orderkey GROUP BY o_orderdate"
    assert advised_by(advised, f"SELECT o_orderdate, sum(l_quantity) {joined}") == dict.fromkeys(
        ("o_orderkey", "l_orderkey", "l_orderkey = o_orderkey", "o_orderdate"), "equality"
    )


def test_keys_that_choose_rows_want_equality_and_no_group(advised: Any) -> None:
    levels = advised_by(advised, Q3)
    assert levels["c_custkey"] == levels["o_custkey"] == levels["l_orderkey"] == "equality"
    assert not any(" = " in name for name in levels)
    assert "c_name" not in levels
    assert "l_comment" not in levels
    assert set(levels.values()) <= {"equality", "order", "access"}


def test_a_part_of_a_date_is_a_column_to_group_by(advised: Any) -> None:
    # It shows no more than what it is made of may.
    assert advised_by(advised, YEARS) == {
        "YEAR(o_orderdate)": "equality",
        "o_orderdate": "equality",
    }


def test_a_workload_is_weighed_as_a_whole(advised: Any) -> None:
    advice = advised(Q1, Q3, Q6, YEARS)
    savings = [item.saving().seconds for item in advice.recommendations]
    assert savings == sorted(savings, reverse=True)
    assert savings[-1] > 0
    shipped = next(
        item
        for item in advice.recommendations
        if isinstance(item.change, Raised)
        and advised.catalog.column(*item.change.member)[1].name == "l_shipdate"
    )
    assert {1, 3} <= set(shipped.queries)
    assert advise.total(advice.after.values()).seconds < (
        advise.total(advice.before.values()).seconds / 10
    )


def test_like_wants_tokens(advised: Any) -> None:
    levels = advised_by(advised, "SELECT l_orderkey FROM lineitem WHERE l_comment LIKE '%special%'")
    assert levels == {"l_comment LIKE": "equality"}
    # Three characters make the shortest token.
    assert advised_by(advised, "SELECT l_orderkey FROM lineitem WHERE l_comment LIKE '%sp%'") == {}


@pytest.mark.parametrize("backend", [TOY, Backend("nothing")], ids=lambda backend: backend.name)
def test_nothing_is_wished_that_the_backend_cannot_store(advised: Any, backend: Backend) -> None:
    texts = (
        Q1,
        Q6,
        "SELECT l_orderkey FROM lineitem WHERE l_comment LIKE '%special%'",
        "SELECT sum(o_totalprice) FROM orders WHERE o_custkey = 7",
    )
    queries = [advise.Query(n, lexer.split(text)[0]) for n, text in enumerate(texts, 1)]
    servers = Servers(lambda _: backend, 2048)
    advice = advise.advise(queries, advised.catalog, advised.home, servers, hold)
    assert advice.before
    before = {
        name
        for table in advised.catalog.tables.values()
        for c in table.columns
        for name in c.stored
    }
    supposed = {
        name
        for trial in [*advice.before.values(), *advice.after.values()]
        for table in trial.catalog.tables.values()
        for column in table.columns
        for name in column.stored
    }
    assert all(backend.serves(scheme_of(name)) for name in supposed - before)
    assert not any(isinstance(change, Searchable) for change in advice.changes)
    if backend is not TOY:
        assert not any(isinstance(change, Grouped) for change in advice.changes)
        assert supposed == before


def test_what_saves_nothing_is_not_recommended(advised: Any) -> None:
    assert advised_by(advised, "SELECT c_name FROM customer") == {}
    assert advised_by(advised, "SELECT count(*) FROM lineitem") == {}


def test_a_query_that_does_not_bind_is_told_and_the_rest_advised(advised: Any) -> None:
    advice = advised("SELECT nothing FROM customer", Q6)
    assert list(advice.failed) == [1]
    assert list(advice.after) == [2]
    assert advice.recommendations


def test_nothing_of_the_catalog_is_changed(advised: Any) -> None:
    before = advised.catalog.to_json()
    advised(Q1, Q3)
    assert advised.catalog.to_json() == before


def test_only_what_depends_on_its_row_alone_is_held(advised: Any) -> None:
    from louver.trusted.planner.sql.resolver import Resolver
    from louver.trusted.planner.sql.trees import parse

    def candidates_of(sql: str) -> list[str]:
        tree = parse(sql)
        assert tree is not None
        resolve = Resolver(advised.catalog, tree).table
        return [node.sql("duckdb") for _, node in candidates.expressions(tree, resolve)]

    assert candidates_of("SELECT sum(o.o_totalprice * random()) FROM orders o") == []
    assert candidates_of("SELECT sum(o_totalprice + l_quantity) FROM orders, lineitem") == []
    assert candidates_of("SELECT sum(o.o_totalprice * 2) FROM orders o") == ["o_totalprice * 2"]
    assert candidates_of("SELECT 1 FROM orders WHERE month(o_orderdate) = 3") == [
        "MONTH(o_orderdate)"
    ]
    assert candidates_of("SELECT sum((SELECT 1) + o_totalprice) FROM orders") == []
