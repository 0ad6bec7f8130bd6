"""Queries of `pg_catalog` for what a database declares; see `schema`."""

from __future__ import annotations

from louver.names import folded_sql
from louver.trusted.vault.catalog import TEMPORARY

_OURS = r"n.nspname !~ '^pg_(catalog|toast|temp_)' AND n.nspname <> 'information_schema'"
_IS_TABLE = f"{folded_sql('n.nspname::text')} = $1 AND {folded_sql('c.relname::text')} = $2"
_FROM = "FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
#: The column that a sequence goes with, and whether it is an identity column.
_OWNER = (
    "LEFT JOIN pg_depend AS e ON e.classid = 'pg_class'::regclass AND e.objid = c.oid"
    " AND e.refclassid = 'pg_class'::regclass AND e.deptype IN ('a', 'i') AND e.refobjsubid > 0"
)
_OWNING = (
    "(SELECT format('%I.%I.%I', m.nspname, q.relname, a.attname) FROM pg_class AS q"
    " JOIN pg_namespace AS m ON m.oid = q.relnamespace JOIN pg_attribute AS a ON a.attrelid = q.oid"
    " WHERE q.oid = e.refobjid AND a.attnum = e.refobjsubid)"
)
_PLACE = "format('%I.%I', n.nspname, c.relname)"
_IS_TEMPORARY = "n.oid = pg_my_temp_schema()"
#: Temporary views have the schema that the catalog gives them.
_SCHEMA = f"CASE WHEN {_IS_TEMPORARY} THEN '{TEMPORARY}' ELSE n.nspname::text END"
#: Kind, schema, name, number, what else is needed to print it, and a text that changes with it.
OBJECTS = rf"""
SELECT * FROM (
SELECT 'SCHEMA' AS kind, nspname::text, nspname::text, oid, quote_ident(nspname), ''
FROM pg_namespace AS n WHERE {_OURS} AND nspname <> 'public'
UNION ALL
SELECT 'TYPE', n.nspname::text, t.typname::text, t.oid,
    t.typtype::text || ' ' || format('%I.%I', n.nspname, t.typname),
    concat(t.typbasetype, t.typnotnull, t.typdefault, (SELECT string_agg(enumlabel, ','
    ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid),
    (SELECT string_agg(concat(conname, pg_get_constraintdef(oid)), ',' ORDER BY oid)
     FROM pg_constraint WHERE contypid = t.oid),
    (SELECT string_agg(concat(attname, format_type(atttypid, atttypmod)), ',' ORDER BY attnum)
     FROM pg_attribute WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped))
FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
WHERE {_OURS} AND (t.typtype IN ('e', 'd', 'r') OR (t.typtype = 'c' AND EXISTS
    (SELECT 1 FROM pg_class AS c WHERE c.oid = t.typrelid AND c.relkind = 'c')))
UNION ALL
SELECT 'SEQUENCE', n.nspname::text, c.relname::text, c.oid, '',
    concat_ws(' ', format_type(s.seqtypid, NULL), s.seqincrement, s.seqmin, s.seqmax, s.seqstart,
    s.seqcache, s.seqcycle, e.deptype, {_OWNING}, c.relpersistence)
{_FROM} JOIN pg_sequence AS s ON s.seqrelid = c.oid {_OWNER} WHERE {_OURS}
UNION ALL
SELECT 'TABLE', n.nspname::text, c.relname::text, c.oid, '',
    (SELECT string_agg(concat_ws(' ', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
        a.attnotnull, a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid)), ', '
        ORDER BY a.attnum)
     FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d
     ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) || coalesce(
    (SELECT string_agg(conname || ' ' || pg_get_constraintdef(oid), ', ' ORDER BY oid)
     FROM pg_constraint WHERE conrelid = c.oid), '') || ' ' || c.relpersistence::text
{_FROM} WHERE {_OURS} AND c.relkind IN ('r', 'p')
UNION ALL
SELECT 'INDEX', n.nspname::text, c.relname::text, c.oid, pg_get_indexdef(c.oid),
    pg_get_indexdef(c.oid)
{_FROM} WHERE {_OURS} AND c.relkind IN ('i', 'I')
    AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = c.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = c.oid)
UNION ALL
SELECT 'VIEW', {_SCHEMA}, c.relname::text, c.oid, '', concat_ws(' ', pg_get_viewdef(c.oid),
    c.reloptions::text, (SELECT string_agg(d.oid::text, ' ') FROM pg_attrdef AS d
    WHERE d.adrelid = c.oid))
{_FROM} WHERE ({_OURS} OR {_IS_TEMPORARY} AND c.relname !~ '^louver_') AND c.relkind = 'v'
) AS objects ORDER BY 4
"""
#: A name that several functions have stands with its arguments. Those that come with a type, or
#: with an extension, are not among them.
FUNCTIONS = f"""
SELECT n.nspname::text, CASE WHEN count(*) OVER (PARTITION BY n.oid, p.proname) > 1
    THEN p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')'
    ELSE p.proname::text END, p.oid, pg_get_functiondef(p.oid)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE {_OURS} AND p.prokind IN ('f', 'p') AND NOT EXISTS (SELECT 1 FROM pg_depend
    WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype IN ('i', 'e'))
ORDER BY p.oid
"""
#: How the default of a view's column begins.
OF_VIEW = "ALTER VIEW "
#: What is said of an object beside its definition, which is of a view also a column's default.
COMMENTS = f"""
SELECT n.nspname::text, c.relname::text, format('COMMENT ON %s %s IS %L',
    CASE WHEN d.objsubid > 0 THEN 'COLUMN' WHEN c.relkind = 'v' THEN 'VIEW'
    WHEN c.relkind = 'S' THEN 'SEQUENCE' WHEN c.relkind IN ('i', 'I') THEN 'INDEX'
    ELSE 'TABLE' END,
    {_PLACE} || CASE WHEN d.objsubid > 0 THEN '.' || quote_ident(a.attname) ELSE '' END,
    d.description), c.relpersistence = 't'
{_FROM} JOIN pg_description AS d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = d.objsubid
WHERE n.nspname !~ '^pg_(catalog|toast)' AND n.nspname <> 'information_schema'
UNION ALL
SELECT n.nspname::text, t.typname::text, format('COMMENT ON %s %I.%I IS %L',
    CASE WHEN t.typtype = 'd' THEN 'DOMAIN' ELSE 'TYPE' END, n.nspname, t.typname,
    d.description), false
FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
JOIN pg_description AS d ON d.objoid = t.oid AND d.classoid = 'pg_type'::regclass WHERE {_OURS}
UNION ALL
SELECT n.nspname::text, n.nspname::text, format('COMMENT ON SCHEMA %I IS %L', n.nspname,
    d.description), false
FROM pg_namespace AS n JOIN pg_description AS d
ON d.objoid = n.oid AND d.classoid = 'pg_namespace'::regclass
WHERE {_OURS} AND n.nspname <> 'public'
UNION ALL
SELECT n.nspname::text, coalesce(c.relname, t.typname)::text,
    format('COMMENT ON CONSTRAINT %I ON %s%I.%I IS %L', k.conname, CASE WHEN k.contypid > 0
    THEN 'DOMAIN ' ELSE '' END, n.nspname, coalesce(c.relname, t.typname), d.description),
    coalesce(c.relpersistence = 't', false)
FROM pg_constraint AS k JOIN pg_description AS d ON d.objoid = k.oid
    AND d.classoid = 'pg_constraint'::regclass
LEFT JOIN pg_class AS c ON c.oid = k.conrelid LEFT JOIN pg_type AS t ON t.oid = k.contypid
JOIN pg_namespace AS n ON n.oid = coalesce(c.relnamespace, t.typnamespace) WHERE {_OURS}
UNION ALL
SELECT n.nspname::text, c.relname::text, format('{OF_VIEW}%s ALTER COLUMN %I SET DEFAULT %s',
    {_PLACE}, a.attname, pg_get_expr(d.adbin, d.adrelid)), c.relpersistence = 't'
{_FROM} JOIN pg_attrdef AS d ON d.adrelid = c.oid JOIN pg_attribute AS a ON a.attrelid = c.oid
    AND a.attnum = d.adnum WHERE c.relkind = 'v' AND ({_OURS} OR {_IS_TEMPORARY})
"""
RELATION = f"""
SELECT c.oid {_FROM} WHERE {_SCHEMA} = $1 AND c.relname = $2
    AND position(c.relkind::text IN $3) > 0
"""
_OF = f"{_FROM} JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0"
_DEFAULTS = "LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum"
_NAMED = "n.nspname = $1 AND c.relname = $2 AND NOT a.attisdropped"
COLUMNS = f"""
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod),
    CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END
{_OF} {_DEFAULTS} WHERE {_NAMED} ORDER BY a.attnum
"""
GENERATED = f"""
SELECT a.attname::text, pg_get_expr(d.adbin, d.adrelid)
{_OF} {_DEFAULTS} WHERE {_NAMED} AND a.attgenerated <> '' ORDER BY a.attnum
"""

