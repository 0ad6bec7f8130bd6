"""Which parts of the queries the server computes is as recorded: a loss of pushdown shows, and so
does any change of a plan, whose queries then run in test_tpch and test_tpcds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from louver.trusted.vault.catalog import Column
from tests.tpc import harness, splits
from tests.tpc.sources import BENCHMARKS, POLICIES


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_splits_are_as_recorded(
    planned: Callable[[str, str], dict[str, str]], name: str, policy: str
) -> None:
    wanted = splits.recorded()[name][policy]
    actual = planned(name, policy)
    changed = {n: (wanted[n], split) for n, split in actual.items() if split != wanted[n]}
    assert not changed, "if this is better, run `python -m tests.tpc.splits`"


@pytest.mark.parametrize("policy", POLICIES)
def test_plans_do_not_depend_on_values(
    loaded: Callable[[str, str], Any],
    plain: Callable[[str], harness.Plain],
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
) -> None:
    """The server sees which plan was chosen, so nothing that the catalog knows of the values of
    encrypted columns may choose it: neither bounds, nor how many there are, nor that some are NULL.
    """
    random = Random(policy)

    def change(column: Column) -> None:
        if column.encrypted:
            column.minimum = random.randrange(-1000, 1000)
            column.maximum = column.minimum + random.randrange(1, 10**6)
            column.seen = [str(n) for n in range(random.randrange(1, 20))]
            column.has_null = column.nullable and not column.has_null

    def explanation(con: Any, sql: str) -> str:
        # What EXPLAIN expects to open is for the client's eyes: it may go by values.
        return re.sub(r"about .* rows, .*", "", harness.explained(con, sql))

    monkeypatch.setattr(harness, "digest", explanation)
    con, data = loaded("tpch", policy), plain("tpch")
    assert splits.planned(con, data, change) == splits.planned(con, data)
