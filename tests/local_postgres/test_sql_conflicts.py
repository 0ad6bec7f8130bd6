"""INSERT … ON CONFLICT ON CONSTRAINT, beside plaintext PostgreSQL, and what it may depend on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin

_NAMED = "ON CONFLICT ON CONSTRAINT"
STATEMENTS = (
    f"INSERT INTO t VALUES (9, 5) {_NAMED} t_pkey DO UPDATE SET x = 'b'",
    f"INSERT INTO t VALUES (9, 5, 'u') {_NAMED} t_pkey DO NOTHING",
    f"INSERT INTO t VALUES (9, 5), (10, 6) {_NAMED} t_pkey DO UPDATE SET x = excluded.x"
    " RETURNING p, x",
    f"INSERT INTO t SELECT 9, k, 'z' FROM t {_NAMED} t_pkey DO UPDATE SET x = t.x || 'c'",
    f"INSERT INTO t AS a VALUES (9, 5) {_NAMED} t_pkey DO UPDATE SET x = 'd' WHERE a.x > 'b'",
    f"INSERT INTO t VALUES (9, 77, 'u', 1) {_NAMED} other DO UPDATE SET x = 'e'",
    f"INSERT INTO t VALUES (9, 5, 'u', 99) {_NAMED} other DO NOTHING",
    f"INSERT INTO t VALUES (9, 5) {_NAMED} nothing DO NOTHING",
    f"WITH s AS (SELECT 5 AS k) INSERT INTO t SELECT 1, k FROM s {_NAMED} t_pkey DO NOTHING",
)


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.both(
        "CREATE TABLE t (p integer, k integer ENC PRIMARY KEY, x text ENC DEFAULT 'd',"
        " o integer ENC CONSTRAINT other UNIQUE)"
    )
    twin.both("INSERT INTO t VALUES (1, 5, 'a', 1), (2, 7, 'b', 2)")
    yield twin
    twin.close()


@pytest.mark.parametrize("within", [False, True])
def test_constraints_are_named(twin: PostgresTwin, within: bool) -> None:
    for sql in STATEMENTS:
        if within:
            twin.both("BEGIN")
        assert not twin.differs(sql), sql
        if within:
            twin.both("COMMIT")
        assert not twin.differs("SELECT * FROM t"), sql
    sql = f"INSERT INTO t VALUES ($1, $2) {_NAMED} t_pkey DO UPDATE SET x = $3"
    for values in ([1, 5, "q"], [2, 50, "r"], [3, 50, "s"]):
        assert not twin.differs(sql, values)
    assert not twin.differs("SELECT * FROM t")


def test_a_plain_column_must_not_depend_on_the_key(twin: PostgresTwin) -> None:
    twin.louver.execute("CREATE TABLE s (p integer, k integer ENC MAY REVEAL size UNIQUE)")
    for target in ("(k)", "ON CONSTRAINT s_k_key"):
        sql = f"INSERT INTO s VALUES (1, 2) ON CONFLICT {target} DO UPDATE SET p = 3"
        assert twin.on_louver(sql).state == "0A000"


@pytest.mark.parametrize(
    "form",
    [
        "DO NOTHING",
        "(k) DO NOTHING",
        "(k) DO UPDATE SET k = excluded.k RETURNING k",
        "(k) DO UPDATE SET v = 1, k = excluded.k",
    ],
)
def test_a_row_that_the_transaction_does_not_see_is_a_race(form: str) -> None:
    twin = PostgresTwin("sealed")
    other = PostgresTwin("sealed", beside=twin)
    try:
        twin.both("CREATE TABLE t (k integer ENC PRIMARY KEY, v integer ENC)")
        other.both("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.both("SELECT * FROM t WHERE k = 1")
        twin.both("INSERT INTO t VALUES (2, 3)")
        plain, own = other.both(f"INSERT INTO t (k) VALUES ($1) ON CONFLICT {form}", [2])
        assert plain.state == own.state == "40001"
    finally:
        other.close()
        twin.close()
