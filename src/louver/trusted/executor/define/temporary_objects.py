"""TEMP views, macros, sequences and types: they end with the session, and no server hears of them.

They are objects of the session's catalog as stored ones are, so that the flow rule looks through
them alike. What is stored of the catalog leaves them out, and no stored object may need one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from louver import errors
from louver.names import fold, own_schemas
from louver.trusted.executor import constraint_check, seen_state, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import transaction_time
from louver.trusted.executor.local.local import Key, Parameters
from louver.trusted.executor.schema import head, objects
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import schema_of
from louver.trusted.planner.write.reads import names_of, reached
from louver.trusted.vault.catalog import TEMPORARY, Catalog, HomeObject

#: Kinds of objects that DuckDB removes though a temporary table is declared by them.
_DECLARING = ("SEQUENCE", "TYPE", "MACRO", "MACRO TABLE")
_WORD = re.compile(r"\w+")


def resolved(context: Context, start: head.Head) -> tuple[str, str]:
    """Schema and name of an object that is to be made. Refuses a name that a stored table and
    something temporary would share: which of the two a statement means must be certain.
    """
    schema, name = start.target
    if start.kind in ("TABLE", "VIEW", "SEQUENCE"):
        others = (
            {key[1] for key in context.catalog.tables} | sequences_of(context, start)
            if start.temporary
            else views_of(context) | context.local.temporary.names
        )
        if name in others and not (start.kind == "VIEW" and name in views_of(context)):
            raise errors.make("table.temporary", table=name)
    if not start.temporary:
        if start.kind == "SCHEMA" and name == TEMPORARY:
            raise errors.make("sql.unsupported", statement="A schema of the name temp")
        return schema, name
    if schema not in ("", own_schemas().temporary, TEMPORARY) or start.kind in ("INDEX", "SCHEMA"):
        raise errors.make("sql.unsupported", statement=f"CREATE TEMP {start.kind} of this name")
    if start.kind == "MACRO" and name in transaction_time.NAMES:
        statement = f"CREATE TEMP MACRO {name}, which covers a function that tells the time,"
        raise errors.make("sql.unsupported", statement=statement)
    return TEMPORARY, name


def implied(context: Context, start: head.Head, sql: str, parameters: Parameters) -> bool:
    """Whether a view is temporary although that is not said, as PostgreSQL has it of one that
    reads something temporary.
    """
    prints = context.local.dialect.prints_objects
    if start.kind != "VIEW" or start.temporary or len(start.name) > 1 or not prints:
        return False
    if not objects.has_temporary(context):
        return False
    with constraint_check.rehearsal(context) as connection:
        before = context.local.schema.snapshot(macros=False)
        connection.execute(sql, parameters)
        change = objects.compare(before, context.local.schema.snapshot(macros=False))
    return are([*change.added, *change.altered])


def sequences_of(context: Context, start: head.Head) -> set[str]:
    """The folded names of stored sequences, which a new temporary one must not share."""
    if start.kind != "SEQUENCE" or not context.local.dialect.prints_objects:
        return set()
    return {fold(item.name) for item in context.catalog.objects if item.kind == "SEQUENCE"}


def over_tables(context: Context, name: str) -> bool:
    """Whether a folded name is that of a temporary view of nothing but temporary tables."""
    if name not in views_of(context) or not context.local.dialect.prints_objects:
        return False
    every, read = reached(context.catalog, {name})
    stored = {table for _, table in context.catalog.tables}
    return (
        context.local.temporary.mentioned(every)
        and stored.isdisjoint(every)
        and all(item.kind == "VIEW" and item.temporary for item in read)
    )


def have_views(context: Context) -> bool:
    """Whether any temporary view reads temporary tables."""
    own = context.local.temporary
    return any(own.mentioned(reached(context.catalog, {name})[0]) for name in views_of(context))


def views_of(context: Context) -> set[str]:
    """The folded names of temporary views; a data frame is one to DuckDB."""
    objects_, frames = context.catalog.objects, context.local.files.frames.known.keys()
    return {fold(o.name) for o in objects_ if o.temporary and o.kind == "VIEW"} | frames


def is_view(context: Context, start: head.Head) -> bool:
    """Whether a statement is about a temporary view."""
    schema = schema_of(*("", "", *start.name)[-3:-1])
    table = None if schema is None else context.catalog.find(schema, start.name[-1])
    return isinstance(table, HomeObject) and table.temporary


def are(keys: Sequence[Key]) -> bool:
    """Whether some objects are all of this session alone."""
    return bool(keys) and all(schema == TEMPORARY for _, schema, _ in keys)


@contextmanager
def changing(context: Context, local: bool) -> Iterator[Catalog]:
    """A change of the schema; of what is temporary where it is ``local``, and then nothing is sent
    and a transaction that only reads may make it.
    """
    if not local:
        with transaction.writing(context, schema_changed=True) as catalog:
            yield catalog
        return
    catalog = seen_state.own_catalog(context) if context.in_transaction else context.catalog
    home = context.local
    if home.dialect.prints_objects:
        transaction.require_writable(context)
    # Those that are replaced are written anew in their own objects.
    before = [replace(item) for item in catalog.objects]
    context.state.definitions += 1
    if context.in_transaction:
        home.temporary.keep()
    try:
        yield catalog
        if home.temporary.names:
            home.temporary.mirror()
            if any(item.temporary for item in home.unresolved):
                raise errors.make("sql.unsupported", statement="A TEMP view of this form")
    except BaseException:
        if not context.state.untouched:
            catalog.objects = before
            home.rebuild(catalog)
        raise
    context.state.flows.clear()
    catalog.touch()


def require_unused(context: Context, removed: Sequence[Key]) -> None:
    """Refuse to remove what a temporary table is declared by: DuckDB keeps the table, and could not
    make it again.
    """
    own = context.local.temporary
    gone = {fold(name): name for kind, _, name in removed if kind in _DECLARING}
    if not own.names or not gone or context.local.dialect.prints_objects:
        return
    words = {fold(word) for text in own.texts(set(own.names)) for word in _WORD.findall(text)}
    for name in words.intersection(gone):
        statement = f"DROP of {gone[name]}, by which a TEMP table is declared,"
        raise errors.make("sql.unsupported", statement=statement)


def independent(context: Context, start: head.Head, sql: str, parameters: Parameters = ()) -> str:
    """The text that is stored of an object, which a session without any temporary object must
    understand too. Types are written out for that; anything else is refused.
    """
    if not objects.has_temporary(context) or start.kind in ("SCHEMA", "SEQUENCE"):
        return sql
    if start.kind == "MACRO":
        # Its names are looked up when it is called.
        catalog = context.catalog
        own = {fold(item.name) for item in catalog.objects if item.temporary}
        words = names_of(lexer.tokens(sql)[start.end :])
        if not (own | context.local.temporary.names).isdisjoint(reached(catalog, words)[0]):
            raise _dependent(start)
        return sql
    entries, changed = _made(context, start, sql, parameters)
    if entries is None or _alone(context, entries, changed):
        return sql
    if start.kind == "TABLE" and entries.sql != changed:
        # Types are written out in what DuckDB prints.
        entries.sql = changed
        if _alone(context, entries, changed):
            return changed
    raise _dependent(start)


def _made(
    context: Context, start: head.Head, sql: str, parameters: Parameters
) -> tuple[HomeObject | None, str]:
    """The object that a statement makes or changes, and its text as DuckDB prints it."""
    declared = context.local.schema
    with constraint_check.rehearsal(context) as connection:
        before = declared.snapshot(macros=False)
        connection.execute(sql, parameters)
        change = objects.compare(before, declared.snapshot(macros=False))
        keys = [*change.added, *change.altered, *change.renamed.values()]
        for kind, schema, name in keys:
            if kind == start.kind:
                table = kind == "TABLE"
                printed = declared.text_of(kind, schema, name) if table else ""
                said = printed if start.verb == "ALTER" else sql
                path = list(context.local.path.schemas)
                return HomeObject(kind, schema, name, said, path), printed
    return None, ""


def _alone(context: Context, item: HomeObject, printed: str) -> bool:
    """Whether an object can be made where nothing is temporary. There a name may be that of a
    stored type, and the table, as it is ``printed``, another one.
    """
    catalog, own = context.catalog.copy(), objects.key_of(item)
    rest = [o for o in catalog.objects if not o.temporary and objects.key_of(o) != own]
    catalog.objects = [*rest, item]
    objects.sort(catalog)
    try:
        home = context.local.alone(catalog)
    except errors.Error:
        return False
    same = item not in home.unresolved
    if same and item.kind == "TABLE" and not context.local.dialect.prints_objects:
        same = home.schema.text_of(item.kind, item.schema, item.name) == printed
    home.close()
    return same


def refuse_comment(context: Context, text: lexer.Text) -> None:
    """Comments are kept in the catalog that is stored."""
    if not objects.has_temporary(context):
        return
    with constraint_check.rehearsal(context) as connection:
        connection.execute(text.home)
        results = context.local.schema.comments(temporary=True)
    if results:
        raise errors.make("sql.unsupported", statement="COMMENT ON a TEMP object")


def _dependent(start: head.Head) -> errors.Error:
    statement = f"{start.verb} {start.kind} that needs something temporary, which it would outlive,"
    return errors.make("sql.unsupported", statement=statement)
