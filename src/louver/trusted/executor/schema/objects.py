"""The local objects and the catalog's list of them, from which the home is rebuilt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from louver import errors
from louver.names import fold
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import object_texts
from louver.trusted.executor.local.local import RANKS, Key, Parameters, Schema, Seen
from louver.trusted.executor.schema import blocks, head
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import TEMPORARY, Catalog, HomeObject
from louver.trusted.vault.types import with_collation

_DRAWS = re.compile(r"\b(nextval|setval)\b", re.IGNORECASE)
_UNSEEN = {"MACRO": "FUNCTION", "TYPE": "DOMAIN", "COMMENT": "default of a view's column"}


@dataclass(frozen=True, slots=True)
class Change:
    """What a statement did locally. A replaced object counts as removed and as added."""

    added: list[Key]
    removed: list[Key]
    altered: dict[Key, str]
    renamed: dict[Key, Key]


def run(context: Context, sql: str, parameters: Parameters = (), *, macros: bool = False) -> Change:
    """Run a statement on the binder and see what it did."""
    before = context.local.schema.snapshot(macros=macros)
    context.state.untouched = True
    context.local.declare(sql, parameters)
    context.state.untouched = False
    return compare(before, context.local.schema.snapshot(macros=macros))


def compare(before: dict[Key, Seen], after: dict[Key, Seen]) -> Change:
    """The difference of two snapshots; an object keeps its number when its name changes."""
    gone = {key for key in before if key not in after or after[key].oid != before[key].oid}
    come = [key for key in after if key not in before or after[key].oid != before[key].oid]
    numbers = {(key[0], before[key].oid): key for key in gone}
    renamed = {
        numbers[key[0], after[key].oid]: key for key in come if (key[0], after[key].oid) in numbers
    }
    altered = {
        key: seen.sql
        for key, seen in after.items()
        if key in before and before[key].oid == seen.oid and before[key].sql != seen.sql
    }
    added = [key for key in come if key not in renamed.values()]
    return Change(added, sorted(gone - renamed.keys()), altered, renamed)


def key_of(item: HomeObject) -> Key:
    """The key of an object in the catalog, folded. There the two sorts of macros are one kind."""
    table = item.kind == "MACRO" and object_texts.is_table_macro(lexer.tokens(item.sql))
    return "MACRO TABLE" if table else item.kind, fold(item.schema), fold(item.name)


def exists(context: Context, kind: str, key: tuple[str, str]) -> bool:
    """Whether there is such an object locally."""
    results = context.local.schema.snapshot(macros=kind in ("MACRO", "MACRO TABLE"))
    wanted = (kind, key[0] or context.catalog.schema, key[1])
    return any((k, fold(s), fold(n)) == wanted for k, s, n in results)


def has_temporary(context: Context) -> bool:
    """Whether anything is of this session alone."""
    known = any(item.temporary for item in context.catalog.objects)
    return known or bool(context.local.temporary.names)


def name_functions(catalog: Catalog, change: Change) -> None:
    """A function stands with its arguments while others have its name."""
    for old, new in change.renamed.items():
        for item in catalog.objects:
            if (item.kind, item.schema, item.name) == old and item.kind == "MACRO":
                item.name = new[2]


def forget(context: Context, catalog: Catalog, removed: Iterable[Key]) -> None:
    """Take removed objects out of catalog, server and workspace."""
    gone = {(kind, fold(schema), fold(name)) for kind, schema, name in removed}
    for kind, schema, name in gone:
        if kind == "TABLE":
            table = catalog.drop(schema, name)
            if table is not None:
                context.storage.drop(table)
    for kind, schema, name in gone:
        if kind == "SCHEMA":
            context.storage.drop_schema(schema)
        if kind != "INDEX" or schema == TEMPORARY:
            context.local.forget(kind, schema, name)
    catalog.objects = [item for item in catalog.objects if key_of(item) not in gone]
    context.local.unresolved = [
        item for item in context.local.unresolved if item in catalog.objects
    ]
    context.local.forget_types()


def remember(context: Context, catalog: Catalog, item: HomeObject) -> None:
    """Put an object into the catalog and the workspace; the binder has it already. It replaces one
    of the same name that could not be defined, which the local DuckDB does not know.
    """
    printed = context.local.dialect.prints_objects
    item.path = [] if printed else context.local.path.schemas
    catalog.objects = [o for o in catalog.objects if key_of(o) != key_of(item)] + [item]
    context.local.unresolved = [o for o in context.local.unresolved if o in catalog.objects]
    sort(catalog)
    context.local.forget_types()
    try:
        context.local.mirror(item, catalog)
    except errors.ProgrammingError:
        # DuckDB took it in the schema: it names itself, and was there before.
        context.local.unresolved.append(item)
        return
    if context.local.unresolved:
        context.local.resolve(catalog)


def follow(
    context: Context,
    catalog: Catalog,
    change: Change,
    *spared: str,
    table: tuple[str, str] | None = None,
) -> None:
    """Have the catalog's list say what a statement did beside what it is about, where the engine
    prints every object: sequences that come and go with columns, views that name a renamed one.
    Keys of the ``spared`` kinds that were added are remembered otherwise, and what became of the
    columns of ``table`` is followed otherwise.
    """
    if not context.local.dialect.prints_objects:
        refresh(context, catalog, change.altered)
        return
    for kind, schema, name in change.altered:
        if kind == "TABLE" and (fold(schema), fold(name)) != table:
            _require_columns(context, catalog, schema, name)
    forget(context, catalog, [key for key in change.removed if key[0] not in spared])
    for kind, schema, name in change.added:
        if kind not in spared:
            item = HomeObject(kind, schema, name, introspected(context, kind, schema, name))
            remember(context, catalog, item)
    refresh(context, catalog, change.altered)


def _require_columns(context: Context, catalog: Catalog, schema: str, name: str) -> None:
    """Refuse a statement that changes the columns of a table which it is not about."""
    known = catalog.table(schema, name)
    before = [] if known is None else [(column.name, column.type) for column in known.columns]
    if before != described(context, schema, name):
        statement = f"A statement that changes the columns of {name}, which it does not name,"
        raise errors.make("sql.unsupported", statement=statement)


def sort(catalog: Catalog) -> None:
    """Put the objects into the order in which they are rebuilt: stored ones without others."""
    catalog.objects.sort(key=lambda item: (item.temporary, RANKS.index(item.kind)))


def introspected(context: Context, kind: str, schema: str, name: str) -> str:
    """The statement that makes a table or view, as the local engine has it."""
    return context.local.schema.text_of(kind, schema, name)


def printed(context: Context, item: HomeObject) -> HomeObject:
    """A new object as the catalog keeps it: the user's text, or what the engine prints."""
    if context.local.dialect.prints_objects:
        item.sql = introspected(context, item.kind, item.schema, item.name)
    return item


