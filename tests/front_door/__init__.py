"""Clients of PostgreSQL, their own drivers, at `louver serve pg`."""
