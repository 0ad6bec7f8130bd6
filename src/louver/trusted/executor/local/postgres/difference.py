"""What a user's own INSERT, UPDATE, DELETE or MERGE changes, found out by running it.

Where DuckDB needs a text for each form of change, PostgreSQL does one thing for all of them: the
declared tables of the binder get the rows that the change may touch, the user's text runs on them
as it is, and what it did is read off by the places of rows (`ctid`), of which an old one never
means another row within the transaction. All is undone afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.names import quoted
from louver.trusted.executor.local.changed_rows import Changed, Filled, Outcome
from louver.trusted.executor.local.local import Parameters
from louver.trusted.executor.local.postgres import bound_rows
from louver.trusted.executor.local.postgres.connection import PostgresConnection, Reply
from louver.trusted.executor.local.postgres.failures import translated

_PLACE, _TABLE, _ORDINAL = "louver_place", "louver_table", "louver_ordinal"
_FILL = "louver_fill"
#: Of a domain the type that it is of, and its name.
COLUMNS = (
    "SELECT a.attname::text, coalesce(nullif(t.typbasetype, 0), t.oid)::bigint,"
    " CASE WHEN t.typtype = 'd' THEN pg_catalog.format_type(t.oid, NULL) END"
    " FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid"
    " WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped"
    " AND a.attgenerated = '' ORDER BY a.attnum"
)
NODES = (
    "SELECT coalesce(sum(relfilenode::bigint), 0)::bigint FROM pg_catalog.pg_class WHERE oid IN"
    " (SELECT relid FROM pg_catalog.pg_partition_tree($1::regclass) UNION SELECT $1::regclass)"
)


def run(
    connection: PostgresConnection,
    filled: Sequence[Filled],
    sql: str,
    parameters: Parameters = (),
    *,
    deferred: bool = False,
) -> Outcome:
    """Run a change over rows, within a transaction that the caller undoes (`Binder.rehearsal`).

    Args:
        connection: to the binder, whose declared tables are empty.
        filled: the rows of each table that the change may touch or read, of its parents, and of
            the children that refer to rows which may go: PostgreSQL cascades by itself, and the
            cascade is in the outcome of that table. Order is of no importance.
        sql: the user's text.
        parameters: its values.
        deferred: whether deferred constraints are left unchecked, as the transaction of the user
            that has said so checks them at its end.

    Raises:
        errors.Error: PostgreSQL's own, where the statement fails on these rows.
    """
    places, nodes = fill(connection, filled)
    watched = [table for table in filled if table.is_watched]
    checks = [] if deferred else ["SET CONSTRAINTS ALL IMMEDIATE"]
    with translated(sql):
        given = connection.given(sql, parameters)
        replies = connection.raw.run(
            [(sql, given), *((text, []) for text in checks)]
            + [step for table in watched for step in ((NODES, [table.path]), after(table))]
        )
    (tag, _, _), looks = replies[0], replies[1 + len(checks) :]
    connection.note_written(tag)
    changed = {}
    for table, node, rows_after in zip(watched, looks[::2], looks[1::2], strict=True):
        if node[2][0].to_pylist() != nodes[table.path]:
            # Of another file, as after TRUNCATE in a function, places begin anew.
            raise errors.make("sql.unsupported", statement="A change that replaces a table's file")
        changed[table.schema, table.name] = changes(
            connection.table(rows_after), places[table.path]
        )
    return outcome(connection, replies[0], changed)


def outcome(
    connection: PostgresConnection, reply: Reply, changed: dict[tuple[str, str], Changed]
) -> Outcome:
    """What a statement did, by its reply and what it changed."""
    tag, columns, _ = reply
    count = tag.rpartition(" ")[2]
    rows = connection.table(reply) if columns else None
    affected = int(count) if count.isdecimal() else -1
    return Outcome(changed, affected, connection.described(columns), rows)


def after(table: Filled) -> tuple[str, list[object]]:
    """The statement that gives a table's rows with their places."""
    return (
        f"SELECT tableoid::bigint AS {_TABLE}, ctid::text AS {_PLACE}, t.* FROM {table.path} AS t"
    ), []


