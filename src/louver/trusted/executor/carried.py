"""What is known of a statement under one version of the catalog, taken over to the next one, where
that says the same of the statement's tables: other tables have wider bounds, or more rows.
"""

from __future__ import annotations

from dataclasses import replace

from louver.trusted.executor.change import repeated_rows
from louver.trusted.executor.context import Context
from louver.trusted.executor.equal_rows import EqualRows
from louver.trusted.executor.reading_again import Reader
from louver.trusted.executor.table_basis import are_same


def carried(context: Context, form: object) -> object:
    """What is known of a statement (`repeated.Known.form`), under the newest catalog if it holds
    there: declarations, ceilings and layers are the same while a statement is remembered at all.
    """
    now = context.catalog
    if isinstance(form, Reader | repeated_rows.Change):
        if form.is_current(context):
            form.catalog = now
    elif isinstance(form, EqualRows) and are_same(form.catalog, now, [form.table.id]):
        return replace(form, catalog=now, table=now.by_id(form.table.id))
    return form
