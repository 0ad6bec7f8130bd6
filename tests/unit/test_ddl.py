"""DDL: DuckDB's own answers at home, pseudonyms on the server, the same after a reconnect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from louver import errors
from louver.trusted.runtime.policy import Policy
from louver.trusted.runtime.session import Session
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement

BITS = 512
Rows = list[tuple[Any, ...]]


class Pair:
    """A session and plaintext DuckDB, given the same statements."""

    def __init__(self, path: Path, key_file: Path, policy: Policy) -> None:
        self.path, self.key_file, self.policy = path, key_file, policy
        self.plain = duckdb.connect()
        self.session = self._open()

    def _open(self) -> Session:
        keys = KeyRing.open(self.key_file)
        return Session(DuckDBEngine(self.path), keys, self.policy, modulus_bits=BITS)

    def reopen(self) -> None:
        self.session.close()
        self.session = self._open()

    def close(self) -> None:
        self.session.close()
        self.plain.close()

    def both(self, *statements: str) -> None:
        """Run each on both; where DuckDB fails, the session must fail with its words."""
        for sql in statements:
            words = sql.replace(" ENC", "")
            failure = self._failure(words)
            if failure is None:
                self.session.execute(sql)
                continue
            with pytest.raises(errors.Error) as found:
                self.session.execute(sql)
            assert first(str(found.value)) == first(failure), sql

    def _failure(self, sql: str) -> str | None:
        """DuckDB's error message, None when it has none."""
        try:
            self.plain.execute(sql)
        except duckdb.Error as error:
            return str(error)
        return None

    def rows(self, sql: str) -> Rows:
        answer = self.session.execute(sql)
        assert answer.rows is not None
        return self.session.python_rows(answer.rows)

    def same(self, sql: str) -> None:
        """A query has one answer on both."""
        wanted = self.plain.execute(sql).fetchall()
        assert sorted(map(repr, self.rows(sql))) == sorted(map(repr, wanted)), sql

    def same_schema(self) -> None:
        for sql in (
            "SHOW TABLES",
            "SELECT table_schema, table_name, column_name, data_type, is_nullable, column_default"
            " FROM information_schema.columns",
            "SELECT table_name, table_type FROM information_schema.tables",
            "SELECT view_name FROM duckdb_views() WHERE NOT internal",
            "SELECT index_name, is_unique FROM duckdb_indexes()",
            "SELECT constraint_type, constraint_column_names FROM duckdb_constraints()",
            "SELECT comment FROM duckdb_columns() WHERE comment IS NOT NULL",
        ):
            self.same(sql)
        for (name,) in self.plain.execute("SHOW TABLES").fetchall():
            self.same(f'DESCRIBE "{name}"')

    def table(self, name: str, schema: str = "main") -> Table:
        found = self.session.catalog.table(schema, name)
        assert found is not None
        return found

    def column(self, table: str, name: str) -> Column:
        found = self.table(table).column(name)
        assert found is not None
        return found

    def server_text(self) -> str:
        """All that the server's own schema says."""
        rows = self.session.engine.query(
            Statement(
                "SELECT sql FROM duckdb_tables() UNION ALL SELECT sql FROM duckdb_indexes()"
                " UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal"
                " UNION ALL SELECT schema_name FROM duckdb_schemas() WHERE NOT internal"
            )
        )
        return "\n".join(str(row["sql"]) for row in rows.to_pylist())


def first(message: str) -> str:
    """The first line: what failed, without hints and places."""
    return message.split("\n", maxsplit=1)[0]


@pytest.fixture
def open_pair(tmp_path: Path, key_file: Path) -> Iterator[Callable[..., Pair]]:
    opened: list[Pair] = []

    def open_(profile: str = "sealed", rules: dict[str, Any] | None = None) -> Pair:
        policy = Policy.parse(rules or {}, "policy", profile)
        pair = Pair(tmp_path / "server.duckdb", key_file, policy)
        opened.append(pair)
        return pair

    yield open_
    for pair in opened:
        pair.close()


@pytest.fixture
def pair(open_pair: Callable[..., Pair]) -> Pair:
    return open_pair()


