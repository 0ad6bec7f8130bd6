"""What plans, and what is said of stored forms, rest on: a table's columns, not its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from louver import errors
from louver.trusted.vault.catalog import Catalog, Table

#: Of a column all but the marks by which its values are counted.
_OF_COLUMN = attrgetter(
    "name", "type", "id", "encrypted", "scheme", "ceiling", "generation", "minimum", "maximum",
    "has_null", "nullable", "group", "low", "bits", "coarse", "expression", "unique", "choices",
)  # fmt: skip


def basis(table: Table) -> tuple[Any, ...]:
    """Another value whenever a table's columns, their bounds, layers or ceilings are others."""
    columns = tuple(
        (_OF_COLUMN(column), tuple(column.stored.items()), tuple(column.layers.items()))
        for column in table.columns
    )
    packs = tuple((name, tuple(ids)) for name, ids in table.packs.items())
    tags = tuple((name, tuple(ids)) for name, ids in table.tags.items())
    return (table.key, table.id, table.name, table.generation, packs, tags, columns)


def are_same(before: Catalog, now: Catalog, tables: Iterable[int]) -> bool:
    """Whether catalogs of which `is_same` holds say the same of these tables, by their ids."""
    if before is now:
        return True
    try:
        return all(basis(before.by_id(table)) == basis(now.by_id(table)) for table in tables)
    except KeyError:
        return False


def require_same(before: Catalog, now: Catalog, *, rows: bool = False) -> None:
    """Raise `catalog.conflict` where what was decided under one catalog need not hold under the one
    that took its place meanwhile, by its tables, rules, ceilings and layers; with ``rows`` also
    where only rows may be others.
    """
    if now is not before and (rows or not is_same(before, now)):
        raise errors.make("catalog.conflict")


def is_same(before: Catalog, now: Catalog) -> bool:
    """Whether one catalog says of tables, rules, ceilings and layers what another one says: not of
    what values there are, and how many rows.
    """
    return now is before or _declared(now) == _declared(before)


def _declared(catalog: Catalog) -> tuple[Any, ...]:
    """A catalog without what rows add to it."""
    tables = []
    for table in catalog.tables.values():
        columns = [
            replace(column, minimum=None, maximum=None, has_null=False, seen=[])
            for column in table.columns
        ]
        bare = replace(table, row_count=0, runs=[], runs_known=False, tiles={})
        tables.append(replace(bare, columns=columns))
    objects = [item for item in catalog.objects if not item.temporary]
    return tables, objects, catalog.settings
