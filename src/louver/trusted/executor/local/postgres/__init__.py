"""The local engine: a private PostgreSQL, which binds statements and finishes queries."""
