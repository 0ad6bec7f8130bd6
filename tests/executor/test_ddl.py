"""CREATE and DROP: DuckDB's own answers at home, pseudonyms on the server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from louver import errors
from tests.twin import Twin

WIDE = """CREATE TABLE "Staff list" (
    id INTEGER ENC PRIMARY KEY, "full name" VARCHAR ENC NOT NULL DEFAULT 'x;y',
    pay DECIMAL(10,2) ENC CHECK (pay > 0), mood ENUM('a','b') ENC, tags INTEGER[] ENC,
    place STRUCT(x DOUBLE, y DOUBLE) ENC, age INT, row_id INT, moment TIMESTAMPTZ,
    twice INTEGER GENERATED ALWAYS AS (age * 2), UNIQUE ("full name", age))"""


def test_create_table(twin: Twin) -> None:
    twin.both(WIDE, WIDE)
    twin.same_schema()
    table = twin.table("staff LIST")
    assert [c.type for c in table.columns[:4]] == [
        "INTEGER", "VARCHAR", "DECIMAL(10,2)", "ENUM('a', 'b')",
    ]  # fmt: skip
    assert [c.encrypted for c in table.columns] == [True] * 6 + [False] * 3 + [True]
    assert table.columns[7].stored["plain"] != "row_id"
    text = twin.server_text()
    for hidden in (
        "full name",
        "pay",
        "mood",
        "tags",
        "place",
        "twice",
        "DECIMAL",
        "ENUM",
        "STRUCT",
        "CHECK",
        "PRIMARY KEY(",
    ):
        assert hidden not in text
    assert '"Staff list"(row_id BIGINT, k_' in text
    twin.reopen()
    twin.same_schema()


def test_schemes(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("sdb")
    twin.session.execute(
        "CREATE TABLE t (a INT ENC, b VARCHAR ENC, c INT ENC USING sealed MAY REVEAL order"
        " WITH (sum = 'masked'), d INT ENC MAY REVEAL size WITH (sum = 'masked'), e INT)"
    )
    schemes = [(c.scheme, c.ceiling, sorted(c.stored)) for c in twin.table("t").columns]
    assert schemes == [
        ("sdb", "plaintext", ["rnd", "sdb"]),
        ("sealed", "access", ["rnd"]),
        ("sealed", "order", ["eq", "ord", "rnd", "sum", "sum_count", "sum_high"]),
        ("sealed", "size", ["rnd"]),
        ("", "plaintext", ["plain"]),
    ]
    assert twin.table("t").helper_one
    assert twin.table("t").columns[0].id > 0
    with pytest.raises(errors.LeakageRefused):
        twin.session.execute("CREATE TABLE u (a INT ENC USING sdb MAY REVEAL order)")
    assert twin.session.context.catalog.table("main", "u") is None
    assert twin.rows("SHOW TABLES") == [("t",)]


def test_a_policy_encrypts_where_the_sql_is_silent(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin(rules={"t": {"a": {"may_reveal": "order"}, "z": "enc"}})
    twin.session.execute("CREATE TABLE t (a INT, b INT)")
    twin.session.execute("ALTER TABLE t ADD COLUMN z INT")
    assert twin.column("t", "a").ceiling == "order"
    assert not twin.column("t", "b").encrypted
    assert twin.column("t", "z").encrypted


def test_exists_and_replace(twin: Twin) -> None:
    twin.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1)")
    before = twin.session.context.catalog.version
    twin.both("CREATE TABLE IF NOT EXISTS t (b INT ENC)")
    assert twin.session.context.catalog.version == before
    twin.both("CREATE TABLE t (b INT)", "CREATE VIEW t AS SELECT 1", "DROP VIEW IF EXISTS t")
    twin.run("FROM t")
    twin.both("CREATE OR REPLACE TABLE t (b VARCHAR ENC, c INT)", "INSERT INTO t VALUES ('x', 1)")
    twin.same_schema()
    twin.run("FROM t")
    assert len(twin.session.context.catalog.objects) == 1
    twin.reopen()
    twin.run("FROM t")


def test_create_table_as(twin: Twin) -> None:
    twin.both(
        "CREATE TABLE t (a INT ENC, b INT, s VARCHAR ENC)",
        "INSERT INTO t VALUES (1, 2, 'x'), (3, 4, NULL)",
        "CREATE TABLE u AS SELECT a + b AS n, b, s FROM t",
        "CREATE TABLE v AS SELECT b, count(*) AS n FROM t GROUP BY b",
        "CREATE TABLE w AS FROM range(3) r(i)",
        "CREATE TABLE x(p, q) AS SELECT a, NULL FROM t WITH NO DATA",
        "CREATE OR REPLACE TABLE u AS SELECT n, s FROM u WHERE n > 3",
        "CREATE TABLE y AS SELECT nope FROM t",
    )
    twin.same_schema()
    for name in ("u", "v", "w", "x"):
        twin.run(f"FROM {name}")
    assert all(c.encrypted for c in twin.table("u").columns)
    assert all(c.encrypted for c in twin.table("x").columns)
    assert not twin.table("w").has_encrypted
    assert twin.column("u", "s").ceiling == "access"
    twin.reopen()
    twin.run("FROM u")


def test_create_table_as_with_parameters(twin: Twin) -> None:
    twin.session.execute("CREATE TABLE t AS SELECT ? AS a, ? || 'y' AS b", [5, "x"])
    assert twin.rows("FROM t") == [(5, "xy")]


def test_names_of_columns_do_not_leave_through_the_schema(twin: Twin) -> None:
    twin.session.execute("CREATE TABLE t (salary INT ENC)")
    twin.session.execute("CREATE TABLE u AS SELECT column_name FROM information_schema.columns")
    assert twin.column("u", "column_name").encrypted


def test_home_objects(twin: Twin) -> None:
    twin.both(
        "CREATE SCHEMA s",
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TABLE s.t (a INT ENC, m mood ENC)",
        "INSERT INTO s.t VALUES (1, 'ok'), (2, 'sad')",
        "CREATE VIEW v AS SELECT a, m FROM s.t",
        "CREATE VIEW w AS SELECT a FROM v",
        "CREATE OR REPLACE VIEW v AS SELECT m, a * 2 AS a FROM s.t",
        "CREATE MACRO double(x) AS x * 2",
        "CREATE MACRO big() AS TABLE SELECT * FROM s.t WHERE a > 1",
        "CREATE INDEX i ON s.t (a)",
        "CREATE INDEX i ON s.t (a)",
        "CREATE SCHEMA s",
        "CREATE TYPE mood AS ENUM ('x')",
        "COMMENT ON COLUMN s.t.a IS 'it''s'",
        "COMMENT ON VIEW v IS 'view'",
    )
    for _ in range(2):
        twin.same_schema()
        for sql in ("FROM w", "FROM v", "FROM big()", "SELECT double(a) FROM w"):
            twin.run(sql)
        twin.reopen()
    for word in ("double", "big", "mood", "VIEW", "INDEX"):
        assert word not in twin.server_text()


def test_unique_index_is_checked(twin: Twin) -> None:
    twin.both(
        "CREATE TABLE t (a INT ENC, b INT ENC)",
        "INSERT INTO t VALUES (1, 1), (2, 1), (NULL, 2), (NULL, 3)",
        "CREATE UNIQUE INDEX ub ON t (b)",
        "CREATE UNIQUE INDEX ua ON t (a)",
        "CREATE UNIQUE INDEX ue ON t ((a * 2))",
    )
    with pytest.raises(errors.IntegrityError):
        twin.session.execute("INSERT INTO t VALUES (1, 7)")
    twin.run("FROM t")
    twin.same_schema()


def test_drop(twin: Twin) -> None:
    twin.both(
        "CREATE SCHEMA s", "CREATE TABLE s.p (a INT PRIMARY KEY)",
        "CREATE TABLE s.c (a INT ENC REFERENCES s.p (a))", "CREATE TABLE t (a INT ENC)",
        "CREATE VIEW v AS SELECT a FROM t", "CREATE INDEX i ON t (a)", "CREATE SEQUENCE q",
        "CREATE MACRO f(x) AS x", "CREATE TYPE e AS ENUM ('a')",
        "DROP TABLE s.p", "DROP SCHEMA s", "DROP TABLE v", "DROP TABLE nothing",
        "DROP TABLE IF EXISTS nothing", "DROP INDEX i", "DROP TABLE t",
    )  # fmt: skip
    twin.run("SHOW TABLES")
    twin.reopen()
    # The view outlives its table; it comes back when the table does.
    twin.session.execute("CREATE TABLE t (a INT)")
    twin.plain.execute("CREATE TABLE t (a INT)")
    twin.run("FROM v")
    twin.both(
        "DROP SCHEMA s CASCADE",
        "DROP VIEW v",
        "DROP SEQUENCE q",
        "DROP MACRO f",
        "DROP TYPE e",
        "DROP TABLE t",
    )
    twin.same_schema()
    assert twin.session.context.catalog.objects == []
    assert twin.session.context.catalog.tables == {}
    assert "row_id" not in twin.server_text()
    twin.reopen()
    twin.same_schema()


def test_transactions(twin: Twin) -> None:
    twin.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1)")
    twin.both(
        "BEGIN", "CREATE TABLE u (a INT ENC)", "INSERT INTO u VALUES (5)",
        "ALTER TABLE t ADD COLUMN b INT DEFAULT 3", "DROP TABLE u", "ROLLBACK",
    )  # fmt: skip
    twin.same_schema()
    twin.run("FROM t")
    twin.both("BEGIN", "ALTER TABLE t RENAME a TO b", "CREATE VIEW v AS FROM t", "COMMIT")
    twin.reopen()
    twin.same_schema()


def test_a_rollback_of_rows_leaves_what_stands_at_home(twin: Twin) -> None:
    """To begin a DuckDB takes long, and rows do not stand there."""
    twin.both("CREATE TABLE t (a INT ENC UNIQUE)", "CREATE VIEW v AS FROM t")
    before = twin.session.context.local.generation
    twin.both("BEGIN", "INSERT INTO t VALUES (1)", "DELETE FROM t WHERE a = 1", "ROLLBACK")
    assert twin.session.context.local.generation == before
    twin.both("BEGIN", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES ('x')", "ROLLBACK")
    assert twin.session.context.local.generation == before
    twin.both("INSERT INTO t VALUES (1)")
    twin.run("FROM v")
    twin.same_schema()
    twin.both("BEGIN", "DROP VIEW v", "ROLLBACK")
    assert twin.session.context.local.generation != before
    twin.run("FROM v")
    twin.same_schema()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE SECRET s (TYPE s3)",
        "ALTER SEQUENCE q OWNED BY t",
        "DROP DATABASE x",
    ],
)
def test_refused(twin: Twin, sql: str) -> None:
    version = twin.session.context.catalog.version
    with pytest.raises(errors.NotSupportedError) as caught:
        twin.session.execute(sql)
    assert caught.value.code == "sql.unsupported"
    assert twin.session.context.catalog.version == version


def test_a_failed_statement_changes_nothing(twin: Twin) -> None:
    twin.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1), (1)")
    version = twin.session.context.catalog.version
    twin.both(
        "ALTER TABLE t ADD PRIMARY KEY (a)", "CREATE TABLE u AS SELECT 1 // 0 + 'x' FROM t",
        "CREATE UNIQUE INDEX i ON t (a)",
    )  # fmt: skip
    assert twin.session.context.catalog.version == version
    twin.same_schema()
    twin.run("FROM t")


def test_values_drawn_by_a_query_are_not_drawn_again(twin: Twin) -> None:
    twin.both(
        "CREATE SEQUENCE q START 5", "CREATE TABLE t (a INT ENC, id INT DEFAULT nextval('q'))"
    )
    twin.run("SELECT nextval('q'), nextval('q')")
    twin.reopen()
    twin.run("SELECT NEXTVAL('q')")
    twin.both("BEGIN")
    twin.run("SELECT nextval('q')")
    twin.both("COMMIT")
    twin.both("INSERT INTO t (a) VALUES (1)")
    twin.reopen()
    twin.run("SELECT nextval('q'), id FROM t")
    version = twin.session.context.catalog.version
    twin.run("SELECT a FROM t")
    assert twin.session.context.catalog.version == version
