"""PREPARE, EXECUTE and DEALLOCATE say what DuckDB says, and stay at home."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import louver
from tests.generated import cases, generator
from tests.twin import Twin

ARGUMENTS = (
    "1", "-2", "1 + 1", "NULL", "'b'", "1.5", "2::TINYINT", "NULL::BIGINT", "abs(-3)", "true",
    "DATE '2020-02-01'", "'2020-02-01'", "INTERVAL 1 MONTH", "[1, 2]", "{'a': 1}", "1e0",
    "'a''b(,'", "getvariable('none')", "9223372036854775808",
)  # fmt: skip
STATEMENTS = (
    ("SELECT a, b FROM t WHERE a = ?", 1),
    ("SELECT a FROM t WHERE b = $1 OR p = $2", 2),
    ("SELECT $1 AS v, typeof($1) AS w", 1),
    ("SELECT p FROM t WHERE d > $1 ORDER BY p LIMIT 2", 1),
    ("SELECT sum(a) AS s, count(*) AS n FROM t WHERE p <> ?", 1),
    ("SELECT d + $1 AS e FROM t", 1),
    ("INSERT INTO t VALUES ($2, 'new', $1, NULL)", 2),
    ("UPDATE t SET b = ? WHERE p = ?", 2),
    ("DELETE FROM t WHERE a = $1 RETURNING b", 1),
    ("WITH x AS (SELECT a FROM t WHERE a > ?) SELECT count(*) AS n FROM x", 1),
    ("FROM t SELECT b ORDER BY b LIMIT $1", 1),
    ("VALUES ($1, $2)", 2),
)


@pytest.fixture(scope="module")
def twin(open_module_twin: Callable[..., Twin]) -> Twin:
    twin = open_module_twin()
    twin.run("CREATE TABLE t (a INT ENC, b VARCHAR ENC, p INT, d DATE ENC)")
    twin.run("INSERT INTO t VALUES (1, 'a', 1, '2020-01-01'), (2, 'b', 2, '2020-03-01')")
    return twin


def test_drawn_statements(twin: Twin) -> None:
    random, failed = generator("prepared"), 0
    for _ in range(cases(30)):
        sql, count = random.choice(STATEMENTS)
        twin.run(f"PREPARE q AS {sql}")
        given = ", ".join(random.choices(ARGUMENTS, k=random.choice([count] * 7 + [count + 1])))
        failed += twin.either(f"EXECUTE q({given})") is None
        twin.run("SELECT * FROM t")
    assert failed < cases(22)


def test_names_and_numbers(twin: Twin) -> None:
    twin.run("PREPARE Named AS SELECT $x + $y AS z, $X AS again")
    assert twin.run('EXECUTE "named"(y := 2, X := 40)') == [(42, 40)]
    twin.run("PREPARE none AS SELECT count(*) FROM t")
    twin.run("CREATE MACRO hidden() AS (SELECT max(a) FROM t)")
    twin.run("EXECUTE none")
    for wrong in ("EXECUTE named", "EXECUTE named(1, 2)", "EXECUTE named(x := 1)",
                  "EXECUTE named(x := 1, y := 2, z := 3)", "EXECUTE none(1)", "EXECUTE none()",
                  "EXECUTE gone", "EXECUTE named(x := (SELECT 1), y := 2)",
                  "EXECUTE named(x := p, y := 2)", "EXECUTE named(x := hidden(), y := 2)",
                  "EXECUTE", "EXECUTE named(?)",
                  "PREPARE a.b AS SELECT 1", "PREPARE a SELECT 1", "PREPARE a AS",
                  "PREPARE a AS SELECT * FROM missing", "PREPARE a AS CREATE TABLE c(i INT)",
                  "PREPARE a(INT) AS SELECT $1", "DEALLOCATE ALL", "DEALLOCATE"):  # fmt: skip
        assert twin.either(wrong) is None, wrong
    twin.run("PREPARE none AS SELECT 7 AS seven; EXECUTE none")
    twin.run("DEALLOCATE PREPARE none")
    twin.run("DEALLOCATE none")
    assert twin.either("EXECUTE none") is None


BIG = "9223372036854775808"
HELD = (
    "SELECT $1 AS v, $2 AS w, $3 AS x, $2 AS y",
    "SELECT ? AS v, ? AS w, ? AS x",
    "SELECT count(*) FROM t WHERE a = $3 OR a = $1 OR p = $2",
    "VALUES (?, ?, ?)",
    "SELECT $1 + $3 AS v, $2 AS w",
)


@pytest.mark.parametrize("sql", HELD)
def test_values_that_python_does_not_hold_stand_beside_others(twin: Twin, sql: str) -> None:
    twin.run(f"PREPARE held AS {sql}")
    for given in ("{0}, 2, 3", "1, {0}, 3", "1, 2, {0}", "{0}, {0}, 1", "1, {0}, {0}"):
        twin.run(f"EXECUTE held({given.format(BIG)})")
    twin.run("PREPARE held AS SELECT $x AS v, $y AS w")
    twin.run(f"EXECUTE held(x := {BIG}, y := 1)")


def test_it_follows_the_schema_and_the_transaction(twin: Twin) -> None:
    twin.run("CREATE TABLE u (i INT ENC)")
    twin.run("PREPARE put AS INSERT INTO u VALUES (?)")
    twin.run("BEGIN")
    twin.run("EXECUTE put(1)")
    twin.run("ROLLBACK")
    twin.run("EXECUTE put(2)")
    twin.run("DROP TABLE u")
    assert twin.either("EXECUTE put(3)") is None
    twin.run("CREATE TABLE u (i BIGINT ENC)")
    twin.run("EXECUTE put(9999999999)")
    assert twin.run("SELECT * FROM u") == [(9_999_999_999,)]


def test_errors_tell_what_where_and_how(twin: Twin) -> None:
    twin.run("PREPARE q AS SELECT $1, $2")
    for sql, code in (
        ("EXECUTE gone(1)", "prepared.missing"),
        ("EXECUTE q(1)", "prepared.values"),
        ("EXECUTE q(1, 2, 3)", "prepared.excess"),
        ("EXECUTE q(?, 3)", "parameter.kind"),
        ("PREPARE q AS SELECT ?", "parameter.excess"),
    ):
        with pytest.raises(louver.ProgrammingError) as caught:
            twin.louver.execute(sql, [1] if "?" in sql else None)
        assert caught.value.code == code
        assert caught.value.fix


def test_preparing_sends_nothing(twin: Twin) -> None:
    before = twin.sent()
    twin.run("PREPARE quiet AS SELECT * FROM t WHERE a = $1")
    twin.run("DEALLOCATE quiet")
    messages = [m for m in twin.recorded.tap.sent()[before:] if "quiet" in repr(m)]
    assert not messages
    twin.run("PREPARE hidden AS INSERT INTO t VALUES ($1, $2, 3, NULL)")
    twin.run("EXECUTE hidden(8317401, 'an-axolotl')")
    assert not twin.recorded.holds(b"8317401", b"axolotl", b"hidden")
