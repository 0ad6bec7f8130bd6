"""Definitions in PostgreSQL's language beside plaintext PostgreSQL: what they make and refuse.

Each statement says the same on both; what Louver does not do is refused with a code, and leaves
everything as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.local_postgres.twin import PostgresTwin


@pytest.fixture(scope="module")
def opened() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    yield twin
    twin.close()


@pytest.fixture
def twin(opened: PostgresTwin) -> Iterator[PostgresTwin]:
    yield opened
    for name in ("t", "t", "k"):  # one may be a TEMP table, before another one
        opened.run(f"DROP TABLE IF EXISTS {name} CASCADE")


def _all(twin: PostgresTwin, *statements: str) -> None:
    for sql in statements:
        twin.run(sql)


def _refused(twin: PostgresTwin, sql: str) -> None:
    with pytest.raises(errors.NotSupportedError) as raised:
        twin.louver.execute(sql)
    assert raised.value.code == "sql.unsupported", sql


_TABLE = (
    "CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC, b numeric(10,2) ENC, n integer,"
    " g integer ENC GENERATED ALWAYS AS (n * 2) STORED)",
    "INSERT INTO t (id, a, b, n) VALUES (1, 'x', 1.5, 10), (2, 'y', 2.5, 20),"
    " (3, NULL, NULL, NULL)",
)
_ROWS = "SELECT * FROM t ORDER BY id"


def test_columns_come_go_and_change(twin: PostgresTwin) -> None:
    _all(
        twin,
        *_TABLE,
        "ALTER TABLE t ADD COLUMN c integer ENC",
        "ALTER TABLE t ADD COLUMN d integer ENC DEFAULT 4",
        "ALTER TABLE t ADD COLUMN e text ENC NOT NULL",
        "ALTER TABLE ONLY t ADD COLUMN e text ENC NOT NULL DEFAULT 'q', ADD COLUMN f date ENC",
        _ROWS,
        "ALTER TABLE t ALTER COLUMN b TYPE integer USING b::integer",
        _ROWS,
        "ALTER TABLE t ALTER b TYPE varchar(1)",
        "ALTER TABLE t ALTER b TYPE varchar(5), ALTER d TYPE bigint",
        _ROWS,
        "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
        "ALTER TABLE t ALTER COLUMN d SET DEFAULT 9, ALTER COLUMN a SET NOT NULL",
        "ALTER TABLE t ALTER COLUMN d SET DEFAULT 9, ALTER COLUMN e SET NOT NULL",
        "INSERT INTO t (id) VALUES (4) RETURNING *",
        "ALTER TABLE t ALTER COLUMN d DROP DEFAULT",
        "INSERT INTO t (id) VALUES (5) RETURNING *",
        "ALTER TABLE t DROP COLUMN c, DROP COLUMN f",
        "ALTER TABLE t DROP COLUMN n",
        "ALTER TABLE t DROP COLUMN nope",
        "ALTER TABLE IF EXISTS nope DROP COLUMN x",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS a text",
        "ALTER TABLE t RENAME COLUMN a TO aa",
        "ALTER TABLE t RENAME TO tt",
        "SELECT aa, d, e FROM tt ORDER BY id",
        "ALTER TABLE tt RENAME TO t",
    )


def test_constraints_come_and_go(twin: PostgresTwin) -> None:
    _all(
        twin,
        *_TABLE,
        "ALTER TABLE t ADD CONSTRAINT pos CHECK (n > 0)",
        "ALTER TABLE t ADD CONSTRAINT big CHECK (n > 15)",
        "INSERT INTO t (id, n) VALUES (6, -1)",
        "ALTER TABLE t DROP CONSTRAINT pos",
        "INSERT INTO t (id, n) VALUES (6, -1)",
        "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a)",
        "INSERT INTO t (id, a) VALUES (7, 'x')",
        "ALTER TABLE t DROP CONSTRAINT u",
        "INSERT INTO t (id, a) VALUES (7, 'x')",
        "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a)",
        "CREATE TABLE k (t integer ENC, v text ENC)",
        "INSERT INTO k VALUES (99, 'v'), (1, 'w')",
        "ALTER TABLE k ADD FOREIGN KEY (t) REFERENCES t (id)",
        "DELETE FROM k WHERE t = 99",
        "ALTER TABLE k ADD CONSTRAINT fk FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE",
        "ALTER TABLE k ADD COLUMN t2 integer ENC DEFAULT 77 REFERENCES t (id)",
        "ALTER TABLE k ADD COLUMN t2 integer ENC DEFAULT 2 REFERENCES t (id)",
        "SELECT * FROM k",
        "DELETE FROM t WHERE id = 1",
        "SELECT * FROM k",
        "ALTER TABLE t RENAME CONSTRAINT t_pkey TO tpk",
        "INSERT INTO t (id) VALUES (2)",
        "ALTER TABLE t DROP CONSTRAINT tpk",
        "ALTER TABLE t DROP CONSTRAINT tpk CASCADE",
        "INSERT INTO t (id) VALUES (2)",
        "SELECT id, a, n FROM t ORDER BY id, n",
        "DROP TABLE t CASCADE",
        "SELECT * FROM k",
    )


def test_views_follow_their_tables(twin: PostgresTwin) -> None:
    _all(
        twin,
        *_TABLE,
        "CREATE VIEW v AS SELECT id, a FROM t",
        "ALTER TABLE t RENAME COLUMN a TO aa",
        "SELECT * FROM v ORDER BY id",
        "ALTER TABLE t DROP COLUMN aa",
        "ALTER TABLE t ALTER COLUMN aa TYPE varchar(10)",
        "CREATE OR REPLACE VIEW v AS SELECT id, aa FROM t",
        "CREATE OR REPLACE VIEW v AS SELECT id, aa AS a, n FROM t",
        "SELECT * FROM v ORDER BY id",
        "ALTER VIEW v RENAME TO w",
        "ALTER VIEW w RENAME COLUMN id TO number",
        "CREATE VIEW w2 AS SELECT number + 1 AS x FROM w",
        "SELECT * FROM w2 ORDER BY x",
        "DROP VIEW w",
        "DROP VIEW w CASCADE",
        "SELECT * FROM w2",
        "CREATE VIEW v2 AS SELECT count(*) FROM t",
        "DROP TABLE t",
        "DROP TABLE t CASCADE",
        "SELECT * FROM v2",
    )


def test_indexes_and_comments(twin: PostgresTwin) -> None:
    _all(
        twin,
        *_TABLE,
        "CREATE INDEX ON t (a)",
        "CREATE INDEX i2 ON t (lower(a))",
        "CREATE INDEX CONCURRENTLY i3 ON t USING btree (a DESC) WHERE id > 1",
        "CREATE INDEX i2 ON t (a)",
        "CREATE UNIQUE INDEX i4 ON t (n)",
        "INSERT INTO t (id, n) VALUES (8, 20)",
        "INSERT INTO t (id, a) VALUES (9, 'y')",
        "CREATE UNIQUE INDEX i5 ON t (a)",
        "ALTER INDEX i2 RENAME TO i6",
        "DROP INDEX i4",
        "INSERT INTO t (id, n) VALUES (8, 20)",
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
        "COMMENT ON TABLE t IS 'people'",
        "COMMENT ON COLUMN t.a IS 'names'",
        "SELECT obj_description('t'::regclass), col_description('t'::regclass, 2)",
        "COMMENT ON TABLE t IS NULL",
        "ALTER TABLE t RENAME COLUMN a TO aa",
        "SELECT obj_description('t'::regclass), col_description('t'::regclass, 2)",
    )


def test_tables_of_queries_and_for_the_session(twin: PostgresTwin) -> None:
    _all(
        twin,
        *_TABLE,
        "CREATE TABLE k AS SELECT id, a AS aa FROM t",
        "SELECT * FROM k ORDER BY id",
        "DROP TABLE k",
        "CREATE TABLE k (x, y) AS SELECT id, a FROM t WITH NO DATA",
        "SELECT * FROM k",
        "DROP TABLE k",
        "CREATE TABLE bare (id integer PRIMARY KEY, n integer DEFAULT 5)",
        "CREATE TABLE k (LIKE bare INCLUDING ALL)",
        "INSERT INTO k (id, n) VALUES (1, 2)",
        "INSERT INTO k (id, n) VALUES (1, 2)",
        "SELECT * FROM k",
        "CREATE TEMP TABLE tt (a int, b text)",
        "INSERT INTO tt VALUES (1, 'x'), (2, 'y')",
        "UPDATE tt SET b = 'z' WHERE a = 1",
        "DELETE FROM tt WHERE a = 2 RETURNING *",
        "DELETE FROM tt",
        "DROP TABLE tt",
        "CREATE TEMP TABLE tt AS SELECT id, a FROM t",
        "SELECT * FROM tt ORDER BY id",
        "DROP TABLE tt",
    )


def test_functions_in_sql(twin: PostgresTwin) -> None:
    _all(
        twin,
        *_TABLE,
        "CREATE FUNCTION f(x integer) RETURNS integer LANGUAGE sql RETURN x + 2",
        "CREATE OR REPLACE FUNCTION f(x integer) RETURNS integer LANGUAGE sql RETURN x + 3",
        "SELECT f(id) FROM t ORDER BY 1",
        "CREATE FUNCTION f(x text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'f' || x $$",
        "SELECT f(id), f(a) FROM t ORDER BY 1",
        "DROP FUNCTION f(integer)",
        "SELECT f(a) FROM t ORDER BY 1",
        "DROP FUNCTION f",
        "SELECT f(a) FROM t",
    )


def test_domains_that_forbid_null(twin: PostgresTwin) -> None:
    _all(
        twin,
        "CREATE DOMAIN given varchar(15) NOT NULL",
        "CREATE DOMAIN other varchar(15)",
        "CREATE TYPE pair AS (a int, b text[])",
        "CREATE DOMAIN checked AS pair CHECK ((VALUE).b[1] IS NOT NULL)",
        "CREATE TABLE t (id integer ENC, g given ENC, o other ENC, c checked ENC, l checked[] ENC)",
        "INSERT INTO t VALUES (1, 'a', NULL, row(1, '{x}'), NULL),"
        " (2, 'b', 'c', row(2, '{y}'), array[row(3, '{z}')::checked])",
        "SELECT * FROM t",
        "SELECT count(*) FROM t",
        "SELECT id FROM t WHERE o IS NULL",
        "UPDATE t SET o = 'd' WHERE o IS NULL",
        "UPDATE t SET id = id + 1",
        "INSERT INTO t (id) VALUES (5)",
        "DELETE FROM t WHERE g = 'a'",
        "SELECT * FROM t",
        "DROP TABLE t",
        "DROP DOMAIN given, other, checked",
        "DROP TYPE pair",
    )


def test_views_are_made_behind_those_that_they_name(twin: PostgresTwin) -> None:
    _all(
        twin,
        "CREATE TABLE t (id integer ENC)",
        "INSERT INTO t VALUES (1)",
        "CREATE VIEW v1 AS SELECT id FROM t",
        "CREATE VIEW v2 AS SELECT id + 1 AS b FROM v1",
        "CREATE OR REPLACE VIEW v1 AS SELECT id, id + 2 AS c FROM t",
        "SELECT * FROM v2",
        "SELECT * FROM v1, v2",
        "DROP VIEW v1, v2",
    )


def test_indexes_for_which_nobody_waits(twin: PostgresTwin) -> None:
    _all(
        twin,
        "CREATE TABLE t (a integer ENC, b integer ENC)",
        "CREATE INDEX CONCURRENTLY i1 ON t (a)",
        "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i2 ON t (b)",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "INSERT INTO t VALUES (1, 1)",
        "DROP INDEX CONCURRENTLY i1, i2",
        "BEGIN",
        "CREATE INDEX CONCURRENTLY i3 ON t (a)",
        "ROLLBACK",
        "DROP INDEX CONCURRENTLY IF EXISTS i2",
        "REINDEX TABLE t",
        "REINDEX (VERBOSE) INDEX CONCURRENTLY i1",
        "REINDEX TABLE nowhere",
        "REINDEX SCHEMA public",
        "REINDEX (VERBOSE) SCHEMA CONCURRENTLY pg_catalog",
        "REINDEX SCHEMA nowhere",
        "REINDEX SCHEMA",
        "REINDEX INDEX CONCURRENTLY public.i1",
        "REINDEX TABLE CONCURRENTLY pg_class",
        'REINDEX INDEX CONCURRENTLY pg_catalog."pg_class_oid_index"',
        "BEGIN",
        "REINDEX TABLE CONCURRENTLY t",
        "ROLLBACK",
        "INSERT INTO t VALUES (1, 1)",
        "CREATE TEMP TABLE k (a integer)",
        "CREATE INDEX CONCURRENTLY ON k (a)",
    )


def test_types_of_the_users(twin: PostgresTwin) -> None:
    _all(
        twin,
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN posint AS integer CHECK (VALUE > 0)",
        "CREATE TABLE t (id integer, m mood ENC, d posint ENC)",
        "INSERT INTO t VALUES (1, 'sad', 5)",
        "INSERT INTO t (d) VALUES (-1)",
        "INSERT INTO t (m) VALUES ('happy')",
        "ALTER TYPE mood ADD VALUE 'happy' AFTER 'ok'",
        "INSERT INTO t (m) VALUES ('happy')",
        "SELECT m, d FROM t WHERE m > 'sad'",
        "SELECT * FROM t ORDER BY m",
        "DROP TYPE mood",
    )
    for sql in ("DROP TYPE mood CASCADE", "DROP DOMAIN posint CASCADE"):
        _refused(twin, sql)
    _all(
        twin,
        "SELECT * FROM t ORDER BY m",
        "DROP TABLE t",
        "DROP TYPE mood",
        "DROP DOMAIN posint",
    )


def test_ranges_and_rows_with_all_that_is_said_of_them(twin: PostgresTwin) -> None:
    _all(
        twin,
        'CREATE TYPE letters AS RANGE (SUBTYPE = text, COLLATION = "C",'
        " MULTIRANGE_TYPE_NAME = several)",
        "CREATE TYPE span AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi)",
        'CREATE TYPE pair AS (a text COLLATE "C", b integer)',
        "CREATE TABLE t (id integer, l letters ENC, s span ENC, m several ENC, p pair ENC)",
        "INSERT INTO t VALUES (1, '[a,c)', '[1,2)', '{[a,b),[c,d)}', '(x,1)')",
        "SELECT *, l @> 'B'::text, s @> 1.5::float8, (p).a < 'Y' FROM t",
        "SELECT unnest(several(letters('a', 'b'), letters('d', 'e')))",
        "SELECT letters('a', 'Z') @> 'b'::text",
    )
    twin.reopen()
    _all(
        twin,
        "SELECT several(letters('A', 'b')) @> 'a'::text, l @> 'B'::text, (p).a < 'Y' FROM t",
        "DROP TABLE t",
        "DROP TYPE letters, span, pair",
    )


def test_schemas_go_with_what_is_in_them(twin: PostgresTwin) -> None:
    _all(
        twin,
        "CREATE SCHEMA app",
        "CREATE TABLE app.u (id serial, v text ENC)",
        "INSERT INTO app.u (v) VALUES ('v') RETURNING id",
        "CREATE VIEW u AS SELECT v FROM app.u",
        "DROP SCHEMA app",
        "DROP SCHEMA app CASCADE",
        "SELECT * FROM u",
        "SELECT sequencename FROM pg_sequences",
    )


def test_what_is_refused_leaves_everything_as_it_was(twin: PostgresTwin) -> None:
    _all(twin, *_TABLE, "CREATE SCHEMA s")
    for sql in (
        "ALTER TABLE t ALTER n TYPE bigint USING n, ALTER b TYPE text USING b",
        "ALTER TABLE t SET SCHEMA pg_catalog",
        "ALTER TABLE t OWNER TO CURRENT_USER",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "ALTER SCHEMA s RENAME TO s2",
        "CREATE TABLE c (x regclass ENC)",
        "CREATE TABLE c (x regclass[])",
        "CREATE MATERIALIZED VIEW m AS SELECT 1",
        "CREATE TABLE c (x int) INHERITS (t)",
        "CREATE TABLE c (x int) PARTITION BY RANGE (x)",
        "CREATE TABLE c (x box ENC, EXCLUDE USING gist (x WITH &&))",
        "CREATE TABLE c (x int ENC, EXCLUDE USING btree (x WITH =))",
        "ALTER TABLE t ADD EXCLUDE USING btree (n WITH =)",
        "CREATE TYPE shell",
        "ALTER TABLE t ADD CONSTRAINT later CHECK (n > 15) NOT VALID",
        "CREATE TABLE c ()",
        "CREATE TABLE c AS SELECT",
        "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
        "CREATE RULE r AS ON INSERT TO t DO INSTEAD NOTHING",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM t'",
        "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('s') $$",
    ):
        _refused(twin, sql)
        twin.run(_ROWS)
    _all(twin, "DROP SCHEMA s", "SELECT relname FROM pg_class WHERE relname IN ('c', 'm', 'tv')")


def test_unlogged_tables_and_sequences_stay_so() -> None:
    opened = PostgresTwin()
    shown = (
        "SELECT relname, relkind, relpersistence FROM pg_class WHERE relname ~ '^[ul][12]'"
        " ORDER BY relname"
    )
    try:
        for sql in (
            "CREATE UNLOGGED TABLE u1 (a int ENC PRIMARY KEY, b serial, c int"
            " GENERATED ALWAYS AS IDENTITY)", "CREATE UNLOGGED TABLE u2 (a serial PRIMARY KEY)",
            "ALTER TABLE u2 ADD b int REFERENCES u2", "CREATE TABLE l1 (a int REFERENCES u2)",
            "CREATE TABLE l2 (a serial, b int GENERATED BY DEFAULT AS IDENTITY)", shown,
            "INSERT INTO u1 VALUES (1), (2) RETURNING *", "ALTER TABLE u1 SET LOGGED",
            "ALTER TABLE l2 SET UNLOGGED", "ALTER TABLE u2 SET UNLOGGED", shown,
            "CREATE UNLOGGED VIEW u1v AS SELECT 1", "CREATE UNLOGGED SEQUENCE u1s",
            "SELECT nextval('u1s')", "CREATE UNLOGGED TABLE u1t AS SELECT a FROM u1", shown,
            "BEGIN", "ALTER TABLE u1 SET UNLOGGED", shown,
            "ROLLBACK", shown,
        ):  # fmt: skip
            opened.run(sql)
        opened.reopen()
        for sql in (shown, "INSERT INTO u1 VALUES (3) RETURNING *", "SELECT nextval('u1s')",
                    "INSERT INTO l2 DEFAULT VALUES RETURNING *", shown):  # fmt: skip
            opened.run(sql)
    finally:
        opened.close()
