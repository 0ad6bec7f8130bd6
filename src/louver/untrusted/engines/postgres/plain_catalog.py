"""What a database of other applications declares, by the server's own catalog: for bringing it over
or writing it back. All is read in one transaction, with an empty search path, so that the server
writes every name out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from louver import errors
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.untrusted.engines.postgres.connection import PostgresEngine

Name = tuple[str, str]
"""A schema and a name in it."""
_OTHERS = (
    "n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' AND n.nspname <> 'louver'"
    " AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend e"
    " WHERE e.objid = {oid} AND e.classid = '{catalog}'::regclass AND e.deptype = 'e')"
)
_RELATIONS = _OTHERS.format(oid="c.oid", catalog="pg_catalog.pg_class")
_SETTINGS = (
    "SELECT set_config('search_path', '', false), set_config('row_security', 'off', false),"
    " set_config('intervalstyle', 'postgres', false),"
    " set_config('statement_timeout', '0', false),"
    " set_config('idle_in_transaction_session_timeout', '0', false)"
)
_TABLES = (
    "SELECT c.oid::bigint AS oid, n.nspname::text AS schema, c.relname::text AS name,"
    " c.relkind::text AS kind, obj_description(c.oid, 'pg_class') AS comment,"
    " CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END AS definition,"
    " c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid)"
    " AS has_children"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    f" WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND {_RELATIONS}"
    " AND c.relpersistence <> 't' ORDER BY n.nspname, c.relname"
)
_COLUMNS = (
    "SELECT a.attrelid::bigint AS oid, a.attname::text AS name,"
    " b.oid::bigint AS type, b.typtype::text AS kind,"
    " CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END::integer AS modifier,"
    " format_type(a.atttypid, a.atttypmod) AS written, a.attnotnull OR t.typnotnull AS not_null,"
    " pg_get_expr(d.adbin, d.adrelid) AS expression, a.attidentity::text AS identity,"
    " a.attgenerated::text AS generated, col_description(a.attrelid, a.attnum) AS comment,"
    " t.typtype = 'd' AS is_domain, coalesce(o.collisdeterministic, true) AS is_deterministic,"
    " coalesce(CASE WHEN o.collprovider = 'd' THEN y.datcollate ELSE o.collcollate END, 'C')"
    " IN ('C', 'POSIX') AS is_bytewise, tn.nspname::text AS type_schema,"
    " b.typname::text AS type_name, (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder)"
    " FROM pg_catalog.pg_enum e WHERE e.enumtypid = b.oid)::text AS labels,"
    " (SELECT json_build_array(sn.nspname, s.relname) FROM pg_catalog.pg_depend p"
    " JOIN pg_catalog.pg_class s ON s.oid = CASE WHEN p.classid = 'pg_catalog.pg_attrdef'::regclass"
    " THEN p.refobjid ELSE p.objid END AND s.relkind = 'S'"
    " JOIN pg_catalog.pg_namespace sn ON sn.oid = s.relnamespace"
    " WHERE (p.classid = 'pg_catalog.pg_attrdef'::regclass AND p.objid = d.oid"
    " AND p.refclassid = 'pg_catalog.pg_class'::regclass) OR (a.attidentity <> ''"
    " AND p.classid = 'pg_catalog.pg_class'::regclass AND p.refobjid = a.attrelid"
    " AND p.refobjsubid = a.attnum AND p.deptype = 'i') LIMIT 1)::text AS sequence"
    " FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid JOIN pg_catalog.pg_type b"
    " ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END"
    " JOIN pg_catalog.pg_namespace tn ON tn.oid = b.typnamespace"
    " LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
    " LEFT JOIN pg_catalog.pg_collation o ON o.oid = a.attcollation"
    " JOIN pg_catalog.pg_database y ON y.datname = current_database()"
    f" WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v') AND {_RELATIONS}"
    " ORDER BY a.attrelid, a.attnum"
)
_NAMED = (
    "(SELECT json_agg(a.attname ORDER BY k.position) FROM unnest({numbers}) WITH ORDINALITY"
    " AS k(number, position) JOIN pg_catalog.pg_attribute a ON a.attrelid = {table}"
    " AND a.attnum = k.number)::text"
)
_CONSTRAINTS = (
    "SELECT s.conrelid::bigint AS oid, s.conname::text AS name, s.contype::text AS kind,"
    " s.convalidated AS is_valid, s.condeferrable AS is_deferrable, "
    + _NAMED.format(numbers="s.conkey", table="s.conrelid")
    + " AS columns, s.confrelid::bigint AS parent, "
    + _NAMED.format(numbers="s.confkey", table="s.confrelid")
    + " AS parent_columns, s.confupdtype NOT IN ('a', 'r', ' ') OR s.confdeltype"
    " NOT IN ('a', 'r', ' ') AS acts, s.confmatchtype = 'f' AS is_full,"
    " pg_get_expr(s.conbin, s.conrelid) AS expression,"
    " coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) AS nulls_alike"
    " FROM pg_catalog.pg_constraint s JOIN pg_catalog.pg_class c ON c.oid = s.conrelid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = s.conindid AND s.contype IN ('p', 'u')"
    f" WHERE s.contype IN ('p', 'u', 'f', 'c', 'x', 'n') AND s.conparentid = 0 AND {_RELATIONS}"
    " ORDER BY s.conrelid, s.contype, s.conname"
)
_INDEXES = (
    "SELECT i.indrelid::bigint AS oid, n.nspname::text AS schema, x.relname::text AS name,"
    " i.indisunique AS is_unique, "
    + _NAMED.format(numbers="i.indkey", table="i.indrelid")
    + " AS columns, i.indpred IS NULL AND i.indexprs IS NULL AND i.indisvalid"
    " AND i.indnkeyatts = i.indnatts AND m.amname IN ('btree', 'hash')"
    " AND NOT coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) AS is_plain"
    " FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid"
    " JOIN pg_catalog.pg_class c ON c.oid = i.indrelid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_catalog.pg_am m ON m.oid = x.relam"
    f" WHERE c.relkind IN ('r', 'p') AND {_RELATIONS} AND NOT x.relispartition"
    " AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_constraint s WHERE s.conindid = i.indexrelid"
    " AND s.contype IN ('p', 'u', 'x')) ORDER BY n.nspname, x.relname"
)
_SEQUENCES = (
    "SELECT n.nspname::text AS schema, c.relname::text AS name, s.seqincrement AS increment,"
    " s.seqmin AS least, s.seqmax AS most, s.seqcycle AS cycles"
    " FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    f" WHERE {_RELATIONS} AND c.relpersistence <> 't' ORDER BY n.nspname, c.relname"
)
#: Objects that no other database can run, by their kind and name.
_FOREIGN = (
    "SELECT 'trigger' AS kind, n.nspname::text AS schema, c.relname || '.' || g.tgname AS name"
    " FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_class c ON c.oid = g.tgrelid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    f" WHERE NOT g.tgisinternal AND {_RELATIONS}"
    " UNION ALL SELECT 'policy', n.nspname::text, c.relname || '.' || l.polname"
    " FROM pg_catalog.pg_policy l JOIN pg_catalog.pg_class c ON c.oid = l.polrelid"
    f" JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {_RELATIONS}"
    " UNION ALL SELECT CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,"
    " n.nspname::text, p.proname::text FROM pg_catalog.pg_proc p"
    " JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE "
    + _OTHERS.format(oid="p.oid", catalog="pg_catalog.pg_proc")
    + " ORDER BY 1, 2, 3"
)


@dataclass(frozen=True, slots=True)
class PlainCatalog:
    """The rows of the server's catalog, as dictionaries; lists of names are lists."""

    tables: list[dict[str, Any]]
    columns: dict[int, list[dict[str, Any]]]
    constraints: dict[int, list[dict[str, Any]]]
    indexes: list[dict[str, Any]]
    sequences: list[dict[str, Any]]
    foreign: list[dict[str, Any]]


