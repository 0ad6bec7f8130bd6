"""Rows of results as records of one width, so that the selected record does not show.

A record contains an entry, or in a bucket several entries in sequence: the fingerprint of its key
if keys are hashed (8 bytes, little endian), the number of its rows (1 or 2 bytes, at least 1), the
rows (`louver.wire.row_codec`); then zeros up to the table's width. A provider stores more zeros
after it, up to a multiple of 16 bytes, which are not sent. See spec/splinter.md, "Records".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from louver import errors
from louver.wire import row_codec
from louver.wire.binary import malformed
from louver.wire.ordinals import Words
from louver.wire.questions import Field, Level, Prepared, Slot
from louver.wire.row_codec import MAX_CELLS, Bytes

_MARK_BYTES = 8
_MAX_ROWS = 65_535


class Encoded(NamedTuple):
    """A table of records: its distinct points, ascending; the bytes of each; its form."""

    points: Words
    records: Bytes
    level: Level


def encode(
    table: pa.Table,
    fields: Sequence[Field],
    points: Words,
    marks: Words | None,
    *,
    bits: int,
    most_bytes: int,
) -> Encoded:
    """The records of a table whose rows are in the order of `points`, then `marks`.

    Args:
        table: the rows, with the columns of `fields`.
        fields: names and types.
        points: for each row, the record it belongs to; ascending.
        marks: for each row, the fingerprint of its key; None if each point has one key only.
        bits: width of the domain of the points, as in the level's form.
        most_bytes: the limit for all records together.

    Raises:
        errors.Error: `provider.large`.
    """
    slots = row_codec.layout(table, fields)
    size = table.num_rows * row_codec.row_width(slots)
    if size > most_bytes:
        raise errors.make("provider.large", bytes=size, most=most_bytes)
    rows = row_codec.matrix(table, fields, slots)
    return pack(rows, slots, points, marks, bits=bits, most_bytes=most_bytes)


def pack(
    rows: Bytes,
    slots: tuple[Slot, ...],
    points: Words,
    marks: Words | None,
    *,
    bits: int,
    most_bytes: int,
) -> Encoded:
    """Like `encode`, for rows that are already encoded."""
    if len(points) == 0:
        form = Level(0, bits, 0, 0, marks is not None, slots)
        return Encoded(points, np.zeros((0, form.stored), np.uint8), form)
    wide = rows.shape[1]
    places = _places(points, marks, wide)
    level = Level(places.number, bits, places.rows, places.width, marks is not None, slots)
    size = places.number * level.stored
    if size > most_bytes or places.rows > _MAX_ROWS or places.rows * len(slots) > MAX_CELLS:
        raise errors.make("provider.large", bytes=size, most=most_bytes)
    flat = np.zeros(size, np.uint8)
    counts = places.sizes.astype("<u2").view(np.uint8).reshape(-1, 2)
    heads = [counts[:, : _count_bytes(level.rows)]]
    if marks is not None:
        firsts = marks[places.firsts].astype("<u8").view(np.uint8)
        heads.insert(0, firsts.reshape(-1, _MARK_BYTES))
    head = np.concatenate(heads, axis=1)
    entries = places.of_record * level.stored + places.within
    _scatter(flat, entries, head)
    ranks = np.arange(len(points)) - np.repeat(places.firsts, places.sizes)
    at = np.repeat(entries + head.shape[1], places.sizes) + ranks * wide
    _scatter(flat, at, rows)
    distinct = points[np.concatenate(([True], points[1:] != points[:-1]))]
    return Encoded(distinct, flat.reshape(places.number, level.stored), level)


class _Places(NamedTuple):
    """The layout of entries: the first row and number of rows of each, its record, its offset."""

    firsts: npt.NDArray[Any]
    sizes: npt.NDArray[Any]
    of_record: npt.NDArray[Any]
    within: npt.NDArray[Any]
    number: int
    width: int
    rows: int


def _places(points: Words, marks: Words | None, wide: int) -> _Places:
    starts = np.concatenate(([True], points[1:] != points[:-1]))
    first = starts
    if marks is not None:
        first = starts | np.concatenate(([True], marks[1:] != marks[:-1]))
    firsts = np.flatnonzero(first)
    sizes = np.diff(np.append(firsts, len(points)))
    rows = int(sizes.max())
    lengths = (_MARK_BYTES if marks is not None else 0) + _count_bytes(rows) + sizes * wide
    ends = np.cumsum(lengths)
    begins = ends - lengths
    opening = np.flatnonzero(starts[firsts])  # the first entry of each record
    totals = np.diff(np.append(begins[opening], ends[-1]))
    of_record = np.cumsum(starts[firsts]) - 1
    within = begins - begins[opening][of_record]
    return _Places(firsts, sizes, of_record, within, len(opening), int(totals.max()), rows)


def groups_record(table: pa.Table, fields: Sequence[Field], most_bytes: int) -> tuple[bytes, Level]:
    """All rows of a table as one record, and its form."""
    zeros = np.zeros(table.num_rows, np.uint64)
    record = encode(table, fields, zeros, None, bits=1, most_bytes=most_bytes)
    return record.records.tobytes()[: record.level.width], record.level


def narrowed(data: bytes, level: Level, after: int) -> bytes:
    """Records as they are sent, from records as they are stored, each followed by `after` bytes."""
    if level.stored == level.width:
        return data
    rows = np.frombuffer(data, np.uint8).reshape(-1, level.stored + after)
    return np.delete(rows, np.s_[level.width : level.stored], axis=1).tobytes()


def widened(data: bytes, level: Level, after: int) -> bytes:
    """Records as they are stored and as their tags are computed, from the result of `narrowed`."""
    if level.stored == level.width:
        return data
    rows = np.frombuffer(data, np.uint8).reshape(-1, level.width + after)
    matrix = np.zeros((len(rows), level.stored + after), np.uint8)
    matrix[:, : level.width] = rows[:, : level.width]
    matrix[:, level.stored :] = rows[:, level.width :]
    return matrix.tobytes()


def decode(
    record: bytes | memoryview, prepared: Prepared, level: int = 0, mark: int | None = None
) -> pa.Table:
    """The rows of the entry with fingerprint `mark`, or of the first entry; none if it is absent.

    If records have no fingerprints, a record belongs to the one requested key.

    Raises:
        errors.Error: `wire.format`, if the bytes are not a record of the prepared form.
    """
    return _entry(record, prepared.fields, prepared.levels[level], mark)


def no_rows(fields: Sequence[Field]) -> pa.Table:
    """A table without rows, with all columns."""
    slots = [Slot(row_codec.full_width(field), False) for field in fields]
    return row_codec.read(np.zeros((0, row_codec.row_width(slots)), np.uint8), fields, slots)


def decode_groups(prepared: Prepared) -> pa.Table:
    """The groups of the sums, in their order: columns g0, g1, ...

    Raises:
        errors.Error: `wire.format`, if their number differs from the form.
    """
    fields = [field for field in prepared.fields if field.name.startswith("g")]
    if not fields:
        return pa.table({})
    if len(prepared.levels) != 1:
        raise malformed("groups without a form")
    groups = _entry(prepared.groups, fields, prepared.levels[0], None)
    if groups.num_rows != prepared.group_count:
        raise malformed("groups of another number")
    return groups


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
        columns[field.name] = row_codec.whole_numbers(values, field)
    return pa.table(columns)


def _count_bytes(rows: int) -> int:
    """Bytes of an entry's number of rows, in a table whose entries have at most this many."""
    return 1 if rows < 256 else 2


