"""Rows of a table read by their keys: the server is sent the tags of the keys (spec/key.md), and
looks them up in its unique index.

What comes back is opened, and decided again by the keys that it opens to.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.executor import chosen_rows, storage
from louver.trusted.executor.context import Context
from louver.trusted.executor.table_basis import basis
from louver.trusted.planner import choose
from louver.trusted.planner.ir import Column, Output, RemoteQuery, Sql, TableRef, Tag
from louver.trusted.planner.sql.scope import Source
from louver.trusted.vault import schemes
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact, condition_of, fact, with_condition
from louver.wire.messages import Statement

MOST_TAGS = 512
"""Tags that one request brings along."""

Tags = Mapping[str, pa.Array]
"""Tags of keys as bytes, by the server's columns of tags; NULL stands for no key."""


def tags_of(context: Context, table: Table, rows: pa.Table) -> dict[str, pa.Array]:
    """The tags of the keys that rows of declared columns have; keys of which a column is missing
    are left out.
    """
    return schemes.tags(context.columns, table, rows)


def with_tags(
    context: Context,
    table: Table,
    wanted: Tags,
    columns: Sequence[str] | None = None,
    more: Sequence[Fact] = (),
) -> pa.Table:
    """The rows of a table that have one of these tags, opened, each once, with their numbers
    (column ``louver_row_id``) in the order of these.

    ``columns`` are the declared ones that are read, all where it is None; the columns of the keys
    must be among them. What this shows is in the ledger before it is sent, with ``more`` facts of
    the statement, all at once. Raises
    `errors.VerificationError` at a row that was not asked for, and where two have one key.
    """
    requests = {stored: _texts(tags) for stored, tags in wanted.items()}
    reads = _reads(context, table, columns)
    _record(context, table, requests, reads, more)
    parts = []
    for stored, texts in requests.items():
        for start in range(0, len(texts), MOST_TAGS):
            asked_for = texts[start : start + MOST_TAGS]
            rows = _asked(context, table, reads, stored, asked_for)
            _require_keys(context, table, stored, rows, wanted[stored])
            parts.append(rows)
    if not parts:
        # Of the types that rows have; nothing is sent for a condition that no tag can meet.
        return _no_rows(context, table, columns)
    return _each_once(pa.concat_tables(parts))


def facts(
    context: Context,
    table: Table,
    columns: Sequence[str] | None = None,
    keys: Collection[str] | None = None,
) -> list[Fact]:
    """What reading rows by their tags shows, whichever they are. ``keys`` are the server's columns
    that these are looked for in, all where it is None.
    """
    source = Source(0, table.name, table, context.backend)
    names = [column.name for column in table.columns] if columns is None else list(columns)
    outputs: list[Output] = [choose.stored(name, source, name) for name in names]
    stored = list(table.tags if keys is None else keys)
    where = tuple(_node(context, key, 1) for key in stored)
    ref = TableRef(0, table.name, table.id)
    remote = RemoteQuery((table.schema, table.name), (ref,), (), tuple(outputs), where)
    shown = choose.reads(remote, [source])
    for key in stored:
        keyed = [column for column in table.columns if column.id in table.tags[key]]
        encrypted = [column for column in keyed if column.encrypted]
        if encrypted:
            shown.append(fact("key.asked", table, encrypted))
    return shown


@dataclass(slots=True)
class _Reads:
    """Reading some columns of a table by tags: what that rests on, by the server's columns of tags
    what it shows, and the queries with so many tags, which are printed once.
    """

    rests_on: tuple[object, ...]
    columns: tuple[str, ...]
    facts: dict[tuple[str, ...], list[Fact]] = field(default_factory=dict)
    queries: dict[tuple[str, int], RemoteQuery] = field(default_factory=dict)


class _Known(dict[tuple[int, tuple[str, ...]], _Reads]):
    """What a session reads by tags, by the table's id and the columns."""


