"""ALTER of domains and types, where columns may have values of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import storage
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.changed_rows import Filled
from louver.trusted.executor.schema import head
from louver.trusted.vault.catalog import Catalog, Table

#: By their first words: what changes no value of an enumerated or composite type, or the type where
#: no column has values of it; and of domains.
_TYPES = (
    ("ADD", "VALUE"), ("RENAME", "TO"), ("RENAME", "ATTRIBUTE"), ("ADD", "ATTRIBUTE"),
    ("DROP", "ATTRIBUTE"), ("ALTER", "ATTRIBUTE"),
)  # fmt: skip
_DOMAINS = (
    ("RENAME", "TO"), ("RENAME", "CONSTRAINT"), ("SET", "DEFAULT"), ("DROP", "DEFAULT"),
    ("SET", "NOT"), ("DROP", "NOT"), ("DROP", "CONSTRAINT"), ("ADD", "CONSTRAINT"),
    ("ADD", "CHECK"), ("VALIDATE", "CONSTRAINT"),
)  # fmt: skip
#: The tables whose columns are of a type, or of one that is made of it.
_USERS = """
WITH RECURSIVE used(oid) AS (
    SELECT to_regtype($1)::oid
    UNION SELECT t.oid FROM used AS u JOIN pg_type AS t ON t.typelem = u.oid AND t.typlen = -1
        OR t.typbasetype = u.oid OR EXISTS (SELECT 1 FROM pg_attribute AS a
            WHERE a.attrelid = t.typrelid AND a.atttypid = u.oid AND NOT a.attisdropped)
        OR EXISTS (SELECT 1 FROM pg_range AS r
            WHERE r.rngsubtype = u.oid AND t.oid IN (r.rngtypid, r.rngmultitypid))
)
SELECT DISTINCT n.nspname::text, c.relname::text, n.oid = pg_my_temp_schema()
FROM used AS u JOIN pg_attribute AS a ON a.atttypid = u.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind = 'r'
JOIN pg_namespace AS n ON n.oid = c.relnamespace
"""


def require(tokens: Sequence[Token], parts: Sequence[Sequence[Token]]) -> None:
    """Refuse actions that are not known to leave values as they are."""
    known = _DOMAINS if keyword(tokens[1].text) == "DOMAIN" else _TYPES
    for part in parts:
        words = [keyword(token.text) for token in part]
        if tuple(words[:2]) not in known:
            raise errors.make("sql.unsupported", statement=f"ALTER TYPE {' '.join(words[:2])}")
    if words[-2:] == ["NOT", "VALID"]:
        raise errors.make("sql.unsupported", statement="A CHECK that is NOT VALID")


def rehearse(context: Context, catalog: Catalog, sql: str, tokens: Sequence[Token]) -> None:
    """Try a statement on the rows of all tables that have values of the type. These are checked
    against a domain; what values of other types are made of must not change.
    """
    start = head.read(tokens)
    first, last = tokens[start.end - len(start.name) * 2 + 1], tokens[start.end - 1]
    named = sql[first.start : last.end + 1]
    with context.local.rehearsal() as connection:
        rows = connection.fetchall(_USERS, [named])
    if any(is_temporary for _, _, is_temporary in rows):
        raise errors.make("sql.unsupported", statement="ALTER of a type that a TEMP table has")
    words = [keyword(token.text) for token in tokens[start.end : start.end + 2]]
    if words in (["ADD", "VALUE"], ["RENAME", "TO"]):
        return
    keys = [(fold(schema), fold(name)) for schema, name, _ in rows]
    tables = [catalog.tables[key] for key in sorted(keys)]
    if tables:
        filled = [_filled(context, table) for table in tables]
        context.local.changed_by(tables[0], filled[0].rows, sql, filled[1:])
    if tables and keyword(tokens[1].text) != "DOMAIN":
        statement = "ALTER TYPE of a type whose values a table has"
        raise errors.make("sql.unsupported", statement=statement)


def _filled(context: Context, table: Table) -> Filled:
    rows = storage.whole(context.storage, table).drop_columns([storage.ROW_ID])
    return Filled(table.schema, table.name, rows)
