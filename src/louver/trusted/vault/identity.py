"""The first identity of a database: that of the original where it began as a copy."""

from __future__ import annotations

from louver.trusted.vault.catalog import Catalog

ORIGIN = "origin"
"""The setting of a catalog that holds it."""


def origin_of(catalog: Catalog) -> str:
    """What join groups of a policy are named after: keys derive from it, so a copy keeps it."""
    return str(catalog.settings.get(ORIGIN, catalog.database_id))
