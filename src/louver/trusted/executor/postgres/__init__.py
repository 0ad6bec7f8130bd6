"""What a session in PostgreSQL's language has beside DuckDB's: its statements, and what is refused.

`language` says which handler runs which statement, `admitted` what a query or change may do beside
what Louver does of it.
"""
