"""Encoding of a condition's values as a point: the same function at the client and the providers.

The expressions that are compared by ``=`` become bits by their offset from the table's least value,
or all together by a keyed hash; the bits of the bounded expression follow below them. See
spec/splinter.md, "Keys".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from louver import errors
from louver.wire.ordinals import Position, Units, Words
from louver.wire.questions import Code, KeyCodes

#: The widest point.
MAX_BITS = 64

Index = npt.NDArray[np.intp]
_SALTS = 64
#: With fewer bits, a constant that is not in the table would too often match one that is.
_LEAST_SPARE_BITS = 20
_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Column:
    """A provider's data on one expression of the condition, one value per row.

    `units` is None if the type has none; `texts` are the values as printed by `text_sql`, needed
    for equal expressions if they are hashed; `length` is the longest text in bytes, for an interval
    over texts.
    """

    type: str
    units: Units | None
    texts: pa.Array | None = None
    length: int = 0


class TextsNeeded(ValueError):
    """Keys are to be hashed, and their texts were not given."""


def text_sql(expression: str, type_name: str) -> str:
    """The SQL of the text that is hashed for an expression of DuckDB type `type_name`.

    Both sides evaluate it in DuckDB. A timestamp's text does not depend on a session's time zone.
    """
    if type_name == "TIMESTAMP WITH TIME ZONE":
        return f"CAST(epoch_us({expression}) AS VARCHAR)"
    return f"CAST(({expression}) AS VARCHAR)"


def offset_code(column: Column) -> Code:
    """The shortest code of a column by offset and step.

    Raises:
        errors.Error: `provider.wide`, if its values do not fit in 64 bits.
    """
    units = column.units
    if units is None:
        raise ValueError("the type has no units")
    if units.high < units.low:
        return Code(column.type, "offset", length=column.length)
    width = (units.high - units.low).bit_length()
    if width > MAX_BITS:
        raise too_wide(width, MAX_BITS)
    offsets = units.wrapped - np.uint64(units.low % (1 << 64))
    step = int(np.gcd.reduce(offsets)) or 1
    bits = ((units.high - units.low) // step).bit_length()
    return Code(column.type, "offset", units.low, step, bits, column.length)


def too_wide(bits: int, most: int) -> errors.Error:
    """The error for a condition that needs more bits than a point has."""
    return errors.make("provider.wide", bits=bits, most=most)


def hash_bits(distinct: int, interval_bits: int, most: int, spare: bool) -> int:
    """Bits of the hashed part of a point.

    With `spare`, enough bits that a constant which is not in the table collides with one of its
    `distinct` keys with probability at most 2**-40 (2**-20 if there is no room for more); otherwise
    enough that keys rarely collide with each other: their records then contain a fingerprint.
    """
    bits = max(0, distinct - 1).bit_length()
    wished = max(2 * bits + 4, bits + 40) if spare else 2 * bits + 4
    return min(most - interval_bits, wished)


def choose(
    equal: Sequence[Column],
    interval: Column | None,
    *,
    distinct: int,
    most: int = MAX_BITS,
    spare: bool = False,
) -> KeyCodes:
    """Choose how the rows of a table become points of at most `most` bits.

    Args:
        equal: the columns that a clause compares by ``=``.
        interval: the column that it bounds, or None.
        distinct: the number of distinct combinations of values of `equal`.
        most: the widest point that the protocol supports.
        spare: see `hash_bits`.

    Raises:
        errors.Error: `provider.wide`.
        TextsNeeded: the texts of a column were not given.
    """
    below = None if interval is None else offset_code(interval)
    used = 0 if below is None else below.bits
    if used > most:
        raise too_wide(used, most)
    if not equal:
        return KeyCodes((), below, b"", False, 0)
    room = hash_bits(distinct, used, most, spare)
    codes = _offsets(equal)
    if codes is not None and sum(code.bits for code in codes) <= room:
        return KeyCodes(codes, below, b"", False, sum(code.bits for code in codes))
    least = bits_of(distinct) + (_LEAST_SPARE_BITS if spare else 0)
    if room < least:
        raise too_wide(used + least, most)
    hashed = tuple(Code(column.type, "hash") for column in equal)
    texts = [_texts(column) for column in equal]
    for number in range(_SALTS):
        salt = number.to_bytes(_SALT_BYTES, "big")
        codes_found = KeyCodes(hashed, below, salt, True, room)
        if _differ(*_hash(codes_found, texts)):
            return codes_found
    raise too_wide(used + 2 * distinct.bit_length() + 4, most)


def choose_buckets(equal: Sequence[Column], *, distinct: int, most: int) -> KeyCodes:
    """Choose how keys are assigned to buckets of one or more keys, of at most `most` bits.

    Raises:
        errors.Error: `provider.wide`, if two keys of a bucket have one fingerprint.
    """
    room = min(most, max(0, distinct - 1).bit_length() + 1)
    codes = _offsets(equal)
    if codes is not None and sum(code.bits for code in codes) <= room:
        return KeyCodes(codes, None, b"", False, sum(code.bits for code in codes))
    hashed = tuple(Code(column.type, "hash") for column in equal)
    texts = [_texts(column) for column in equal]
    for number in range(_SALTS):
        chosen = KeyCodes(hashed, None, number.to_bytes(_SALT_BYTES, "big"), True, room)
        _, marks = _hash(chosen, texts)
        if len(np.unique(marks)) == distinct:
            return chosen
    raise too_wide(128, most)


def encode(
    codes: KeyCodes,
    equal: Sequence[Column],
    interval: Column | None,
    rows: int,
    index: Index | None = None,
) -> tuple[Words, Words]:
    """The points of `rows` rows, and the fingerprints of their equal parts, as uint64.

    With `index`, `equal` contains distinct combinations, and row i has combination index[i].
    """
    points = np.zeros(rows, np.uint64)
    if codes.hashed:
        points, marks = _hash(codes, [_texts(column) for column in equal])
    else:
        for code, column in zip(codes.equal, equal, strict=True):
            offsets = _offset(code, column)
            points = _above(points[: len(offsets)], code.bits) | offsets
        marks = points.copy()
    if index is not None and equal:
        points, marks = points[index], marks[index]
    if codes.interval is not None:
        if interval is None:
            raise ValueError("the bounded column is missing")
        points = _above(points, codes.interval.bits) | _offset(codes.interval, interval)
    return points, marks


def point(codes: KeyCodes, units: Sequence[int] = (), texts: Sequence[str] = ()) -> int | None:
    """The point of a single-value clause; None if the constants cannot be in the table.

    Args:
        codes: of the prepared table.
        units: of the constants, in the order of the equal expressions; unused if hashed.
        texts: of the constants, as printed by `text_sql`; used if hashed.
    """
    if codes.interval is not None:
        raise ValueError("the condition has an interval")
    return _equal(codes, units, texts)


def span(
    codes: KeyCodes,
    units: Sequence[int],
    texts: Sequence[str],
    low: Position | int | None,
    high: Position | int | None,
    *,
    low_inclusive: bool = True,
    high_inclusive: bool = True,
) -> tuple[int, int] | None:
    """The points of a clause with an interval, both ends inclusive; None if there are none.

    Args:
        codes: of the prepared table.
        units: of the equal constants, as for `point`.
        texts: of the equal constants, as for `point`.
        low: the lower bound as a unit or a `Position`; None if open.
        high: the upper bound.
        low_inclusive: whether the lower bound itself matches.
        high_inclusive: whether the upper bound itself matches.
    """
    code = codes.interval
    if code is None:
        raise ValueError("the condition has no interval")
    equal = _equal(codes, units, texts)
    if equal is None:
        return None
    first, last = 0, (1 << code.bits) - 1
    if low is not None:
        bound = Position(low) if isinstance(low, int) else low
        least = bound.unit if bound.exact and low_inclusive else bound.unit + 1
        first = max(first, -((code.low - least) // code.step))
    if high is not None:
        bound = Position(high) if isinstance(high, int) else high
        most = bound.unit if high_inclusive or not bound.exact else bound.unit - 1
        last = min(last, (most - code.low) // code.step)
    if first > last:
        return None
    return (equal << code.bits) + first, (equal << code.bits) + last


def fingerprint(
    codes: KeyCodes, units: Sequence[int] = (), texts: Sequence[str] = ()
) -> int | None:
    """The first bytes of the records of a clause's key; None if it cannot be in the table."""
    if not codes.hashed:
        return _equal(codes, units, texts)
    _, marks = _hash(codes, _singles(codes, texts))
    return int(marks[0])


