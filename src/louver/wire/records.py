"""Rows of results as records of one width, so that which of them was selected does not show.

A record holds an entry, or in a bucket one behind the other: the fingerprint of its key (8 bytes,
little endian), the number of its rows (2 bytes, at least 1), the rows; then zeros up to the table's
width. A row holds every field: one byte, 1 or 0 for NULL, and the value in the field's width. See
spec/splinter.md, "Records".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from louver import errors
from louver.wire.questions import Field, Level, Prepared
from louver.wire.reading import malformed
from louver.wire.units import Words, scale, text_parts, whole

Bytes = npt.NDArray[np.uint8]

_HEAD_BYTES = 10
_MAX_ROWS = 65_535
_MAX_TEXT_BYTES = 65_535
_ALIGN_BYTES = 16
_DAY_US = 86_400_000_000
_UTF8, _BLOB = pa.string(), pa.binary()

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
    "VARCHAR": (_UTF8, 2),
    "BLOB": (_BLOB, 2),
}


class Encoded(NamedTuple):
    """A table of records: its distinct points, ascending; a row of bytes for each; its form."""

    points: Words
    records: Bytes
    level: Level


def carries(type_name: str) -> bool:
    """Whether records can hold values of DuckDB type `type_name`."""
    return type_name in _TYPES or scale(type_name) is not None


def layout(table: pa.Table, types: Sequence[str]) -> tuple[Field, ...]:
    """The fields of a table's rows: texts are as wide as the longest.

    Raises:
        errors.Error: `provider.refused` for a type that no record holds, `provider.large` for a
            text of more than 65,535 bytes.
    """
    found = []
    for name, column, type_name in zip(table.column_names, table.columns, types, strict=True):
        if not carries(type_name):
            raise errors.make("provider.refused", detail=f"a result of type {type_name}")
        _, size = _type(type_name)
        if type_name in ("VARCHAR", "BLOB") and len(column):
            ends, _ = text_parts(_filled(whole(column), type_name))
            longest = int(np.diff(ends).max())
            if longest > _MAX_TEXT_BYTES:
                raise errors.make("provider.large", bytes=longest, most=_MAX_TEXT_BYTES)
            size += longest
        found.append(Field(name, type_name, size))
    return tuple(found)


def row_width(fields: Sequence[Field]) -> int:
    """Bytes of a row."""
    return sum(1 + field.width for field in fields)


def encode(
    table: pa.Table,
    fields: Sequence[Field],
    points: Words,
    marks: Words,
    *,
    bits: int,
    most_bytes: int,
) -> Encoded:
    """The records of a table whose rows are in the order of `points`, then `marks`.

    Args:
        table: the rows, with the columns of `fields`.
        fields: of `layout`.
        points: of each row: which record it belongs to; ascending.
        marks: of each row: the fingerprint of its key.
        bits: width of the domain of the points, as the level's form says it.
        most_bytes: what all records together may take.

    Raises:
        errors.Error: `provider.large`.
    """
    size = table.num_rows * row_width(fields)
    if size > most_bytes:
        raise errors.make("provider.large", bytes=size, most=most_bytes)
    return pack(matrix(table, fields), points, marks, bits=bits, most_bytes=most_bytes)


def pack(rows: Bytes, points: Words, marks: Words, *, bits: int, most_bytes: int) -> Encoded:
    """As `encode`, of rows that are bytes already."""
    if len(points) == 0:
        return Encoded(points, np.zeros((0, _ALIGN_BYTES), np.uint8), Level(0, bits, 0, 16))
    wide = rows.shape[1]
    places = _places(points, marks, wide)
    if places.number * places.width > most_bytes or places.rows > _MAX_ROWS:
        raise errors.make("provider.large", bytes=places.number * places.width, most=most_bytes)
    flat = np.zeros(places.number * places.width, np.uint8)
    heads = np.zeros((len(places.entries), _HEAD_BYTES), np.uint8)
    heads[:, :8] = marks[places.firsts].astype("<u8").view(np.uint8).reshape(-1, 8)
    heads[:, 8:] = places.sizes.astype("<u2").view(np.uint8).reshape(-1, 2)
    _scatter(flat, places.entries, heads)
    ranks = np.arange(len(points)) - np.repeat(places.firsts, places.sizes)
    at = np.repeat(places.entries + _HEAD_BYTES, places.sizes) + ranks * wide
    _scatter(flat, at, rows)
    level = Level(places.number, bits, places.rows, places.width)
    distinct = points[np.concatenate(([True], points[1:] != points[:-1]))]
    return Encoded(distinct, flat.reshape(places.number, places.width), level)


class _Places(NamedTuple):
    """Where entries go: the first row and the number of rows of each, and its first byte."""

    firsts: npt.NDArray[Any]
    sizes: npt.NDArray[Any]
    entries: npt.NDArray[Any]
    number: int
    width: int
    rows: int


def _places(points: Words, marks: Words, wide: int) -> _Places:
    starts = np.concatenate(([True], points[1:] != points[:-1]))
    firsts = np.flatnonzero(starts | np.concatenate(([True], marks[1:] != marks[:-1])))
    sizes = np.diff(np.append(firsts, len(points)))
    ends = np.cumsum(_HEAD_BYTES + sizes * wide)
    begins = ends - _HEAD_BYTES - sizes * wide
    opening = np.flatnonzero(starts[firsts])  # the first entry of each record
    totals = np.diff(np.append(begins[opening], ends[-1]))
    width = -(-int(totals.max()) // _ALIGN_BYTES) * _ALIGN_BYTES
    of_record = np.cumsum(starts[firsts]) - 1
    entries = of_record * width + begins - begins[opening][of_record]
    return _Places(firsts, sizes, entries, len(opening), width, int(sizes.max()))


def matrix(table: pa.Table, fields: Sequence[Field]) -> Bytes:
    """The rows of a table as bytes, one row of an array for each."""
    found = np.zeros((table.num_rows, row_width(fields)), np.uint8)
    at = 0
    for field, column in zip(fields, table.columns, strict=True):
        array = whole(column)
        there = np.asarray(array.is_valid())
        found[:, at] = there
        place = found[:, at + 1 : at + 1 + field.width]
        if field.type in ("VARCHAR", "BLOB"):
            _put_texts(place, _filled(array, field.type))
        else:
            place[:] = _fixed_bytes(array, field.width)
            place[~there] = 0
        at += 1 + field.width
    return found


def groups_record(table: pa.Table, fields: Sequence[Field], most_bytes: int) -> bytes:
    """All rows of a table as one record without fingerprint."""
    if table.num_rows == 0:
        return b""
    zeros = np.zeros(table.num_rows, np.uint64)
    found = encode(table, fields, zeros, zeros, bits=1, most_bytes=most_bytes)
    return found.records.tobytes()


def decode(
    record: bytes | memoryview, prepared: Prepared, level: int = 0, mark: int | None = None
) -> pa.Table:
    """The rows of the entry with fingerprint `mark`, or of the first entry; none if it is absent.

    Raises:
        errors.Error: `wire.format`, if the bytes are no record of the prepared form.
    """
    form = prepared.levels[level]
    if len(record) != form.width:
        raise malformed("a record of another width")
    return _entry(np.frombuffer(record, np.uint8), prepared.fields, form.rows, mark)


def decode_groups(prepared: Prepared) -> pa.Table:
    """The groups that sums are for, in their order: columns g0, g1, ...

    Raises:
        errors.Error: `wire.format`, if they are not as many as the form says.
    """
    fields = [field for field in prepared.fields if field.name.startswith("g")]
    if not fields:
        return pa.table({})
    data = np.frombuffer(prepared.groups, np.uint8)
    found = _entry(data, fields, prepared.group_count, None)
    if found.num_rows != prepared.group_count:
        raise malformed("groups of another number")
    return found


def decode_sums(prepared: Prepared, numbers: Sequence[int]) -> pa.Table:
    """Sums as a table of groups (g0, ...) and partials (p0, ...).

    Args:
        prepared: of protocol sum or paillier.
        numbers: for each group, one number for each of `prepared.sums`.

    Raises:
        errors.Error: `wire.format`.
    """
    partials = [field for field in prepared.fields if field.name.startswith("p")]
    if len(numbers) != prepared.group_count * len(prepared.sums):
        raise malformed("another number of sums")
    groups = decode_groups(prepared)
    columns = dict(zip(groups.column_names, groups.columns, strict=True))
    for number, field in enumerate(partials):
        values = [0] * prepared.group_count
        for at, column in enumerate(prepared.sums):
            if column.partial == number:
                for group, value in enumerate(numbers[at :: len(prepared.sums)]):
                    values[group] += value << (32 * column.limb)
        columns[field.name] = _whole_numbers(values, field)
    return pa.table(columns)


def _scatter(flat: Bytes, at: npt.NDArray[Any], rows: Bytes) -> None:
    """Put each row of bytes at its place; no two overlap."""
    size = rows.shape[1]
    if size and len(rows):
        windows = np.lib.stride_tricks.sliding_window_view(flat, size, writeable=True)
        windows[at] = rows


def _type(type_name: str) -> tuple[pa.DataType, int]:
    found = _TYPES.get(type_name)
    if found is not None:
        return found
    match = type_name.removeprefix("DECIMAL(").removesuffix(")").split(",")
    try:
        return pa.decimal128(int(match[0]), int(match[1])), 16
    except (IndexError, ValueError) as error:
        raise malformed("an unknown type") from error


def _filled(array: pa.Array, type_name: str) -> pa.Array:
    """Texts without gaps for NULLs."""
    kind = _UTF8 if type_name == "VARCHAR" else _BLOB
    return array.cast(kind).fill_null("" if kind is _UTF8 else b"")


def _put_texts(place: Bytes, array: pa.Array) -> None:
    ends, data = text_parts(array)
    sizes = np.diff(ends)
    place[:, :2] = sizes.astype("<u2").view(np.uint8).reshape(-1, 2)
    there = np.arange(place.shape[1] - 2) < sizes[:, None]
    place[:, 2:][there] = data[ends[0] : ends[-1]] if len(ends) else data


def _fixed_bytes(array: pa.Array, width: int) -> Bytes:
    if len(array) == 0:
        return np.zeros((0, width), np.uint8)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    data = np.frombuffer(array.buffers()[1], np.uint8)
    return data[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)


def _entry(data: Bytes, fields: Sequence[Field], most: int, mark: int | None) -> pa.Table:
    at, wide = 0, row_width(fields)
    while at + _HEAD_BYTES <= len(data):
        found = int(data[at : at + 8].view("<u8")[0])
        rows = int(data[at + 8 : at + 10].view("<u2")[0])
        end = at + _HEAD_BYTES + rows * wide
        if rows == 0:
            break
        if rows > most or end > len(data):
            raise malformed("a record with more rows than it can hold")
        if mark is None or found == mark:
            return _rows(data[at + _HEAD_BYTES : end].reshape(rows, wide), fields)
        at = end
    return _rows(np.zeros((0, wide), np.uint8), fields)


def _rows(rows: Bytes, fields: Sequence[Field]) -> pa.Table:
    arrays, at = [], 0
    for field in fields:
        there = rows[:, at]
        if (there > 1).any():
            raise malformed("a value neither there nor NULL")
        values = np.ascontiguousarray(rows[:, at + 1 : at + 1 + field.width])
        arrays.append(_array(values, there, field))
        at += 1 + field.width
        if field.type == "TIME":
            continue  # its bounds are checked; Arrow's own leave out 24:00:00
        try:
            arrays[-1].validate(full=True)
        except (pa.ArrowException, ValueError) as error:
            raise malformed("a value that is none of its type") from error
    return pa.table(arrays, names=[field.name for field in fields])


def _array(values: Bytes, there: Bytes, field: Field) -> pa.Array:
    kind, size = _type(field.type)
    valid = pa.py_buffer(np.packbits(there, bitorder="little").tobytes())
    if field.type in ("VARCHAR", "BLOB"):
        if field.width < size:
            raise malformed("a text without a length")
        return _texts(values, valid, kind)
    if field.width != size:
        raise malformed("a value of another width")
    if field.type == "BOOLEAN":
        values = np.packbits(values[:, 0] != 0, bitorder="little")
    elif field.type == "TIME" and (values.view("<u8") > _DAY_US).any():
        raise malformed("a time beyond a day")
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    array = pa.Array.from_buffers(storage, len(there), [valid, pa.py_buffer(values.tobytes())])
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, array)
    return array


def _texts(values: Bytes, valid: pa.Buffer, kind: pa.DataType) -> pa.Array:
    sizes = values[:, :2].copy().view("<u2")[:, 0].astype(np.int64)
    longest = values.shape[1] - 2
    if (sizes > longest).any():
        raise malformed("a text longer than its place")
    data = values[:, 2:][np.arange(longest) < sizes[:, None]]
    ends = np.concatenate(([0], np.cumsum(sizes))).astype("<i4")
    parts = [valid, pa.py_buffer(ends.tobytes()), pa.py_buffer(data.tobytes())]
    return pa.Array.from_buffers(kind, len(sizes), parts)


def _whole_numbers(values: list[int], field: Field) -> pa.Array:
    _, size = _type(field.type)
    try:
        data = b"".join(value.to_bytes(size, "little", signed=True) for value in values)
    except OverflowError as error:
        raise malformed("a sum beyond its type") from error
    rows = np.frombuffer(data, np.uint8).reshape(-1, size)
    return _array(rows, np.ones(len(values), np.uint8), field)
