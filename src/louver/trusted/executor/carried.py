"""What is known of a statement under one version of the catalog, taken over to the next one, where
that says the same of the statement's tables: other tables have wider bounds, or more rows.
"""

from __future__ import annotations

from dataclasses import replace

from louver.trusted.executor.change import repeated_rows
from louver.trusted.executor.context import Context
from louver.trusted.executor.equal_rows import EqualRows
from louver.trusted.executor.reading_again import Reader
from louver.trusted.executor.table_basis import basis
from louver.trusted.planner.ir import Plan
from louver.trusted.vault.catalog import Catalog


def carried(context: Context, form: object) -> object:
    """What is known of a statement (`repeated.Known.form`), under the newest catalog if it holds
    there: declarations, ceilings and layers are the same while a statement is remembered at all.
    """
    now = context.catalog
    if isinstance(form, Reader):
        if _are_same(form.catalog, now, _read(form.plan)):
            form.catalog = now
    elif isinstance(form, repeated_rows.Change):
        read = set[int]() if form.plan.rows is None else _read(form.plan.rows)
        if _are_same(form.catalog, now, {form.plan.target, *read}):
            form.catalog = now
    elif isinstance(form, EqualRows) and _are_same(form.catalog, now, {form.table.id}):
        return replace(form, catalog=now, table=now.by_id(form.table.id))
    return form


def _read(plan: Plan) -> set[int]:
    return {source.table for remote in plan.remotes for source in remote.sources}


def _are_same(before: Catalog, now: Catalog, tables: set[int]) -> bool:
    if before is now:
        return True
    try:
        return all(basis(before.by_id(table)) == basis(now.by_id(table)) for table in tables)
    except KeyError:
        return False
