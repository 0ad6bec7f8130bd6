"""sqllogictest files against plaintext DuckDB."""
