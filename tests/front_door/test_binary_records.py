"""Records without a type, in binary form: the bytes that PostgreSQL sends, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import pq

from tests.front_door import door as doors
from tests.front_door.door import Door

QUERIES = (
    "SELECT ROW(1, 'a', NULL, 2.50, true, date '2024-02-29')",
    "SELECT ROW(), ROW(ROW(1), ROW(NULL::text, ROW(3))), 5",
    "SELECT (id, s) FROM r WHERE id = 2",
    "SELECT id, (s, n), (SELECT (a.s, count(*)) FROM r AS a WHERE a.id = r.id GROUP BY a.s) FROM r"
    " WHERE id = 1",
    "SELECT count(*), ROW(min(s), max(n)) FROM r",
    "VALUES (ROW(1, '{1,2}'::int[]), 2)",
    "SELECT r FROM (VALUES (1, 'x')) AS r",
    "SELECT ROW(id) FROM r WHERE false",
    "SELECT NULL::record, ROW(repeat('x', 3000)) -- the end",
    "SELECT json_each_text('{\"a\": 1}')",
    "SELECT ROW(n) FROM r WHERE s LIKE '%a%' LIMIT 1",
)
#: Of the order of rows nothing is certain in a query around them, and numbers of users' types are
#: others where the rows are computed.
REFUSED = (
    "SELECT ROW(id, s) FROM r ORDER BY id", "SELECT ROW('sad'::temper)",
    "SELECT ROW(1, ROW('sad'::temper))", "SELECT ARRAY[ROW(1)]", "SELECT ROW(ARRAY[ROW(1)])",
)  # fmt: skip


@pytest.fixture
def both(door: Door) -> Iterator[tuple[psycopg.Connection, psycopg.Connection]]:
    with doors.plain() as first, door.connect() as second:
        for connection, encrypted in ((first, ""), (second, " ENC")):
            connection.execute("DROP TABLE IF EXISTS r")
            connection.execute("DROP TYPE IF EXISTS temper")
            connection.execute("CREATE TYPE temper AS ENUM ('sad')")
            connection.execute(f"CREATE TABLE r (id integer, s text{encrypted}, n numeric)")
            connection.execute("INSERT INTO r VALUES (1, 'a', 1.50), (2, NULL, -3), (3, 'c', 0)")
        yield first, second


def _rows(
    connection: psycopg.Connection, sql: str, form: int
) -> tuple[list[int], list[list[bytes | None]]]:
    result = connection.pgconn.exec_params(sql.encode(), [], result_format=form)
    assert result.status == pq.ExecStatus.TUPLES_OK, (sql, result.error_message)
    types = [result.ftype(column) for column in range(result.nfields)]
    return types, [
        [result.get_value(row, column) for column in range(result.nfields)]
        for row in range(result.ntuples)
    ]


def test_records_are_the_bytes_that_postgresql_sends(
    both: tuple[psycopg.Connection, psycopg.Connection],
) -> None:
    first, second = both
    for sql in QUERIES:
        for form in (1, 0, 1):
            assert _rows(second, sql, form) == _rows(first, sql, form), (sql, form)
    with second.transaction():
        assert _rows(second, QUERIES[2], 1) == _rows(first, QUERIES[2], 1)
    sql = "SELECT ROW($1::integer, s) FROM r WHERE id = $2"
    wanted, given = (
        connection.pgconn.exec_params(sql.encode(), [b"7", b"3"], result_format=1).get_value(0, 0)
        for connection in both
    )
    assert given == wanted


def test_what_is_not_certain_is_refused(
    both: tuple[psycopg.Connection, psycopg.Connection],
) -> None:
    first, second = both
    for sql in REFUSED:
        assert _rows(second, sql, 0)[1] == _rows(first, sql, 0)[1]
        result = second.pgconn.exec_params(sql.encode(), [], result_format=1)
        assert result.status == pq.ExecStatus.FATAL_ERROR, sql
        assert result.error_field(pq.DiagnosticField.SQLSTATE) == b"0A000", sql
