"""Few rows as arrays that are bound to one statement, which needs no round trip of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from louver.names import quoted
from louver.trusted.executor.local.postgres import values

#: More of them are quicker by COPY.
MOST_ROWS = 1_000
#: Types that the wire client has arrays of.
_ARRAYS = frozenset({
    16, 17, 20, 21, 23, 25, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1700, 2950, 3802,
})  # fmt: skip


def source(
    rows: pa.Table, types: Mapping[str, int], ordinal: str = "louver_ordinal"
) -> tuple[str, list[Any]] | None:
    """A table of these columns, by the numbers of their types, and of an ordinal: as an item of
    FROM and the values that are bound to it. None where that cannot be.
    """
    if not types or rows.num_rows > MOST_ROWS or not _ARRAYS.issuperset(types.values()):
        return None
    bound = [
        (values.sent(rows.column(position), type_), type_)
        for position, type_ in enumerate(types.values())
    ]
    arrays = ", ".join(f"${position + 1}" for position in range(len(bound)))
    listed = ", ".join(map(quoted, types))
    return f"unnest({arrays}) WITH ORDINALITY AS s({listed}, {ordinal})", bound
