"""How PostgreSQL reads a text, and what a statement's parameters are: the same here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

import pytest

from tests.local_postgres.twin import PostgresTwin

_DAY = dt.date(2020, 1, 1)


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (i int ENC, d date ENC, v varchar(10) ENC, w varchar(10), n int)")
    yield opened
    opened.close()


@pytest.fixture
def rows(twin: PostgresTwin) -> PostgresTwin:
    twin.run("DELETE FROM t")
    twin.run(
        "INSERT INTO t VALUES (1, '2020-01-01', '2020-01-01', '2020-01-01', 1),"
        " (3, '2020-01-02', '3', '3', 3), (4, NULL, 'ab', 'ab', 4)"
    )
    return twin


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM t WHERE v = 'a'\n'b'",
        "SELECT n FROM t WHERE v = 'a' -- it's\n \t\r\n'b'",
        "SELECT 'a'\n'''b'::text",
        "SELECT 'a' 'b'",
        "UPDATE t SET v = 'c'\n'd' WHERE n = 1",
        "DELETE FROM t WHERE v = 'a'\n\n'b'",
        "UPDATE t SET w = 'y' WHERE v = $$ab$$",
        "UPDATE t SET v = $a$it's$a$ WHERE v = $b$3$b$ AND n = 3",
        "DELETE FROM t WHERE v IN ($$3$$, $$x$$)",
        "DELETE FROM t WHERE v = 'a'\n$$b$$",
        "SELECT $$a$b$$, $é$x$é$",
    ],
)
def test_constants_that_go_on_or_stand_between_dollars(rows: PostgresTwin, sql: str) -> None:
    rows.run(sql)
    rows.run("SELECT * FROM t ORDER BY n")


@pytest.mark.parametrize("blank", ["\xa0", "\u2003", "\u3000", "\x85", "\x1d"])
def test_blanks_of_unicode_are_letters(rows: PostgresTwin, blank: str) -> None:
    for sql in (
        f"INSERT INTO t (n) VALUES (77){blank}",
        f"BEGIN{blank}",
        f"ROLLBACK{blank};",
        f"SELECT n FROM t;{blank}",
        blank,
        f"SELECT n AS x{blank} FROM t WHERE i = 1",
        f"SELECT n{blank}FROM t",
        f"SELECT n FROM t -- {blank}",
        f"SELECT n, '{blank}', $${blank}$$ FROM t /*{blank}*/ WHERE v <> '{blank}'",
    ):
        rows.run(sql)
    rows.run("SELECT * FROM t ORDER BY n")


def test_a_column_like_a_placeholder(twin: PostgresTwin) -> None:
    twin.run('CREATE TABLE k ("k$1" int, b int ENC, "k$2" int ENC)')
    twin.run("INSERT INTO k VALUES (1, 2, 3)")
    for sql, values in (
        ("SELECT * FROM k", []),
        ('SELECT "k$1", "k$2" FROM k WHERE b = 2', []),
        ('SELECT "k$1" + 1 FROM k WHERE "k$1" = $1 AND "k$2" = $2', [1, 3]),
        ('UPDATE k SET "k$1" = $1 WHERE "k$2" = $2', [5, 3]),
        ("SELECT * FROM k", []),
    ):
        assert not twin.differs(sql, values), sql


@pytest.mark.parametrize(
    "sql",
    [
        'CREATE TABLE m (b int ENC, "x⟪0⟫" int)',
        'CREATE TABLE "⟪0⟫" (b int ENC)',
        'ALTER TABLE t ADD "⟪0⟫" int',
        'ALTER TABLE t RENAME n TO "⟦0⟧"',
        'ALTER TABLE t RENAME TO "⟪0⟫"',
        'CREATE SCHEMA "⟪0⟫" CREATE TABLE t (b int)',
    ],
)
def test_a_name_like_the_place_of_a_constant_is_refused(twin: PostgresTwin, sql: str) -> None:
    """The text for the server would have the constant there, which it is not to know."""
    own = twin.on_louver(sql)
    assert own.error is not None
    assert own.error.code == "sql.unsupported"
    twin.run("SELECT * FROM t LIMIT 0")


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("INSERT INTO t (n) VALUES ($2)", [1, 3]),
        ("INSERT INTO t (n) VALUES ($3), ($1)", [1, 2, 3]),
        ("INSERT INTO t (n) VALUES ($2), ($1)", [1, 2]),
        ("VALUES ($2)", [1, 2]),
        ("UPDATE t SET n = $2", [1, 2]),
    ],
)
def test_a_parameter_that_is_left_out(
    rows: PostgresTwin, sql: str, values: Sequence[object]
) -> None:
    assert not rows.differs(sql, values)
    rows.run("SELECT * FROM t ORDER BY n")


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT * FROM t WHERE v IN ($1, $2)", ["x", 3]),
        ("SELECT * FROM t WHERE w IN ($2, $1)", [3, "x"]),
        ("SELECT * FROM t WHERE v IN ($1, '3')", [_DAY]),
        ("SELECT * FROM t WHERE v NOT IN ($1, '3')", [_DAY]),
        ("SELECT * FROM t WHERE v = $1", [3]),
        ("SELECT count(*), max(d) FROM t WHERE v IN ($1, $2)", ["ab", _DAY]),
        ("SELECT p.n, q.n FROM t p LEFT JOIN t q ON p.v NOT IN ($2, $1)", [_DAY, "x"]),
        ("SELECT p.n, q.n FROM t p LEFT JOIN t q ON q.v NOT IN ($2, $1)", ["2020-01-02", _DAY]),
        ("UPDATE t SET i = 9 WHERE w IN ($1, $2)", ["x", _DAY]),
        ("UPDATE t SET v = CASE WHEN v IN ($1, $2) THEN 'u' END", ["x", _DAY]),
        ("DELETE FROM t WHERE v IN ($1, 'x')", [3]),
    ],
)
def test_a_value_that_is_no_text_beside_varchar(
    rows: PostgresTwin, sql: str, values: Sequence[object]
) -> None:
    assert not rows.differs(sql, values)
    rows.run("SELECT * FROM t ORDER BY n")