WIDE = """CREATE TABLE "Staff list" (
    id INTEGER ENC PRIMARY KEY, "full name" VARCHAR ENC NOT NULL DEFAULT 'x;y',
    pay DECIMAL(10,2) ENC CHECK (pay > 0), mood ENUM('a','b') ENC, tags INTEGER[] ENC,
    place STRUCT(x DOUBLE, y DOUBLE) ENC, age INT, row_id INT, moment TIMESTAMPTZ,
    twice INTEGER GENERATED ALWAYS AS (age * 2), UNIQUE ("full name", age))"""


def test_create_table(pair: Pair) -> None:
    pair.both(WIDE, WIDE)
    pair.same_schema()
    table = pair.table("staff LIST")
    assert [c.type for c in table.columns[:4]] == [
        "INTEGER", "VARCHAR", "DECIMAL(10,2)", "ENUM('a', 'b')",
    ]  # fmt: skip
    assert [c.encrypted for c in table.columns] == [True] * 6 + [False] * 3 + [True]
    assert table.columns[7].stored["plain"] != "row_id"
    text = pair.server_text()
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
    assert '"Staff list"(row_id BIGINT, e_' in text
    pair.reopen()
    pair.same_schema()


def test_schemes(open_pair: Callable[..., Pair]) -> None:
    pair = open_pair("sdb")
    pair.session.execute(
        "CREATE TABLE t (a INT ENC, b VARCHAR ENC, c INT ENC USING sealed MAY REVEAL order,"
        " d INT ENC MAY REVEAL size, e INT)"
    )
    found = [(c.scheme, c.ceiling, sorted(c.stored)) for c in pair.table("t").columns]
    assert found == [
        ("sdb", "plaintext", ["rnd", "sdb"]),
        ("sealed", "access", ["rnd"]),
        ("sealed", "order", ["rnd"]),
        ("sealed", "size", ["rnd"]),
        ("", "plaintext", ["plain"]),
    ]
    assert pair.table("t").helper_one
    assert pair.table("t").columns[0].id > 0
    with pytest.raises(errors.LeakageRefused):
        pair.session.execute("CREATE TABLE u (a INT ENC USING sdb MAY REVEAL order)")
    assert pair.session.catalog.table("main", "u") is None
    assert pair.rows("SHOW TABLES") == [("t",)]


def test_a_policy_encrypts_where_the_sql_is_silent(open_pair: Callable[..., Pair]) -> None:
    pair = open_pair(rules={"t": {"a": {"may_reveal": "order"}, "z": "enc"}})
    pair.session.execute("CREATE TABLE t (a INT, b INT)")
    pair.session.execute("ALTER TABLE t ADD COLUMN z INT")
    assert pair.column("t", "a").ceiling == "order"
    assert not pair.column("t", "b").encrypted
    assert pair.column("t", "z").encrypted


def test_exists_and_replace(pair: Pair) -> None:
    pair.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1)")
    before = pair.session.catalog.version
    pair.both("CREATE TABLE IF NOT EXISTS t (b INT ENC)")
    assert pair.session.catalog.version == before
    pair.both("CREATE TABLE t (b INT)", "CREATE VIEW t AS SELECT 1", "DROP VIEW IF EXISTS t")
    pair.same("FROM t")
    pair.both("CREATE OR REPLACE TABLE t (b VARCHAR ENC, c INT)", "INSERT INTO t VALUES ('x', 1)")
    pair.same_schema()
    pair.same("FROM t")
    assert len(pair.session.catalog.objects) == 1
    pair.reopen()
    pair.same("FROM t")


