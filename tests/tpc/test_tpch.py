"""TPC-H: all 22 queries over encrypted columns, under each policy, equal plaintext DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tpc import harness
from tests.tpc.sources import POLICIES, TPCH

# That layers are opened is what the policies are for.
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", TPCH.numbers)
def test_equal(
    plain: Callable[[str], harness.Plain],
    loaded: Callable[[str, str], Any],
    policy: str,
    number: int,
) -> None:
    harness.check(loaded(TPCH.name, policy), plain(TPCH.name), number)
