"""The files of the binder's tables stay small: a dry run that is undone leaves its rows in them.

PostgreSQL's tables have no rows after a transaction that is undone, but their files do, and each
statement that scans such a table looks at them. So once enough rows were written, the tables whose
files are large get new ones (TRUNCATE).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from louver import errors
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.failures import translated

MOST_BYTES = 128 * 1024
"""What a file of the binder's may have when the tables are looked at."""
#: So many rows are written between two looks.
_ROWS = 1_000
#: Another session of the binder's may look something up just then; it is tried again later.
_PATIENCE = "SET LOCAL lock_timeout = '100ms'"
_LARGE = (
    "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class AS c"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND c.oid >= 16384"
    " AND pg_catalog.pg_table_size(c.oid) > $1::bigint"
)


class Emptying:
    """What one binder's dry runs have written."""

    def __init__(self) -> None:
        self._depth = 0
        self._seen = 0
        #: whether large files return if the open transaction is undone
        self._may_be_back = False

    @contextmanager
    def after(self, connection: PostgresConnection) -> Iterator[None]:
        """Within the block rows are written, and undone; then the files are made small again, where
        no other dry run is under way, whose rows would go.
        """
        self._depth += 1
        try:
            yield
        except BaseException:
            # What a statement wrote before it failed, nothing says.
            self._depth -= 1
            self._seen = min(self._seen, connection.written - _ROWS)
            self._empty(connection)
            raise
        self._depth -= 1
        self._empty(connection)

    def _empty(self, connection: PostgresConnection) -> None:
        state = connection.raw.state()
        if self._depth or state not in ("idle", "within"):
            return
        idle = state == "idle"
        if connection.written - self._seen < _ROWS and not (idle and self._may_be_back):
            return
        with suppress(errors.Error):
            names = connection.fetchall(_LARGE, [str(MOST_BYTES)])
            if names:
                _truncate(connection, [name for (name,) in names], idle=idle)
            self._seen = connection.written
            self._may_be_back = not idle and (bool(names) or self._may_be_back)


def _truncate(connection: PostgresConnection, names: list[str], *, idle: bool) -> None:
    """Tables that refer to them are empty as well; sequences go on."""
    point = "louver_emptying"
    first, last = ("BEGIN", "COMMIT") if idle else (f"SAVEPOINT {point}", f"RELEASE {point}")
    back = ["ROLLBACK"] if idle else [f"ROLLBACK TO {point}", last]
    text = f"TRUNCATE {', '.join(names)} CONTINUE IDENTITY CASCADE"
    steps = [first, _PATIENCE, text, "SET LOCAL lock_timeout = 0", last]
    with translated():
        try:
            for step in steps:
                connection.raw.run([(step, [])])
        except BaseException:
            if connection.raw.state() != "idle":
                for step in back:
                    connection.raw.run([(step, [])])
            raise
