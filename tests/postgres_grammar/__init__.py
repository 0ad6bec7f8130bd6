"""Random statements of PostgreSQL's language, on Louver and on plaintext PostgreSQL."""
