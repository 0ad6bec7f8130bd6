"""Queries of a plan as statements, with the numbers of one run; and whether an answer is whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from louver import errors
from louver.trusted.backends.printer import Printer
from louver.trusted.executor import keys_read
from louver.trusted.executor.columns import Tables
from louver.trusted.executor.storage import Parts, different
from louver.trusted.planner import postcondition
from louver.trusted.planner.ir import RemoteQuery, Tag, Template
from louver.trusted.planner.operators import keys
from louver.trusted.planner.render import remote_text, slots_of
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.scheme import has_shares
from louver.wire.messages import Constant, Statement

if TYPE_CHECKING:
    from louver.trusted.executor import lookups


class Printed(WeakKeyDictionary[RemoteQuery, dict[bool, Template]]):
    """The printed forms of queries: with what the server has stored for them, and without. They go
    with the plan; who has the server store more must drop them.
    """


def complete(remote: RemoteQuery, tables: Tables, reply: pa.Table) -> None:
    """A table that was read whole must have as many rows as were stored, each once; one that was
    counted, as many as the answer says. ``tables`` are the plan's by id.
    """
    table = tables[remote.sources[0].table]
    if remote.counted and table.counted:
        answer = reply.column(remote.counted)[0].as_py()
        if answer != table.row_count:
            raise errors.make(
                "row.missing", table=table.label, expected=table.row_count, found=answer
            )
    slot = remote.sources[0].slot
    if not remote.whole_table or len(remote.sources) != 1 or remote.where or remote.limit:
        _each_once(remote, table, reply)
        return
    require_complete(table, reply.num_rows, different(reply.column(f"r{slot}")))


def require_complete(table: Table, count: int, different: int, *, narrowed: bool = False) -> None:
    """Rows that stand for a whole table, or ``narrowed`` for some of it: each once, and where the
    table is counted, as many as were stored.
    """
    few = count > table.row_count if narrowed else count != table.row_count
    if different != count or (few and table.counted):
        expected = table.row_count if table.counted else count
        raise errors.make("row.missing", table=table.label, expected=expected, found=different)


def _each_once(remote: RemoteQuery, table: Table, reply: pa.Table) -> None:
    """A query of one table gives no row of it twice, whatever it was narrowed by. Only of a look-up
    by key is it known without their numbers how many rows there may be.
    """
    if len(remote.sources) != 1 or remote.grouped or reply.num_rows < 2:
        return
    name = f"r{remote.sources[0].slot}"
    most = keys.most_rows(remote)
    if name in reply.column_names:
        rows = reply.column(name)
        most = reply.num_rows if most is None else most
        if different(rows) == reply.num_rows <= most:
            return
        counts = rows.value_counts()
        row = max(counts, key=lambda item: item["counts"].as_py())["values"].as_py()
        raise errors.make("row.repeated", table=table.label, row=row)
    if most is not None and reply.num_rows > most:
        raise errors.make("row.repeated", table=table.label, row="?")


def tables_of(parts: Parts, remote: RemoteQuery) -> Tables:
    """The tables of a plan as the catalog has them now, by id."""
    refs = (*remote.sources, *remote.inner)
    return {ref.table: parts.state.catalog.by_id(ref.table) for ref in refs}


def reader_of(parts: Parts, remote: RemoteQuery, literals: Sequence[str]) -> lookups.Reader:
    """What reads the two steps of a look-up."""
    from louver.trusted.executor import lookups

    tables = tables_of(parts, remote)
    return lookups.Reader(
        parts, tables, literals, lambda step: bound(parts, step, tables, literals), complete
    )


def binder(parts: Parts, literals: Sequence[str]) -> keys_read.Bind:
    """What binds queries for keys that were read."""

    def bind(remote: RemoteQuery, tags: Sequence[Constant]) -> Statement:
        return bound(parts, remote, tables_of(parts, remote), literals, tags)

    return bind


def bound(
    parts: Parts,
    remote: RemoteQuery,
    tables: Tables,
    literals: Sequence[str],
    tags: Sequence[Constant] = (),
) -> Statement:
    """One remote query as a statement, checked; ``tags`` are what stands for its tags."""
    fixed = parts.state.in_transaction or parts.engine.in_transaction
    usable = not fixed or all(tables[s.table].kept_complete for s in remote.sources)
    printed = parts.state.cache(Printed).setdefault(remote, {})
    template = printed.get(usable)
    if template is None:
        template = printed[usable] = _printed(parts, remote, tables, usable)
    constants = [
        tags[item.index]
        if tags and isinstance(item, Tag)
        else parts.columns.constant(item, literals)
        for item in template.constants
    ]
    return Statement(template.text(literals), tuple(constants))


def _printed(parts: Parts, remote: RemoteQuery, tables: Tables, usable: bool) -> Template:
    shares = any(has_shares(tables[source.table]) for source in remote.sources)
    modulus = parts.columns.modulus() if shares else b""
    slots = slots_of(remote, tables, parts.backend, materialized=usable)
    printer = Printer(parts.backend, slots, modulus, parts.columns.powers)
    sql = postcondition.check(remote_text(remote, printer), remote, tables, parts.backend)
    return Template(sql, tuple(printer.constants))
