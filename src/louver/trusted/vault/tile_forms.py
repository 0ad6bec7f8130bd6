"""In which form the tiles of a table's columns are sealed (spec/tile.md), as the catalog says it.

All columns of a table go into tiles together, under a *layout*: of each column the generation of
its key and a form. Where values no longer fit their form, a table begins a further layout; its
earlier tiles are opened by theirs.

What a form says, and how long its tiles are, depends on no more of an ENC column's values than how
many bits its numbers so far need, with a sign, in coarse steps, and for values without fixed length
on how far those of a tile compress, in coarse steps.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.vault import native, scheme, schemes
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.types import shifted

MOST_ROWS = 1024
"""Rows that a tile has at most, by its format."""
ROWS = MOST_ROWS
"""Rows that a tile has."""
LIMIT_BYTES = 4 << 20
"""Rows whose values take more bytes than this, 1,024 of them, stay rows."""
_PACKED, _PACKED_NULLS, _UNITS = 1, 2, 3
#: Types of fixed length that tiles cannot pack.
_NOT_PACKED = {"INTERVAL"}
#: Numbers of a form have three digits, so that the length of a catalog does not tell them.
_DIGITS = 100
#: Numbers of layouts have ten digits.
_LEAST_LAYOUT = 10**9
#: Sizes of tiles without fixed length: eight steps for each power of two.
_STEPS = 8
CLASSES = (*range(4, 33, 4), *range(40, 65, 8), *range(80, 129, 16))
"""Bits that a number in a tile may take, if its type has so many."""
LEAST_CLASS = 4
"""Bits that a number in a tile takes at least."""
LEAST_UNIT = 64
"""Bytes that a tile without fixed length takes at least."""


@dataclass(frozen=True, slots=True)
class Form:
    """How tiles of a column are sealed: the generation of its key, a kind, and what it says."""

    generation: int
    kind: int
    first: int
    second: int

    @property
    def handle(self) -> Any:
        """The form as the compiled module takes it."""
        forms = native.module().tiles.Form
        if self.kind == _UNITS:
            return forms.units(_unit_of(self.first), LIMIT_BYTES)
        low, high = _bounds_of(self.first, self.second)
        return forms.packed(low, (high - low).bit_length(), self.kind == _PACKED_NULLS)

    def fits(self, wanted: tuple[int, int, int]) -> bool:
        """Whether values of the wanted form can be sealed in this one."""
        kind, first, second = wanted
        if self.kind == _PACKED_NULLS and kind == _PACKED:
            kind = _PACKED_NULLS
        return self.kind == kind and self.first >= first and self.second >= second


def last_layout(table: Table) -> int | None:
    """The layout under which a table's last tiles were sealed; None before there are any."""
    names = [*table.tiles]
    return int(names[-1].partition("/")[0]) if names else None


def form_of(table: Table, layout: int, column: Column) -> Form | None:
    """The form of a column under a layout; None where its tiles do not have the column."""
    said = table.tiles.get(f"{layout}/{scheme.read_from(column)}")
    return None if said is None else _form(said)


def is_narrow(table: Table, column: Column) -> bool:
    """Whether all numbers that tiles of a column may have fit 64 bits."""
    copy = scheme.read_from(column)
    said = (said for name, said in table.tiles.items() if name.partition("/")[2] == copy)
    forms = map(_form, said)
    return all(f.kind != _UNITS and max(f.first, f.second + 1) <= _DIGITS + 64 for f in forms)


def forms(table: Table, layout: int) -> dict[str, Form]:
    """The forms of a layout, by the columns of the table of tiles."""
    named = ((name.partition("/"), said) for name, said in table.tiles.items())
    return {stored: _form(said) for (own, _, stored), said in named if own == str(layout)}


def _form(said: list[int]) -> Form:
    if len(said) != len(Form.__dataclass_fields__):
        raise errors.make("catalog.format", place="this database", detail="a form of tiles")
    return Form(*said)


def settle(
    table: Table, columns: Sequence[Column], values: Sequence[pa.Array | pa.ChunkedArray]
) -> tuple[int, dict[str, list[int]]]:
    """The layout for rows that come, whose values are within the columns' bounds: the last one, or
    a new one where they do not fit it, and what the catalog is to say of that. Each array, or part
    of one, is cut into tiles by itself.
    """
    wanted = [_wanted(column, held) for column, held in zip(columns, values, strict=True)]
    last = last_layout(table)
    forms = [None if last is None else form_of(table, last, column) for column in columns]
    fit = [form is not None and form.fits(w) for form, w in zip(forms, wanted, strict=True)]
    if last is not None and all(fit):
        return last, {}
    # Several clients may begin one at once.
    layout = _LEAST_LAYOUT + secrets.randbelow(_LEAST_LAYOUT)
    said = {
        f"{layout}/{scheme.read_from(column)}": [
            secrets.randbelow(1 << 32),
            *_joint(form, item, held.type),
        ]
        for column, form, item, held in zip(columns, forms, wanted, values, strict=True)
    }
    return layout, said


