"""Bounds of columns: they include what was stored, and change rarely."""

from __future__ import annotations

import random

import pytest

from louver.trusted.vault.catalog import Column
from louver.trusted.vault.types import value_range


@pytest.mark.parametrize("type_", ["SMALLINT", "BIGINT", "HUGEINT", "DECIMAL(9,2)"])
def test_bounds_widen_a_few_times_whatever_comes(type_: str) -> None:
    dice = random.Random(type_)
    low, high = value_range(type_) or (0, 0)
    column, changes, seen = Column("a", type_, 1), 0, list[int]()
    for _ in range(2_000):
        before = (column.minimum, column.maximum)
        bits = dice.randrange(1, high.bit_length() + 1)
        seen.append(max(low, min(high, dice.choice((-1, 1)) * dice.getrandbits(bits))))
        column.widen(seen[-1], seen[-1], False)
        changes += before != (column.minimum, column.maximum)
        assert column.minimum is not None
        assert column.maximum is not None
        assert low <= column.minimum <= min(seen) <= max(seen) <= column.maximum <= high
    assert changes <= 2 * high.bit_length() + 2