def described(context: Context, schema: str, name: str) -> list[tuple[str, str]]:
    """Names and types of a table's columns, the catalog's, with their collations."""
    return described_in(context.local.schema, schema, name)


def described_in(source: Schema, schema: str, name: str) -> list[tuple[str, str]]:
    """The same of another database."""
    columns = source.columns(schema, name)
    statement = source.text_of("TABLE", schema, name)
    known = head.collations(statement) if "COLLATE" in statement else {}
    if known and spoken().prints_objects:
        # What may have any name there, be of any type, and take several values for one.
        statement = f"COLLATE on column {min(known)} (put it into the query instead)"
        raise errors.make("sql.unsupported", statement=statement)
    types = {column: with_collation(collation) for column, collation in known.items()}
    named = spoken().catalog_type
    return [(column.name, types.get(fold(column.name)) or named(column.type)) for column in columns]


def require_no_draws(kind: str, sql: str) -> None:
    """Refuse functions and domains that draw from a sequence, where no statement's text says so."""
    if kind in _UNSEEN and _DRAWS.search(sql):
        statement = f"A {_UNSEEN[kind]} that draws from a sequence"
        raise errors.make("sql.unsupported", statement=statement)


def refresh(context: Context, catalog: Catalog, altered: Iterable[Key]) -> None:
    """Write tables and views that DuckDB shows otherwise than before anew into the list."""
    every = context.local.dialect.prints_objects
    kinds = RANKS if every else ("TABLE", "VIEW")
    known = {(k, fold(s), fold(n)) for k, s, n in altered if k in kinds}
    for item in catalog.objects:
        if (item.kind, fold(item.schema), fold(item.name)) in known:
            item.sql = introspected(context, item.kind, item.schema, item.name) or item.sql
            if every:
                require_no_draws(item.kind, item.sql)
                if item.kind == "SEQUENCE":
                    blocks.let_go(context, (fold(item.schema), fold(item.name)))
                context.local.forget(item.kind, item.schema, item.name)
                context.local.mirror(item, catalog)
                if item.kind == "TYPE":
                    _mirror_users(context, catalog, item)


def _mirror_users(context: Context, catalog: Catalog, type_: HomeObject) -> None:
    """What was made of a type went with it in the workspace."""
    names = {fold(type_.name)}
    for item in list(catalog.objects):
        if item is type_ or item.kind not in ("TYPE", "MACRO"):
            continue
        if names.isdisjoint(fold(token.text) for token in lexer.tokens(item.sql)):
            continue
        names.add(fold(item.name.partition("(")[0]))
        context.local.forget(item.kind, item.schema, item.name)
        context.local.mirror(item, catalog)