#: The columns of a table that get numbers of a sequence, and nothing else, by themselves.
DRAWS = f"""
SELECT a.attname::text, k.nspname::text, s.relname::text
{_OF} {_DEFAULTS} JOIN pg_class AS s ON s.relkind = 'S'
    JOIN pg_namespace AS k ON k.oid = s.relnamespace
WHERE {_NAMED} AND a.attgenerated = '' AND CASE WHEN a.attidentity = ''
    THEN pg_get_expr(d.adbin, d.adrelid) = format('nextval(%L::regclass)', s.oid::regclass)
    ELSE EXISTS (SELECT 1 FROM pg_depend AS i WHERE i.classid = 'pg_class'::regclass
        AND i.objid = s.oid AND i.refclassid = 'pg_class'::regclass AND i.refobjid = c.oid
        AND i.refobjsubid = a.attnum AND i.deptype = 'i') END
"""


def _listed(table: str, numbers: str) -> str:
    """The names of a table's columns with these numbers, each behind its length."""
    return (
        "(SELECT string_agg(length(a.attname::text) || ':' || a.attname, '' ORDER BY u.ordinal)"
        f" FROM unnest({numbers}) WITH ORDINALITY AS u(number, ordinal)"
        f" JOIN pg_attribute AS a ON a.attrelid = {table} AND a.attnum = u.number)"
    )


