"""Constraints that no server can check, checked locally by DuckDB.

A change is rehearsed on the declared local tables, inside a transaction that is always rolled
back: DuckDB itself applies types, defaults, checks and generated columns. Keys and foreign keys
need the rows that exist already; only their key columns are read from the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pyarrow as pa

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import storage
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import ForeignKey, LocalConnection, UniqueKey
from louver.trusted.executor.raw_rows import RawRow
from louver.trusted.executor.schema import declarations, sequences
from louver.trusted.executor.schema.representations import tag_of
from louver.trusted.executor.schema.tables import generated_columns
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write.permit import SCHEMA_CEILING
from louver.trusted.planner.write.reads import reached
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.scheme import has_shares

MOST_KEYS_KEPT = 2_000_000
"""Keys remembered between statements; a larger table's are read anew."""
_MOST_CHUNKS = 64
_DELETED_TWICE = "Failed to delete all rows from index"
Done = TypeVar("Done")


@dataclass(slots=True)
class Rules:
    """What a table's rows must obey beyond one row, the table's text without references, and the
    defaults of its columns.
    """

    keys: list[UniqueKey] = field(default_factory=list)
    foreign: list[ForeignKey] = field(default_factory=list)
    children: list[tuple[str, str]] = field(default_factory=list)
    without_foreign: str = ""
    generated: frozenset[str] = frozenset()
    defaults: dict[str, str] = field(default_factory=dict)
    #: columns that take no NULL, by folded name
    required: set[str] = field(default_factory=set)
    #: what decides whether a row may stand: CHECKs, and expressions of unique indexes
    deciding: list[str] = field(default_factory=list)

    def key_columns(self) -> list[str]:
        """Every column that some key reads."""
        return list(dict.fromkeys(name for key in self.keys for name in key.columns))


@dataclass(slots=True)
class _Memory:
    """What is remembered for a session: rules while the schema stays, keys while data does."""

    schema: int = 0
    rules: dict[tuple[str, str], Rules] = field(default_factory=dict)
    keys: dict[tuple[int, tuple[str, ...]], tuple[str, pa.Table]] = field(default_factory=dict)


def rehearsal(context: Context) -> AbstractContextManager[LocalConnection]:
    """The declared local tables, empty, to be changed freely: all is undone at the end."""
    return context.local.rehearsal()


def rehearsed(
    context: Context,
    fill: Callable[[LocalConnection], None],
    run: Callable[[LocalConnection], Done],
    *,
    merges: bool = False,
) -> Done:
    """What `run` finds in the declared tables after `fill`; all is undone.

    DuckDB does not delete a row twice in one statement, as MERGE and DELETE with several partners
    of a row do, where the table has an index and the row came in the same transaction; nor does a
    statement that ``merges`` give the key of a row that it deletes to another one there. The rows
    are then committed first, and the home is made anew.
    """
    try:
        with rehearsal(context) as connection:
            fill(connection)
            return run(connection)
    except errors.Error as error:
        of_key = merges and isinstance(error, errors.IntegrityError)
        if not of_key and _DELETED_TWICE not in str(error):
            raise
    drawn = sequences.states(context.local, context.catalog)
    try:
        with context.local.rehearsal(undone=False) as connection:
            fill(connection)
        with rehearsal(context) as connection:
            return run(connection)
    finally:
        drawn |= sequences.states(context.local, context.catalog)
        context.local.rebuild(context.catalog)
        sequences.restore(context.local, drawn)


def rules(context: Context, table: Table) -> Rules:
    """The constraints of a table, as the local engine states them, without foreign keys that the
    statement which runs is not checked by.
    """
    known = _whole(context, table)
    return _checked_now(context, table, known) if context.state.deferred else known


def declared(context: Context) -> int:
    """Another number, most probably, when another object is declared, or in another way."""
    return hash(tuple([o.sql for o in context.catalog.objects if o.kind != "SEQUENCE"]))


def _whole(context: Context, table: Table) -> Rules:
    memory, schema = context.state.cache(_Memory), declared(context)
    if memory.schema != schema:
        memory.schema, memory.rules, memory.keys = schema, {}, {}
    known = memory.rules.get(table.key)
    if known is None:
        known = memory.rules[table.key] = _rules(context, table)
    require_no_variable(context, known.deciding, f"Which rows {table.label} holds")
    return known


def _checked_now(context: Context, table: Table, known: Rules) -> Rules:
    """Rules without the keys that are deferred; rows that follow those that they refer to do so at
    once.
    """
    deferred, children = context.state.deferred, []
    for position in known.children:
        child = context.catalog.table(*position)
        keys = _whole(context, child).foreign if child is not None else []
        own = [key for key in keys if parent_of(context, key).id == table.id]
        if any(key.acts or key.path not in deferred for key in own):
            children.append(position)
    foreign = [key for key in known.foreign if key.path not in deferred]
    return replace(known, foreign=foreign, children=children)


def require_no_variable(context: Context, texts: Iterable[str], what: str) -> None:
    """Refuse rules that read a variable which depends on encrypted columns: whether a row stands
    would tell of it. Macros are looked through; they may have changed since.
    """
    if not context.state.origins.has_secret_variables:
        return
    words = {fold(token.text) for text in texts for token in lexer.tokens(text)}
    if "getvariable" in reached(context.catalog, words)[0]:
        raise errors.make(
            "leak.flow",
            source="a variable",
            ceiling=SCHEMA_CEILING,
            target=what,
            fix="RESET the variable",
        )


