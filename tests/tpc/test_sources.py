"""What the TPC tests stand on: every query has an answer, and only one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from louver.trusted.executor.policy import Policy
from tests.tpc import harness, search, sources
from tests.tpc.sources import BENCHMARKS, POLICIES, TPCDS, TPCH

Plain = Callable[[str], harness.Plain]
QUERIES = [(b.name, number) for b in (TPCH, TPCDS) for number in b.numbers]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_all_queries_are_there(plain: Plain, name: str) -> None:
    assert list(plain(name).queries) == list(BENCHMARKS[name].numbers)


@pytest.mark.parametrize(("name", "number"), QUERIES)
def test_no_query_is_empty(plain: Plain, name: str, number: int) -> None:
    query = plain(name)
    assert search.score(query.con, query.queries[number])


@pytest.mark.parametrize(("name", "number"), QUERIES)
def test_every_answer_is_determined(plain: Plain, name: str, number: int) -> None:
    assert not harness.cut_by_chance(plain(name), number)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_constants_are_replaced_only_where_needed(plain: Plain, name: str) -> None:
    originals = sources.originals(plain(name).con, BENCHMARKS[name])
    replaced = sources.constants()[name]
    assert all(not search.score(plain(name).con, originals[int(number)]) for number in replaced)


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_name_columns_that_exist(plain: Plain, policy: str) -> None:
    known = {
        column
        for name in BENCHMARKS
        for columns in sources.tables(plain(name).con).values()
        for column, _ in columns
    }
    rules = Policy.read(sources.policy(policy)).rules
    assert {column for _, column in rules} - known == {"*"}


def test_differences_are_found() -> None:
    assert not harness.difference([(1, 0.1 + 0.2), (None, "a")], [(None, "a"), (1, 0.3)])
    assert harness.difference([(1,)], [(1,), (1,)])
    assert harness.difference([(1, 0.3)], [(1, 0.3001)])
    assert harness.difference([(None,)], [(0,)])