def test_create_table_as(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE t (a INT ENC, b INT, s VARCHAR ENC)",
        "INSERT INTO t VALUES (1, 2, 'x'), (3, 4, NULL)",
        "CREATE TABLE u AS SELECT a + b AS n, b, s FROM t",
        "CREATE TABLE v AS SELECT b, count(*) AS n FROM t GROUP BY b",
        "CREATE TABLE w AS FROM range(3) r(i)",
        "CREATE TABLE x(p, q) AS SELECT a, NULL FROM t WITH NO DATA",
        "CREATE OR REPLACE TABLE u AS SELECT n, s FROM u WHERE n > 3",
        "CREATE TABLE y AS SELECT nope FROM t",
    )
    pair.same_schema()
    for name in ("u", "v", "w", "x"):
        pair.same(f"FROM {name}")
    assert all(c.encrypted for c in pair.table("u").columns)
    assert all(c.encrypted for c in pair.table("x").columns)
    assert not pair.table("w").has_encrypted
    assert pair.column("u", "s").ceiling == "access"
    pair.reopen()
    pair.same("FROM u")


def test_create_table_as_with_parameters(pair: Pair) -> None:
    pair.session.execute("CREATE TABLE t AS SELECT ? AS a, ? || 'y' AS b", [5, "x"])
    assert pair.rows("FROM t") == [(5, "xy")]


def test_names_of_columns_do_not_leave_through_the_schema(pair: Pair) -> None:
    pair.session.execute("CREATE TABLE t (salary INT ENC)")
    pair.session.execute("CREATE TABLE u AS SELECT column_name FROM information_schema.columns")
    assert pair.column("u", "column_name").encrypted


