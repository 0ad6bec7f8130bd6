"""The DuckDB behind a session's local engine, for tests that look into it."""

from __future__ import annotations

from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine


def local_duckdb(local: LocalEngine) -> DuckDBLocalEngine:
    """The same engine, which is a DuckDB."""
    assert isinstance(local, DuckDBLocalEngine)
    return local
