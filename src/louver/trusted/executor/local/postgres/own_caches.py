"""What a session of PostgreSQL keeps in memory of the tables that it has undone.

PostgreSQL's cache of its catalogs (src/backend/utils/cache/catcache.c) also keeps that there is
nothing under a number or a name, and has no limit. Each table that is made and undone has a number
of its own, so that each leaves up to a kilobyte. A session drops what it has of a catalog when that
is written anew.
"""

from __future__ import annotations

from contextlib import suppress

from louver._rust import postgres

#: The catalogs that are asked for what is not there, by tables that are new. pg_class is none: a
#: session whose VACUUM FULL of it is cancelled does not find its tables any more (PostgreSQL 18.6).
CATALOGS = ("pg_type", "pg_statistic", "pg_default_acl")
#: So much of what is undone is some megabytes, and takes a hundred times as long as the dropping.
MOST_UNDONE = 4_000


class OwnCaches:
    """Counts what one session undoes."""

    def __init__(self, raw: postgres.Session) -> None:
        """Of a session that has undone nothing."""
        self._raw = raw
        self._undone = 0

    def note_undone(self) -> None:
        """A table may have been undone, so that it may be time to drop what is cached."""
        self._undone += 1
        if self._undone < MOST_UNDONE or self._raw.state() != "idle":
            return
        self._undone = 0
        for catalog in CATALOGS:
            # A limit of the user's, or a cancellation, may end it. It is done again later.
            with suppress(postgres.ServerError, postgres.ConnectionLost):
                self._raw.run([(f"VACUUM (FULL, SKIP_LOCKED) pg_catalog.{catalog}", [])])
