"""Bounds of the values that a column ever stored: they only widen, and in few steps.

A bound that widens makes a version of the catalog, which the server sees. Of an ENC column it must
therefore depend on no more of a value than THREAT_MODEL.md states:

* Without shares nothing but the check of a sum needs bounds. They begin at 32 bits, whatever the
  first value is, go on to 64 and end with the type's range; a date or a time of day and date has
  all of its type from the start.
* With shares bounds prove what the server may compute. Each side goes by powers of two, from a
  quarter of the type's bits on. Every change of such a table saves the catalog.

Plain values are known to the server. Their span grows from the first one to powers of two, which
keeps the estimates of plans close.
"""

from __future__ import annotations

from louver.trusted.vault.catalog import Column
from louver.trusted.vault.levels import allows
from louver.trusted.vault.scheme import share_of
from louver.trusted.vault.types import is_moment, order_domain, value_range

_FIRST_BITS = 32
#: The span of a plain column that grows has an eighth of its bits to spare: few values stay close,
#: and a sum that only ever grows needs few versions of the catalog.
_SPARE = 8
#: Of three factors that begin there, the product still fits the type.
_PART_OF_SHARES = 4


def widen(column: Column, minimum: int | None, maximum: int | None, has_null: bool) -> None:
    """Include new values, by the smallest and the largest one; None where all of them are NULL."""
    column.has_null = column.has_null or has_null
    limits = value_range(column.type)
    lows = [bound for bound in (column.minimum, minimum) if bound is not None]
    highs = [bound for bound in (column.maximum, maximum) if bound is not None]
    if limits is not None and column.encrypted:
        ends = _stepped(column, limits, min(lows, default=0), max(highs, default=0))
        column.minimum, column.maximum = ends
    elif lows and highs:
        column.minimum, column.maximum = _spanned(column, limits, min(lows), max(highs))


def shared(column: Column) -> tuple[object, ...]:
    """What other clients must know of a column at once. That a value is new to it is not: the
    version of the catalog that says so would show it. NULLs count where layers may open, for an
    open one shows them.
    """
    null = column.has_null and allows(column.ceiling, "equality")
    return column.minimum, column.maximum, null


def close(column: Column) -> tuple[int, int] | None:
    """The bounds of a column, where they are closer than those that its type begins with: wide ones
    say nothing of how many values there are, or where.
    """
    low, high, limits = column.minimum, column.maximum, value_range(column.type)
    if low is None or high is None:
        return None
    if limits is not None and column.encrypted and not share_of(column):
        first = _stepped(column, limits, 0, 0)
        if low <= first[0] and first[1] <= high:
            return None
    return low, high


def _stepped(column: Column, limits: tuple[int, int], low: int, high: int) -> tuple[int, int]:
    """The bounds of an ENC column whose values lie between two numbers, or are all NULL."""
    known = order_domain(column.type)
    if is_moment(column.type) and not share_of(column) and known is not None:
        return known[0], known[0] + (1 << known[1]) - 1  # infinity too
    negative, positive = (
        _bits(column, limits, end.bit_length()) for end in (~min(low, -1), max(high, 0))
    )
    # Infinity lies outside of the limits.
    least, most = min(low, limits[0]), max(high, limits[1])
    return max(-(1 << negative), least), min((1 << positive) - 1, most)


def _bits(column: Column, limits: tuple[int, int], needed: int) -> int:
    if share_of(column):
        return max(needed, limits[1].bit_length() // _PART_OF_SHARES)
    bits = _FIRST_BITS
    while bits < needed:
        bits *= 2
    return bits


def _step(span: int) -> int:
    """So many bits for a span, an even number."""
    bits = span.bit_length()
    return (bits + bits // _SPARE + 1) & ~1


def _spanned(
    column: Column, limits: tuple[int, int] | None, least: int, most: int
) -> tuple[int, int]:
    """The bounds of a plain column: those of its first values, and then wider by steps, since each
    is a version of the catalog, for which all sessions plan anew.
    """
    low, high = column.minimum, column.maximum
    if low is None or high is None:
        return least, most
    if least < low:
        low = high + 1 - (1 << _step(high - least))
        low = low if limits is None else max(low, min(least, limits[0]))
    if most > high:
        high = low - 1 + (1 << _step(most - low))
        high = high if limits is None else min(high, max(most, limits[1]))
    return low, high
