"""Functions called by `Question.finish`: quotients of exact sums, as DuckDB computes them.

DuckDB divides in extended precision if a sum is wide, which SQL cannot express. It updates a
variance row by row, which is replaced by the exact quotient, rounded once.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import duckdb

AVERAGE = "louver_average"
VARIANCE = "louver_variance"
DEVIATION = "louver_deviation"


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Register the functions on a connection that finishes questions; call once per connection."""
    from duckdb.func import SPECIAL

    text, whole, number, flag = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"
    functions: tuple[tuple[str, Any, list[Any]], ...] = (
        (AVERAGE, average, [text, whole, flag]),
        (VARIANCE, variance, [text, text, whole, whole]),
        (DEVIATION, deviation, [text, text, whole, whole]),
    )
    for name, function, types in functions:
        # They handle NULL themselves: the quotient over no rows is NULL.
        connection.create_function(name, function, types, number, null_handling=SPECIAL)


def average(total: str | None, count: int, wide: bool) -> float | None:
    """DuckDB's AVG from a sum in decimal digits and a count.

    ``wide``: DuckDB divides in extended precision, as it does for sums over columns of more than
    16 bits.
    """
    if total is None or count <= 0:
        return None
    whole, _, fraction = total.partition(".")
    unscaled = int(whole + fraction)
    scale = 10 ** len(fraction)
    if not wide:
        return float(unscaled) / (float(count) * float(scale))
    return float(_extended(unscaled) / (np.longdouble(count) * np.longdouble(scale)))


def variance(total: str | None, squares: str | None, count: int, free: int) -> float | None:
    """Variance from the sum, the sum of squares, the count, and the divisor's reduction.

    None if the divisor is not positive, as in DuckDB.
    """
    if total is None or squares is None or count <= free:
        return None
    return float(_spread(total, squares, count, free))


def deviation(total: str | None, squares: str | None, count: int, free: int) -> float | None:
    """Square root of the variance."""
    value = variance(total, squares, count, free)
    return None if value is None else sqrt(value)


def _spread(total: str, squares: str, count: int, free: int) -> Fraction:
    mean_of_squares, sum_ = Fraction(squares), Fraction(total)
    return (count * mean_of_squares - sum_ * sum_) / (count * (count - free))


def _extended(value: int) -> np.longdouble:
    low, high = value & (1 << 64) - 1, value >> 64
    return np.longdouble(high) * np.longdouble(2.0**64) + np.longdouble(low)
