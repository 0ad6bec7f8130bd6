"""Which parts of the queries the server computes is as recorded: a loss of pushdown shows, and so
does any change of a plan, whose queries then run in test_tpch and test_tpcds.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tpc import splits
from tests.tpc.sources import BENCHMARKS, POLICIES


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_splits_are_as_recorded(
    planned: Callable[[str, str], dict[str, str]], name: str, policy: str
) -> None:
    wanted = splits.recorded()[name][policy]
    found = planned(name, policy)
    changed = {n: (wanted[n], split) for n, split in found.items() if split != wanted[n]}
    assert not changed, "if this is better, run `python -m tests.tpc.splits`"
