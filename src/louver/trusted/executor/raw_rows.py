"""Single rows as raw values of Python's: days, microseconds and unscaled numbers are whole numbers,
UUIDs bytes. They are sealed and sent without Arrow, at every use of which Python's lock is given
away, and comes back behind all other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pyarrow as pa

from louver.trusted.executor import cardinality
from louver.trusted.executor.answer import Answer
from louver.trusted.planner.sql.postgres_types import blank_padded
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.recipes import Recipe
from louver.trusted.vault.seen_values import MANY
from louver.trusted.vault.types import can_share, decimal_scale, shifted
from louver.trusted.vault.writers import outrun
from louver.untrusted.engines.engine import TakesRows
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.executor.storage import Parts

_DAY, _MOMENT, _MICROSECOND = date(1970, 1, 1), datetime(1970, 1, 1), timedelta(microseconds=1)
_DECIMAL = "DECIMAL("
_ZONED = _MOMENT.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row: the raw values of all declared columns in their order, which are within the bounds
    of these (`fits`), and what makes a table of it.
    """

    values: Sequence[object]
    rows: Callable[[], pa.Table]


@dataclass(frozen=True, slots=True)
class OneRow:
    """What a change does to one row, by its number: another one, or none, in its place."""

    number: int
    fresh: RawRow | None
    answer: Answer


def raw(value: object, type_: str) -> object:
    """A value of a column as it is stored; a decimal one has numbers of any kind."""
    kind = type(value)
    if kind is int and not type_.startswith(_DECIMAL):
        return value
    if kind is Decimal or type_.startswith(_DECIMAL):
        return None if value is None else _unscaled(value, type_)
    if kind is str:
        width = blank_padded(type_)
        if type_ == "UUID":
            return UUID(cast(str, value)).bytes
        return value if width is None else cast(str, value).ljust(width)
    if kind is date:
        return (cast(date, value) - _DAY).days
    if kind is datetime:
        moment = cast(datetime, value)
        return (moment - (_MOMENT if moment.tzinfo is None else _ZONED)) // _MICROSECOND
    return cast(UUID, value).bytes if kind is UUID else value


def _unscaled(value: object, type_: str) -> int:
    return int(shifted(Decimal(cast(str, value)), decimal_scale(type_)))


def column_of_raw(type_: pa.DataType, value: object) -> pa.Array:
    """A raw value as a column of one row."""
    bare = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
    if pa.types.is_decimal128(bare) and value is not None:
        value = shifted(Decimal(cast(int, value)), -bare.scale)
    column = pa.array([value], bare)
    return column if bare is type_ else pa.ExtensionArray.from_storage(type_, column)


def table_of(
    field_of: Callable[[str], pa.Field], table: Table, values: Sequence[object]
) -> pa.Table:
    """The raw values of all declared columns as a table of one row; `field_of` gives the Arrow
    field of a type.
    """
    arrays = dict[str, pa.Array]()
    for column, value in zip(table.columns, values, strict=True):
        arrays[column.name] = column_of_raw(field_of(column.type).type, value)
    return pa.table(arrays)


def fits(parts: Parts, table: Table, values: Sequence[object]) -> bool:
    """Whether a table takes such rows, and values add nothing to what is known of its columns."""
    if table.counted or not getattr(parts.engine, "takes_rows", False):
        return False
    if not parts.columns.recipes.seals_rows(table):
        return False
    return all(map(_is_within, table.columns, values))


def _is_within(column: Column, value: object) -> bool:
    """See `server_rows._is_within`."""
    has_null, limits = bounds(column)
    if value is None:
        return has_null
    if seen(column) is not None and not cardinality.has_seen(column, value):
        return False
    return limits is None or (type(value) is int and limits[0] <= value <= limits[1])


def seen(column: Column) -> frozenset[str] | None:
    """The marks of a column's values, where it has few."""
    return frozenset(column.seen) if column.encrypted and column.seen != [MANY] else None


def bounds(column: Column) -> tuple[bool, tuple[int, int] | None]:
    """Whether NULL adds nothing to what is known of a column; least and largest raw value that do
    not, of a type that has such.
    """
    if not can_share(column.type):
        return column.has_null, None
    least, most = column.minimum, column.maximum
    if least is None or most is None:
        return column.has_null and not column.encrypted, (1, 0)
    return column.has_null, (least, most)


def append(parts: Parts, table: Table, row: RawRow) -> bool:
    """Append a row to a server's table with the next statement; False where it does not go so."""
    recipe = parts.columns.recipes.of(table)
    sealed = _sealed(parts, table, recipe, row)
    if sealed is None:
        return False
    text = recipe.text("insert", table, parts.backend.insert_row, sealed)
    cast(TakesRows, parts.engine).write_row(text, sealed, (), None)
    parts.state.growth.add(table, 1)
    table.kept_complete = not table.kept
    return True


def replace(parts: Parts, table: Table, number: int, row: RawRow) -> bool:
    """One row of a server's table for another one; False where it does not go so."""
    if not parts.backend.replaces or not table.tags or table.kept:
        return False
    recipe = parts.columns.recipes.of(table)
    sealed = _sealed(parts, table, recipe, row)
    if sealed is None:
        return False
    text = recipe.text("replace", table, parts.backend.replace_row, sealed)
    cast(TakesRows, parts.engine).write_row(text, sealed, (number,), outrun)
    return True


def remove(parts: Parts, table: Table, number: int) -> None:
    """Delete a row of a server's table that does not count its rows."""
    text = parts.backend.delete_few(table, 1)
    parts.engine.expect(Statement(text, (number,), kind="write"), 1, outrun)
    parts.state.growth.add(table, -1)


def _sealed(parts: Parts, table: Table, recipe: Recipe, row: RawRow) -> Any | None:
    if recipe.form is None:
        types = [parts.local.arrow_field(column.type).type for column in table.columns]
        recipe.make_form(table, types)
    number = parts.row_ids.take_one(parts.state.catalog)
    return parts.columns.keyring.seal_raw(recipe, row.values, number)
