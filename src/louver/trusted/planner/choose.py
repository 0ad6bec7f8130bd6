"""Choose: the cheapest representation for each thing that is asked for.

A bare column is read in its sealed form: it is authenticated, five times shorter than a share and
forty times quicker to open. Shares are opened only where the server computed something.
"""

from __future__ import annotations

from collections.abc import Sequence

from louver.trusted.planner.ir import (
    SEALED,
    Call,
    Node,
    Output,
    Plain,
    RemoteQuery,
    SharedExpr,
    Sql,
)
from louver.trusted.planner.ir import Column as StoredColumn
from louver.trusted.planner.sql.scope import Scope, Source
from louver.trusted.planner.sql.values import GroupRepresentative, Raw
from louver.trusted.vault import facts
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact
from louver.trusted.vault.levels import allows
from louver.trusted.vault.scheme import read_from


def output(
    name: str, value: SharedExpr | Plain | GroupRepresentative | Raw, type_: str, scope: Scope
) -> Output:
    """A computed value as a column of the answer."""
    if isinstance(value, Plain):
        return Output(name, "plain", type_, value.node)
    if isinstance(value, Raw):
        return Output(name, "raw", value.type, value.node)
    if isinstance(value, GroupRepresentative):
        holder = scope.source(value.slot).table
        picked = next(column for column in holder.columns if column.id == value.column)
        tiled = holder.has_in_tiles(read_from(picked))
        own = value.slot, value.column, (), value.row
        return Output(name, SEALED, type_, value.node, None, *own, tiled=tiled)
    if value.single:
        ((table, column),) = value.columns
        slot = min(value.slots)
        source = scope.source(slot)
        stored_column = next(c for c in source.table.columns if c.id == column)
        if source.table.id == table:
            return stored(name, source, stored_column.name)
    return Output(name, "share", type_, value.node, value)


def stored(name: str, source: Source, column_name: str) -> Output:
    """A stored column as a column of the answer."""
    column = source.table.column(column_name)
    if column is None:
        raise KeyError(column_name)
    if not column.encrypted:
        node = StoredColumn(source.server_alias, source.backend.quote(column.stored["plain"]))
        return Output(name, "plain", column.type, node)
    node = StoredColumn(source.server_alias, read_from(column))
    tiled = source.table.has_in_tiles(read_from(column))
    return Output(name, SEALED, column.type, node, slot=source.slot, column=column.id, tiled=tiled)


def note_reads(remote: RemoteQuery, scope: Scope) -> None:
    """What reading the answer's stored columns shows: which rows were touched, or, where the
    whole table is read, nothing beyond sizes.
    """
    for leak in reads(remote, scope.sources):
        scope.collected.leak(leak)


def reads(remote: RemoteQuery, sources: Sequence[Source]) -> list[Fact]:
    """The leaks of reading, one per table of FROM."""
    chosen = (remote.where, remote.joins, remote.limit, remote.group, remote.probes, remote.filters)
    narrowed = any(chosen)
    narrowed = narrowed or (remote.lookup is not None and remote.lookup.rest is not None)
    # One row of many, where the server picked it.
    narrowed = narrowed or any(out.row is not None for out in remote.outputs)
    leaks: list[Fact] = []
    for source in sources:
        names = _read_columns(remote, source)
        compared = {name for node in remote.conditions() for name in stored_in(node)}
        for column in source.table.columns:
            held = {f"{source.server_alias}.{v}" for k, v in column.stored.items() if k != "plain"}
            tags = (tag for tag, ids in source.table.tags.items() if column.id in ids)
            held |= {f"{source.server_alias}.{tag}" for tag in tags} if column.encrypted else set()
            if held & compared and column.name not in names:
                names.append(column.name)
        if not names:
            continue
        name = source.backend.narrowed if narrowed else "scan"
        leaks.append(facts.fact(name, source.table, facts.named(source.table, names)))
    return leaks


def stored_in(node: Node) -> list[str]:
    """The stored columns that a condition reads, with their aliases."""
    match node:
        case StoredColumn(alias, name):
            return [f"{alias}.{name}"]
        case Sql(_, children) | Call(_, children):
            return [name for child in children for name in stored_in(child)]
        case _:
            return []


def _read_columns(remote: RemoteQuery, source: Source) -> list[str]:
    names = []
    for column in source.table.columns:
        for out in remote.outputs:
            shared = out.secret is not None and (source.table.id, column.id) in out.secret.columns
            opened = out.kind in (SEALED, "summed")
            if shared or (opened and (out.slot, out.column) == (source.slot, column.id)):
                names.append(column.name)
                break
    return names


def above_ceiling(leaks: Sequence[Fact], tables: list[Table]) -> list[tuple[str, str, str, str]]:
    """The leaks that some ceiling forbids, as (table, column, level, ceiling)."""
    refused = []
    for leak in leaks:
        table = next((t for t in tables if t.label == leak.table), None)
        for name in leak.columns:
            column = table.column(name) if table else None
            if column is not None and column.encrypted and not allows(column.ceiling, leak.level):
                refused.append((leak.table, name, leak.level, column.ceiling))
    return refused
