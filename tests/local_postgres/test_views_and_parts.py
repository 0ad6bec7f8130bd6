"""What views, temporary tables and parts of arrays keep, beside plaintext PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.local_postgres.twin import PostgresTwin

FAILS = "DROP FUNCTION absent"  # what was declared is read again after it


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.both("CREATE TABLE t(a integer ENC, b text ENC DEFAULT 'T', c integer[] ENC, d int[] ENC)")
    twin.both("INSERT INTO t VALUES (1, 'x', '{1,2,3}', '{4,5}')")
    twin.both("CREATE VIEW v AS SELECT a, b FROM t WHERE a < 10")
    yield twin
    twin.close()


@pytest.mark.parametrize("again", ["fails", "reopens"])
@pytest.mark.parametrize("option", ["local", "cascaded"])
def test_options_of_views_stay(twin: PostgresTwin, option: str, again: str) -> None:
    def later() -> None:
        if again == "fails":
            assert not twin.differs(FAILS)
        else:
            twin.reopen()

    assert not twin.differs(f"ALTER VIEW v SET (check_option = {option})")
    later()
    assert not twin.differs("INSERT INTO v VALUES (11)")
    assert not twin.differs("ALTER VIEW v RESET (check_option)")
    later()
    assert not twin.differs("INSERT INTO v VALUES (12)")
    assert not twin.differs("SELECT a FROM t ORDER BY a")


def test_restarts_of_several_sequences_are_undone(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE SEQUENCE s START WITH 33",
        "CREATE TABLE w(id serial, a integer ENC DEFAULT nextval('s'), o oid ENC)",
        "ALTER SEQUENCE s OWNED BY w.a",
        *["INSERT INTO w DEFAULT VALUES"] * 3,
        *["BEGIN", "TRUNCATE w RESTART IDENTITY", "INSERT INTO w DEFAULT VALUES", "ROLLBACK"] * 2,
        "BEGIN", "ALTER SEQUENCE w_id_seq RESTART", "ALTER SEQUENCE s RESTART WITH 7",
        "SELECT nextval('s'), nextval('w_id_seq')", "ROLLBACK",
        "INSERT INTO w DEFAULT VALUES RETURNING *", "SELECT nextval('s'), nextval('w_id_seq')",
        "UPDATE w SET o = id::oid", "SELECT a::oid, o FROM w WHERE a::oid > 33::oid",
    ):  # fmt: skip
        assert not twin.differs(sql), sql


@pytest.mark.parametrize("column", ["r t", "r t[]", "r v"])
def test_temporary_tables_of_rows_of_others_are_refused(twin: PostgresTwin, column: str) -> None:
    """The other table is not where temporary ones are, so that the column was lost."""
    for sql in (f"CREATE TEMP TABLE u({column})", "CREATE TEMP TABLE u AS SELECT t AS r FROM t"):
        with pytest.raises(errors.Error) as caught:
            twin.louver.execute(sql)
        assert caught.value.code == "sql.unsupported"
        assert twin.on_louver("SELECT * FROM u").state == "42P01"
    for sql in ("CREATE TEMP TABLE u AS SELECT * FROM v", "INSERT INTO u SELECT a, b FROM t"):
        assert not twin.differs(sql)
    assert not twin.differs("SELECT * FROM u")


def test_parts_of_one_column(twin: PostgresTwin) -> None:
    for sql in (
        "UPDATE t SET c[1] = 5, c[3] = 7 WHERE a = 1",
        "UPDATE t SET c[1] = 6, d[1] = 8, d[2] = 9, b = 'y' WHERE a = 1",
        "UPDATE t SET c[1:2] = '{8,9}', c[3] = 4",
        "UPDATE t SET a = 2, c[2] = 1, c[4] = NULL, d = '{}' WHERE b = 'y'",
    ):
        assert not twin.differs(sql), sql
        assert not twin.differs("SELECT * FROM t"), sql
    with pytest.raises(errors.Error) as caught:
        twin.louver.execute("UPDATE t SET c[1] = 5, a = 7, c[2] = 8")
    assert caught.value.code == "sql.unsupported"


@pytest.mark.parametrize("call", ["pg_listening_channels", "pg_backend_pid", "inet_server_port"])
def test_what_a_server_says_of_itself_is_not_the_private_ones(
    twin: PostgresTwin, call: str
) -> None:
    with pytest.raises(errors.Error) as caught:
        twin.louver.execute(f"SELECT {call}()")
    assert caught.value.code == "postgres.refused"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO w (id, n) SELECT 12, 9223372036854775807 + s.n FROM w AS s WHERE s.id = 99",
        "INSERT INTO w (id, n) SELECT 2147483648, s.n FROM w AS s WHERE s.id = 99",
        "INSERT INTO w (id, n) SELECT 1 / 0, s.n FROM w AS s WHERE s.id = $1",
        "INSERT INTO w (id, n) SELECT s.n / 0, s.n FROM w AS s WHERE s.id = 99 RETURNING *",
        "INSERT INTO w (id, n) SELECT 1, 1 WHERE NOT EXISTS (SELECT 1 FROM w) RETURNING *",
        "UPDATE w SET n = 1 / 0 WHERE id = 99",
        "SELECT count(*), sum(n) FROM w WHERE id = 99 AND n > 1 / 0",
    ],
)
def test_constants_are_computed_where_no_row_gets_them(twin: PostgresTwin, sql: str) -> None:
    """PostgreSQL raises then when it plans."""
    twin.both("CREATE TABLE w(id integer ENC, n bigint ENC)")
    assert not twin.differs(sql, [99] if "$1" in sql else [])
