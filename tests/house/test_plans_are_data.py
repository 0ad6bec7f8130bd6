"""Nothing reachable from a plan can change or belongs to a catalog: a plan is data with ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

import pytest

from louver import errors
from louver.trusted.executor.change import changing, statement_parts
from louver.trusted.planner.ir import Call, ChangePlan, Key, Plan, RemoteQuery, TableRef
from louver.trusted.planner.planner import Planner
from louver.trusted.planner.settings import PlannerSettings
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Catalog, Column, Table
from tests.inside import context_of
from tests.planner import fixtures

LEAVES = (str, int, float, bytes, type(None))
CONTAINERS = (tuple, frozenset, MappingProxyType)
#: Beside the rewriter's own fixtures: plans of several blocks and of several tables of a lake.
STATEMENTS = (
    "SELECT A, B + 7 FROM T",
    "SELECT s FROM (SELECT P, sum(A) AS s FROM T GROUP BY P) AS q WHERE s > 100",
    "WITH q AS (SELECT sum(A) AS s FROM T) SELECT s, X FROM q, U",
    "WITH q AS (SELECT sum(A) AS s FROM T) SELECT a.s FROM q AS a, q AS b",
    "SELECT N FROM V WHERE EXISTS (SELECT 1 FROM W WHERE L = K AND O > DATE '2020-01-01')",
    "SELECT I FROM F WHERE E > 3 AND N LIKE 'a%'",
    "SELECT R, N FROM F, U WHERE E = Q AND X < 3 AND Q < 5",
    "SELECT Z FROM V WHERE W > DATE '2020-01-01' ORDER BY W LIMIT 3",
    "SELECT 1 + 1",
)


def planned(sql: str, catalog: Catalog, planner: Planner, settings: PlannerSettings) -> Plan | None:
    """The plan of a statement; None where the ceilings refuse it."""
    (text,) = lexer.split(sql)
    try:
        return planner.plan(text, [], catalog, settings)[0]
    except errors.Error:
        return None


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    catalog, home = fixtures.world()
    for table in catalog.tables.values():
        # So many that semi-joins pay.
        table.row_count = 1_000_000 if table.name == "V" else 1_000
    planner = Planner(home, lambda: 2048, fixtures.backend_of)
    both = (PlannerSettings(), PlannerSettings(apart=True))
    cases = [case.input for path in fixtures.files() for case in fixtures.read(path)]
    texts = [*cases, *STATEMENTS]
    results = [planned(sql, catalog, planner, chosen) for sql in texts for chosen in both]
    home.close()
    return [plan for plan in results if plan is not None]


def held(item: Any, path: str = "plan") -> Iterator[tuple[str, Any]]:
    """What can be reached from an object, by the path of the fields that lead there."""
    yield path, item
    if isinstance(item, MappingProxyType):
        for key, value in item.items():
            yield from held(key, f"{path} key")
            yield from held(value, f"{path}[{key!r}]")
    elif isinstance(item, CONTAINERS):
        for number, value in enumerate(item):
            yield from held(value, f"{path}[{number}]")
    elif is_dataclass(item):
        for field in fields(item):
            yield from held(getattr(item, field.name), f"{path}.{field.name}")


def is_data(item: Any) -> bool:
    """Whether an object is a frozen class of plans, a container that cannot change or a leaf."""
    if isinstance(item, (*LEAVES, *CONTAINERS)):
        return True
    kind = type(item)
    known = kind.__module__.startswith(("louver.trusted.planner.ir.", "louver.trusted.vault.facts"))
    return known and is_dataclass(item) and bool(vars(kind)["__dataclass_params__"].frozen)


def offending(plan: Plan | ChangePlan) -> dict[str, str]:
    """What a plan must not hold, by where it is."""
    return {path: type(item).__name__ for path, item in held(plan) if not is_data(item)}


def test_plans_hold_only_frozen_data(plans: list[Plan]) -> None:
    wrong = {path: kind for plan in plans for path, kind in offending(plan).items()}
    assert not wrong, "a plan holds something that may change"


def test_plans_of_changes_hold_only_frozen_data(open_connection: Any) -> None:
    con = open_connection("sealed")
    con.execute(
        "CREATE TABLE p (k INT PRIMARY KEY); CREATE TABLE t (a INT, k INT REFERENCES p (k))"
    )
    con.execute("CREATE TABLE u (a INT, b TEXT ENC MAY REVEAL access)")
    seen = []
    for sql in (
        "UPDATE u SET a = 3 WHERE a > 5",
        "DELETE FROM t WHERE a IN (SELECT a FROM u)",
        "INSERT INTO p VALUES (1) ON CONFLICT DO NOTHING",
        "MERGE INTO u USING t ON t.a = u.a WHEN MATCHED THEN DELETE",
    ):
        (text,) = lexer.split(sql)
        words = statement_parts.words_of(text, lexer.tokens(text.plain), [])
        context, verb = context_of(con), statement_parts.verb_place(words)
        table = statement_parts.target(words, verb, context.catalog)
        assert table is not None
        plan = changing.planned(context, words, verb, table)
        assert not offending(plan)
        seen.append(plan)
    assert seen[0].rows is not None
    assert seen[0].rows.remotes[0].where
    assert [len(plan.read) for plan in seen] == [0, 1, 0, 1]
    assert [len(plan.rehearsed) for plan in seen] == [1, 2, 2, 2]


def test_all_kinds_of_plans_are_looked_at(plans: list[Plan]) -> None:
    remotes = [remote for plan in plans for remote in plan.remotes]
    assert {plan.kind for plan in plans} == {"whole", "rows", "scans", "blocks", "home"}
    assert any(plan.opens for plan in plans)
    assert any(plan.replacements for plan in plans)
    for part in ("joins", "inner", "probes", "having", "order", "group", "where", "counted"):
        assert any(getattr(remote, part) for remote in remotes), part


@pytest.mark.parametrize("item", [
    Table("main", "t", 1), Column("a", "INTEGER", 1), Catalog("x"), [1], {}, {1},
    fixtures.backend_of(Table("main", "t", 1)), lambda: 1,
])  # fmt: skip
def test_what_is_not_data_is_noticed(item: Any) -> None:
    remote = RemoteQuery(("", "r"), (TableRef(0, "t", 1),), (), ())
    arguments: Any = (Key("column", (1, item)),)
    holding = replace(remote, where=(Call("f", arguments),))
    assert offending(Plan("whole", (holding,)))
    assert not offending(Plan("whole", (remote,)))
