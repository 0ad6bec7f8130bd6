"""Rows of results as bytes, with each column as narrow as the values of its table permit.

A row begins with a bit for each column that has NULLs in this table, 1 for NULL; then come the
values, each in the width of its column. See spec/splinter.md, "Records".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from louver import errors
from louver.wire.binary import malformed
from louver.wire.ordinals import scale, text_parts, whole
from louver.wire.questions import Field, Slot

Bytes = npt.NDArray[np.uint8]

#: Most values of one record; a column may take no bytes at all, so its size is not a bound.
MAX_CELLS = 1 << 24
_MAX_TEXT_BYTES = 65_535
_DAY_US = 86_400_000_000
_UTF8, _BLOB = pa.string(), pa.binary()
#: Terminates a text; not a byte of UTF-8.
_BEHIND = 0xFF

_TYPES: dict[str, tuple[pa.DataType, int]] = {
    "BOOLEAN": (pa.bool_(), 1),
    "TINYINT": (pa.int8(), 1),
    "SMALLINT": (pa.int16(), 2),
    "INTEGER": (pa.int32(), 4),
    "BIGINT": (pa.int64(), 8),
    "UTINYINT": (pa.uint8(), 1),
    "USMALLINT": (pa.uint16(), 2),
    "UINTEGER": (pa.uint32(), 4),
    "UBIGINT": (pa.uint64(), 8),
    "HUGEINT": (pa.opaque(pa.binary(16), "hugeint", "DuckDB"), 16),
    "UHUGEINT": (pa.opaque(pa.binary(16), "uhugeint", "DuckDB"), 16),
    "FLOAT": (pa.float32(), 4),
    "DOUBLE": (pa.float64(), 8),
    "DATE": (pa.date32(), 4),
    "TIME": (pa.time64("us"), 8),
    "TIMESTAMP": (pa.timestamp("us"), 8),
    "TIMESTAMP_S": (pa.timestamp("s"), 8),
    "TIMESTAMP_MS": (pa.timestamp("ms"), 8),
    "TIMESTAMP_NS": (pa.timestamp("ns"), 8),
    "TIMESTAMP WITH TIME ZONE": (pa.timestamp("us", "UTC"), 8),
    "INTERVAL": (pa.month_day_nano_interval(), 16),
    "UUID": (pa.uuid(), 16),
    "VARCHAR": (_UTF8, 0),
    "BLOB": (_BLOB, 0),
}
_TEXTS = ("VARCHAR", "BLOB")
#: Types that are not whole numbers keep all of their bytes.
_WHOLE_WIDTH = ("FLOAT", "DOUBLE", "INTERVAL", "UUID")
_UNSIGNED = ("BOOLEAN", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")


def carries(type_name: str) -> bool:
    """Whether records can contain values of DuckDB type `type_name`."""
    return type_name in _TYPES or scale(type_name) is not None


def fields_of(table: pa.Table, types: Sequence[str]) -> tuple[Field, ...]:
    """The columns of a table with DuckDB's types.

    Raises:
        errors.Error: `provider.refused` for a type that records do not support.
    """
    for type_name in types:
        if not carries(type_name):
            raise errors.make("provider.refused", detail=f"a result of type {type_name}")
    return tuple(map(Field, table.column_names, types))


def layout(table: pa.Table, fields: Sequence[Field]) -> tuple[Slot, ...]:
    """The smallest slots that all rows of a table fit into.

    Raises:
        errors.Error: `provider.large` for a text of more than 65,535 bytes.
    """
    columns = map(whole, table.columns)
    return tuple(_slot(array, field) for array, field in zip(columns, fields, strict=True))


def row_width(slots: Sequence[Slot]) -> int:
    """Bytes of a row."""
    return _flag_bytes(slots) + sum(slot.width for slot in slots)


def full_width(field: Field) -> int:
    """Bytes that can hold every value of a type; for texts and blobs, the empty one."""
    return 1 if field.type == "BLOB" else _type(field.type)[1]


def matrix(table: pa.Table, fields: Sequence[Field], slots: Sequence[Slot]) -> Bytes:
    """The rows of a table as bytes: an array with one row for each."""
    cells = np.zeros((table.num_rows, row_width(slots)), np.uint8)
    at, flag = _flag_bytes(slots), 0
    for field, slot, column in zip(fields, slots, table.columns, strict=True):
        array = whole(column)
        if slot.nulls:
            absent = np.asarray(array.is_null()).astype(np.uint8)
            cells[:, flag // 8] |= absent << np.uint8(flag % 8)
            flag += 1
        slot_cells = cells[:, at : at + slot.width]
        if field.type == "VARCHAR":
            slot_cells[:] = _BEHIND
            _put_texts(slot_cells, _filled(array, field.type))
        elif field.type == "BLOB":
            lead = _lead(slot.width)
            blobs = _filled(array, field.type)
            sizes = np.diff(text_parts(blobs)[0]).astype("<u2")
            slot_cells[:, :lead] = sizes.view(np.uint8).reshape(-1, 2)[:, :lead]
            _put_texts(slot_cells[:, lead:], blobs)
        else:
            slot_cells[:] = _fixed_bytes(array, field)[:, : slot.width]
        at += slot.width
    return cells


def read(rows: Bytes, fields: Sequence[Field], slots: Sequence[Slot]) -> pa.Table:
    """The table of encoded rows.

    Raises:
        errors.Error: `wire.format`, if they are malformed.
    """
    if len(rows) * len(slots) > MAX_CELLS:
        raise malformed("more values than a record may have")
    at = _flag_bytes(slots)
    flags = np.unpackbits(rows[:, :at], axis=1, bitorder="little")
    nullable = sum(slot.nulls for slot in slots)
    if flags[:, nullable:].any():
        raise malformed("a NULL without a column")
    arrays, flag = [], 0
    for field, slot in zip(fields, slots, strict=True):
        there = np.ones(len(rows), np.uint8)
        if slot.nulls:
            there = 1 - flags[:, flag]
            flag += 1
        arrays.append(_array(np.ascontiguousarray(rows[:, at : at + slot.width]), there, field))
        at += slot.width
        if field.type == "TIME":
            continue  # its bounds are checked; Arrow's own leave out 24:00:00
        try:
            arrays[-1].validate(full=True)
        except (pa.ArrowException, ValueError) as error:
            raise malformed("a value that is not of its type") from error
    return pa.table(arrays, names=[field.name for field in fields])


def whole_numbers(values: Sequence[int], field: Field) -> pa.Array:
    """A column of integers, scaled for DECIMAL; `wire.format` for one outside of the type."""
    _, size = _type(field.type)
    try:
        data = b"".join(value.to_bytes(size, "little", signed=True) for value in values)
    except OverflowError as error:
        raise malformed("a sum beyond its type") from error
    rows = np.frombuffer(data, np.uint8).reshape(-1, size)
    return _array(rows, np.ones(len(values), np.uint8), field)


def _flag_bytes(slots: Sequence[Slot]) -> int:
    return -(-sum(slot.nulls for slot in slots) // 8)


def _type(type_name: str) -> tuple[pa.DataType, int]:
    type_ = _TYPES.get(type_name)
    if type_ is not None:
        return type_
    match = type_name.removeprefix("DECIMAL(").removesuffix(")").split(",")
    try:
        return pa.decimal128(int(match[0]), int(match[1])), 16
    except (IndexError, ValueError) as error:
        raise malformed("an unknown type") from error


def _slot(array: pa.Array, field: Field) -> Slot:
    nulls = array.null_count > 0
    if field.type in _TEXTS:
        ends, _ = text_parts(_filled(array, field.type))
        longest = int(np.diff(ends).max(initial=0))
        if longest > _MAX_TEXT_BYTES:
            raise errors.make("provider.large", bytes=longest, most=_MAX_TEXT_BYTES)
        lead = 0 if field.type == "VARCHAR" else 1 if longest < 256 else 2
        return Slot(lead + longest, nulls)
    if field.type in _WHOLE_WIDTH:
        return Slot(_type(field.type)[1], nulls)
    return Slot(_narrowest(_fixed_bytes(array, field), field.type not in _UNSIGNED), nulls)


def _narrowest(values: Bytes, signed: bool) -> int:
    """The fewest bytes, little endian, that hold all of these integers."""
    negative = values[:, -1:] >> 7 if signed else np.zeros((len(values), 1), np.uint8)
    # For a negative number all bits are inverted, which leaves the significant ones.
    seen = np.bitwise_or.reduce(values ^ (negative * np.uint8(255)), axis=0)
    places = np.flatnonzero(seen)
    if not len(places):
        return int(negative.any())
    top = int(places[-1])
    return top + 1 + (signed and bool(seen[top] >> 7))


def _lead(width: int) -> int:
    """Bytes of the length prefix of a BLOB."""
    return 1 if width <= 256 else 2


def _filled(array: pa.Array, type_name: str) -> pa.Array:
    """Texts with NULLs filled."""
    kind = _UTF8 if type_name == "VARCHAR" else _BLOB
    return array.cast(kind).fill_null("" if kind is _UTF8 else b"")


def _put_texts(target: Bytes, array: pa.Array) -> None:
    ends, data = text_parts(array)
    there = np.arange(target.shape[1]) < np.diff(ends)[:, None]
    target[there] = data[ends[0] : ends[-1]] if len(ends) else data


def _fixed_bytes(array: pa.Array, field: Field) -> Bytes:
    """The values in their type's width, zeros for NULL."""
    _, size = _type(field.type)
    if len(array) == 0:
        return np.zeros((0, size), np.uint8)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    data = np.frombuffer(array.buffers()[1], np.uint8)
    payload = data[array.offset * size : (array.offset + len(array)) * size].reshape(-1, size)
    if array.null_count:
        payload = payload * np.asarray(array.is_valid()).astype(np.uint8)[:, None]
    return payload