def _scatter(flat: Bytes, at: npt.NDArray[Any], rows: Bytes) -> None:
    """Write each row of bytes at its offset; no two overlap."""
    size = rows.shape[1]
    if size and len(rows):
        windows = np.lib.stride_tricks.sliding_window_view(flat, size, writeable=True)
        windows[at] = rows


def _entry(
    record: bytes | memoryview, fields: Sequence[Field], form: Level, mark: int | None
) -> pa.Table:
    if len(record) != form.width:
        raise malformed("a record of another width")
    if len(form.slots) != len(fields):
        raise malformed("a record of other columns")
    data, at, wide = np.frombuffer(record, np.uint8), 0, row_codec.row_width(form.slots)
    lead = _MARK_BYTES if form.marked else 0
    head = lead + _count_bytes(form.rows)
    while at + head <= len(data):
        size = int.from_bytes(data[at : at + lead].tobytes(), "little")
        rows = int.from_bytes(data[at + lead : at + head].tobytes(), "little")
        end = at + head + rows * wide
        if rows == 0:
            break
        if rows > form.rows or end > len(data):
            raise malformed("a record with more rows than it can hold")
        if mark is None or not form.marked or size == mark:
            return row_codec.read(data[at + head : end].reshape(rows, wide), fields, form.slots)
        at = end
    return no_rows(fields)
