"""The values that a token was sent for, as SQL shows them instead of numbers of the domain."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from louver.trusted.executor.lake.request import SPANS
from louver.trusted.vault.catalog import Column
from louver.trusted.vault.index_keys import map_values

_ZERO = 1 << 63
_ARROW: dict[str, pa.DataType] = {
    "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(),
    "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"),
}  # fmt: skip


def readable(text: str, column: Column) -> str:
    """The sentence of a token with values of the column's type, where they can be computed."""
    match = SPANS.search(text)
    if match is None:
        return text
    values = [_value(int(digits, 16), column.type) for digits in match.groups()]
    if None in values:
        return text
    low, high = values
    shown = f"(value {low})" if low == high else f"(values {low} to {high})"
    return text[: match.start()] + shown + text[match.end() :]


def _value(number: int, type_: str) -> str | None:
    """The value that has a number; None if it is not certain, as beside the range of a type."""
    kind = _ARROW.get(type_)
    if kind is None:
        return None
    try:
        array = pa.array([number - _ZERO], pa.int64())
        width = pa.int32() if type_ == "DATE" else pa.int64()
        array = array.cast(kind if pa.types.is_integer(kind) else width)
        array = array if pa.types.is_integer(kind) else array.view(kind)
        value = array[0].as_py()
        same = map_values(array, type_)[0].as_py() == number
    except (pa.ArrowException, OverflowError, ValueError):
        return None
    if not same or value is None:
        return None
    return value.isoformat(sep=" ") if isinstance(value, dt.datetime) else str(value)
