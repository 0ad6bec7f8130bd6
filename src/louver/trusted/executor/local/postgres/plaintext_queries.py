"""Queries of a plaintext database's catalog, beside those of `catalog_queries`: what has no text
that would make it here, and how values are asked for.
"""

from __future__ import annotations

OWN = r"n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'louver')"
#: What comes with an extension, by the catalog that it is in and its number.
MEMBERS = (
    "SELECT classid::regclass::text, objid FROM pg_depend WHERE deptype = 'e'"
    " AND classid IN ('pg_class'::regclass, 'pg_type'::regclass, 'pg_namespace'::regclass)"
)
SETTINGS = (
    ("search_path", ""), ("row_security", "off"), ("intervalstyle", "postgres"),
    ("extra_float_digits", "1"), ("bytea_output", "hex"), ("statement_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
)  # fmt: skip
#: Number, schema, name, kind, whether it is a part of a partitioned table, and a child of another.
TABLES = f"""
SELECT c.oid, n.nspname::text, c.relname::text, c.relkind::text, c.relispartition,
    NOT c.relispartition AND EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND {OWN} ORDER BY 2, 3
"""


def members(catalog: str, oid: str) -> str:
    """The condition for what does not come with an extension."""
    return (
        f"NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = '{catalog}'::regclass"
        f" AND objid = {oid} AND deptype = 'e')"
    )


_OF_TABLES = (
    "JOIN pg_class AS c ON c.oid = {table} JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    f" WHERE {OWN}"
)
#: Kind, the table that it is of (or 0), schema and name.
REFUSED = f"""
SELECT 'trigger', c.oid, n.nspname::text, c.relname || '.' || g.tgname
FROM pg_trigger AS g {_OF_TABLES.format(table="g.tgrelid")} AND NOT g.tgisinternal
UNION ALL
SELECT 'rule', c.oid, n.nspname::text, c.relname || '.' || r.rulename
FROM pg_rewrite AS r {_OF_TABLES.format(table="r.ev_class")} AND r.rulename <> '_RETURN'
UNION ALL
SELECT 'policy', c.oid, n.nspname::text, c.relname || '.' || p.polname
FROM pg_policy AS p {_OF_TABLES.format(table="p.polrelid")}
UNION ALL
SELECT CASE WHEN c.relkind = 'm' THEN 'materialized view' WHEN c.relkind = 'f' THEN 'foreign table'
    WHEN c.relkind = 'p' THEN 'partitions (all rows go into one table)'
    ELSE 'inheritance (each table has its own rows)' END,
    c.oid, n.nspname::text, c.relname::text
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE {OWN} AND NOT c.relispartition AND {members("pg_class", "c.oid")}
    AND (c.relkind IN ('m', 'f', 'p')
    OR EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = c.oid AND c.relkind = 'r'))
UNION ALL
SELECT 'row security', c.oid, n.nspname::text, c.relname::text
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE {OWN} AND c.relrowsecurity
UNION ALL
SELECT 'constraint that is not valid', c.oid, n.nspname::text, c.relname || '.' || k.conname
FROM pg_constraint AS k {_OF_TABLES.format(table="k.conrelid")} AND NOT k.convalidated
    AND k.contype IN ('c', 'f', 'n')
UNION ALL
SELECT 'index that is not valid', c.oid, n.nspname::text, x.relname::text
FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
{_OF_TABLES.format(table="i.indrelid")} AND NOT i.indisvalid
UNION ALL
SELECT CASE p.prokind WHEN 'a' THEN 'aggregate' ELSE 'window function' END, 0, n.nspname::text,
    p.proname::text
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE {OWN} AND p.prokind IN ('a', 'w') AND {members("pg_proc", "p.oid")}
UNION ALL
SELECT 'operator', 0, n.nspname::text, o.oprname::text
FROM pg_operator AS o JOIN pg_namespace AS n ON n.oid = o.oprnamespace
WHERE {OWN} AND {members("pg_operator", "o.oid")}
UNION ALL
SELECT 'collation', 0, n.nspname::text, o.collname::text
FROM pg_collation AS o JOIN pg_namespace AS n ON n.oid = o.collnamespace
WHERE {OWN} AND {members("pg_collation", "o.oid")}
UNION ALL
SELECT 'text search configuration', 0, n.nspname::text, t.cfgname::text
FROM pg_ts_config AS t JOIN pg_namespace AS n ON n.oid = t.cfgnamespace
WHERE {OWN} AND {members("pg_ts_config", "t.oid")}
UNION ALL
SELECT 'type', 0, n.nspname::text, t.typname::text
FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
WHERE {OWN} AND t.typtype = 'b' AND t.typelem = 0 AND {members("pg_type", "t.oid")}
ORDER BY 1, 3, 4
"""
#: Name, number and kind of a column's type (of a domain what it is of), its modifier, and whether
#: it is an extension's or made by a program.
COLUMNS = """
WITH RECURSIVE base AS (
    SELECT a.attnum, a.attname::text AS name, t.oid, t.typtype, t.typbasetype, t.typtypmod,
        a.atttypmod AS modifier
    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attnum, b.name, t.oid, t.typtype, t.typbasetype, t.typtypmod, b.typtypmod
    FROM base AS b JOIN pg_type AS t ON t.oid = b.typbasetype WHERE b.typtype = 'd'
)
SELECT b.name, b.oid, b.typtype::text, b.modifier, format_type(b.oid, b.modifier),
    EXISTS (SELECT 1 FROM pg_type AS t WHERE t.oid IN (b.oid, e.typelem) AND (EXISTS
        (SELECT 1 FROM pg_depend WHERE classid = 'pg_type'::regclass AND objid = t.oid
        AND deptype = 'e') OR (t.oid >= 16384 AND t.typtype = 'b' AND t.typelem = 0)))
FROM base AS b JOIN pg_type AS e ON e.oid = b.oid WHERE b.typtype <> 'd' ORDER BY b.attnum
"""
#: Foreign keys: number and name, of which table, and to which.
KEYS = """
SELECT k.conname::text, k.conrelid, k.confrelid, format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s',
    n.nspname, c.relname, k.conname, pg_get_constraintdef(k.oid))
FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE k.contype = 'f' AND k.conparentid = 0
"""
INVALID = (
    "SELECT conrelid, conname::text FROM pg_constraint WHERE NOT convalidated"
    " UNION ALL SELECT indexrelid, '' FROM pg_index WHERE NOT indisvalid"
)
PARTS = (
    "SELECT 'constraint', conname::text FROM pg_constraint WHERE conrelid = $1 AND contype <> 'n'"
    " UNION ALL SELECT 'default', a.attname::text FROM pg_attrdef AS d JOIN pg_attribute AS a"
    " ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.adrelid = $1"
)
#: The table of an index or of a sequence.
OWNERS = (
    "SELECT indexrelid, indrelid FROM pg_index UNION ALL SELECT objid, refobjid FROM pg_depend"
    " WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass"
    " AND deptype IN ('a', 'i') AND refobjsubid > 0"
    " UNION ALL SELECT p.refobjid, d.adrelid FROM pg_depend AS p JOIN pg_attrdef AS d"
    " ON d.oid = p.objid JOIN pg_class AS s ON s.oid = p.refobjid AND s.relkind = 'S'"
    " WHERE p.classid = 'pg_attrdef'::regclass AND p.refclassid = 'pg_class'::regclass"
)
COLLATION = "SELECT datcollate FROM pg_database WHERE datname = current_database()"
