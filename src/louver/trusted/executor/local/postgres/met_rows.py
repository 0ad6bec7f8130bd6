"""Which rows of its tables each row of a query's answer is made of, found out by running it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from louver.names import quoted
from louver.trusted.executor.local.changed_rows import Filled, MetRows
from louver.trusted.executor.local.local import Parameters
from louver.trusted.executor.local.postgres import difference, readable
from louver.trusted.executor.local.postgres.connection import PostgresConnection

_PLACE = "louver_place"


def run(
    connection: PostgresConnection,
    filled: Sequence[Filled],
    text: tuple[str, str],
    parameters: Parameters,
    aliases: Sequence[tuple[str, Filled]],
) -> MetRows:
    """See `Binder.met_by`."""
    places, _ = difference.fill(connection, filled)
    head, rest = text
    items = [f"{quoted(alias)}.ctid::text AS {_PLACE}_{n}" for n, (alias, _) in enumerate(aliases)]
    sql = f"{head}{',' if head.split()[1:] else ''} {', '.join(items)} {rest}"
    columns, rows = connection.fetch_described(sql, parameters)
    own = rows.num_columns - len(aliases)
    met = [
        pc.index_in(rows.column(own + n), value_set=_single(places[table.path].column(1)))
        for n, (_, table) in enumerate(aliases)
    ]
    shown = _printed(connection, columns[:own], rows.select(list(range(own))))
    return MetRows(columns[:own], shown, [_single(m) for m in met])


def _printed(
    connection: PostgresConnection, columns: Sequence[tuple[str, str]], rows: pa.Table
) -> pa.Table:
    """Whole rows of tables as their texts, for their types are known here alone."""
    for position, (name, type_) in enumerate(columns):
        if type_ != "record" and readable.is_of_rows(connection, type_):
            texts = pa.array(connection.texts(rows.column(position)), pa.string())
            rows = rows.set_column(position, name, texts)
    return rows


def _single(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