def columns_of(table: Table) -> list[Column]:
    """The columns of a table whose values may go into tiles: those that are opened row by row. Of a
    type of fixed length no tile may tell how far its values compress.
    """
    opened = (c for c in table.columns if c.encrypted and schemes.is_opened_by_row(c))
    return [c for c in opened if c.type not in _NOT_PACKED]


def tiled(table: Table) -> list[Column]:
    """Those for which the table of tiles has a column."""
    return [c for c in columns_of(table) if scheme.read_from(c) in table.tile_columns]


def forget(table: Table, stored: str) -> None:
    """A column of the table of tiles is gone."""
    table.tile_columns = [name for name in table.tile_columns if name != stored]
    table.tiles = {
        name: said for name, said in table.tiles.items() if name.partition("/")[2] != stored
    }


def is_long(values: pa.Array) -> bool:
    """Whether the values of a tile take more bytes than a tile may."""
    return has_no_width(values.type) and 2 * values.nbytes > LIMIT_BYTES


def has_no_width(type_: pa.DataType) -> bool:
    """Whether values of a type have no fixed length in tiles, or none that can be packed."""
    return not (
        pa.types.is_boolean(type_) or pa.types.is_primitive(type_)
        or (pa.types.is_decimal(type_) or pa.types.is_fixed_size_binary(type_))
    ) or pa.types.is_interval(type_)  # fmt: skip


def _wanted(column: Column, values: pa.Array | pa.ChunkedArray) -> tuple[int, int, int]:
    """Kind and numbers of the form that a column's values need."""
    type_ = values.type
    if has_no_width(type_):
        parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        unit = max(native.module().tiles.unit(part, LIMIT_BYTES, ROWS) for part in parts)
        return _UNITS, _DIGITS + _step_of(unit), _DIGITS
    kind = _PACKED_NULLS if column.nullable else _PACKED
    low, high = _extent(values)
    magnitude = max((~low).bit_length() if low < 0 else 0, high.bit_length())
    return kind, *_rounded(magnitude, type_)


def _rounded(magnitude: int, type_: pa.DataType) -> tuple[int, int]:
    """Numbers of a form for values of so many bits beside a sign, of which all types but some have
    one, whether a value is below 0 or not. All bits are one of the size classes, or the type's.
    """
    unsigned = (
        pa.types.is_boolean, pa.types.is_unsigned_integer, pa.types.is_floating,
        pa.types.is_fixed_size_binary,
    )  # fmt: skip
    sign = int(not any(is_one(type_) for is_one in unsigned))
    needed = min(type_.bit_width, max(LEAST_CLASS, magnitude + sign))
    bits = min(type_.bit_width, next(size for size in CLASSES if size >= needed))
    return _DIGITS + bits * sign, _DIGITS + bits - sign


def _extent(values: pa.Array | pa.ChunkedArray) -> tuple[int, int]:
    """The least and the greatest of some numbers; all of a type whose numbers are not compared."""
    type_ = values.type
    if pa.types.is_boolean(type_):
        return 0, 1
    unknown = pa.types.is_floating, pa.types.is_fixed_size_binary, pa.types.is_time
    if any(is_one(type_) for is_one in unknown):
        return 0, (1 << type_.bit_width) - 1
    if values.null_count == len(values):
        return 0, 0
    if pa.types.is_temporal(type_):
        whole = pa.int32() if type_.bit_width == 32 else pa.int64()
        parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        values = pa.chunked_array([part.view(whole) for part in parts])
    ends = pc.min_max(values)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if pa.types.is_decimal(type_):
        return int(shifted(low, type_.scale)), int(shifted(high, type_.scale))
    return low, high


def _joint(
    form: Form | None, wanted: tuple[int, int, int], type_: pa.DataType
) -> tuple[int, int, int]:
    """A form for what was there and what comes."""
    kind, first, second = wanted
    if form is None or (form.kind == _UNITS) != (kind == _UNITS):
        return wanted
    if kind == _UNITS:
        return kind, max(first, form.first), max(second, form.second)
    numbers = max(first, form.first) - 1, max(second, form.second)
    joint = _rounded(max(numbers) - _DIGITS, type_)
    return max(kind, form.kind), *joint


def _bounds_of(first: int, second: int) -> tuple[int, int]:
    negative = first - _DIGITS
    return (0 if not negative else -(1 << (negative - 1))), (1 << (second - _DIGITS)) - 1


def _step_of(unit: int) -> int:
    """The number of the least size that holds so many bytes."""
    step = 0
    while _size(step) < unit:
        step += 1
    return step


def _unit_of(number: int) -> int:
    return _size(number - _DIGITS)


def _size(step: int) -> int:
    doubled, part = divmod(step, _STEPS)
    return LEAST_UNIT * (1 << doubled) * (_STEPS + part) // _STEPS
