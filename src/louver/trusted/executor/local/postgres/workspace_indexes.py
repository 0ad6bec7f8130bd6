"""The declared indexes of opened tables, in the workspace, where a query would be slow without.

Most queries read opened rows once, and an index costs more than it saves. A correlated subquery
reads them once for each row; PostgreSQL's own estimate tells such a query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from louver._rust import postgres
from louver.names import fold, quoted
from louver.trusted.executor.local.postgres.connection import PostgresConnection, Statement
from louver.trusted.executor.local.postgres.failures import translated

Table = tuple[str, str]
STEEP = 20.0
"""Units of PostgreSQL's cost, of which reading a row takes about 0.02, for each row that there is:
what costs more reads rows again and again."""
_POINT = "louver_estimate"
#: Columns of indexes that have neither expressions nor conditions.
_DECLARED = """
SELECT n.nspname::text, c.relname::text, (SELECT json_agg(a.attname ORDER BY k.place)::text
    FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place)
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE k.place <= i.indnkeyatts)
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
WHERE i.indexprs IS NULL AND i.indpred IS NULL AND m.amname = 'btree'
"""


def declared(binder: PostgresConnection) -> dict[Table, list[list[str]]]:
    """The columns of the indexes of each table, keys among them, by folded schema and name."""
    results: dict[Table, list[list[str]]] = {}
    for schema, name, columns in binder.fetchall(_DECLARED):
        results.setdefault((fold(schema), fold(name)), []).append(json.loads(columns or "[]"))
    return results


def wanted(
    workspace: PostgresConnection,
    binder: PostgresConnection,
    targets: Mapping[Table, tuple[str, Sequence[str]]],
    rows: int,
    statement: Statement,
) -> list[str]:
    """The statements that make the indexes of opened tables, if the query is steep; ``targets``:
    of each table its path in the workspace and its columns there. ``rows`` is how many there are.
    """
    if _cost(workspace, statement) < STEEP * rows:
        return []
    known = declared(binder)
    return [
        f"CREATE INDEX ON {path} ({', '.join(map(quoted, columns))})"
        for (schema, name), (path, names) in targets.items()
        for columns in known.get((fold(schema or "public"), fold(name)), ())
        if columns and set(columns) <= set(names)
    ]


def _cost(workspace: PostgresConnection, statement: Statement) -> float:
    """PostgreSQL's estimate of a statement's cost; 0 of one that it does not plan."""
    sql, given = statement
    explained = f"EXPLAIN (FORMAT JSON) {sql}"
    workspace.raw.run([(f"SAVEPOINT {_POINT}", [])])
    try:
        reply = workspace.raw.run([(explained, given)])[0]
        with translated(sql):
            text = workspace.table(reply).column(0)[0].as_py()
        return float(json.loads(text)[0]["Plan"]["Total Cost"])
    except (postgres.ServerError, ValueError, KeyError, IndexError):
        return 0.0
    finally:
        with suppress(postgres.ServerError, postgres.ConnectionLost):
            workspace.raw.run([(f"ROLLBACK TO {_POINT}", []), (f"RELEASE {_POINT}", [])])
