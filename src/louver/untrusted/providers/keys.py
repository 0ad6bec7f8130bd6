"""The keys of a table of results as points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from louver import errors
from louver.untrusted.providers.expressions import refused
from louver.untrusted.providers.queries import Base
from louver.untrusted.providers.working import Work, listed
from louver.wire import keycode, units
from louver.wire.keycode import Column
from louver.wire.questions import KeyCodes
from louver.wire.units import Words


@dataclass(frozen=True, slots=True)
class Keys:
    """How keys become points; the point and the fingerprint of each row."""

    codes: KeyCodes
    points: Words
    marks: Words


def key_columns(base: Base) -> list[str]:
    """Columns of the condition; one that says nothing, where there are none."""
    return base.keys or ["0 AS none"]


def keys(
    work: Work,
    base: Base,
    source: str,
    found: pa.Table,
    *,
    most: int,
    spare: bool = False,
    buckets: bool = False,
) -> Keys:
    """The points of the rows of a table.

    Args:
        work: where the table is.
        base: the types of its columns.
        source: its name.
        found: its columns of the condition, row by row in its own order.
        most: widest point that the protocol admits.
        spare: see `keycode.hash_bits`.
        buckets: whether several keys may share a point.

    Raises:
        errors.Error: `provider.wide`, `provider.refused`.
    """
    names = base.keys
    equal_names = names[:-1] if base.shape.interval else names
    interval = _bounded(found, base, names[-1], most) if base.shape.interval else None
    distinct = 1
    if equal_names:
        chosen = listed(equal_names)
        distinct = work.number(f"SELECT count(*) FROM (SELECT DISTINCT {chosen} FROM {source})")
    for texts in (False, True):
        equal = _equal(work, base, source, found, equal_names, texts)
        try:
            if buckets:
                codes = keycode.choose_buckets(equal, distinct=distinct, most=most)
            else:
                codes = keycode.choose(equal, interval, distinct=distinct, most=most, spare=spare)
        except keycode.TextsNeeded:
            continue
        return Keys(codes, *keycode.encode(codes, equal, interval, found.num_rows))
    raise errors.make("internal", detail="texts are needed again")


def _equal(
    work: Work, base: Base, source: str, found: pa.Table, names: Sequence[str], texts: bool
) -> list[Column]:
    written: dict[str, pa.Array] = {}
    if texts:
        chosen = [f"{keycode.text_sql(name, base.types[name])} AS {name}" for name in names]
        table = work.table(f"SELECT {listed(chosen)} FROM {source}")
        written = {name: units.whole(table[name]) for name in names}
    return [
        Column(
            base.types[name],
            units.units(found[name], base.types[name])
            if units.has_units(base.types[name])
            else None,
            written.get(name),
        )
        for name in names
    ]


def _bounded(found: pa.Table, base: Base, name: str, most: int) -> Column:
    kind, length = base.types[name], 0
    if kind == "VARCHAR":
        ends, _ = units.text_parts(units.whole(found[name]))
        length = int(np.diff(ends).max()) if len(ends) > 1 else 0
        if length > units.MAX_TEXT_BYTES:
            raise keycode.too_wide(8 * length, most)
    try:
        return Column(kind, units.units(found[name], kind, length), length=length)
    except ValueError as error:
        raise refused("it bounds texts with zero bytes") from error
