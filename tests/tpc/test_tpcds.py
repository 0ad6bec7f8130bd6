"""TPC-DS: all 99 queries over encrypted columns, under each policy, equal plaintext DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tpc import harness
from tests.tpc.sources import POLICIES, TPCDS

# That layers are opened is what the policies are for.
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", TPCDS.numbers)
def test_equal(
    plain: Callable[[str], harness.Plain],
    loaded: Callable[[str, str], Any],
    policy: str,
    number: int,
) -> None:
    harness.check(loaded(TPCDS.name, policy), plain(TPCDS.name), number)