def test_home_objects(pair: Pair) -> None:
    pair.both(
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
        pair.same_schema()
        for sql in ("FROM w", "FROM v", "FROM big()", "SELECT double(a) FROM w"):
            pair.same(sql)
        pair.reopen()
    for word in ("double", "big", "mood", "VIEW", "INDEX"):
        assert word not in pair.server_text()


def test_unique_index_is_checked(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE t (a INT ENC, b INT ENC)",
        "INSERT INTO t VALUES (1, 1), (2, 1), (NULL, 2), (NULL, 3)",
        "CREATE UNIQUE INDEX ub ON t (b)",
        "CREATE UNIQUE INDEX ua ON t (a)",
        "CREATE UNIQUE INDEX ue ON t ((a * 2))",
    )
    with pytest.raises(errors.IntegrityError):
        pair.session.execute("INSERT INTO t VALUES (1, 7)")
    pair.same("FROM t")
    pair.same_schema()


def test_drop(pair: Pair) -> None:
    pair.both(
        "CREATE SCHEMA s", "CREATE TABLE s.p (a INT PRIMARY KEY)",
        "CREATE TABLE s.c (a INT ENC REFERENCES s.p (a))", "CREATE TABLE t (a INT ENC)",
        "CREATE VIEW v AS SELECT a FROM t", "CREATE INDEX i ON t (a)", "CREATE SEQUENCE q",
        "CREATE MACRO f(x) AS x", "CREATE TYPE e AS ENUM ('a')",
        "DROP TABLE s.p", "DROP SCHEMA s", "DROP TABLE v", "DROP TABLE nothing",
        "DROP TABLE IF EXISTS nothing", "DROP INDEX i", "DROP TABLE t",
    )  # fmt: skip
    pair.same("SHOW TABLES")
    pair.reopen()
    # The view outlives its table; it comes back when the table does.
    pair.session.execute("CREATE TABLE t (a INT)")
    pair.plain.execute("CREATE TABLE t (a INT)")
    pair.same("FROM v")
    pair.both(
        "DROP SCHEMA s CASCADE",
        "DROP VIEW v",
        "DROP SEQUENCE q",
        "DROP MACRO f",
        "DROP TYPE e",
        "DROP TABLE t",
    )
    pair.same_schema()
    assert pair.session.catalog.objects == []
    assert pair.session.catalog.tables == {}
    assert "row_id" not in pair.server_text()
    pair.reopen()
    pair.same_schema()


def test_alter_columns(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE t (a INT ENC, b VARCHAR ENC, c INT)",
        "INSERT INTO t VALUES (1, '10', 5), (2, NULL, 6)",
    )
    for sql in (
        "ALTER TABLE t ADD COLUMN d INT ENC DEFAULT 7",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS d INT",
        "ALTER TABLE t ADD COLUMN e VARCHAR",
        "ALTER TABLE t ADD COLUMN a INT",
        "ALTER TABLE t ALTER b TYPE INT",
        "ALTER TABLE t ALTER COLUMN a SET DATA TYPE VARCHAR USING a || '!'",
        "ALTER TABLE t ALTER a TYPE INT",
        "ALTER TABLE t ALTER b SET NOT NULL",
        "ALTER TABLE t RENAME COLUMN b TO bb",
        "ALTER TABLE t RENAME b TO x",
        "ALTER TABLE t ALTER c SET NOT NULL",
        "ALTER TABLE t ALTER c DROP NOT NULL",
        "ALTER TABLE t ALTER bb SET DEFAULT 3",
        "ALTER TABLE t ALTER bb DROP DEFAULT",
        "ALTER TABLE t DROP COLUMN e",
        "ALTER TABLE t DROP COLUMN nothing",
        "ALTER TABLE t ADD PRIMARY KEY (c)",
        "ALTER TABLE t ADD CHECK (c > 0)",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE nothing ADD COLUMN a INT",
        "ALTER TABLE IF EXISTS nothing ADD COLUMN a INT",
    ):
        pair.both(sql)
    for _ in range(2):
        pair.same_schema()
        pair.same("FROM u")
        pair.reopen()
    pair.both("INSERT INTO u VALUES ('3!', 4, 7, 8)", "INSERT INTO u VALUES ('4!', 4, 7, 8)")
    pair.same("FROM u")
    assert [c.encrypted for c in pair.table("u").columns] == [True, True, False, True]
    assert "bb" not in pair.server_text()


def test_alter_nested(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE t (s STRUCT(x INT) ENC)", "INSERT INTO t VALUES ({x: 1})",
        "ALTER TABLE t ADD COLUMN s.y INT", "ALTER TABLE t RENAME COLUMN s.y TO z",
    )  # fmt: skip
    pair.same("FROM t")
    pair.both("ALTER TABLE t DROP COLUMN s.x")
    pair.same("FROM t")
    pair.same_schema()


def test_a_plain_column_made_from_an_encrypted_one_is_encrypted(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE t (a INT ENC, b INT, c INT)", "INSERT INTO t VALUES (1, 2, 3)",
        "ALTER TABLE t ALTER b TYPE BIGINT USING b + a", "ALTER TABLE t ALTER c TYPE BIGINT",
    )  # fmt: skip
    assert pair.column("t", "b").encrypted
    assert not pair.column("t", "c").encrypted
    pair.same("FROM t")


def test_self_reference_survives_alter(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE t (id INT ENC PRIMARY KEY, parent INT ENC REFERENCES t (id), n INT)",
        "ALTER TABLE t RENAME n TO m", "INSERT INTO t VALUES (1, NULL, 0)",
    )  # fmt: skip
    for _ in range(2):
        pair.same("SELECT constraint_type, referenced_table FROM duckdb_constraints()")
        with pytest.raises(errors.IntegrityError):
            pair.session.execute("INSERT INTO t VALUES (2, 9, 0)")
        pair.reopen()


def test_alter_view(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1)", "CREATE VIEW v AS FROM t",
        "ALTER VIEW v RENAME TO w", "ALTER TABLE w RENAME TO x",
    )  # fmt: skip
    for _ in range(2):
        pair.same("FROM w")
        pair.same_schema()
        pair.reopen()


def test_ceilings(pair: Pair) -> None:
    pair.session.execute("CREATE TABLE t (a INT ENC, b INT)")
    pair.session.execute("ALTER TABLE t ALTER COLUMN a MAY REVEAL order")
    assert pair.column("t", "a").ceiling == "order"
    pair.reopen()
    assert pair.column("t", "a").ceiling == "order"
    for sql, code in (
        ("ALTER TABLE t ALTER b MAY REVEAL order", "enc.plain"),
        ("ALTER TABLE t ALTER c MAY REVEAL order", "column.missing"),
        ("ALTER TABLE u ALTER c MAY REVEAL order", "table.missing"),
        ("ALTER TABLE t ALTER a MAY REVEAL much", "enc.level"),
    ):
        with pytest.raises(errors.Error) as found:
            pair.session.execute(sql)
        assert found.value.code == code


