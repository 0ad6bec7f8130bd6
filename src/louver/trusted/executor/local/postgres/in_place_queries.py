"""Queries and statements for a plaintext database that is encrypted within itself: its tables wait
in schemas of ours, and what is left to do is in a table beside them.
"""

from __future__ import annotations

from louver.trusted.executor.local.postgres.plaintext_queries import OWN, members

HOME = "louver_plaintext"
PLAN = f"{HOME}.plan"
HAS_PLAN = f"SELECT to_regclass('{PLAN}') IS NOT NULL"
CREATE = (
    f"CREATE SCHEMA {HOME}",
    f"CREATE TABLE {PLAN} (position integer PRIMARY KEY, part integer NOT NULL, policy text"
    " NOT NULL, kind text NOT NULL, schema text NOT NULL, name text NOT NULL, sql text NOT NULL,"
    " number bigint NOT NULL, home text NOT NULL, size bigint NOT NULL)",
)
LOCK_PLAN = f"LOCK TABLE {PLAN} IN ACCESS EXCLUSIVE MODE"
READ = (
    "SELECT part, policy, kind, schema, name, sql, number, home, size"
    f" FROM {PLAN} ORDER BY position"
)
WRITE = (
    f"INSERT INTO {PLAN} SELECT $1::integer, $2::integer, $3, $4, $5, $6, $7, $8::bigint, $9,"
    " $10::bigint"
)
DONE = f"DELETE FROM {PLAN} WHERE part = $1::integer"
NAMESPACES = "SELECT nspname::text, oid::bigint FROM pg_namespace"
HOMES = f"SELECT format('DROP SCHEMA %I', nspname) FROM pg_namespace WHERE nspname ~ '^{HOME}_'"
_TABLES = (
    "JOIN pg_class AS c ON c.oid = {table} AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't'"
    f" JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE {OWN}"
)
#: By what tables depend on each other and on other objects: what they declare is known by then.
DETACHING = f"""
SELECT format('ALTER TABLE %I.%I DROP CONSTRAINT %I', n.nspname, c.relname, k.conname)
FROM pg_constraint AS k {_TABLES.format(table="k.conrelid")} AND k.contype IN ('c', 'f')
    AND k.conparentid = 0
UNION ALL
SELECT format('ALTER TABLE %I.%I ALTER COLUMN %I DROP DEFAULT', n.nspname, c.relname, a.attname)
FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
{_TABLES.format(table="d.adrelid")} AND a.attgenerated = ''
"""
#: Comments that no statement here makes, so that they would be lost.
COMMENTS = """
SELECT 'comment on ' || pg_describe_object(d.classoid, d.objoid, d.objsubid)
FROM pg_description AS d LEFT JOIN pg_class AS c ON d.classoid = 'pg_class'::regclass
    AND c.oid = d.objoid
WHERE d.objoid >= 16384 AND (c.relkind = 'c' OR (c.relkind = 'i' AND EXISTS
    (SELECT 1 FROM pg_constraint WHERE conindid = c.oid)) OR d.classoid NOT IN
    ('pg_class'::regclass, 'pg_type'::regclass, 'pg_namespace'::regclass, 'pg_extension'::regclass))
    AND NOT EXISTS (SELECT 1 FROM pg_depend AS e WHERE e.classid = d.classoid
    AND e.objid = d.objoid AND e.deptype = 'e')
ORDER BY 1
"""
#: What does not go with a table: a name for people, and the statement that removes it.
DROPS = f"""
SELECT * FROM (
SELECT 1 AS step, 'view ' || c.relname, format('DROP VIEW %I.%I', n.nspname, c.relname)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE {OWN} AND c.relkind = 'v' AND {members("pg_class", "c.oid")}
UNION ALL
SELECT 2, 'function ' || p.proname, format('DROP ROUTINE %I.%I(%s)', n.nspname, p.proname,
    pg_get_function_identity_arguments(p.oid))
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE {OWN} AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_proc'::regclass
    AND objid = p.oid AND deptype IN ('i', 'e'))
UNION ALL
SELECT 3, 'sequence ' || c.relname, format('DROP SEQUENCE %I.%I', n.nspname, c.relname)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE {OWN} AND c.relkind = 'S' AND NOT EXISTS (SELECT 1 FROM pg_depend
    WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype IN ('a', 'i', 'e'))
UNION ALL
SELECT 4, 'type ' || t.typname, format('DROP TYPE %I.%I', n.nspname, t.typname)
FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
WHERE {OWN} AND {members("pg_type", "t.oid")} AND (t.typtype IN ('e', 'd', 'r')
    OR (t.typtype = 'c' AND EXISTS (SELECT 1 FROM pg_class AS c WHERE c.oid = t.typrelid
    AND c.relkind = 'c')))
UNION ALL
SELECT 5, 'comment on schema ' || n.nspname, format('COMMENT ON SCHEMA %I IS NULL', n.nspname)
FROM pg_namespace AS n WHERE {OWN} AND n.nspname <> 'public'
    AND obj_description(n.oid, 'pg_namespace') IS NOT NULL
) AS drops ORDER BY step, 2
"""
#: Schemas of which nothing is left.
EMPTY = f"""
SELECT format('DROP SCHEMA %I', n.nspname) FROM pg_namespace AS n WHERE {OWN}
    AND n.nspname <> 'public' AND {members("pg_namespace", "n.oid")} AND NOT EXISTS
    (SELECT 1 FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = n.oid)
"""
#: Default deny: whatever is in a schema, but for tables, by schema and name (else ""), and what is
#: in none and may hold values or definitions.
LEFT = f"""
SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0), coalesce(n.nspname::text, ''),
    coalesce(c.relname::text, '')
FROM pg_depend AS d JOIN pg_namespace AS n ON n.oid = d.refobjid
LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
WHERE d.refclassid = 'pg_namespace'::regclass AND ({OWN} OR (n.nspname = 'louver'
    AND coalesce(c.relname, '') !~ '^louver_(catalog|ledger|epoch|writer|gate)$'))
    AND NOT EXISTS (SELECT 1 FROM pg_depend AS e WHERE e.classid = d.classid AND e.objid = d.objid
    AND e.deptype = 'e')
UNION ALL
SELECT 'large objects', '', '' WHERE EXISTS (SELECT 1 FROM pg_largeobject_metadata)
UNION ALL
SELECT pg_describe_object('pg_cast'::regclass, k.oid, 0), '', '' FROM pg_cast AS k
WHERE k.oid >= 16384 AND {members("pg_cast", "k.oid")}
UNION ALL
SELECT 'event trigger ' || evtname, '', '' FROM pg_event_trigger AS g
WHERE {members("pg_event_trigger", "g.oid")}
UNION ALL
SELECT 'publication ' || pubname, '', '' FROM pg_publication
ORDER BY 1
"""
