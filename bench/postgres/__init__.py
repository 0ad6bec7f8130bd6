"""Short statements on a PostgreSQL server, beside the plain driver on the same server."""
