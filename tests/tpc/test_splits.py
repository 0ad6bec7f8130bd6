"""Which parts of the queries the server computes is as recorded: a loss of pushdown shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tpc import harness, splits
from tests.tpc.sources import BENCHMARKS


@pytest.mark.parametrize("policy", splits.POLICIES)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_splits_are_as_recorded(
    plain: Callable[[str], harness.Plain],
    loaded: Callable[[str, str], Any],
    name: str,
    policy: str,
) -> None:
    con = loaded(name, policy)
    wanted = splits.recorded()[name][policy]
    found = splits.planned(con, plain(name))
    changed = {n: (wanted[n], split) for n, split in found.items() if split != wanted[n]}
    assert not changed, "if this is better, run `python -m tests.tpc.splits`"
