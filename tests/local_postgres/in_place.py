"""What tests of databases that are encrypted within themselves share."""

from __future__ import annotations

from pathlib import Path

from tests.client.harness import Done, run
from tests.local_postgres import moving
from tests.postgres.moving import Database


def encrypt(shop: Database, folder: Path, *words: str, code: int = 0) -> Done:
    return run("encrypt", shop.url, "--in-place", "--json", *words, folder=folder, code=code)


SECRETS = """
CREATE SCHEMA hush_schema;
COMMENT ON SCHEMA hush_schema IS 'hush 1';
CREATE TYPE hush_mood AS ENUM ('hush 2', 'fine');
CREATE DOMAIN hush_code AS text CHECK (VALUE <> 'hush 3');
CREATE FUNCTION hush_twice(n integer) RETURNS text LANGUAGE sql AS
    $$SELECT 'hush 4' || n::text$$;
CREATE FUNCTION hush_twice(n text) RETURNS text LANGUAGE sql AS $$SELECT n$$;
CREATE SEQUENCE hush_free;
CREATE TABLE hush_schema.t (hush_id serial PRIMARY KEY, hush_name text DEFAULT 'hush 5',
    m hush_mood, c hush_code, CONSTRAINT hush_rule CHECK (hush_name <> 'hush 6'), n integer DEFAULT
    nextval('hush_free'), g text GENERATED ALWAYS AS (hush_name || 'hush 14') STORED);
CREATE TABLE u (k integer PRIMARY KEY, name text, t integer REFERENCES hush_schema.t);
INSERT INTO hush_schema.t (hush_name, m, c) SELECT 'hush 7', 'fine', 'hush 8'
    FROM generate_series(1, 500);
INSERT INTO u SELECT i, 'hush 9', i FROM generate_series(1, 400) AS i;
CREATE INDEX hush_index ON hush_schema.t (lower(hush_name)) WHERE hush_name <> 'hush 10';
CREATE STATISTICS hush_more ON hush_name, c FROM hush_schema.t;
CREATE VIEW hush_view AS SELECT hush_name, hush_twice('hush 11') FROM hush_schema.t JOIN u ON k = n;
COMMENT ON TABLE u IS 'hush 12';
COMMENT ON COLUMN u.name IS 'hush 13';
ANALYZE hush_schema.t;
ANALYZE u
"""
#: The rows of all that may hold definitions, names and values, as texts.
CATALOGS = (
    "pg_class", "pg_attribute", "pg_attrdef", "pg_type", "pg_enum", "pg_proc", "pg_constraint",
    "pg_rewrite", "pg_description", "pg_namespace", "pg_index", "pg_statistic", "pg_statistic_ext",
    "pg_statistic_ext_data", "pg_trigger", "pg_sequence", "pg_policy", "pg_depend",
)  # fmt: skip


def rows_of(name: str) -> str:
    """A subquery, for a sequence has no row as a whole."""
    return f"(SELECT * FROM {name})"


def seen(shop: Database, what: str) -> set[str]:
    """Where a text is in the server's tables of the database, and those of the catalog."""
    places = set()
    tables = [
        f'"{schema}"."{name}"' for schema, name in shop.run(
            "SELECT n.nspname::text, c.relname::text FROM pg_class AS c JOIN pg_namespace AS n"
            " ON n.oid = relnamespace WHERE relkind IN ('r', 'm', 'S') AND nspname !~ '^pg_'"
            " AND nspname <> 'information_schema'"
        )
    ]  # fmt: skip
    for table in (*tables, *(f"pg_catalog.{name}" for name in CATALOGS)):
        sql = f"SELECT count(*) FROM {rows_of(table)} AS x WHERE x::text ~ '{what}'"
        if shop.run(sql) != [[0]]:
            places.add(table)
    return places


def state(shop: Database) -> list[str]:
    """Everything that the database declares, with all rows."""
    names = shop.run(
        "SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_namespace AS n"
        " ON n.oid = relnamespace WHERE relkind IN ('r', 'm', 'S', 'v') AND nspname !~ '^pg_'"
        " AND nspname NOT IN ('information_schema', 'louver') ORDER BY 1"
    )
    texts = [f"{name} {shop.texts(rows_of(name))}" for (name,) in names]
    others = shop.run(
        "SELECT tgname::text FROM pg_trigger UNION ALL SELECT polname::text FROM pg_policy UNION"
        " ALL SELECT nspname::text FROM pg_namespace WHERE nspname <> 'louver'"
        " UNION ALL SELECT loid::text FROM pg_largeobject ORDER BY 1"
    )
    return [*moving.definitions(shop), *texts, *(name for (name,) in others)]
