"""Foreign keys: the parents of new rows, and the rows that refer to keys that go.

Rows are looked up by tags or codes only where both ends of a reference may show what the other one
shows, since a look-up links them: the server learns which parent a row refers to, and so which rows
refer to the same one. Elsewhere the columns of the key are read, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from louver.names import quoted
from louver.trusted.executor import constraint_check, key_rows, select
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import ForeignKey
from louver.trusted.executor.schema.representations import tag_of
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact, fact, named, table_name
from louver.trusted.vault.scheme import may_meet
from louver.trusted.vault.types import code_domain

MOST_LOOKED_UP = 2_048
"""Keys of one statement that are looked up; for more the columns of the key are read."""
_MOST_CODES = 64
"""As many where each is a condition of its own."""
_FRESH, _PARENTS = "louver_fresh", "louver_parent"


def links(table: Table, foreign: ForeignKey, parent: Table) -> bool:
    """Whether a look-up may show which parent a row refers to."""
    pairs = zip(named(table, foreign.columns), named(parent, foreign.parent_columns), strict=True)
    return all(may_meet(own, other) for own, other in pairs)


def parents(context: Context, table: Table, foreign: ForeignKey, rows: pa.Table) -> pa.Table:
    """The keys of the parents that new rows refer to, or of all of them."""
    parent = constraint_check.parent_of(context, foreign)
    stored = _tag(table, foreign, parent)
    if stored:
        names = [column.name for column in named(table, foreign.columns)]
        columns = [column.name for column in named(parent, foreign.parent_columns)]
        keys = rows.select(names).rename_columns(columns)
        tags = key_rows.tags_of(context, parent, keys)[stored].drop_null().unique()
        if len(tags) <= MOST_LOOKED_UP:
            if len(tags):
                context.ledger.record(_linked(table, foreign, parent), f"rows of {table.label}")
            return key_rows.with_tags(context, parent, {stored: tags}, columns)
    return constraint_check.existing(context, parent, foreign.parent_columns)


def require_parents(context: Context, table: Table, fresh: pa.Table, before: pa.Table) -> None:
    """Raise DuckDB's error where new rows of a table refer to nothing; what rows of ``before``
    refer to is there, where they still are.
    """
    if not fresh.num_rows:
        return
    for foreign in constraint_check.rules(context, table).foreign:
        rows = fresh
        if before.num_rows:
            names = [column.name for column in named(table, foreign.columns)]
            known = set(_tuples(before, names))
            new = [i for i, key in enumerate(_tuples(fresh, names)) if key not in known]
            rows = fresh.take(pa.array(new, pa.int64()))
        if not rows.num_rows:
            continue
        parent = parents(context, table, foreign, rows)
        if context.local.dialect.reads_off and foreign.parent == table.key:
            # PostgreSQL looks when the statement ends: its own rows are there by then.
            own = [column.name for column in named(table, foreign.parent_columns)]
            both = [parent.select(own), fresh.select(own)]
            parent = pa.concat_tables(both, promote_options="permissive")
        with constraint_check.rehearsal(context) as connection:
            connection.register(_FRESH, rows)
            connection.register(_PARENTS, parent)
            connection.require_parent(foreign, _FRESH, _PARENTS)


def require_unreferenced(context: Context, table: Table, gone: pa.Table, fresh: pa.Table) -> None:
    """Raise DuckDB's error where rows refer to the key of a row that goes, and none that comes has
    it. No one adds such rows from here on, nor has since the state that the transaction reads.
    """
    for child, foreign, keys in lost_keys(context, table, gone, fresh):
        if keys:
            context.store.hold_references()
            names = [column.name for column in named(table, foreign.parent_columns)]
            rows = gone.select(names).take(pa.array(keys, pa.int64()))
            with_children = _referring(context, child, foreign, table, rows)
            with constraint_check.rehearsal(context) as connection:
                connection.require_unreferenced(foreign, rows, with_children)


def lost_keys(
    context: Context, table: Table, gone: pa.Table, fresh: pa.Table
) -> Iterator[tuple[Table, ForeignKey, list[int]]]:
    """By foreign key to a table, and the table that has it: which of the rows that go have a key
    that none of those has that come.
    """
    for child, foreign in _children(context, table):
        names = [column.name for column in named(table, foreign.parent_columns)]
        present = set(_tuples(fresh, names))
        yield (
            child,
            foreign,
            [
                index
                for index, key in enumerate(_tuples(gone, names))
                if None not in key and key not in present
            ],
        )


def facts_of_rows(context: Context, table: Table) -> list[Fact]:
    """What finding the parents of new rows shows, for EXPLAIN."""
    facts: list[Fact] = []
    for foreign in constraint_check.rules(context, table).foreign:
        parent = constraint_check.parent_of(context, foreign)
        if _tag(table, foreign, parent):
            facts += _linked(table, foreign, parent)
            columns = [column.name for column in named(parent, foreign.parent_columns)]
            facts += key_rows.facts(context, parent, columns, [_tag(table, foreign, parent)])
    return facts


def parents_of(context: Context, table: Table) -> Iterator[tuple[Table, Sequence[str]]]:
    """The columns of parents that new rows of a table may need whole, for EXPLAIN."""
    for foreign in constraint_check.rules(context, table).foreign:
        yield constraint_check.parent_of(context, foreign), foreign.parent_columns


def searches(context: Context, table: Table) -> Iterator[tuple[Table, Sequence[str], str]]:
    """What is read of the tables that refer to one from which rows go, for EXPLAIN: their columns,
    and the query that looks for single rows, "" where the columns are read whole.
    """
    for child, foreign in _children(context, table):
        sql = _query(child, foreign, 1) if _has_codes(child, foreign, table) else ""
        yield child, foreign.columns, sql


def _tag(table: Table, foreign: ForeignKey, parent: Table) -> str:
    """The column of tags that parents are looked up in; "" where they are not: values of other
    types that are equal, such as numbers with more digits, have other tags.
    """
    own, others = named(table, foreign.columns), named(parent, foreign.parent_columns)
    alike = [code_domain(column.type) for column in own] == [code_domain(c.type) for c in others]
    if not (alike and links(table, foreign, parent)):
        return ""
    return tag_of(parent, [quoted(column.name) for column in others])


def _linked(table: Table, foreign: ForeignKey, parent: Table) -> list[Fact]:
    columns = [column for column in named(table, foreign.columns) if column.encrypted]
    if not columns:
        return []
    return [fact("key.refers", table, columns, target=table_name(parent))]


def _children(context: Context, table: Table) -> Iterator[tuple[Table, ForeignKey]]:
    for schema, name in constraint_check.rules(context, table).children:
        child = context.catalog.table(schema, name)
        if child is not None:
            for foreign in constraint_check.rules(context, child).foreign:
                if constraint_check.parent_of(context, foreign).id == table.id:
                    yield child, foreign


def _has_codes(child: Table, foreign: ForeignKey, parent: Table) -> bool:
    """Whether single rows that refer to a key may be looked for."""
    return links(child, foreign, parent)


def _referring(
    context: Context, child: Table, foreign: ForeignKey, parent: Table, keys: pa.Table
) -> pa.Table:
    """The references of rows that refer to one of some keys, or those of all rows."""
    known = list(dict.fromkeys(_tuples(keys, keys.column_names)))
    values = [value for key in known for value in key]
    simple = all(pa.types.is_integer(type_) or _is_text(type_) for type_ in keys.schema.types)
    if not simple or len(known) > _MOST_CODES or not _has_codes(child, foreign, parent):
        return constraint_check.existing(context, child, foreign.columns)
    rows = select.query(context, _query(child, foreign, len(known)), values).rows
    return rows if rows is not None else constraint_check.existing(context, child, foreign.columns)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _query(child: Table, foreign: ForeignKey, count: int) -> str:
    names = [quoted(name) for name in foreign.columns]
    places = [spoken().placeholder(number + 1) for number in range(count * len(names))]
    condition = f"{names[0]} IN ({', '.join(places)})"
    if len(names) > 1:
        listed = iter(places)
        each = (" AND ".join(f"{n} = {next(listed)}" for n in names) for _ in range(count))
        condition = " OR ".join(f"({key})" for key in each)
    return f"SELECT {', '.join(names)} FROM {child.local_name} WHERE {condition}"


def _tuples(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Keys as values that Python compares as DuckDB does, for references alone."""
    return zip(*(_comparable(rows.column(name)) for name in names), strict=True)


def _comparable(column: pa.ChunkedArray) -> list[object]:
    """Moments as numbers, for Python has no infinite ones and none of nanoseconds; NaN as a text,
    for it equals itself.
    """
    if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        column = column.cast(pa.int64())
    values = column.to_pylist()
    return ["nan" if value != value else value for value in values]
