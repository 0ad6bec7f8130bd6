"""Temporary views of temporary tables: they go with these in the binder, where every change of what
is temporary makes the tables anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from louver import errors
from louver.names import fold
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.instances import path_instead
from louver.trusted.vault.catalog import HomeObject

_VIEWS = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'v'"
)


def remake(
    binder: PostgresConnection,
    views: dict[tuple[str, str, str], HomeObject],
    unresolved: Sequence[HomeObject],
) -> list[HomeObject]:
    """Make those again that are gone, in as many passes as their needs take. ``views`` are what
    there is of them; what cannot be made goes from there to the ``unresolved``, which are returned.
    """
    known = [item for item in (*views.values(), *unresolved) if item.temporary]
    there = {name for (name,) in binder.fetchall(_VIEWS)}
    left = [item for item in known if item.kind == "VIEW" and item.name not in there]
    before = -1
    while left and len(left) != before:
        before, items, left = len(left), left, []
        for item in items:
            try:
                with path_instead(binder, item.path):
                    binder.execute(item.sql)
            except errors.Error:
                left.append(item)
                continue
            views[item.kind, fold(item.schema), fold(item.name)] = item
    for item in left:
        views.pop((item.kind, fold(item.schema), fold(item.name)), None)
    return [*(item for item in unresolved if item not in known), *left]
