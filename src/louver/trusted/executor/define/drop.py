"""DROP and COMMENT ON."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver.names import fold
from louver.trusted.executor import constraint_check, settings, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import comments, temporary_objects
from louver.trusted.executor.local.local import Key
from louver.trusted.executor.schema import head, objects
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Catalog, Table


def drop(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run a DROP statement: locally, then on the server, then in the workspace."""
    start = head.read(tokens)
    try:
        return _drop(context, text, start)
    finally:
        if start.kind == "SCHEMA":
            # DuckDB takes a schema that goes out of the search path.
            settings.change_path(context)


def _drop(context: Context, text: lexer.Text, start: head.Head) -> Answer:
    from louver.trusted.executor.schema import indexes

    macros = start.kind in ("MACRO", "SCHEMA")
    local = objects.has_temporary(context)
    if start.conditional or local:
        removed = _removed(context, text.home, macros=macros)
        if start.conditional and not removed:
            return Answer()
        temporary_objects.require_unused(context, removed)
        local = local and temporary_objects.are(removed)
    with temporary_objects.changing(context, local) as catalog:
        change = objects.run(context, text.home, macros=macros)
        indexed = _tables_of_indexes(catalog, change.removed)
        before = [indexes.wanted(catalog, table, context.backend) for table in indexed]
        objects.name_functions(catalog, change)
        objects.forget(context, catalog, change.removed)
        objects.follow(context, catalog, change)
        for table, former in zip(indexed, before, strict=True):
            from louver.trusted.executor.define import tagging

            tagging.settle(context, catalog, table)
            context.storage.index(table, former)
        comments.keep(context, catalog)
    return Answer()


def _tables_of_indexes(catalog: Catalog, removed: Sequence[Key]) -> list[Table]:
    """The tables of which an index goes, and that stay themselves."""
    from louver.trusted.executor.schema import indexes

    gone = {(key[0], fold(key[1]), fold(key[2])) for key in removed}
    known = [i for i in catalog.objects if i.kind == "INDEX"
             and ("INDEX", fold(i.schema), fold(i.name)) in gone]  # fmt: skip
    found_tables = [indexes.table_of(catalog, lexer.tokens(item.sql)) for item in known]
    return [t for t in found_tables if t is not None and ("TABLE", *t.key) not in gone]


def _removed(context: Context, sql: str, *, macros: bool) -> list[Key]:
    """What a statement removes. DuckDB says so, for it knows what a name means: that of a schema,
    with the database's name before it, or of another kind, which is an error.
    """
    with constraint_check.rehearsal(context):
        return objects.run(context, sql, macros=macros).removed


def comment(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run COMMENT ON: comments stay locally, for they may speak of the data."""
    temporary_objects.refuse_comment(context, text)
    with transaction.writing(context, schema_changed=True) as catalog:
        objects.run(context, text.home)
        comments.keep(context, catalog, anew=True)
    return Answer()
