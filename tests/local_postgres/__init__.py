"""The local engine of PostgreSQL."""
