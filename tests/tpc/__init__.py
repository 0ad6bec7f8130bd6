"""The TPC-H and TPC-DS queries over encrypted columns, against plaintext DuckDB."""
