"""The relations and functions that a statement names, as the private server's catalog has them."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_OF_USERS = 16_384
RELATIONS = """
SELECT c.oid, CASE WHEN n.oid = pg_my_temp_schema() THEN 'pg_temp' ELSE n.nspname::text END,
    c.relname::text, c.relkind::text, (SELECT ev_action::text FROM pg_rewrite
    WHERE ev_class = c.oid AND rulename = '_RETURN')
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = ANY($1::oid[])
"""
CALLED = """
SELECT p.oid, n.nspname::text, p.proname::text, p.provolatile::text, l.lanname::text,
    p.prosqlbody::text
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
JOIN pg_language AS l ON l.oid = p.prolang WHERE p.oid = ANY($1::oid[])
"""
OPERATORS = "SELECT oprcode::oid FROM pg_operator WHERE oid = ANY($1::oid[])"


@dataclass(frozen=True, slots=True)
class Called:
    """What a statement calls: `volatility` as in pg_proc; `body` its tree, if it has one in SQL."""

    oid: int
    schema: str
    name: str
    volatility: str
    language: str
    body: str | None

    @property
    def is_own(self) -> bool:
        """Whether it is PostgreSQL's own."""
        return self.oid < FIRST_OF_USERS
