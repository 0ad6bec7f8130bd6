"""The schemes, each a module with one row that says all about it.

The planner, the ledger, EXPLAIN, the page docs/reference/schemes.md and the tests read the rows, in
`vault.scheme`; no sentence of leakage stands anywhere else. What needs keys is called from here.
A module has a SCHEME and, as far as it needs them:

    step(table, column)    what the compiled module makes of the column: its representations, in
                           the order of the row; None where `seal` makes them
    seal(keys, table, column, values, row_ids)    the column's representations, by name
    seal_table(keys, table, rows, row_ids)        columns of the server that are of the whole table
    encode(keys, table, column, value, sign)      a constant that is compared with stored values
    open_sum(keys, table, column, what, parts, most)    what the server added up, group by group
    open(keys, table, column, values, row_ids, type)    the copy that reading opens, `BY_ROW`
    public(keys)                                  a public number that the server computes with
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, cast

import pyarrow as pa

from louver.trusted.vault import arrays, recipes, scheme, sums
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import Exact
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.recipes import Recipe, Step
from louver.trusted.vault.scheme import scheme_of
from louver.trusted.vault.schemes import (
    eds,
    eq,
    file,
    hom,
    key,
    ore,
    rnd,
    sdb,
    sum,  # noqa: A004
    text,
)
from louver.trusted.vault.schemes import ord as order
from louver.wire.messages import Constant

_MODULES: dict[str, ModuleType] = {}


def register(module: ModuleType) -> None:
    """Add a scheme behind those that are there: of several that answer, the first is asked."""
    scheme.publish(module.SCHEME)
    _MODULES[module.SCHEME.name] = module


def unregister(module: ModuleType) -> None:
    """Take a scheme out again."""
    scheme.withdraw(module.SCHEME.name)
    del _MODULES[module.SCHEME.name]


def modules() -> list[ModuleType]:
    """Every scheme's module."""
    return list(_MODULES.values())


class Recipes:
    """How rows of tables are sealed, decided once for each state of a table."""

    def __init__(self) -> None:
        """None is known at first."""
        self._known: dict[int, tuple[object, Recipe]] = {}

    def seal(self, keys: KeySource, table: Table, rows: pa.Table, row_ids: pa.Array) -> pa.Table:
        """Rows of all declared columns as rows of the server's table."""
        recipe = self.of(table)
        values = [arrays.stored(rows.column(name)) for name in recipe.reads]
        batch = keys.keyring.seal_rows(recipe, values, row_ids)
        apart: dict[str, pa.Array] = {}
        for position in recipe.plain:
            column = table.columns[position]
            apart[column.stored["plain"]] = arrays.joined(rows.column(column.name))
        for position, name in recipe.apart:
            column = table.columns[position]
            bare = arrays.stored(rows.column(column.name))
            apart |= _sealed(keys, table, column, name, bare, row_ids)
        apart |= _seal_table_apart(keys, table, rows, row_ids)
        if not apart:
            return pa.Table.from_batches([batch])
        return pa.table(dict(zip(batch.schema.names, batch.columns, strict=True)) | apart)

    def seals_rows(self, table: Table) -> bool:
        """Whether a recipe makes all that is stored of a table's rows."""
        return not (self.of(table).apart or table.packs or scheme.has_shares(table))

    def seal_row(
        self, keys: KeySource, table: Table, row: pa.Table, row_id: int
    ) -> tuple[Recipe, Any] | None:
        """One row of all declared columns as statements take it (`postgres.SealedRow`), and how it
        was sealed; None where a plain value is of a type that they do not take. Of a table of
        which `seals_rows` is true.
        """
        recipe = self.of(table)
        values = [arrays.stored(row.column(name)) for name in recipe.reads]
        plain = [
            (column.stored["plain"], arrays.joined(row.column(column.name)))
            for column in map(table.columns.__getitem__, recipe.plain)
        ]
        sealed = keys.keyring.seal_row(recipe, values, plain, row_id)
        return None if sealed is None else (recipe, sealed)

    def of(self, table: Table) -> Recipe:
        """How the rows of a table are sealed now."""
        basis = recipes.basis(table)
        known = self._known.get(table.id)
        if known is None or known[0] != basis:
            known = self._known[table.id] = (basis, _recipe(table))
        return known[1]


def _recipe(table: Table) -> Recipe:
    steps, plain, apart = [], [], []
    for position, column in enumerate(table.columns):
        if not column.encrypted:
            plain.append(position)
            continue
        for name in _schemes(column):
            step = _step(table, column, name)
            if step is None:
                apart.append((position, name))
            else:
                steps.append(step)
    steps += key.steps(table, {column.name for column in table.columns})
    return Recipe(steps, plain, apart)


