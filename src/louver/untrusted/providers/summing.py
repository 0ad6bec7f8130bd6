"""Integers to be summed under shares: entries of keys and groups, in limbs that cannot overflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from louver import errors
from louver.untrusted.providers import queries
from louver.untrusted.providers.expressions import refused
from louver.untrusted.providers.keys import key_columns
from louver.untrusted.providers.queries import Base
from louver.untrusted.providers.sandbox import Limits, Work, listed
from louver.wire import ordinals, records, row_codec
from louver.wire.ordinals import Words
from louver.wire.questions import Field, Level, SumColumn

#: A sum must stay within 2**62 for its authentication (spec/splinter.md, "Sums").
_SAFE = float(1 << 61)
_LIMB_BITS = 32
_EXACT = ("BIGINT", "HUGEINT")
_MAX_GROUPS = 65_535


@dataclass(frozen=True, slots=True)
class Sums:
    """Entries in the order of `louver_entries`.

    Attributes:
        keys: columns of the condition.
        group_of: the number of each entry's group.
        values: one row for each entry, one column for each of `columns`.
        columns: the limb and partial of each column.
        fields: groups, then partials.
        groups: the groups as one record; empty without GROUP BY.
        levels: the form of that record, if there is one.
        group_count: the number of groups; 1 without GROUP BY.
    """

    keys: pa.Table
    group_of: npt.NDArray[Any]
    values: npt.NDArray[np.int64]
    columns: tuple[SumColumn, ...]
    fields: tuple[Field, ...]
    groups: bytes
    levels: tuple[Level, ...]
    group_count: int


def sums(work: Work, base: Base, limits: Limits) -> Sums:
    """The entries of `louver_keyed`, which must exist.

    Raises:
        errors.Error: `provider.refused` for results that are not sums of integers;
            `provider.large`.
    """
    shape = base.shape
    if shape.columns or any(partial.function not in ("count", "sum") for partial in shape.partials):
        raise refused("its protocol is for counts and sums")
    names = base.groups
    order = queries.group_order(names)
    work.run(
        "CREATE TEMP TABLE louver_groups AS SELECT *, row_number() OVER () - 1 AS id FROM "
        f"(SELECT DISTINCT {listed(names) or '0 AS none'} FROM louver_keyed{order})"
    )
    same = " AND ".join(f"l.{name} IS NOT DISTINCT FROM g.{name}" for name in names) or "TRUE"
    work.run(
        "CREATE TEMP TABLE louver_entries AS SELECT l.*, g.id FROM louver_keyed l "
        f"JOIN louver_groups g ON {same}"
    )
    groups = work.table(f"SELECT {listed(names) or '0 AS none'} FROM louver_groups ORDER BY id")
    group_fields = (
        row_codec.fields_of(groups, [base.types[name] for name in names]) if names else ()
    )
    if len(groups) > _MAX_GROUPS:
        raise errors.make("provider.large", bytes=16 * len(groups), most=16 * _MAX_GROUPS)
    count = len(groups) if names else 1
    chosen = [f"s{number} AS p{number}" for number in range(len(shape.partials))]
    query = f"SELECT {listed(chosen)} FROM louver_entries"
    types = work.types(query)
    for name, kind in types.items():
        if kind not in _EXACT and ordinals.scale(kind) is None:
            raise refused(f"its protocol adds integers, and {name} is {kind}; cast it to DECIMAL")
    limbs, columns = _limbs(work.table(query))
    reply = count * len(columns) * 16
    if reply > limits.reply_bytes or limbs.nbytes > limits.table_bytes:
        raise errors.make("provider.large", bytes=reply, most=limits.reply_bytes)
    record = b""
    levels: tuple[Level, ...] = ()
    if names:
        record, level = records.groups_record(groups, group_fields, limits.reply_bytes)
        levels = (level,)
    return Sums(
        keys=work.table(f"SELECT {listed(key_columns(base))} FROM louver_entries"),
        group_of=work.table("SELECT id FROM louver_entries")["id"].to_numpy(),
        values=limbs,
        columns=columns,
        fields=(*group_fields, *(Field(name, kind) for name, kind in types.items())),
        groups=record,
        levels=levels,
        group_count=count,
    )


def arranged(totals: Sums, points: Words) -> tuple[int, dict[str, npt.NDArray[Any]]]:
    """Entries by point, then group: the number of points, and the arrays to evaluate."""
    order = np.lexsort((totals.group_of, points))
    points = points[order]
    first = np.concatenate(([True], points[1:] != points[:-1])) if len(points) else points > 0
    distinct = points[first]
    arrays: dict[str, npt.NDArray[Any]] = {
        "points": distinct,
        "values": np.ascontiguousarray(totals.values[order]),
    }
    if len(distinct) < len(points):
        starts = np.append(np.flatnonzero(first), len(points))
        arrays["starts"] = starts.astype(np.uint32)
    if totals.group_count > 1:
        arrays["groups"] = totals.group_of[order].astype(np.uint32)
    return len(distinct), arrays


def _limbs(table: pa.Table) -> tuple[npt.NDArray[np.int64], tuple[SumColumn, ...]]:
    """Columns of integers whose sums stay within 62 bits."""
    limbs: list[npt.NDArray[np.int64]] = []
    names: list[SumColumn] = []
    for partial, column in enumerate(table.columns):
        low, high = _words(ordinals.whole(column))
        number = 0
        while not _fits(low, high):
            limbs.append((low & np.uint64((1 << _LIMB_BITS) - 1)).view(np.int64))
            names.append(SumColumn(partial, number))
            shift = np.uint64(_LIMB_BITS)
            low = low >> shift | high.view(np.uint64) << shift
            high = high >> np.int64(_LIMB_BITS)
            number += 1
        limbs.append(low.view(np.int64))
        names.append(SumColumn(partial, number))
    rows = table.num_rows
    return np.stack(limbs, axis=1) if limbs else np.zeros((rows, 0), np.int64), tuple(names)


def _fits(low: Words, high: npt.NDArray[np.int64]) -> bool:
    values = np.ldexp(high.astype(np.float64), 64) + low.astype(np.float64)
    return bool(np.abs(values).sum() < _SAFE)


def _words(array: pa.Array) -> tuple[Words, npt.NDArray[np.int64]]:
    """The low and the high half of integers of 128 bits; NULL as 0."""
    there = np.asarray(array.is_valid())
    if len(array) == 0:
        low, high = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    elif pa.types.is_integer(array.type):
        whole = ordinals.fixed(array).astype(np.int64)
        low, high = whole.view(np.uint64).copy(), whole >> np.int64(63)
    else:
        pairs = np.frombuffer(array.buffers()[1], "<u8").reshape(-1, 2)
        pairs = pairs[array.offset : array.offset + len(array)]
        low, high = pairs[:, 0].copy(), pairs[:, 1].copy().view(np.int64)
    low[~there] = 0
    high[~there] = 0
    return low, high