#: What PostgreSQL below 18 has no constraint for is said by the column.
CONSTRAINTS = f"""
SELECT k.contype::text, {_listed("c.oid", "k.conkey")}, pg_get_constraintdef(k.oid),
    CASE WHEN k.contype = 'c' THEN pg_get_expr(k.conbin, c.oid) END, n.nspname::text,
    p.relname::text, {_listed("k.confrelid", "k.confkey")},
    (SELECT q.nspname::text FROM pg_namespace AS q WHERE q.oid = p.relnamespace),
    k.confdeltype NOT IN ('a', 'r', ' ') OR k.confupdtype NOT IN ('a', 'r', ' '),
    CASE WHEN k.contype = 'x' THEN 'A constraint with EXCLUDE'
    WHEN to_jsonb(k) ->> 'conperiod' = 'true' THEN 'A key with WITHOUT OVERLAPS or PERIOD'
    WHEN k.confmatchtype = 'f' AND cardinality(k.conkey) > 1 THEN 'FOREIGN KEY with MATCH FULL'
    WHEN to_jsonb(k) ->> 'conenforced' = 'false' THEN 'A constraint that is NOT ENFORCED'
    WHEN k.contype = 'c' AND pg_get_constraintdef(k.oid) LIKE '% NOT VALID'
        THEN 'A CHECK that is NOT VALID'
    WHEN k.contype = 'c' AND pg_get_constraintdef(k.oid) ~ '\\m(nextval|setval)\\M'
        THEN 'A CHECK that draws from a sequence'
    WHEN k.condeferrable AND k.contype <> 'f' THEN 'A key that is DEFERRABLE'
    WHEN EXISTS (SELECT 1 FROM pg_index AS i WHERE i.indexrelid = k.conindid AND k.contype = 'u'
        AND i.indnullsnotdistinct) THEN 'UNIQUE NULLS NOT DISTINCT' END,
    k.conname::text, k.condeferrable, k.condeferred
{_FROM} JOIN pg_constraint AS k ON k.conrelid = c.oid LEFT JOIN pg_class AS p ON p.oid = k.confrelid
WHERE {_IS_TABLE} AND k.contype IN ('p', 'u', 'c', 'f', 'x')
UNION ALL
SELECT 'n', length(a.attname::text) || ':' || a.attname, 'NOT NULL', NULL, n.nspname::text, NULL,
    NULL, NULL, false, CASE WHEN EXISTS (SELECT 1 FROM pg_constraint AS k WHERE k.conrelid = c.oid
        AND k.contype = 'n' AND k.conkey = ARRAY[a.attnum] AND NOT k.convalidated)
        THEN 'NOT NULL that is NOT VALID' END, '', false, false
{_OF} WHERE {_IS_TABLE} AND a.attnotnull AND NOT a.attisdropped
"""
REFERENCES = f"""
SELECT n.nspname::text, c.relname::text, p.relname::text, q.nspname::text
{_FROM} JOIN pg_constraint AS k ON k.conrelid = c.oid AND k.contype = 'f'
JOIN pg_class AS p ON p.oid = k.confrelid JOIN pg_namespace AS q ON q.oid = p.relnamespace
WHERE {_OURS} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2
"""
UNIQUE = f"""
SELECT i.indexrelid, (SELECT relname::text FROM pg_class WHERE oid = i.indexrelid),
    i.indnkeyatts, pg_get_expr(i.indpred, c.oid), i.indnullsnotdistinct
{_FROM} JOIN pg_index AS i ON i.indrelid = c.oid WHERE {_IS_TABLE} AND i.indisunique
    AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid)
ORDER BY i.indexrelid
"""
INDEXED = "SELECT pg_get_indexdef($1, $2, false)"
INDEXES = f"""
SELECT n.nspname::text, x.relname::text, c.relname::text, pg_get_indexdef(x.oid)
{_FROM} JOIN pg_index AS i ON i.indrelid = c.oid JOIN pg_class AS x ON x.oid = i.indexrelid
WHERE {_OURS} AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = x.oid)
ORDER BY x.relname
"""
#: Sequences as they are declared, and where the numbers of one are read.
SEQUENCES = f"""
SELECT n.nspname::text, c.relname::text, c.relpersistence = 't', s.seqstart, s.seqincrement,
    s.seqmin, s.seqmax, s.seqcycle, format_type(s.seqtypid, NULL), s.seqcache, e.deptype = 'i',
    {_OWNING}, c.relpersistence = 'u',
    format('SELECT last_value, is_called FROM %I.%I', n.nspname, c.relname)
{_FROM} JOIN pg_sequence AS s ON s.seqrelid = c.oid {_OWNER} ORDER BY c.oid
"""
#: Sequences of which a connection holds several numbers ready.
CACHING = f"""
SELECT format('%I.%I', n.nspname, c.relname)
{_FROM} JOIN pg_sequence AS s ON s.seqrelid = c.oid WHERE s.seqcache > 1
"""