def _equal(codes: KeyCodes, units: Sequence[int], texts: Sequence[str]) -> int | None:
    if codes.hashed:
        points, _ = _hash(codes, _singles(codes, texts))
        return int(points[0])
    if len(units) != len(codes.equal):
        raise ValueError("a constant for each equal expression is needed")
    values = 0
    for code, value in zip(codes.equal, units, strict=True):
        offset, rest = divmod(value - code.low, code.step)
        if offset < 0 or rest or offset >> code.bits:
            return None
        values = values << code.bits | offset
    return values


def _singles(codes: KeyCodes, texts: Sequence[str]) -> list[pa.Array]:
    if len(texts) != len(codes.equal):
        raise ValueError("a text for each equal expression is needed")
    return [pa.array([text], pa.string()) for text in texts]


def _offsets(equal: Sequence[Column]) -> tuple[Code, ...] | None:
    """Codes by offset of all columns, or None if one has no units or too wide ones."""
    offsets = []
    for column in equal:
        if column.units is None or column.units.high - column.units.low >= 1 << MAX_BITS:
            return None
        offsets.append(offset_code(column))
    return tuple(offsets)


def _offset(code: Code, column: Column) -> Words:
    if column.units is None:
        raise ValueError("the type has no units")
    offsets = column.units.wrapped - np.uint64(code.low % (1 << 64))
    return offsets // np.uint64(code.step)


def _above(points: Words, bits: int) -> Words:
    # A shift by the whole width is undefined; then there are no bits above.
    return points << np.uint64(bits) if bits < MAX_BITS else np.zeros_like(points)


def _texts(column: Column) -> pa.Array:
    if column.texts is None:
        raise TextsNeeded("texts are needed for a hash")
    return column.texts


def _hash(codes: KeyCodes, texts: list[pa.Array]) -> tuple[Words, Words]:
    """Codes and fingerprints: the high and the low 64 bits of the keyed hash of the texts."""
    from louver._rust import server

    high, low = server.fss_hash(codes.salt, texts)
    shift = np.uint64(MAX_BITS - codes.equal_bits)
    return np.frombuffer(high, "<u8") >> shift, np.frombuffer(low, "<u8")


def _differ(points: Words, marks: Words) -> bool:
    """Whether no two fingerprints share a code."""
    order = np.lexsort((marks, points))
    points, marks = points[order], marks[order]
    return not bool(((points[1:] == points[:-1]) & (marks[1:] != marks[:-1])).any())


def bits_of(count: int) -> int:
    """The number of bits that can number `count` items, at least one."""
    return max(1, (count - 1).bit_length())
