"""Bounds of columns: they include what was stored, change rarely, and tell little of it."""

from __future__ import annotations

import random

import pytest

import louver.trusted.vault.schemes  # noqa: F401 - the table of schemes is filled
from louver.trusted.vault import bounds
from louver.trusted.vault.catalog import Column
from louver.trusted.vault.types import value_range

TYPES = ("TINYINT", "UINTEGER", "SMALLINT", "BIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(9,2)",
         "DECIMAL(38,1)")  # fmt: skip
KINDS = {
    "plain": {"stored": {"plain": "a"}},
    "sealed": {"stored": {"rnd": "x1"}, "encrypted": True},
    "shared": {"stored": {"sdb": "x1", "rnd": "x2"}, "encrypted": True},
}


def _column(kind: str, type_: str) -> Column:
    return Column("a", type_, 1, **KINDS[kind])  # type: ignore[arg-type]


def _bounds(kind: str, type_: str, *values: int) -> tuple[int | None, int | None]:
    column = _column(kind, type_)
    for value in values:
        bounds.widen(column, value, value, has_null=False)
    return column.minimum, column.maximum


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_widen_a_few_times_whatever_comes(kind: str, type_: str) -> None:
    dice = random.Random(type_)
    low, high = value_range(type_) or (0, 0)
    column, changes, seen = _column(kind, type_), 0, list[int]()
    for _ in range(2_000):
        before = (column.minimum, column.maximum)
        bits = dice.randrange(1, high.bit_length() + 1)
        seen.append(max(low, min(high, dice.choice((-1, 1)) * dice.getrandbits(bits))))
        bounds.widen(column, seen[-1], seen[-1], has_null=False)
        changes += before != (column.minimum, column.maximum)
        assert column.minimum is not None
        assert column.maximum is not None
        assert low <= column.minimum <= min(seen) <= max(seen) <= column.maximum <= high
    most = {"plain": 2 * high.bit_length() + 2, "sealed": 5, "shared": 2 * high.bit_length()}
    assert changes <= most[kind]


@pytest.mark.parametrize("type_", TYPES)
def test_bounds_of_sealed_values_tell_whether_32_or_64_bits_are_enough(type_: str) -> None:
    low, high = value_range(type_) or (0, 0)
    first = _bounds("sealed", type_, 0)
    column = _column("sealed", type_)
    bounds.widen(column, None, None, has_null=True)
    assert (
        (column.minimum, column.maximum) == first == (max(low, -1 << 32), min(high, (1 << 32) - 1))
    )
    for value in (1, 17, 2**32 - 1, -(2**32)):
        if low <= value <= high:
            assert _bounds("sealed", type_, value) == first
    if high >= 2**64:
        assert _bounds("sealed", type_, 2**32) == (first[0], 2**64 - 1)
        assert _bounds("sealed", type_, 5, 2**64) == (first[0], high)
        if low:
            assert _bounds("sealed", type_, -(2**32) - 1) == (-(2**64), first[1])


@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"])
def test_bounds_of_sealed_dates_tell_nothing(type_: str) -> None:
    bits = 32 if type_ == "DATE" else 64
    infinity = (1 << bits - 1) - 1
    every = {_bounds("sealed", type_, value) for value in (0, 19_000, -infinity, infinity)}
    assert every == {(-infinity - 1, infinity)}


def test_bounds_of_shares_are_powers_of_two() -> None:
    assert _bounds("shared", "INTEGER", 3) == _bounds("shared", "INTEGER", -100) == (-128, 127)
    assert _bounds("shared", "INTEGER", 1_000, 1_023, -129) == (-256, 1_023)
    assert _bounds("shared", "BIGINT", 1_000) == (-(2**15), 2**15 - 1)
    assert _bounds("shared", "DECIMAL(9,2)", 10**9 - 1) == (-128, 10**9 - 1)
    assert _bounds("shared", "DATE", 8_000, 12_000) == (-128, 16_383)


def test_a_column_that_becomes_encrypted_has_what_others_have() -> None:
    column = _column("plain", "BIGINT")
    bounds.widen(column, 70, 90, has_null=False)
    assert (column.minimum, column.maximum) == (70, 90)
    column.encrypted, column.stored = True, {"rnd": "x1"}
    bounds.widen(column, None, None, has_null=False)
    assert (column.minimum, column.maximum) == (-(2**32), 2**32 - 1)