def seal(
    keys: KeySource, table: Table, column: Column, values: pa.Array, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """All that the server holds of an encrypted column, by the names of its columns there.

    ``values`` are in Arrow's storage types, NULLs among them.
    """
    sealed: dict[str, pa.Array] = {}
    for name in _schemes(column):
        sealed |= _sealed(keys, table, column, name, values, row_ids)
    return sealed


def seal_one(
    keys: KeySource,
    table: Table,
    column: Column,
    representation: str,
    values: pa.Array,
    row_ids: pa.Array,
) -> pa.Array:
    """One representation of a column."""
    name = scheme_of(representation).name
    return _sealed(keys, table, column, name, values, row_ids)[column.stored[representation]]


def _schemes(column: Column) -> list[str]:
    return list(dict.fromkeys(scheme_of(name).name for name in column.stored))


def _step(table: Table, column: Column, name: str) -> Step | None:
    """A scheme's step for a column; None where the scheme seals by itself."""
    module = _MODULES[name]
    handle = module.step(table, column) if hasattr(module, "step") else None
    if handle is None:
        return None
    stored = (column.stored.get(part.name) for part in module.SCHEME.representations)
    return Step(handle, (column.name,), tuple(stored))


def _sealed(
    keys: KeySource, table: Table, column: Column, name: str, values: pa.Array, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """What one scheme makes of a column, by the names of its columns on the server."""
    step = _step(table, column, name)
    if step is not None:
        batch = keys.keyring.seal_rows(Recipe([step]), [values], row_ids)
        return _without_ids(batch)
    parts = _MODULES[name].seal(keys, table, column, values, row_ids)
    return {column.stored[k]: part for k, part in parts.items() if k in column.stored}


def _without_ids(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names[1:], batch.columns[1:], strict=True))


def seal_table(
    keys: KeySource, table: Table, rows: pa.Table, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """The server's columns that are of the table as a whole."""
    sealed = _seal_table_apart(keys, table, rows, row_ids)
    tagging = Recipe(key.steps(table, set(rows.column_names)))
    columns = [arrays.stored(rows.column(name)) for name in tagging.reads]
    return sealed | _without_ids(keys.keyring.seal_rows(tagging, columns, row_ids))


def _seal_table_apart(
    keys: KeySource, table: Table, rows: pa.Table, row_ids: pa.Array
) -> dict[str, pa.Array]:
    """These without those that the table's recipe makes."""
    sealed: dict[str, pa.Array] = {}
    for module in _MODULES.values():
        if hasattr(module, "seal_table"):
            sealed |= module.seal_table(keys, table, rows, row_ids)
    return sealed


def tags(keys: KeySource, table: Table, rows: pa.Table) -> dict[str, pa.Array]:
    """The tags (16 bytes, by the server's columns) of the keys whose columns these rows have; NULL
    where a column of the key is NULL.
    """
    return key.tags(keys, table, rows)


def row_of_tag(keys: KeySource, table: Table, rows: pa.Table, tag: str) -> tuple[str, int] | None:
    """Which key (by the server's column) of which of these rows a server has named by its tag."""
    return key.row_of(keys, table, rows, tag)


def encode(
    keys: KeySource, table: Table, column: Column, representation: str, value: Exact, sign: str
) -> Constant:
    """What stored values are compared with, for a constant that is not NULL."""
    module = _MODULES[scheme_of(representation).name]
    return cast(Constant, module.encode(keys, table, column, value, sign))


def constant_step(
    table: Table, column: Column, representation: str
) -> tuple[tuple[int, int, int], str, str, bool] | None:
    """What the compiled module makes the code of a constant by, as `encode` does: the column's id,
    its group and domain, and whether the code is the group's; None of schemes without such codes.
    """
    module = _MODULES[scheme_of(representation).name]
    steps = getattr(module, "constant_step", None)
    return None if steps is None else cast(Any, steps(table, column))


def matches(
    keys: KeySource,
    table: Table,
    columns: Sequence[Column],
    representation: str,
    values: Sequence[pa.Array],
    constants: Sequence[Constant],
) -> pa.Array | None:
    """Whether opened values have the code of one of the constants; None where their scheme cannot
    tell. The columns are those of a key if the representation is its tag, else one.
    """
    module = _MODULES[scheme_of(representation).name]
    decide = getattr(module, "matches", None)
    return None if decide is None else decide(keys, table, columns, values, constants)


def key_codes(
    keys: KeySource, table: Table, column: Column, representation: str, values: pa.Array
) -> pa.Array:
    """What the server holds of rows that have one of these values in a column, none of them NULL.
    The values may be another column's, of the same domain.
    """
    module = _MODULES[scheme_of(representation).name]
    return cast(pa.Array, module.key_codes(keys, table, column, values))


def tag(keys: KeySource, table: Table, columns: Sequence[Column], values: Sequence[Exact]) -> str:
    """The tag of a key, given by its columns in their order and a value for each, none NULL."""
    return key.tag(keys, table, columns, values)


def key_label(table: Table, columns: Sequence[Column]) -> str:
    """What the tags of the key of these columns, in their order, are derived for."""
    return key.label_of(table, columns)


def is_opened_by_row(column: Column) -> bool:
    """Whether the copy that reading opens is what `KeyRing.open_column` opens."""
    return _MODULES[scheme.reading(column).name] is rnd


def open_copy(
    keys: KeySource,
    table: Table,
    column: Column,
    values: pa.Array,
    row_ids: pa.Array,
    type_: pa.DataType,
) -> pa.Array:
    """The copy that reading opens, each value bound to its row; raises `errors.VerificationError`
    at one that was altered or moved.
    """
    module = _MODULES[scheme.reading(column).name]
    return module.open(keys, table, column, values, row_ids, type_)


def open_sum(
    keys: KeySource,
    name: str,
    table: Table,
    column: Column,
    what: str,
    parts: sums.Parts,
    most: int,
) -> list[int | None]:
    """What the server added up of a column under a scheme, group by group: `scheme.TOTAL` (NULL
    of no value) or `scheme.COUNT`. A row may be counted ``most`` times. Raises `sums.Mismatch`.
    """
    opened = _MODULES[name].open_sum(keys, table, column, what, parts, most)
    return cast(list[int | None], opened)


def public(keys: KeySource, name: str) -> bytes:
    """The public number of a scheme that the server computes with."""
    return cast(bytes, _MODULES[name].public(keys))


for _module in (rnd, eq, order, ore, sum, hom, text, sdb, file, eds, key):
    register(_module)