def fill(
    connection: PostgresConnection, filled: Sequence[Filled]
) -> tuple[dict[str, pa.Table], dict[str, list[object]]]:
    """Put the rows of tables into them; their places in order, and the numbers of their files.
    Foreign keys and triggers keep quiet, and generated columns are computed.
    """
    steps: list[tuple[str, list[Any]]] = [
        step for table in filled for step in ((COLUMNS, [table.path]), (NODES, [table.path]))
    ]
    with translated():
        facts = connection.raw.run(steps)
    if _without_domains(connection, filled, facts[::2]):
        with translated():
            facts = connection.raw.run(steps)
    with translated():
        columns = [
            dict(zip(names.to_pylist(), types.to_pylist(), strict=True))
            for _, _, (names, types, _) in facts[::2]
        ]
        nodes = {
            table.path: node.to_pylist()
            for table, (_, _, (node,)) in zip(filled, facts[1::2], strict=True)
        }
    insertions = [
        _insertion(connection, table, types, number)
        for number, (table, types) in enumerate(zip(filled, columns, strict=True))
    ]
    first, last = (f"SET LOCAL session_replication_role = {role}" for role in ("replica", "origin"))
    with translated():
        replies = connection.raw.run([(first, []), *insertions, (last, [])])[1:-1]
    places = {}
    for table, reply in zip(filled, replies, strict=True):
        places[table.path] = connection.table(reply)
        connection.note_written(reply[0])
        if places[table.path].num_rows != table.rows.num_rows:
            raise errors.make("internal", detail=f"rows of {table.path} were not filled in")
    return places, nodes


def _insertion(
    connection: PostgresConnection, table: Filled, types: Mapping[str, int], number: int
) -> tuple[str, list[Any]]:
    """The statement that puts rows in and returns their places in order: one that reads rows in
    order inserts them one by one, and returns them so. (COPY would not say where a row went.)
    """
    rows, listed = table.rows, ", ".join(map(quoted, types))
    if table.is_partial:
        # What is left out is NULL: such a table has no defaults.
        if types and not rows.num_columns:
            rows = rows.append_column(next(iter(types)), pa.nulls(rows.num_rows))
        types = {name: type_ for name, type_ in types.items() if name in rows.column_names}
        listed = ", ".join(map(quoted, types))
    if not types or not {*rows.column_names}.issuperset(types):
        # A column that is left out would get its default.
        raise errors.make("internal", detail=f"rows of {table.path} lack columns")
    few = bound_rows.source(rows.select([*types]), types, _ORDINAL)
    if few is None:
        few = source, _ = f"pg_temp.{_FILL}_{number}", []
        items = "".join(f", {quoted(name)}" for name in types)
        connection.execute(
            f"CREATE TEMP TABLE {_FILL}_{number} ON COMMIT DROP AS SELECT 0::bigint AS {_ORDINAL}"
            f"{items} FROM {table.path} WITH NO DATA"
        )
        ordinals = pa.array(range(rows.num_rows), pa.int64())
        with_ordinals = rows.select([*types]).add_column(0, _ORDINAL, ordinals)
        connection.fill(source, [_ORDINAL, *types], with_ordinals)
    return _from(table, listed, few)


def _from(table: Filled, listed: str, source: tuple[str, list[Any]]) -> tuple[str, list[Any]]:
    return (
        f"INSERT INTO {table.path} ({listed}) OVERRIDING SYSTEM VALUE"
        f" SELECT {listed} FROM {source[0]} ORDER BY {_ORDINAL}"
        f" RETURNING tableoid::bigint AS {_TABLE}, ctid::text AS {_PLACE}"
    ), source[1]


def bound_insertion(table: Filled, types: Mapping[str, int]) -> tuple[str, list[Any]] | None:
    """The same of few rows that have all columns, which are bound to it; None of others."""
    if not types or not {*table.rows.column_names}.issuperset(types):
        return None
    few = bound_rows.source(table.rows.select([*types]), types, _ORDINAL)
    return None if few is None else _from(table, ", ".join(map(quoted, types)), few)


def _without_domains(
    connection: PostgresConnection, filled: Sequence[Filled], facts: Sequence[Reply]
) -> bool:
    """Give columns of empty temporary tables that get no values, so NULL, the types that their
    domains are of; whether there are any.
    """
    texts = []
    for table, (_, _, (names, _, domains)) in zip(filled, facts, strict=True):
        for name, domain in zip(names.to_pylist(), domains.to_pylist(), strict=True):
            if table.is_partial and domain and name not in table.rows.column_names:
                base = connection.base_type(domain)
                texts.append(f"ALTER TABLE {table.path} ALTER {quoted(name)} TYPE {base}")
    for sql in texts:
        connection.execute(sql)
    return bool(texts)


def changes(after: pa.Table, places: pa.Table) -> Changed:
    """Compare the places of rows with those of before."""
    before, now = _keys(places), _keys(after)
    gone = pc.filter(
        pa.array(range(places.num_rows), pa.int64()), pc.invert(pc.is_in(before, value_set=now))
    )
    fresh = after.filter(pc.invert(pc.is_in(now, value_set=before)))
    return Changed(gone, fresh.select(fresh.column_names[2:]) if fresh.num_columns > 2 else fresh)


def _keys(rows: pa.Table) -> pa.Array:
    """Table and place of each row as one text."""
    tables = rows.column(_TABLE).cast(pa.string())
    joined = pc.binary_join_element_wise(tables, rows.column(_PLACE), " ")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined
