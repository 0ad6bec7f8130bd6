"""ALTER and what must outlive a reconnect, each against plaintext DuckDB."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from louver import errors
from tests.executor.pairs import Pair, open_pair, pair

__all__ = ["open_pair", "pair"]  # pytest finds fixtures by their names here


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
        pair.both(sql)
    for _ in range(2):
        pair.same_schema()
        pair.same("FROM u")
        pair.reopen()
    pair.both("INSERT INTO u VALUES ('3!', 4, 7, 8)", "INSERT INTO u VALUES ('4!', 4, 7, 8)")
    pair.same("FROM u")
    assert [c.encrypted for c in pair.table("u").columns] == [True, True, False, True]
    assert "wages" not in pair.server_text()


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
    held = pair.session.context.ledger.level("t", "a")
    assert held
    pair.both("ALTER TABLE t RENAME a TO b", "ALTER TABLE t RENAME TO u")
    assert pair.session.context.ledger.level("u", "b") == held


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


def test_kept_products_go_with_their_column(open_pair: Callable[..., Pair]) -> None:
    pair = open_pair("sdb")
    pair.both(
        "CREATE TABLE t (a INT ENC, b INT ENC, c INT ENC)",
        "INSERT INTO t SELECT i, i * 2, -i FROM range(600) r(i)",
    )
    query = "SELECT sum(a), sum(a * c) FROM t"
    pair.same("SELECT sum(a * b), sum(b) FROM t")
    pair.same(query)
    assert pair.table("t").kept
    pair.both("ALTER TABLE t DROP COLUMN b")
    assert not pair.table("t").kept
    assert " w_" not in pair.server_text()
    pair.same(query)
    pair.session.execute("ALTER TABLE t ALTER c MAY REVEAL size")
    pair.same(query)
    pair.reopen()
    pair.same(query)


def test_using(open_pair: Callable[..., Pair]) -> None:
    """ALTER … TYPE … USING computes new values, whether the type stays or not; what is computed
    from an encrypted column is kept as that one is.
    """
    pair = open_pair()
    made = "CREATE TABLE t (a INT{}, p INT, q INT, type INT{} MAY REVEAL order, n VARCHAR)"
    pair.session.execute(made.format(" ENC", " ENC"))
    pair.plain.execute(made.replace(" MAY REVEAL order", "").format("", ""))
    pair.both(
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
        pair.both(f"ALTER TABLE t ALTER {column}{data} TYPE {type_} USING {given}")
        pair.same("FROM t")
        kept = pair.column("t", column.removeprefix("COLUMN "))
        assert (kept.encrypted, kept.ceiling) == (encrypted, ceiling), (column, given)
    pair.reopen()
    pair.same("FROM t")
    pair.same_schema()