def _rules(context: Context, table: Table) -> Rules:
    schema, entries = context.local.schema, Rules()
    entries.generated = generated_columns(context, table.schema, table.name)
    texts = []
    for known in schema.constraints(*table.key):
        kind, columns = known.kind, known.columns
        if kind in ("PRIMARY KEY", "UNIQUE"):
            names = tuple(quoted(name) for name in columns)
            entries.keys.append(UniqueKey(kind == "PRIMARY KEY", names, columns, known.name))
        elif kind == "CHECK":
            entries.deciding.append(known.text)
        elif kind == "NOT NULL":
            entries.required |= {fold(name) for name in columns}
        elif kind == "FOREIGN KEY":
            texts.append(known.text)
            parent = (known.parent_schema or table.schema, known.parent)
            path = f"{quoted(table.schema)}.{quoted(known.name)}"
            entries.foreign.append(
                ForeignKey(
                    table.name, columns, parent, known.parent_columns, known.acts, known.name, path,
                    known.is_deferrable, known.is_deferred,
                )
            )  # fmt: skip
    for name, listed in schema.unique_indexes(table.key):
        bare = {fold(c.name): quoted(c.name) for c in table.columns}
        bare |= {fold(name): name for name in bare.values()}
        expressions = tuple(bare.get(fold(text), text) for text in listed)
        entries.keys.append(UniqueKey(False, expressions, _columns_in(listed, table), name))
        entries.deciding += listed
    entries.defaults = declarations.defaults(schema, table)
    entries.children = schema.children(table.key)
    if texts:
        entries.without_foreign = schema.without_references(table, texts)
    return entries


def _columns_in(expressions: Sequence[str], table: Table) -> tuple[str, ...]:
    words = {fold(t.text) for text in expressions for t in lexer.tokens(text)}
    return tuple(c.name for c in table.columns if fold(c.name) in words)


def existing(context: Context, table: Table, columns: Sequence[str]) -> pa.Table:
    """Columns of all rows of a table, remembered as long as no one wrote to it."""
    memory = context.state.cache(_Memory)
    identity = (table.id, tuple(columns))
    known = memory.keys.get(identity)
    stamp = context.storage.stamp(table)
    if known is not None and known[0] == stamp:
        return known[1]
    rows = storage.whole(context.storage, table, columns).drop_columns([storage.ROW_ID])
    _remember(memory, identity, stamp, rows)
    return rows


def _remember(
    memory: _Memory, key: tuple[int, tuple[str, ...]], stamp: str, rows: pa.Table
) -> None:
    memory.keys.pop(key, None)
    if rows.num_rows <= MOST_KEYS_KEPT:
        if rows.num_columns and rows.column(0).num_chunks > _MOST_CHUNKS:
            rows = rows.combine_chunks()
        memory.keys[key] = (stamp, rows)


def appended(context: Context, before: str, table: Table, rows: pa.Table | RawRow) -> None:
    """Carry remembered keys over an INSERT of our own; ``before`` is the stamp before it."""
    memory = context.state.cache(_Memory)
    if not memory.keys:
        return
    if not context.backend.catalog_counts:
        # Others may have written between our commit and now, so what it left is not known.
        memory.keys = {
            position: held for position, held in memory.keys.items() if position[0] != table.id
        }
        return
    rows = rows.rows() if isinstance(rows, RawRow) else rows
    for position, (stamp, existing_rows) in list(memory.keys.items()):
        if stamp != before:
            del memory.keys[position]
        elif position[0] != table.id:
            memory.keys[position] = (context.catalog.stamp, existing_rows)
        elif rows.select(existing_rows.column_names).schema.types != existing_rows.schema.types:
            # Equal values in other Arrow types, as those of an ENUM: they are read anew.
            del memory.keys[position]
        else:
            grown = pa.concat_tables([existing_rows, rows.select(existing_rows.column_names)])
            _remember(memory, position, context.catalog.stamp, grown)


def require(context: Context, table: Table, rows: pa.Table | RawRow) -> None:
    """Raise DuckDB's error where new rows break a key without a tag."""
    keys = untagged(table, rules(context, table))
    if not keys:
        return
    rows = rows.rows() if isinstance(rows, RawRow) else rows
    if not rows.num_rows:
        return
    read = list(dict.fromkeys(name for key in keys for name in key.columns))
    existing_rows = existing(context, table, read)
    with rehearsal(context) as connection:
        connection.register("louver_fresh", rows)
        connection.register("louver_kept", existing_rows)
        for key in keys:
            connection.require_key(key, "louver_fresh", "louver_kept")


def untagged(table: Table, known: Rules) -> list[UniqueKey]:
    """The keys that no server decides."""
    return [key for key in known.keys if not tag_of(table, key.expressions)]


def is_counted(context: Context, table: Table) -> bool:
    """Whether a change of a table's rows changes the catalog: where it counts them, where shares
    are compared within its bounds, and where this machine decides on keys by all rows, which one
    client at a time may change then.
    """
    if table.counted or has_shares(table):
        return True
    return bool(untagged(table, rules(context, table)))


def acts(context: Context, parent: Table, child: Table) -> bool:
    """Whether rows of one table change with those of another that they refer to."""
    return any(
        foreign.acts and parent_of(context, foreign).id == parent.id
        for foreign in _whole(context, child).foreign
    )


def parent_of(context: Context, foreign: ForeignKey) -> Table:
    """The table that a foreign key refers to."""
    table = context.catalog.table(*foreign.parent)
    if table is None:
        raise errors.make("table.missing", table=foreign.parent[1])
    return table
