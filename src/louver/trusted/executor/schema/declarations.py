"""What a table's declarations let its columns depend on, held to the flow rule.

A generated column and a default are values that come by themselves; a column that refers to a key
of another table has no values but that key's.
"""

from __future__ import annotations

from louver import errors
from louver.names import fold
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import Constraint, Schema
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.write import information_flow, permit
from louver.trusted.planner.write.local import Local, of_any_time
from louver.trusted.planner.write.reads import Reads, Secrets
from louver.trusted.vault.catalog import Catalog, Table


def require(context: Context, catalog: Catalog, table: Table) -> None:
    """Refuse a declaration by which a column would depend on what it may not."""
    if not table.columns:
        raise errors.make("sql.unsupported", statement="A table without columns")
    schema = context.local.schema
    judge = permit.Judge(catalog, table)
    given = defaults(schema, table)
    for column in table.columns:
        if column.expression:
            judge.require(column, computed(catalog, table, column.expression, of_any_time()))
        elif fold(column.name) in given:
            reads = Reads(catalog, None, (), table, context.state.origins)
            judge.require(column, information_flow.of_default(reads, given[fold(column.name)]))
    for reference in _references(schema, table):
        known = catalog.table(reference.schema, reference.parent)
        for name, key in zip(reference.columns, reference.parent_columns, strict=True):
            child = table.column(name)
            stored = known.column(key) if known is not None else None
            if known is not None and child is not None and stored is not None and stored.encrypted:
                judge.require(child, frozenset(((known.id, stored.id),)))
    if judge.leaks:
        context.ledger.record(judge.leaks, f"declarations of {table.label}")


def require_around(context: Context, catalog: Catalog, table: Table) -> None:
    """The same of a table and of those that refer to it."""
    for other in list(catalog.tables.values()):
        parents = [(r.schema, r.parent) for r in _references(context.local.schema, other)]
        if other.id == table.id or any(catalog.table(*parent) is table for parent in parents):
            require(context, catalog, other)


def defaults(schema: Schema, table: Table) -> dict[str, str]:
    """The defaults of a table's columns, by folded name."""
    columns = schema.columns(table.schema, table.name)
    generated = {fold(column.name) for column in table.columns if column.expression}
    texts = {fold(c.name): c.default for c in columns if c.default is not None}
    return {name: text for name, text in texts.items() if name not in generated}


def computed(catalog: Catalog, table: Table, expression: str, local: Local) -> Secrets:
    """What an expression over the columns of a table depends on."""
    tokens = lexer.tokens(f"{expression} FROM {table.local_name}")
    tree = trees.parse(f"SELECT {expression} FROM {table.local_name}")
    reads = Reads(catalog, tree, tokens, table, local)
    return information_flow.of_expression(reads, expression, table)


def _references(schema: Schema, table: Table) -> list[Constraint]:
    """The foreign keys of a table."""
    return [c for c in schema.constraints(*table.key) if c.kind == "FOREIGN KEY"]
