"""TPC-DS: all 99 queries over encrypted columns, under each policy, equal plaintext DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.generated import is_due
from tests.tpc import harness
from tests.tpc.sources import POLICIES, TPCDS
from tests.tpc.splits import recorded

# That layers are opened is what the policies are for.
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", TPCDS.numbers)
def test_equal(
    plain: Callable[[str], harness.Plain],
    loaded: Callable[[str, str], Any],
    planned: Callable[[str, str], dict[str, str]],
    policy: str,
    number: int,
) -> None:
    """A query runs where its plan is not the one whose answer was compared, or where it is due."""
    same = planned(TPCDS.name, policy)[str(number)] == recorded()[TPCDS.name][policy][str(number)]
    if not same or is_due(number):
        harness.check(loaded(TPCDS.name, policy), plain(TPCDS.name), number)
