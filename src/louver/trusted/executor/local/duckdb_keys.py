"""Keys and foreign keys that are checked on rows at hand, with the messages that DuckDB has."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from louver import errors
from louver.names import quoted
from louver.trusted.executor.local.local import ForeignKey, LocalConnection, UniqueKey

_GONE, _CHILDREN = "louver_gone_keys", "louver_children"


def require_key(connection: LocalConnection, key: UniqueKey, fresh: str, spared: str) -> None:
    """Raise where rows of ``fresh`` repeat a key of ``spared`` or of each other."""
    items = ", ".join(f"{e} AS k{i}" for i, e in enumerate(key.expressions))
    names = [f"k{i}" for i in range(len(key.expressions))]
    listed, shown = ", ".join(names), ", ".join(f"{name}::VARCHAR" for name in names)
    present = " AND ".join(f"{name} IS NOT NULL" for name in names)
    # Materialized: a join pushes filters into Arrow tables, and DuckDB cannot do so for UUID,
    # BOOLEAN, BIT and 128-bit numbers.
    row = connection.fetchone(
        f"WITH fresh AS MATERIALIZED (SELECT {items} FROM {fresh}),"
        f" kept AS MATERIALIZED (SELECT {items} FROM {spared})"
        f" SELECT {shown} FROM fresh SEMI JOIN kept USING ({listed}) LIMIT 1"
    )
    if row:
        kind = "primary key" if key.primary else "unique"
        raise constraint_error(
            f'Duplicate key "{_pairs(key.expressions, row)}" violates {kind} constraint.'
        )
    row = connection.fetchone(
        f"SELECT {shown} FROM (SELECT {items} FROM {fresh}) WHERE {present}"
        f" GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
    )
    if row:
        values = ", ".join(str(value) for value in row)
        raise constraint_error(
            f'PRIMARY KEY or UNIQUE constraint violation: duplicate key "{values}"'
        )


def require_parent(
    connection: LocalConnection, foreign: ForeignKey, fresh: str, parent: str
) -> None:
    """Raise where a row of ``fresh`` refers to nothing in ``parent``."""
    places = range(len(foreign.columns))
    child = ", ".join(f"{quoted(n)} AS k{i}" for i, n in enumerate(foreign.columns))
    other = ", ".join(f"{quoted(n)} AS k{i}" for i, n in enumerate(foreign.parent_columns))
    present = " AND ".join(f"{quoted(n)} IS NOT NULL" for n in foreign.columns)
    listed, shown = ", ".join(f"k{i}" for i in places), ", ".join(f"k{i}::VARCHAR" for i in places)
    row = connection.fetchone(
        f"SELECT {shown} FROM (SELECT {child} FROM {fresh} WHERE {present})"
        f" ANTI JOIN (SELECT {other} FROM {parent}) USING ({listed}) LIMIT 1"
    )
    if row:
        raise constraint_error(
            f'Violates foreign key constraint because key "{_pairs(foreign.parent_columns, row)}"'
            " does not exist in the referenced table"
        )


def require_unreferenced(
    connection: LocalConnection, foreign: ForeignKey, keys: pa.Table, children: pa.Table
) -> None:
    """Raise where one of ``children`` refers to one of the keys, the first one that goes."""
    places = range(len(foreign.columns))
    items = ", ".join(f"{quoted(n)} AS k{i}" for i, n in enumerate(keys.column_names))
    other = ", ".join(f"{quoted(n)} AS k{i}" for i, n in enumerate(foreign.columns))
    listed, shown = ", ".join(f"k{i}" for i in places), ", ".join(f"k{i}::VARCHAR" for i in places)
    numbered = keys.append_column("louver_n", pa.array(range(keys.num_rows)))
    connection.register(_GONE, numbered)
    connection.register(_CHILDREN, children)
    row = connection.fetchone(
        f"WITH gone AS MATERIALIZED (SELECT {items}, louver_n FROM {_GONE}),"
        f" children AS MATERIALIZED (SELECT {other} FROM {_CHILDREN})"
        f" SELECT {shown} FROM gone SEMI JOIN children USING ({listed}) ORDER BY louver_n LIMIT 1"
    )
    if row:
        raise constraint_error(
            f'Violates foreign key constraint because key "{_pairs(foreign.columns, row)}" is still'
            " referenced by a foreign key in a different table. If this is an unexpected constraint"
            " violation, please refer to our foreign key limitations in the documentation"
        )


def _pairs(names: Sequence[str], values: Sequence[object]) -> str:
    return ", ".join(f"{_bare(name)}: {value}" for name, value in zip(names, values, strict=True))


def _bare(name: str) -> str:
    """A column's name, or an expression without the brackets that DuckDB lists it in."""
    if name.startswith("(") and name.endswith(")"):
        return name[1:-1]
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def constraint_error(message: str) -> errors.Error:
    """The local engine's error for a broken constraint, which it did not find itself."""
    return errors.from_duckdb(duckdb.ConstraintException(f"Constraint Error: {message}"))
