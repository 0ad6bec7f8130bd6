"""The local engine: DuckDB in this process, which binds statements and finishes queries."""
