"""Keys and foreign keys that are checked on rows at hand, with the messages that PostgreSQL has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from louver import errors
from louver.names import quoted
from louver.trusted.executor.local.local import ForeignKey, UniqueKey

if TYPE_CHECKING:
    from louver.trusted.executor.local.postgres.connection import PostgresConnection

_DUPLICATE, _MISSING = "23505", "23503"
#: Of a partial index, see `PostgresSchema.unique_indexes`.
_PARTIAL = re.compile(r"CASE WHEN (?:(?! THEN ).)* THEN ((?:(?! THEN ).)*) END", re.DOTALL)
_GONE, _CHILDREN = "louver_gone_keys", "louver_children"


def require_key(connection: PostgresConnection, key: UniqueKey, fresh: str, spared: str) -> None:
    """Raise where rows of ``fresh`` repeat a key of ``spared`` or of each other."""
    items = ", ".join(f"({text}) AS k{ordinal}" for ordinal, text in enumerate(key.expressions))
    names = [f"k{ordinal}" for ordinal in range(len(key.expressions))]
    listed, shown = ", ".join(names), ", ".join(f"{name}::text" for name in names)
    present = " AND ".join(f"{name} IS NOT NULL" for name in names)
    row = connection.fetchone(
        f"WITH fresh AS MATERIALIZED (SELECT {items} FROM {fresh}),"
        f" kept AS MATERIALIZED (SELECT {items} FROM {spared})"
        f" SELECT {shown} FROM fresh JOIN (SELECT DISTINCT {listed} FROM kept) AS kept"
        f" USING ({listed}) LIMIT 1"
    ) or connection.fetchone(
        f"SELECT {shown} FROM (SELECT {items} FROM {fresh}) AS f WHERE {present}"
        f" GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"
    )
    if row:
        said = f"{_pair(key.expressions, row)} already exists."
        message = f'duplicate key value violates unique constraint "{key.name}"'
        raise broken(message, said, _DUPLICATE)


def require_parent(
    connection: PostgresConnection, foreign: ForeignKey, fresh: str, parent: str
) -> None:
    """Raise where a row of ``fresh`` refers to nothing in ``parent``."""
    shown = ", ".join(f"f.{quoted(name)}::text" for name in foreign.columns)
    present = " AND ".join(f"f.{quoted(name)} IS NOT NULL" for name in foreign.columns)
    same = " AND ".join(
        f"p.{quoted(there)} = f.{quoted(here)}"
        for here, there in zip(foreign.columns, foreign.parent_columns, strict=True)
    )
    row = connection.fetchone(
        f"SELECT {shown} FROM {fresh} AS f WHERE {present}"
        f" AND NOT EXISTS (SELECT 1 FROM {parent} AS p WHERE {same}) LIMIT 1"
    )
    if row:
        said = f'{_pair(foreign.columns, row)} is not present in table "{foreign.parent[1]}".'
        message = (
            f'insert or update on table "{foreign.table}" violates foreign key constraint'
            f' "{foreign.name}"'
        )
        raise broken(message, said, _MISSING)


def require_unreferenced(
    connection: PostgresConnection, foreign: ForeignKey, keys: pa.Table, children: pa.Table
) -> None:
    """Raise where one of ``children`` refers to one of the keys, the first one that goes."""
    names = keys.column_names
    same = " AND ".join(
        f"c.{quoted(here)} = g.{quoted(there)}"
        for here, there in zip(foreign.columns, names, strict=True)
    )
    shown = ", ".join(f"g.{quoted(name)}::text" for name in names)
    numbers = pa.array(range(keys.num_rows), pa.int64())
    with connection.undone():
        connection.register(_GONE, keys.append_column("louver_n", numbers))
        connection.register(_CHILDREN, children)
        row = connection.fetchone(
            f"SELECT {shown} FROM pg_temp.{_GONE} AS g WHERE EXISTS"
            f" (SELECT 1 FROM pg_temp.{_CHILDREN} AS c WHERE {same}) ORDER BY louver_n LIMIT 1"
        )
    if row:
        said = f'{_pair(names, row)} is still referenced from table "{foreign.table}".'
        message = (
            f'update or delete on table "{foreign.parent[1]}" violates foreign key constraint'
            f' "{foreign.name}" on table "{foreign.table}"'
        )
        raise broken(message, said, _MISSING)


def broken(message: str, said: str = "", state: str = "23000") -> errors.Error:
    """PostgreSQL's error for a broken constraint, which it did not find itself."""
    detail = f"{message}\nDETAIL:  {said}" if said else message
    failure = errors.make("postgres.constraint", detail=detail)
    failure.sqlstate, failure.is_reworded = state, True
    return failure


def _pair(names: Sequence[str], row: Sequence[object]) -> str:
    whole = (match[1] if (match := _PARTIAL.fullmatch(name)) else name for name in names)
    bare = (name.removeprefix('"').removesuffix('"').replace('""', '"') for name in whole)
    return f"Key ({', '.join(bare)})=({', '.join(map(str, row))})"
