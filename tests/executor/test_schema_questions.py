"""Questions about the schema, however they are asked: DuckDB's answer, and nothing of it sent."""

from __future__ import annotations

from random import Random

import pytest

from louver.trusted.executor import schema_queries
from louver.trusted.executor.local import duckdb_statements
from tests.generated import cases, generator
from tests.twin import PROFILES, Twin

SETUP = (
    "CREATE SCHEMA s",
    "CREATE TABLE t (id INTEGER ENC PRIMARY KEY, capybara VARCHAR ENC NOT NULL, p INTEGER)",
    "CREATE TABLE s.kid (id INTEGER ENC, parent INTEGER ENC, CHECK (id > 0))",
    "CREATE TABLE tree (id INTEGER PRIMARY KEY, up INTEGER REFERENCES tree (id))",
    "CREATE TABLE duckdb_schemas (id INTEGER ENC)",
    "CREATE INDEX by_p ON t (p)",
    "CREATE SEQUENCE numbers START 7",
    "CREATE TYPE mood AS ENUM ('well', 'ill')",
    "CREATE VIEW tables_seen AS SELECT table_name FROM information_schema.tables",
    "CREATE VIEW seen_again (name) AS SELECT t.table_name FROM tables_seen AS t",
    "CREATE VIEW pg_am AS SELECT id, capybara FROM t",
    "CREATE MACRO kinds() AS TABLE SELECT table_name, column_count FROM duckdb_tables()",
    "CREATE MACRO widest() AS (SELECT max(column_count) FROM duckdb_tables)",
    "INSERT INTO t VALUES (1, 'x', 1), (2, 'y', NULL), (3, 'duckdb_tables', 3)",
    "INSERT INTO s.kid VALUES (1, 1), (2, 1)",
    "INSERT INTO tree VALUES (1, NULL)",
    "INSERT INTO tree VALUES (2, 1)",
    "INSERT INTO duckdb_schemas VALUES (5)",
)
#: Sources with a column of texts that both sides must agree in.
SOURCES = (
    ("pg_tables", "tablename"),
    ("pg_catalog.pg_tables", "tablename"),
    ("pg_views", "viewname"),
    ("pg_indexes", "indexname"),
    ("pg_class", "relname"),
    ("pg_attribute", "attname"),
    ("pg_sequences", "sequencename"),
    ("pg_constraint", "conname"),
    ("duckdb_tables", "table_name"),
    ("duckdb_tables()", "table_name"),
    ("duckdb_columns", "column_name"),
    ("duckdb_indexes", "index_name"),
    ("duckdb_constraints", "constraint_text"),
    ("sqlite_master", "name"),
    ("information_schema.columns", "column_name"),
    ("information_schema.tables", "table_name"),
    ("information_schema.table_constraints", "constraint_type"),
    ("information_schema.key_column_usage", "column_name"),
    ("pragma_table_info('t')", "name"),
    ("(SHOW TABLES)", "name"),
    ("(SHOW ALL TABLES)", "name"),
    ("(DESCRIBE t)", "column_name"),
    ("(DESCRIBE SELECT capybara, p + 1 AS q FROM t)", "column_name"),
    ("tables_seen", "table_name"),
    ("seen_again", "name"),
    ("kinds()", "table_name"),
    ("(FROM 'pg_tables')", "tablename"),
    ("query_table('duckdb_tables')", "table_name"),
    ("query_table(['duckdb_tables'])", "table_name"),
    ("query('FROM pg_tables')", "tablename"),
)
#: The user's own, under names of the catalog's.
OWN = ("SELECT id FROM duckdb_schemas", "SELECT capybara, id FROM pg_am")
MIXED = (
    "SELECT {c}, id FROM {s} AS q, t WHERE p = 1",
    "SELECT id FROM t WHERE capybara IN (SELECT {c} FROM {s})",
    "SELECT {c}, (SELECT sum(id) FROM s.kid) FROM {s}",
    "SELECT {c} FROM {s} UNION ALL SELECT capybara FROM t",
    "WITH q AS (SELECT count({c}) AS n FROM {s}) SELECT n, up FROM q, tree",
    "SELECT t.id, n.id FROM t, duckdb_schemas AS n, (SELECT count(*) FROM {s}) AS q",
)
PURE = (
    "SELECT {c} FROM {s}",
    "SELECT count(*), min({c}), max({c}) FROM {s}",
    "WITH q AS (SELECT {c} AS n FROM {s}) SELECT DISTINCT n FROM q WHERE n <> 'x'",
    "SELECT {c} FROM {s} WHERE {c} LIKE '%a%' ORDER BY {c} LIMIT 3",
    "SELECT q.{c} FROM (SELECT * FROM {s}) AS q JOIN tables_seen ON true",
    "FROM {s} SELECT {c}, widest()",
    "SELECT EXISTS (SELECT {c} FROM {s} WHERE {c} = 't')",
    "SELECT {c} FROM {s} WHERE {c} <> $1",
)


@pytest.fixture(params=PROFILES)
def twin(request, open_connection) -> Twin:
    twin = Twin.beside(open_connection(request.param), own_errors=True)
    twin.fill(*SETUP)
    return twin


def test_questions_about_the_schema(twin: Twin) -> None:
    random = generator("questions about the schema")
    for source, column in SOURCES:
        for template in _some(random, PURE):
            sql = template.format(s=source, c=column)
            twin.either(sql, ["t"] if "$1" in sql else [])
            if "$1" not in sql:
                assert twin.louver.sql(sql).remote_sql() == [], sql
        for template in _some(random, MIXED):
            twin.either(template.format(s=source, c=column))
    for sql in OWN:
        twin.either(sql)
        assert twin.louver.sql(sql).remote_sql(), sql


def _some(random: Random, templates: tuple[str, ...]) -> list[str]:
    return random.sample(templates, min(len(templates), cases(2)))


def test_every_name_of_the_catalog_is_known_by_its_beginning() -> None:
    system = duckdb_statements.system_names()
    odd = {n for n in system.views | system.functions if not n.startswith(schema_queries.PREFIXES)}
    assert odd == schema_queries.MACROS
