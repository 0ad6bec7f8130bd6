"""Other names for tables, views and columns. What the server was shown goes along."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from louver.names import fold, keyword
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.local.local import Key
from louver.trusted.executor.schema import blocks, objects
from louver.trusted.vault.catalog import Catalog, HomeObject, Table

_NOTES = re.compile(r"( \(.{1,600}? is called .{1,600}? now\))+$", re.DOTALL)


def apply(context: Context, catalog: Catalog, old: Key, new: Key) -> None:
    """A table or view was renamed or moved locally: so it is in catalog, server and workspace."""
    kind, schema, name = old
    if kind == "SEQUENCE":
        blocks.let_go(context, (fold(schema), fold(name)))
    for item in catalog.objects:
        if (item.kind, fold(item.schema), fold(item.name)) == (
            kind,
            fold(schema),
            fold(name),
        ):
            item.schema, item.name = new[1], new[2]
            item.sql = objects.introspected(context, kind, new[1], new[2])
    context.local.forget(kind, schema, name)
    table = catalog.drop(schema, name) if kind == "TABLE" else None
    if table is not None:
        label, before = table.label, replace(table)
        table.schema, table.name = new[1], new[2]
        catalog.add(table)
        context.storage.rename(before, table)
        carry(context, label, table, {})
    if context.local.dialect.prints_objects and kind not in ("TABLE", "VIEW"):
        for item in catalog.objects:
            if objects.key_of(item) == (kind, fold(new[1]), fold(new[2])):
                context.local.mirror(item, catalog)
        return
    mirror(context, catalog, new[1], new[2])


def columns(context: Context, table: Table, names: Sequence[str]) -> None:
    """Columns were renamed locally; the server knows none of the names that matter."""
    changed = {
        fold(column.name): name
        for column, name in zip(table.columns, names, strict=True)
        if column.name != name
    }
    for column, name in zip(table.columns, names, strict=True):
        column.name = name
    carry(context, table.label, table, changed)


def carry(context: Context, old: str, table: Table, changed: Mapping[str, str]) -> None:
    """Record under the new name what an older release recorded under the old one: it stays
    revealed. Facts of columns by their ids follow by themselves; facts of names that no column has
    any more stay where they are.
    """
    facts = []
    held = {_bare(fact) for fact in context.ledger.facts()}
    for fact in context.ledger.facts():
        if fact.ids or fold(fact.table) != fold(old):
            continue
        named = tuple(changed.get(fold(column), column) for column in fact.columns)
        renamed = [pair for pair in zip(fact.columns, named, strict=True) if pair[0] != pair[1]]
        if old != table.label:
            renamed.append((old, table.label))
        if renamed and all(table.column(name) is not None for name in named):
            explanation = " and ".join(f"{before} is called {now} now" for before, now in renamed)
            text = f"{fact.text} ({explanation})"
            carried = replace(fact, table=table.label, columns=named, text=text)
            # A name that comes back brings nothing new.
            if _bare(carried) not in held:
                facts.append(carried)
    context.ledger.record(facts, f"ALTER TABLE {old} RENAME")


def _bare(fact: Fact) -> Fact:
    """A fact without what renames have added to its sentence."""
    return replace(fact, text=_NOTES.sub("", fact.text))


def mirror(context: Context, catalog: Catalog, schema: str, name: str) -> None:
    """Make a changed table or view in the workspace as it is now."""
    for item in catalog.objects:
        if item.kind in ("TABLE", "VIEW") and (fold(item.schema), fold(item.name)) == (
            fold(schema),
            fold(name),
        ):
            context.local.mirror(_replacing(item), catalog)


def _replacing(item: HomeObject) -> HomeObject:
    if item.kind != "VIEW" or not keyword(item.sql).startswith("CREATE VIEW"):
        return item
    return replace(item, sql="CREATE OR REPLACE" + item.sql[len("CREATE") :])
