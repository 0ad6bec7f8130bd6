"""Join groups: columns whose codes the server can compare once their layers are open for it.

A foreign key puts a column into its parent's group, and so every column that may become a parent
begins a group of its own. A policy names other groups. A group is fixed when a column is made,
for its key lies under every code.
"""

from __future__ import annotations

from collections.abc import Mapping

from louver.names import fold
from louver.trusted.executor.schema.constraints import Known
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.catalog_store import origin_of
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.types import code_domain


def assign(
    catalog: Catalog,
    table: Table,
    protections: Mapping[str, Protection],
    declared: Mapping[str, Known],
) -> None:
    """Put the columns of a new table into their groups."""
    waiting: dict[int, Column] = {}
    for column in table.columns:
        protection = protections.get(fold(column.name))
        known = declared.get(fold(column.name), Known())
        if protection is None or not protection.encrypted or code_domain(column.type) is None:
            continue
        if protection.join:
            # Two databases of one key file do not share groups.
            _into(
                column,
                f"{protection.join}@{origin_of(catalog)}",
                _member(catalog, table, protection.join),
            )
        elif known.parent is not None:
            waiting[column.id] = column
        elif known.key:
            column.group = _own(table, column)
    while waiting:
        # A table that refers to itself may do so along a chain of its columns.
        moved = [c for c in waiting.values() if _follow(catalog, table, c, declared, waiting)]
        for column in moved or list(waiting.values()):
            del waiting[column.id]
            if not moved and declared[fold(column.name)].key:
                column.group = _own(table, column)


def carry(
    catalog: Catalog,
    old: Table,
    fresh: Table,
    protections: Mapping[str, Protection],
    declared: Mapping[str, Known],
) -> None:
    """The groups of a table that is made anew: a column keeps the group that it had."""
    assign(catalog, fresh, protections, declared)
    for column in fresh.columns:
        before = old.column(column.name)
        if before is not None and before.group and column.encrypted:
            same = code_domain(before.type) == code_domain(column.type)
            _into(column, before.group, before if same else None)


def _own(table: Table, column: Column) -> str:
    # The table's number keeps a later table of the same name out of the group.
    return f"{table.label}.{column.name}#{table.id}"


def _follow(
    catalog: Catalog,
    table: Table,
    column: Column,
    declared: Mapping[str, Known],
    waiting: Mapping[int, Column],
) -> bool:
    """Into the group of the column that it refers to; False while that has none yet."""
    known = declared[fold(column.name)]
    if known.parent is None:
        return False
    name, other = known.parent
    own = fold(name) == fold(table.name)
    parent = table if own else catalog.table(table.schema, name)
    followed = None if parent is None else parent.column(other)
    if (
        followed is None
        or not followed.encrypted
        or followed.id == column.id
        or followed.id in waiting
    ):
        return False
    _into(column, followed.group, followed)
    return True


def _into(column: Column, group: str, member: Column | None) -> None:
    """Order codes of one group compare only within one domain, so the first column's counts."""
    column.group = group
    if member is None or code_domain(member.type) != code_domain(column.type):
        return
    if not member.bits or (member.low, member.bits) == (column.low, column.bits):
        return
    if _within(column, member):
        column.low, column.bits = member.low, member.bits


def _within(column: Column, member: Column) -> bool:
    low, start = column.low or 0, member.low or 0
    return start <= low and low + (1 << column.bits) <= start + (1 << member.bits)


def _member(catalog: Catalog, table: Table, label: str) -> Column | None:
    group = f"{label}@{origin_of(catalog)}"
    for other in (*catalog.tables.values(), table):
        for column in other.columns:
            if column.group == group:
                return column
    return None
