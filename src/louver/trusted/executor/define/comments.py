"""Comments of objects: kept locally and in the catalog, for they may speak of the data."""

from __future__ import annotations

from louver.trusted.executor.context import Context
from louver.trusted.vault.catalog import Catalog


def keep(context: Context, catalog: Catalog, *, anew: bool = False) -> None:
    """Write all comments into the catalog as they stand locally.

    Without `anew` only where there are any: most databases have none.
    """
    others = [item for item in catalog.objects if item.kind != "COMMENT"]
    if not anew and len(others) == len(catalog.objects):
        return
    catalog.objects = others + context.local.schema.comments()
