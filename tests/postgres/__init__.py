"""PostgreSQL servers of the tests' own, and what speaks to them."""