def _array(values: Bytes, there: Bytes, field: Field) -> pa.Array:
    kind, size = _type(field.type)
    valid = pa.py_buffer(np.packbits(there, bitorder="little").tobytes())
    if field.type == "VARCHAR":
        return _strings(values, _text_sizes(values), valid, kind)
    if field.type == "BLOB":
        lead = _lead(values.shape[1])
        if values.shape[1] < lead:
            raise malformed("a text without a length")
        sizes = np.zeros((len(values), 2), np.uint8)
        sizes[:, :lead] = values[:, :lead]
        return _strings(values[:, lead:], sizes.view("<u2")[:, 0].astype(np.int64), valid, kind)
    values = _widened(values, size, field.type)
    if field.type == "BOOLEAN":
        values = np.packbits(values[:, 0] != 0, bitorder="little")
    elif field.type == "TIME" and (values.view("<u8") > _DAY_US).any():
        raise malformed("a time beyond a day")
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    array = pa.Array.from_buffers(storage, len(there), [valid, pa.py_buffer(values.tobytes())])
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, array)
    return array


def _widened(values: Bytes, size: int, type_name: str) -> Bytes:
    """Integers extended to the width of their type."""
    width = values.shape[1]
    if width > size or (type_name in _WHOLE_WIDTH and width != size):
        raise malformed("a value of another width")
    if width == size:
        return values
    wide = np.zeros((len(values), size), np.uint8)
    wide[:, :width] = values
    if width and type_name not in _UNSIGNED:
        wide[:, width:] = (values[:, -1:] >> 7) * np.uint8(255)
    return wide


def _text_sizes(values: Bytes) -> npt.NDArray[np.int64]:
    """The length of each text, up to its terminator; only terminators may follow."""
    behind = values == _BEHIND
    sizes: npt.NDArray[np.int64] = values.shape[1] - behind.sum(axis=1, dtype=np.int64)
    if (behind != (np.arange(values.shape[1]) >= sizes[:, None])).any():
        raise malformed("a text that continues after its end")
    return sizes


def _strings(
    values: Bytes, sizes: npt.NDArray[Any], valid: pa.Buffer, kind: pa.DataType
) -> pa.Array:
    longest = values.shape[1]
    if (sizes > longest).any():
        raise malformed("a text longer than its slot")
    data = values[np.arange(longest) < sizes[:, None]]
    ends = np.concatenate(([0], np.cumsum(sizes))).astype("<i4")
    parts = [valid, pa.py_buffer(ends.tobytes()), pa.py_buffer(data.tobytes())]
    return pa.Array.from_buffers(kind, len(sizes), parts)
