"""What reads files for a session of PostgreSQL's: DuckDB, which knows more forms of them than the
private server, and reads them as the user.
"""

from __future__ import annotations

import duckdb

from louver.trusted.executor.local.connection import DuckDBConnection
from louver.trusted.executor.local.duckdb_instances import options
from louver.trusted.executor.local.local import LocalConnection


def reader(directory: str) -> LocalConnection:
    """A connection without any table; what it spills goes into a private directory."""
    return DuckDBConnection(duckdb.connect(":memory:", config=options(directory)))
