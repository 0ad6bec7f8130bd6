"""What a user's own INSERT, UPDATE, DELETE or MERGE changes, found out by running it.

Where DuckDB needs a text for each form of change, PostgreSQL does one thing for all of them: the
declared tables of the binder get the rows that the change may touch, the user's text runs on them
as it is, and what it did is read off by the places of rows (`ctid`), of which an old one never
means another row within the transaction. All is undone afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.names import quoted
from louver.trusted.executor.local.local import Described, Parameters
from louver.trusted.executor.local.postgres.connection import PostgresConnection

_PLACE, _TABLE, _ORDINAL = "louver_place", "louver_table", "louver_ordinal"
_FILL = "louver_fill"
_WRITABLE = (
    "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0"
    " AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
)
_NODES = (
    "SELECT coalesce(sum(relfilenode::bigint), 0) FROM pg_class WHERE oid IN"
    " (SELECT relid FROM pg_partition_tree($1::regclass) UNION SELECT $1::regclass)"
)


@dataclass(frozen=True, slots=True)
class Filled:
    """Rows of a table, in the order of their numbers, with every column that is not generated.
    ``is_watched``: whether what changes in it is asked for.
    """

    schema: str
    name: str
    rows: pa.Table
    is_watched: bool = True

    @property
    def path(self) -> str:
        """The table's name as SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change does to one table: the numbers of the rows, as they were filled in, that are
    no longer as they were, and the rows that there are instead or besides. An updated row is among
    both, also where all its values are the same.
    """

    gone: pa.Array
    fresh: pa.Table


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement did: by table, its command tag's number of rows, and what it returned."""

    changed: dict[tuple[str, str], Changed]
    affected: int
    columns: Described
    rows: pa.Table | None


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
    connection.execute("SET LOCAL session_replication_role = replica")
    places = {table.path: _fill(connection, table) for table in filled}
    connection.execute("SET LOCAL session_replication_role = origin")
    nodes = {table.path: _node(connection, table) for table in filled if table.is_watched}
    tag, columns, arrays = connection.run(sql, parameters)
    described = connection.described(columns)
    rows = connection.table((tag, columns, arrays)) if columns else None
    if not deferred:
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    changed = {}
    for table in filled:
        if not table.is_watched:
            continue
        if _node(connection, table) != nodes[table.path]:
            # Of another file, as after TRUNCATE in a function, places begin anew.
            raise errors.make("sql.unsupported", statement="A change that replaces a table's file")
        changed[table.schema, table.name] = _changed(connection, table, places[table.path])
    count = tag.rpartition(" ")[2]
    return Outcome(changed, int(count) if count.isdecimal() else -1, described, rows)


def _node(connection: PostgresConnection, table: Filled) -> int:
    """Another number when the rows are in another file."""
    row = connection.fetchone(_NODES, [table.path])
    return int(row[0]) if row else 0


def _fill(connection: PostgresConnection, table: Filled) -> pa.Table:
    """Put the rows of a table into it; their places in order. Foreign keys and triggers keep quiet,
    and generated columns are computed.
    """
    rows = table.rows
    writable = [name for (name,) in connection.fetchall(_WRITABLE, [table.path])]
    if not writable or not {*rows.column_names}.issuperset(writable):
        # A column that is left out would get its default.
        raise errors.make("internal", detail=f"rows of {table.path} lack columns")
    ordinal = pa.array(range(rows.num_rows), pa.int64())
    if not rows.num_rows:
        return pa.table({_TABLE: pa.array([], pa.int64()), _PLACE: pa.array([], pa.string())})
    listed = ", ".join(map(quoted, writable))
    # A statement that reads rows in order inserts them one by one and returns them in that order;
    # COPY alone would not say where a row went.
    items = "".join(f", {quoted(name)}" for name in writable)
    source = f"pg_temp.{_FILL}"
    connection.execute(
        f"CREATE TEMP TABLE {_FILL} AS SELECT 0::bigint AS {_ORDINAL}{items}"
        f" FROM {table.path} WITH NO DATA"
    )
    with_ordinal = rows.select(writable).add_column(0, _ORDINAL, ordinal)
    connection.fill(source, [_ORDINAL, *writable], with_ordinal)
    places = connection.fetch_arrow(
        f"INSERT INTO {table.path} ({listed}) OVERRIDING SYSTEM VALUE"
        f" SELECT {listed} FROM {source} ORDER BY {_ORDINAL}"
        f" RETURNING tableoid::bigint AS {_TABLE}, ctid::text AS {_PLACE}"
    )
    connection.execute(f"DROP TABLE {source}")
    if places.num_rows != rows.num_rows:
        raise errors.make("internal", detail=f"rows of {table.path} were not filled in")
    return places


def _changed(connection: PostgresConnection, table: Filled, places: pa.Table) -> Changed:
    """Compare the places of rows with those of before."""
    after = connection.fetch_arrow(
        f"SELECT tableoid::bigint AS {_TABLE}, ctid::text AS {_PLACE}, t.* FROM {table.path} AS t"
    )
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
