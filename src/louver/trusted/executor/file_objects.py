"""What of a DuckDB file is encrypted: its objects, or some tables and all that needs only these.

Nothing is lost in silence: what is left in the file has a notice, and so has every collation. A
collation that cannot be stored is an error, unless the user agrees that it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import duckdb

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import inventory
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.duckdb_instances import options
from louver.trusted.executor.local.duckdb_schema import DuckDBSchema
from louver.trusted.executor.local.local import Key, Schema, SequenceState
from louver.trusted.executor.schema import head, objects, tables
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.declarations import Declared
from louver.trusted.vault.catalog import HomeObject
from louver.trusted.vault.protection import FILES
from louver.trusted.vault.types import is_collated, is_everywhere

_KEPT_SEALED = (
    "{name}: COLLATE {collation} stays. Your machine decides every condition on the column, and the"
    " server stores no codes of it."
)
_KEPT_PLAIN = "{name}: COLLATE {collation} stays; the server compares by it."
_DROPPED = (
    "{name}: stored without COLLATE {collation}, so it compares by bytes. Write the collation into"
    " queries: ORDER BY {column} COLLATE {collation}."
)
_LEFT = "Not taken, for other tables than the chosen ones are needed: {names}."


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects to create, in an order in which they can be, and what the user is to know."""

    items: tuple[HomeObject, ...]
    notices: tuple[str, ...] = ()


def protected(context: Context, columns: Sequence[tuple[str, str]]) -> dict[str, Declared]:
    """Every column is ENC, unless a policy selects the columns."""
    return {} if context.policy.rules else {fold(n): Declared(n, "", "") for n, _ in columns}


def chosen(
    context: Context,
    plain: Schema,
    items: Sequence[HomeObject],
    names: Sequence[str],
    *,
    drop_collations: bool,
) -> Selection:
    """The objects of a file that are to be encrypted. Raises before anything is created."""
    selection = _of_tables(context, plain, items, names) if names else Selection(tuple(items))
    for item in selection.items:
        if item.kind == "TABLE":
            head.refuse_reserved(item.name)
    remaining, said = _collations(context, plain, selection.items, drop=drop_collations)
    return Selection(_absent(context, remaining), (*said, *selection.notices))


# ---------------------------------------------------------------------- some tables


def _of_tables(
    context: Context, plain: Schema, items: Sequence[HomeObject], names: Sequence[str]
) -> Selection:
    """The named tables with their schemas, indexes, types and sequences, and the views, macros and
    comments that need no other table; raises if a table is missing.
    """
    wanted = {fold(name.replace('"', "")) for name in names}
    owned = [i for i in items if i.kind == "TABLE" and fold(_label(i)) in wanted]
    missing = wanted - {fold(_label(item)) for item in owned}
    if missing:
        raise errors.make("table.missing", table=min(missing))
    keys = {objects.key_of(item) for item in owned}
    _require_parents(plain, keys)
    candidates = [item for item in items if item.kind in ("VIEW", "MACRO")]
    others = [item for item in items if item.kind == "TABLE" and item not in owned]
    base = [item for item in items if item.kind in ("SCHEMA", "TYPE", "SEQUENCE")] + owned
    bound = _bound(context, base, candidates, others)
    left = [_name(item) for item in candidates if item not in bound and not _is_here(context, item)]
    keys |= {objects.key_of(item) for item in bound}
    indexed = {
        ("INDEX", fold(schema), fold(name))
        for schema, name, table in ((i.schema, i.name, i.table) for i in plain.indexes())
        if ("TABLE", fold(schema), fold(table)) in keys
    }
    schemas = {schema for _, schema, _ in keys}
    texts = " ".join(fold(item.sql) for item in (*owned, *bound))

    def is_needed(item: HomeObject) -> bool:
        match item.kind:
            case "SCHEMA":
                # The types of a schema come with it.
                return fold(item.name) in schemas or any(
                    i.kind == "TYPE" and fold(i.schema) == fold(item.name) for i in items
                )
            case "TYPE":
                return True
            case "SEQUENCE":
                return fold(item.name) in texts
            case "INDEX":
                return objects.key_of(item) in indexed
            case "COMMENT":
                return _is_commented(item, keys | indexed)
        return item in owned or item in bound

    needed = tuple(item for item in items if is_needed(item))
    return Selection(needed, (_LEFT.format(names=", ".join(left)),) if left else ())


def _require_parents(plain: Schema, keys: set[Key]) -> None:
    """A foreign key is checked by no row of the file, so that its table has to come along."""
    for reference in plain.references():
        schema = reference.schema
        if ("TABLE", fold(schema), fold(reference.table)) not in keys:
            continue
        if ("TABLE", fold(schema), fold(reference.parent)) not in keys:
            names = (reference.table, reference.parent)
            label, needed = (tables.label_of(schema, name) for name in names)
            raise errors.make("file.parent", table=label, parent=needed)


def _bound(
    context: Context,
    base: Sequence[HomeObject],
    candidates: Sequence[HomeObject],
    others: Sequence[HomeObject],
) -> list[HomeObject]:
    """Those views and macros that DuckDB binds where the other tables do not exist.

    Without its own table a view of a schema would read that of `main`, so one that says the name of
    a table left in its schema is left too. Of a macro DuckDB does not bind everything before it is
    called.
    """
    bound, left = list(candidates), list(others)
    while True:
        names = {fold(item.name) for item in left}
        own = {(fold(item.schema), fold(item.name)) for item in left if item.schema != "main"}
        clear = [
            item
            for item in bound
            if not any(
                word in names if item.kind == "MACRO" else (fold(item.schema), word) in own
                for word in _words(item)
            )
        ]
        with closing(
            duckdb.connect(":memory:", config=options(context.local.directory))
        ) as scratch:
            unbound = inventory.run_all(scratch, [*base, *clear])
        stable = [item for item in clear if item not in unbound]
        if stable == bound:
            return bound
        bound = stable
        left = [*others, *(item for item in candidates if item not in bound)]


