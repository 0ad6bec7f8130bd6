"""ALTER and what must outlive a reconnect, each against plaintext DuckDB."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from louver import errors
from tests.twin import Twin


def test_alter_columns(twin: Twin) -> None:
    twin.both(
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
        "ALTER TABLE t RENAME COLUMN b TO wages",
        "ALTER TABLE t RENAME b TO x",
        "ALTER TABLE t ALTER c SET NOT NULL",
        "ALTER TABLE t ALTER c DROP NOT NULL",
        "ALTER TABLE t ALTER wages SET DEFAULT 3",
        "ALTER TABLE t ALTER wages DROP DEFAULT",
        "ALTER TABLE t DROP COLUMN e",
        "ALTER TABLE t DROP COLUMN nothing",
        "ALTER TABLE t ADD PRIMARY KEY (c)",
        "ALTER TABLE t ADD CHECK (c > 0)",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE nothing ADD COLUMN a INT",
        "ALTER TABLE IF EXISTS nothing ADD COLUMN a INT",
    ):
        twin.both(sql)
    for _ in range(2):
        twin.same_schema()
        twin.run("FROM u")
        twin.reopen()
    twin.both("INSERT INTO u VALUES ('3!', 4, 7, 8)", "INSERT INTO u VALUES ('4!', 4, 7, 8)")
    twin.run("FROM u")
    assert [c.encrypted for c in twin.table("u").columns] == [True, True, False, True]
    assert "wages" not in twin.server_text()


def test_alter_nested(twin: Twin) -> None:
    twin.both(
        "CREATE TABLE t (s STRUCT(x INT) ENC)", "INSERT INTO t VALUES ({x: 1})",
        "ALTER TABLE t ADD COLUMN s.y INT", "ALTER TABLE t RENAME COLUMN s.y TO z",
    )  # fmt: skip
    twin.run("FROM t")
    twin.both("ALTER TABLE t DROP COLUMN s.x")
    twin.run("FROM t")
    twin.same_schema()


def test_a_plain_column_made_from_an_encrypted_one_is_encrypted(twin: Twin) -> None:
    twin.both(
        "CREATE TABLE t (a INT ENC, b INT, c INT)", "INSERT INTO t VALUES (1, 2, 3)",
        "ALTER TABLE t ALTER b TYPE BIGINT USING b + a", "ALTER TABLE t ALTER c TYPE BIGINT",
    )  # fmt: skip
    assert twin.column("t", "b").encrypted
    assert not twin.column("t", "c").encrypted
    twin.run("FROM t")


def test_self_reference_survives_alter(twin: Twin) -> None:
    twin.both(
        "CREATE TABLE t (id INT ENC PRIMARY KEY, parent INT ENC REFERENCES t (id), n INT)",
        "ALTER TABLE t RENAME n TO m", "INSERT INTO t VALUES (1, NULL, 0)",
    )  # fmt: skip
    for _ in range(2):
        twin.run("SELECT constraint_type, referenced_table FROM duckdb_constraints()")
        with pytest.raises(errors.IntegrityError):
            twin.session.execute("INSERT INTO t VALUES (2, 9, 0)")
        twin.reopen()


def test_alter_view(twin: Twin) -> None:
    twin.both(
        "CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1)", "CREATE VIEW v AS FROM t",
        "ALTER VIEW v RENAME TO w", "ALTER TABLE w RENAME TO x",
    )  # fmt: skip
    for _ in range(2):
        twin.run("FROM w")
        twin.same_schema()
        twin.reopen()


def test_views_that_read_themselves(twin: Twin) -> None:
    """DuckDB makes them, and refuses to read them; so do sessions that open later."""
    twin.both(
        "CREATE TABLE t (a INT ENC)", "CREATE VIEW v AS SELECT a AS x FROM t",
        "CREATE VIEW reader AS SELECT x FROM v",
        "CREATE OR REPLACE VIEW v AS SELECT x + 1 AS x FROM v",
        "CREATE VIEW first AS SELECT 1 AS a", "CREATE VIEW second AS SELECT a FROM first",
        "CREATE OR REPLACE VIEW first (a) AS SELECT a FROM second",
        'CREATE VIEW "Odd ""name" AS SELECT 1',
        'CREATE OR REPLACE VIEW "Odd ""name" AS FROM "Odd ""name"',
        "CREATE TEMP VIEW passing AS SELECT 1 AS a",
        "CREATE OR REPLACE TEMP VIEW passing AS FROM passing",
        "CREATE OR REPLACE VIEW first (a) AS SELECT a FROM second",
    )  # fmt: skip
    for view in ("v", "reader", "first", "second", '"Odd ""name"', "passing"):
        twin.both(f"FROM {view}", f"CREATE VIEW IF NOT EXISTS {view} AS FROM {view}")
    twin.plain.execute("DROP VIEW passing")
    twin.reopen()
    for view in ("v", "reader", "first", "second", '"Odd ""name"'):
        twin.both(f"FROM {view}", f"CREATE VIEW IF NOT EXISTS {view} AS FROM {view}")
    twin.both("CREATE OR REPLACE VIEW v AS SELECT 2 AS x", "FROM reader")
    twin.reopen()
    twin.both("FROM reader", "FROM v", "DROP VIEW first", "FROM second", "FROM first")


def test_ceilings(twin: Twin) -> None:
    twin.session.execute("CREATE TABLE t (a INT ENC, b INT)")
    twin.session.execute("ALTER TABLE t ALTER COLUMN a MAY REVEAL order")
    assert twin.column("t", "a").ceiling == "order"
    twin.reopen()
    assert twin.column("t", "a").ceiling == "order"
    for sql, code in (
        ("ALTER TABLE t ALTER b MAY REVEAL order", "enc.plain"),
        ("ALTER TABLE t ALTER c MAY REVEAL order", "column.missing"),
        ("ALTER TABLE u ALTER c MAY REVEAL order", "table.missing"),
        ("ALTER TABLE t ALTER a MAY REVEAL much", "enc.level"),
    ):
        with pytest.raises(errors.Error) as caught:
            twin.session.execute(sql)
        assert caught.value.code == code


def test_a_lowered_ceiling_takes_shares_off_the_server(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("sdb")
    twin.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1), (2)")
    shares = twin.column("t", "a").stored["sdb"]
    answer = twin.session.execute("ALTER TABLE t ALTER a MAY REVEAL size")
    assert any("cannot be unlearned" in notice for notice in answer.notices)
    assert shares not in twin.server_text()
    assert twin.table("t").helper_one == ""
    twin.both("INSERT INTO t VALUES (3)")
    twin.run("FROM t")


def test_what_was_revealed_goes_along_with_a_name(twin: Twin) -> None:
    twin.both("CREATE TABLE t (a INT ENC)", "INSERT INTO t VALUES (1)")
    held = twin.session.context.ledger.level("t", "a")
    assert held
    twin.both("ALTER TABLE t RENAME a TO b", "ALTER TABLE t RENAME TO u")
    assert twin.session.context.ledger.level("u", "b") == held


def test_sequences_go_on_after_a_reconnect(twin: Twin) -> None:
    twin.both(
        'CREATE SEQUENCE "my q" START 10 INCREMENT 5',
        "CREATE TABLE t (a INT DEFAULT nextval('\"my q\"'), b INT ENC)",
        "INSERT INTO t (b) VALUES (1), (2)",
    )
    twin.reopen()
    twin.both("INSERT INTO t (b) VALUES (3)", "ALTER TABLE t ADD c INT DEFAULT nextval('\"my q\"')")
    twin.reopen()
    twin.both("INSERT INTO t (b) VALUES (4)")
    twin.run("FROM t")


def test_sdb_columns_are_rewritten(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("sdb")
    twin.both(
        "CREATE TABLE t (a INT ENC, b BIGINT ENC)", "INSERT INTO t VALUES (1, -5), (NULL, 7)",
        "ALTER TABLE t ADD COLUMN c INT ENC DEFAULT 0", "ALTER TABLE t ALTER b TYPE VARCHAR",
        "ALTER TABLE t DROP COLUMN c",
    )  # fmt: skip
    twin.run("FROM t")
    twin.run("SELECT sum(a) FROM t")
    assert (twin.column("t", "a").scheme, twin.column("t", "b").scheme) == ("sdb", "sealed")


def test_kept_products_go_with_their_column(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("sdb")
    twin.both(
        "CREATE TABLE t (a INT ENC, b INT ENC, c INT ENC)",
        "INSERT INTO t SELECT i, i * 2, -i FROM range(600) r(i)",
    )
    query = "SELECT sum(a), sum(a * c) FROM t"
    twin.run("SELECT sum(a * b), sum(b) FROM t")
    twin.run(query)
    assert twin.table("t").kept
    twin.both("ALTER TABLE t DROP COLUMN b")
    assert not twin.table("t").kept
    assert " w_" not in twin.server_text()
    twin.run(query)
    twin.session.execute("ALTER TABLE t ALTER c MAY REVEAL size")
    twin.run(query)
    twin.reopen()
    twin.run(query)


def test_using(open_twin: Callable[..., Twin]) -> None:
    """ALTER … TYPE … USING computes new values, whether the type stays or not; what is computed
    from an encrypted column is kept as that one is.
    """
    twin = open_twin()
    definition = "CREATE TABLE t (a INT{}, p INT, q INT, type INT{} MAY REVEAL order, n VARCHAR)"
    twin.session.execute(definition.format(" ENC", " ENC"))
    twin.plain.execute(definition.replace(" MAY REVEAL order", "").format("", ""))
    twin.both(
        "INSERT INTO t VALUES (1, 10, 100, 7, 'x'), (2, NULL, 200, NULL, 'y')",
    )
    for column, type_, given, encrypted, ceiling in (
        ("a", "INT", "a + 100", True, "access"),
        ("a", "INTEGER", "coalesce(p, a) * q", True, "access"),
        ("p", "INT", "p + q", False, "plaintext"),
        ("p", "BIGINT", "p + q", False, "plaintext"),
        ("n", "VARCHAR", "n || '!'", False, "plaintext"),
        ("COLUMN q", "INT", "q + 1", False, "plaintext"),
        ("type", "INT", "type * 2", True, "order"),
        ("type", "INT", "type + p", True, "order"),
        ("type", "INT", "type + a", True, "access"),
        ("COLUMN p", "BIGINT", "p + t.a", True, "access"),
        ("n", "VARCHAR", "a::VARCHAR", True, "access"),
        ("n", "VARCHAR", "n / 0 + nothing", True, "access"),
        ("n", "INT", "1 // 0", True, "access"),
        ("n", "INT", "error('no')", True, "access"),
    ):
        data = " SET DATA" if column.startswith("COLUMN") else ""
        twin.both(f"ALTER TABLE t ALTER {column}{data} TYPE {type_} USING {given}")
        twin.run("FROM t")
        target = twin.column("t", column.removeprefix("COLUMN "))
        assert (target.encrypted, target.ceiling) == (encrypted, ceiling), (column, given)
    twin.reopen()
    twin.run("FROM t")
    twin.same_schema()


def test_an_alter_that_fails_beside_a_sequence_says_why(twin: Twin) -> None:
    """After it DuckDB takes one more statement for one of a transaction that is aborted."""
    twin.both("CREATE SEQUENCE s", "CREATE TABLE t (a INT ENC)")
    twin.both("ALTER TABLE nothing ADD COLUMN b INT", "SELECT nextval('s')")
