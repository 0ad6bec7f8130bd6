"""Ground truth of an attack: the owner decrypts the same rows and compares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from louver.trusted.vault.scheme import read_from, share_of
from louver.trusted.vault.types import decimal_scale, shifted
from louver.untrusted.attacks.coprime import Recovered

if TYPE_CHECKING:
    from louver.trusted.executor.context import Context
    from louver.trusted.vault.catalog import Column, Table
    from louver.untrusted.attacks.survey import Report
    from louver.untrusted.engines.stored import StoredRows


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many rows of a column were recovered: the exact value, or its ratio to the others if the
    attack yields ratios.
    """

    column: str
    right: int
    wrong: int
    factor: int
    example: str


def find(context: Context, schema: str, name: str, stored: str) -> tuple[Table, Column] | None:
    """The declared column behind a server column."""
    table = context.catalog.table(schema, name)
    for column in table.columns if table is not None else []:
        if table is not None and share_of(column) == stored:
            return table, column
    return None


def values_of(
    context: Context, report: Report, stored: StoredRows, table: Table, column: Column
) -> list[int | None]:
    """The rows of a report in order of row id, as unscaled integers."""
    names = ("row_id", read_from(column))
    row_ids, values = stored.columns(report.table, names, report.rows).values()
    field = context.local.arrow_field(column.type)
    opened = context.columns.open_column(table, column, values, row_ids, field)
    return [unscaled(value, column.type) for value in opened.to_pylist()]


def unscaled(value: object, type_: str) -> int | None:
    """A value as the integer that was encrypted."""
    import datetime
    import decimal

    if value is None or isinstance(value, int):
        return value
    if isinstance(value, decimal.Decimal):
        return int(shifted(value, decimal_scale(type_)))
    if isinstance(value, bytes):
        return int.from_bytes(value, "little", signed=True)
    if isinstance(value, datetime.datetime):
        spent = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        return spent // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    return None


def judge(column: str, recovered: Recovered, expected: Sequence[int | None]) -> Verdict:
    """Compare recovered values with the ground truth, up to one factor if the attack says so."""
    pairs = [
        (mine, real)
        for mine, real in zip(recovered.values, expected, strict=True)
        if mine is not None and real is not None
    ]
    if recovered.exact:
        right = [pair for pair in pairs if abs(pair[0]) == abs(pair[1])]
        return Verdict(column, len(right), len(pairs) - len(right), 1, _example(right))
    factor = math.gcd(*(real for _, real in pairs))
    signs = [1 if (mine > 0) == (real > 0) else -1 for mine, real in pairs if mine and real]
    sign = 1 if sum(signs) >= 0 else -1
    right = [pair for pair in pairs if pair[0] * factor * sign == pair[1]]
    return Verdict(column, len(right), len(pairs) - len(right), sign * factor, _example(right))


def _example(pairs: Sequence[tuple[int, int]]) -> str:
    return ", ".join([f"{mine} is {real}" for mine, real in pairs if real][:3])