def _words(item: HomeObject) -> set[str]:
    """The words of an object's text behind its own name."""
    tokens = lexer.tokens(item.sql)
    return {fold(token.text) for token in tokens[head.read(tokens).end :]}


def _is_commented(item: HomeObject, keys: set[Key]) -> bool:
    words = lexer.words(lexer.tokens(item.sql), 4)
    kind = words[2]
    kinds = {
        "COLUMN": ("TABLE", "VIEW"), "MACRO": ("MACRO", "MACRO TABLE"), "TYPE": (), "SEQUENCE": ()
    }.get(kind, (kind,))  # fmt: skip
    return any((name, fold(item.schema), fold(item.name)) in keys for name in kinds)


def _label(item: HomeObject) -> str:
    return tables.label_of(item.schema, item.name)


def _name(item: HomeObject) -> str:
    return f"{fold(item.kind)} {_label(item)}"


# ---------------------------------------------------------------------- collations


def _collations(
    context: Context, plain: Schema, items: Sequence[HomeObject], *, drop: bool
) -> tuple[list[HomeObject], list[str]]:
    """The objects, and a notice for each column with a collation; raises for those that cannot be
    stored with it, unless they are to be stored without.
    """
    results, notices, refused = [], [], []
    for item in items:
        lost: dict[str, str] = {}
        columns = (
            objects.described_in(plain, item.schema, item.name) if item.kind == "TABLE" else []
        )
        collated = {name: type_ for name, type_ in columns if is_collated(type_)}
        generated = bool(collated) and bool(plain.generated(item.schema, item.name))
        declared = protected(context, columns)
        for name, type_ in collated.items():
            protection = context.protection(_label(item), name, type_, declared.get(fold(name)))
            parts = {
                "name": f"{_label(item)}.{name}", "column": quoted(name),
                "collation": type_.rpartition(" ")[2],
            }  # fmt: skip
            if generated or context.policy.storage == FILES:
                lost[fold(name)] = _DROPPED.format(**parts)
            elif protection.encrypted:
                notices.append(_KEPT_SEALED.format(**parts))
            elif is_everywhere(type_):
                notices.append(_KEPT_PLAIN.format(**parts))
            else:
                lost[fold(name)] = _DROPPED.format(**parts)
            if fold(name) in lost:
                refused.append(parts["name"])
        notices += lost.values()
        sql = head.without_collations(item.sql, lost) if lost else item.sql
        results.append(replace(item, sql=sql))
    if refused and not drop:
        raise errors.make("file.collations", columns=", ".join(refused))
    return results, notices


# ---------------------------------------------------------------------- what the target has


def _absent(context: Context, items: Sequence[HomeObject]) -> tuple[HomeObject, ...]:
    """The objects that the target lacks. One of the same name is an obstacle unless it is equal;
    a table always is, since it has rows.
    """
    snapshot = context.local.schema.snapshot(macros=True)
    taken = {(kind, fold(schema), fold(name)) for kind, schema, name in snapshot}
    absent: list[HomeObject] = []
    equal: set[tuple[str, str]] = set()
    for item in items:
        if item.kind == "COMMENT":
            words = lexer.words(lexer.tokens(item.sql), 3)
            if (words[2].split()[0], fold(f"{item.schema}.{item.name}")) in equal:
                continue
        elif item.kind != "SCHEMA" and objects.key_of(item) in taken:
            if item.kind == "TABLE":
                raise errors.make("table.exists", table=_label(item))
            if not _is_equal(context, item):
                raise errors.make("file.object", kind=fold(item.kind), name=_label(item))
            equal.add((item.kind, fold(f"{item.schema}.{item.name}")))
            continue
        absent.append(item)
    return tuple(absent)


def _is_here(context: Context, item: HomeObject) -> bool:
    """Whether the target has an equal object."""
    key = objects.key_of(item)
    known = context.local.schema.snapshot(macros=item.kind == "MACRO")
    here = any((kind, fold(schema), fold(name)) == key for kind, schema, name in known)
    return here and _is_equal(context, item)


def _is_equal(context: Context, item: HomeObject) -> bool:
    """Whether the target's object of the same name does the same."""
    key, schema = objects.key_of(item), context.local.schema
    if item.kind == "SEQUENCE":
        return _continues(schema, item)
    own = context.catalog.objects if item.kind == "MACRO" else schema.objects()
    return any(
        other.sql.rstrip("; \n") == item.sql.rstrip("; \n")
        for other in own
        if other.kind != "COMMENT" and objects.key_of(other) == key
    )


def _continues(schema: Schema, item: HomeObject) -> bool:
    """Whether the target's sequence gives no value that the file's has given."""
    key = (fold(item.schema), fold(item.name))
    own = schema.sequences()[key]
    with closing(duckdb.connect(":memory:")) as scratch:
        if item.schema != "main":
            scratch.execute(f"CREATE SCHEMA {quoted(item.schema)}")
        scratch.execute(item.sql)
        other = DuckDBSchema(scratch).sequences()[key]
    same = ("increment", "low", "high", "cycle")
    if any(getattr(own, field) != getattr(other, field) for field in same):
        return False
    return (_next(own) - _next(other)) * own.increment >= 0


def _next(state: SequenceState) -> int:
    return state.start if state.last is None else state.last + state.increment