def plain_catalog(engine: PostgresEngine) -> PlainCatalog:
    """Read the catalog within the engine's open transaction, whose settings change for it."""
    _rows(engine, _SETTINGS)
    sequences = _rows(engine, _SEQUENCES)
    for sequence in sequences:
        path = name_of((sequence["schema"], sequence["name"]))
        (state,) = _rows(engine, f"SELECT last_value, is_called FROM {path}")
        sequence |= state
    return PlainCatalog(
        _rows(engine, _TABLES), _by_table(_rows(engine, _COLUMNS)),
        _by_table(_rows(engine, _CONSTRAINTS)), _rows(engine, _INDEXES), sequences,
        _rows(engine, _FOREIGN),
    )  # fmt: skip


def name_of(name: Name) -> str:
    """A qualified name as the server's text."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name)


def _rows(engine: PostgresEngine, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = engine.query(Statement(sql)).to_pylist()
    for row in rows:
        for key in ("columns", "parent_columns", "labels", "sequence"):
            if isinstance(row.get(key), str):
                row[key] = json.loads(row[key])
    return rows


def _by_table(rows: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    tables: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        tables.setdefault(row["oid"], []).append(row)
    return tables


def require_others(engine: PostgresEngine) -> None:
    """Raise for a database that holds Louver's own tables, whose rows are encrypted already."""
    if "louver_catalog" in engine.table_names():
        detail = "it is a database of Louver's: `louver export` writes it as plaintext"
        raise errors.make("file.database", path=engine.address, detail=detail)
