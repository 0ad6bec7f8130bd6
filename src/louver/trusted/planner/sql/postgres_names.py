"""Names of PostgreSQL's that differ by their capitals alone: "A" and a are two there.

Louver compares names without case, so it would take one for the other. A definition that brings two
of them into one scope is refused; `postgres_trees` refuses trees of statements that have two.
"""

from __future__ import annotations

from collections.abc import Iterator

from louver import errors
from louver.names import fold
from louver.trusted.vault.catalog import Catalog

Scoped = tuple[tuple[str, ...], str]
"""The scope of a name, and the name: all objects of a schema are one scope."""


def require_distinct(before: Catalog, catalog: Catalog) -> None:
    """Raise ``table.capitals`` for names of a changed catalog that are one without their capitals,
    and for those that have taken the place of such a name.
    """
    known: dict[Scoped, str] = {}
    for scope, name in (*_scoped(before), *_scoped(catalog)):
        other = known.setdefault((scope, fold(name)), name)
        if other != name:
            raise errors.make("table.capitals", first=other, second=name)


def _scoped(catalog: Catalog) -> Iterator[Scoped]:
    for item in catalog.objects:
        yield ("schema",), item.schema
        yield ("object", item.schema), item.name
    for table in catalog.tables.values():
        yield ("schema",), table.schema
        yield ("object", table.schema), table.name
        for column in table.columns:
            yield ("column", table.schema, table.name), column.name