def _reads(context: Context, table: Table, columns: Sequence[str] | None) -> _Reads:
    names = tuple(c.name for c in table.columns) if columns is None else tuple(columns)
    known, rests_on = context.state.cache(_Known), basis(table)
    reads = known.get((table.id, names))
    if reads is None or reads.rests_on != rests_on:
        reads = known[table.id, names] = _Reads(rests_on, names)
    return reads


def _record(
    context: Context,
    table: Table,
    requests: Mapping[str, Sequence[str]],
    reads: _Reads,
    more: Sequence[Fact],
) -> None:
    keys, shown = tuple(stored for stored, texts in requests.items() if texts), list(more)
    if keys:
        if keys not in reads.facts:
            reads.facts[keys] = facts(context, table, reads.columns, keys)
        parts = [text for texts in requests.values() for text in texts]
        condition = condition_of(parts, [table], context.storage.stamp)
        shown += with_condition(reads.facts[keys], condition)
    if shown:
        context.ledger.record(shown, f"a change of {table.label} (rows of its keys)")


def _asked(
    context: Context, table: Table, reads: _Reads, stored: str, texts: Sequence[str]
) -> pa.Table:
    """The rows that have one of these tags. There are as many as the next power of two, so that
    the server prepares few texts.
    """
    count = 1 << (len(texts) - 1).bit_length()
    filled = (*texts, *[texts[-1]] * (count - len(texts)))
    remote = reads.queries.get((stored, count))
    if remote is None:
        remote = reads.queries[stored, count] = _query(context, table, reads.columns, stored, count)
    request = context.storage.request(remote, filled)
    if not isinstance(request, Statement):
        raise errors.make("internal", detail="tags of a table that no server has")
    return chosen_rows.rows(context, table, remote, request, filled)


def _texts(tags: pa.Array) -> list[str]:
    """Tags as they are sent, each once. They are sorted, so that the order of their rows does not
    show.
    """
    known = tags.drop_null().unique().to_pylist()
    return sorted(str(uuid.UUID(bytes=tag)) for tag in known)


def _query(
    context: Context, table: Table, columns: Sequence[str], stored: str, count: int
) -> RemoteQuery:
    source = Source(0, table.name, table, context.backend)
    outputs = tuple(choose.stored(name, source, name) for name in columns)
    ref = TableRef(0, table.name, table.id)
    where = (_node(context, stored, count),)
    home = (table.schema, table.name)
    return RemoteQuery(home, (ref,), (), outputs, where, whole_table=True)


def _node(context: Context, stored: str, count: int) -> Sql:
    column = Column(TableRef(0, "", 0).server_alias, context.backend.quote(stored))
    listed = ", ".join(f"⟦{index}⟧" for index in range(1, count + 1))
    return Sql(f"⟦0⟧ IN ({listed})", (column, *map(Tag, range(count))))


def _require_keys(
    context: Context, table: Table, stored: str, rows: pa.Table, wanted: pa.Array
) -> None:
    """Refuse rows that open to another key than one that was asked for."""
    if not rows.num_rows:
        return
    present = tags_of(context, table, rows)[stored]
    if present.null_count or not pc.all(pc.is_in(present, value_set=wanted)).as_py():
        raise errors.make("reply.format", detail="a row with a key that was not asked for")
    if len(present.unique()) != len(present):
        raise errors.make("reply.format", detail="two rows with one key")


def _no_rows(context: Context, table: Table, columns: Sequence[str] | None) -> pa.Table:
    names = [column.name for column in table.columns] if columns is None else list(columns)
    types = {column.name: column.type for column in table.columns}
    fields = [context.local.arrow_field(types[name]).with_name(name) for name in names]
    return pa.schema([*fields, pa.field(storage.ROW_ID, pa.int64())]).empty_table()


def _each_once(rows: pa.Table) -> pa.Table:
    """A row that has several of the keys, once."""
    order = pc.sort_indices(rows.column(storage.ROW_ID))
    ids = rows.column(storage.ROW_ID).take(order).combine_chunks()
    if len(ids.unique()) == len(ids):
        return rows.take(order)
    first = pc.fill_null(pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1)), True)
    keep = pa.concat_arrays([pa.array([True]), first])
    return rows.take(order).filter(keep)