def test_a_lowered_ceiling_takes_shares_off_the_server(open_pair: Callable[..., Pair]) -> None:
    pair = open_pair("sdb")
    pair.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1), (2)")
    shares = pair.column("t", "a").stored["sdb"]
    answer = pair.session.execute("ALTER TABLE t ALTER a MAY REVEAL size")
    assert any("cannot be unlearned" in notice for notice in answer.notices)
    assert shares not in pair.server_text()
    assert pair.table("t").helper_one == ""
    pair.both("INSERT INTO t VALUES (3)")
    pair.same("FROM t")


def test_what_was_revealed_goes_along_with_a_name(pair: Pair) -> None:
    pair.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1)")
    held = pair.session.ledger.level("t", "a")
    assert held
    pair.both("ALTER TABLE t RENAME a TO b", "ALTER TABLE t RENAME TO u")
    assert pair.session.ledger.level("u", "b") == held


def test_sequences_go_on_after_a_reconnect(pair: Pair) -> None:
    pair.both(
        'CREATE SEQUENCE "my q" START 10 INCREMENT 5',
        "CREATE TABLE t (a INT DEFAULT nextval('\"my q\"'), b INT ENC)",
        "INSERT INTO t (b) VALUES (1), (2)",
    )
    pair.reopen()
    pair.both("INSERT INTO t (b) VALUES (3)", "ALTER TABLE t ADD c INT DEFAULT nextval('\"my q\"')")
    pair.reopen()
    pair.both("INSERT INTO t (b) VALUES (4)")
    pair.same("FROM t")


def test_sdb_columns_are_rewritten(open_pair: Callable[..., Pair]) -> None:
    pair = open_pair("sdb")
    pair.both(
        "CREATE TABLE t (a INT ENC, b BIGINT ENC)", "INSERT INTO t VALUES (1, -5), (NULL, 7)",
        "ALTER TABLE t ADD COLUMN c INT ENC DEFAULT 0", "ALTER TABLE t ALTER b TYPE VARCHAR",
        "ALTER TABLE t DROP COLUMN c",
    )  # fmt: skip
    pair.same("FROM t")
    pair.same("SELECT sum(a) FROM t")
    assert (pair.column("t", "a").scheme, pair.column("t", "b").scheme) == ("sdb", "sealed")


def test_transactions(pair: Pair) -> None:
    pair.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1)")
    pair.both(
        "BEGIN", "CREATE TABLE u (a INT ENC)", "INSERT INTO u VALUES (5)",
        "ALTER TABLE t ADD COLUMN b INT DEFAULT 3", "DROP TABLE u", "ROLLBACK",
    )  # fmt: skip
    pair.same_schema()
    pair.same("FROM t")
    pair.both("BEGIN", "ALTER TABLE t RENAME a TO b", "CREATE VIEW v AS FROM t", "COMMIT")
    pair.reopen()
    pair.same_schema()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TEMP TABLE t (a INT)",
        "CREATE TEMPORARY VIEW t AS SELECT 1",
        "CREATE SECRET s (TYPE s3)",
        "CREATE TABLE louver_catalog (a INT)",
        "ALTER SEQUENCE q OWNED BY t",
        "DROP DATABASE x",
    ],
)
def test_refused(pair: Pair, sql: str) -> None:
    version = pair.session.catalog.version
    with pytest.raises(errors.NotSupportedError) as found:
        pair.session.execute(sql)
    assert found.value.code == "sql.unsupported"
    assert pair.session.catalog.version == version


def test_a_failed_statement_changes_nothing(pair: Pair) -> None:
    pair.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1), (1)")
    version = pair.session.catalog.version
    pair.both(
        "ALTER TABLE t ADD PRIMARY KEY (a)", "CREATE TABLE u AS SELECT 1 // 0 + 'x' FROM t",
        "CREATE UNIQUE INDEX i ON t (a)",
    )  # fmt: skip
    assert pair.session.catalog.version == version
    pair.same_schema()
    pair.same("FROM t")
