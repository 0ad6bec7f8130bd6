"""psycopg 3 does its work on sealed columns."""

from __future__ import annotations

import datetime
import threading
import time
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.front_door.door import Door, at_server

_TABLE = (
    "id bigint ENC PRIMARY KEY, n numeric(10,2) ENC, s text ENC, d date ENC, t timestamptz ENC,"
    " u uuid ENC, b bytea ENC, f float8 ENC, j jsonb ENC, a integer[] ENC, o boolean"
)
_ROW = (
    1, Decimal("2.50"), "hällo", datetime.date(2024, 2, 3),
    datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC), uuid.UUID(int=5), b"\0x", 0.1,
    {"a": [1]}, [1, 2], True,
)  # fmt: skip


@pytest.fixture
def con(door: Door) -> Iterator[psycopg.Connection[Any]]:
    """A connection with a table of one row."""
    with door.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS p")
        connection.execute(f"CREATE TABLE p ({_TABLE})")
        values = [Jsonb(value) if isinstance(value, dict) else value for value in _ROW]
        connection.execute(f"INSERT INTO p VALUES ({', '.join(['%s'] * 11)})", values)
        yield connection


def test_rows_are_python_values_in_both_forms(con: psycopg.Connection[Any]) -> None:
    for binary in (False, True):
        for prepare in (False, True):
            cursor = con.cursor(binary=binary)
            rows = cursor.execute("SELECT * FROM p WHERE id = %s", (1,), prepare=prepare).fetchall()
            assert rows == [_ROW]
    con.execute(
        "INSERT INTO p (id, n, s, o) VALUES (%b, %b, %b, %b)", (2, Decimal("7.1"), "x", False)
    )
    con.execute("UPDATE p SET f = %b, d = %b, t = %b, u = %b, b = %b WHERE id = 2",
                (*_ROW[7:8], *_ROW[3:7]))  # fmt: skip
    assert con.execute("SELECT n, s, f, d, t, u, b, o FROM p WHERE id = 2").fetchone() == (
        Decimal("7.10"), "x", 0.1, *_ROW[3:7], False,
    )  # fmt: skip


def test_the_server_has_nothing_of_it(con: psycopg.Connection[Any], door: Door) -> None:
    with at_server(door) as server:
        rows = server.execute("SELECT * FROM public.p").fetchall()
    text = repr(rows)
    assert len(rows) == 1
    for value in ("hällo", "2024", "2.5", "0.1"):
        assert value not in text


def test_counts_returning_and_many(con: psycopg.Connection[Any]) -> None:
    assert con.execute("UPDATE p SET n = n + 1 WHERE id = %s", (1,)).rowcount == 1
    row = con.execute("UPDATE p SET s = %s WHERE id = 1 RETURNING n, s", ("q",)).fetchone()
    assert row == (Decimal("3.50"), "q")
    with con.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO p (id, s) VALUES (%s, %s)", [(n, str(n)) for n in range(10, 30)]
        )
        assert cursor.rowcount == 20
    assert con.execute("DELETE FROM p WHERE id = ANY(%s)", ([10, 11],)).rowcount == 2
    assert con.execute("SELECT count(*) FROM p").fetchone() == (19,)


def test_transactions_and_savepoints(con: psycopg.Connection[Any]) -> None:
    with con.transaction():
        con.execute("INSERT INTO p (id) VALUES (10)")
        with con.transaction(force_rollback=True):
            con.execute("INSERT INTO p (id) VALUES (11)")
    with pytest.raises(psycopg.errors.UniqueViolation) as caught:
        _in_transaction(con, (12, 1))
    assert caught.value.diag.constraint_name == "p_pkey"
    assert caught.value.diag.message_detail == "Key (id)=(1) already exists."
    assert con.execute("SELECT id FROM p ORDER BY id").fetchall() == [(1,), (10,)]


def _in_transaction(con: psycopg.Connection[Any], numbers: tuple[int, ...]) -> None:
    with con.transaction():
        for number in numbers:
            con.execute(f"INSERT INTO p (id) VALUES ({number})")


def _in_pipeline(con: psycopg.Connection[Any], numbers: tuple[int, ...]) -> None:
    with con.pipeline() as pipeline:
        for number in numbers:
            con.execute(f"INSERT INTO p (id) VALUES ({number})")
        pipeline.sync()


def test_a_failed_transaction_stays_failed(con: psycopg.Connection[Any]) -> None:
    con.execute("BEGIN")
    with pytest.raises(psycopg.errors.UndefinedColumn) as caught:
        con.execute("SELECT nope FROM p")
    assert caught.value.diag.statement_position == "8"
    assert con.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        con.execute("SELECT 1")
    assert con.execute("COMMIT").statusmessage == "ROLLBACK"
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_a_pipeline_is_one_transaction_up_to_its_sync(con: psycopg.Connection[Any]) -> None:
    with con.pipeline():
        con.execute("INSERT INTO p (id) VALUES (50)")
        cursor = con.execute("SELECT count(*) FROM p")
        assert cursor.fetchone() == (2,)
    with pytest.raises(psycopg.errors.UniqueViolation):
        _in_pipeline(con, (51, 50, 52))
    assert con.execute("SELECT id FROM p ORDER BY id").fetchall() == [(1,), (50,)]


def test_several_statements_in_a_text_are_one_transaction(con: psycopg.Connection[Any]) -> None:
    cursor = con.execute("SELECT 1; SELECT 2, 'x'")
    results = [cursor.fetchall()]
    while cursor.nextset():
        results.append(cursor.fetchall())
    assert results == [[(1,)], [(2, "x")]]
    with pytest.raises(psycopg.errors.UniqueViolation):
        con.execute("INSERT INTO p (id) VALUES (60); INSERT INTO p (id) VALUES (1)")
    assert con.execute("SELECT count(*) FROM p").fetchone() == (1,)
    con.execute("INSERT INTO p (id) VALUES (61); BEGIN; INSERT INTO p (id) VALUES (62)")
    con.execute("ROLLBACK")
    assert con.execute("SELECT count(*) FROM p").fetchone() == (1,)


def test_copy_in_and_out(con: psycopg.Connection[Any]) -> None:
    rows = [(60, 'a\t"b"\n'), (61, None), (62, "")]
    with con.cursor() as cursor, cursor.copy("COPY p (id, s) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    with con.cursor() as cursor:
        with cursor.copy("COPY (SELECT id, s FROM p WHERE id >= 60 ORDER BY id) TO STDOUT") as copy:
            copy.set_types(["int8", "text"])
            assert list(copy.rows()) == rows
        with cursor.copy("COPY p (id, s) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int8", "text"])
            for number, text in rows:
                copy.write_row((number + 10, text))
        sql = "COPY (SELECT id, s FROM p WHERE id >= 70 ORDER BY id) TO STDOUT (FORMAT binary)"
        with cursor.copy(sql) as copy:
            copy.set_types(["int8", "text"])
            assert list(copy.rows()) == [(number + 10, text) for number, text in rows]
        with cursor.copy(
            "COPY (SELECT id, s FROM p WHERE id >= 60 ORDER BY id) TO STDOUT CSV"
        ) as copy:
            pieces = list(copy)
    assert len(pieces) == 6
    assert bytes(pieces[0]) == b'60,"a\t""b""\n"\n'
    with pytest.raises(ValueError, match="gives up"):
        _copied(con, [(80, "x"), None])
    with pytest.raises(psycopg.errors.UniqueViolation):
        _copied(con, [(81, "x"), (1, "x")])
    assert con.execute("SELECT count(*) FROM p WHERE id >= 80").fetchone() == (0,)


def _copied(con: psycopg.Connection[Any], rows: list[tuple[int, str] | None]) -> None:
    with con.cursor() as cursor, cursor.copy("COPY p (id, s) FROM STDIN") as copy:
        for row in rows:
            if row is None:
                raise ValueError("the client gives up")
            copy.write_row(row)


def test_messages_between_clients(con: psycopg.Connection[Any], door: Door) -> None:
    with door.connect() as other:
        other.execute("LISTEN done")
        con.execute("NOTIFY done, 'all of it'")
        (message,) = list(other.notifies(timeout=5, stop_after=1))
        assert (message.channel, message.payload) == ("done", "all of it")


@pytest.mark.parametrize(
    "sql", ["SELECT pg_sleep(20)", "SELECT count(*) FROM generate_series(1, 2000000000)"]
)
def test_a_statement_is_cancelled(con: psycopg.Connection[Any], sql: str) -> None:
    timer = threading.Timer(0.3, con.cancel)
    start = time.monotonic()
    timer.start()
    with pytest.raises(psycopg.errors.QueryCanceled):
        con.execute(sql)
    assert time.monotonic() - start < 10
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_rows_in_parts(con: psycopg.Connection[Any]) -> None:
    con.execute("INSERT INTO p (id) SELECT i FROM generate_series(100, 199) AS s(i)")
    with con.cursor() as cursor:
        rows = list(cursor.stream("SELECT id FROM p WHERE id >= %s ORDER BY id", (100,)))
    assert rows == [(n,) for n in range(100, 200)]
    with con.transaction():
        con.execute("DECLARE c CURSOR FOR SELECT id FROM p WHERE id >= %s ORDER BY id", (190,))
        assert con.execute("FETCH 3 FROM c").fetchall() == [(190,), (191,), (192,)]
        assert con.execute("FETCH ALL FROM c").rowcount == 7


def test_settings_are_told(con: psycopg.Connection[Any]) -> None:
    assert con.info.parameter_status("server_version") is not None
    assert con.info.encoding == "utf-8"
    con.execute("SET TimeZone = 'Asia/Tokyo'")
    assert con.info.parameter_status("TimeZone") == "Asia/Tokyo"
    con.execute("SELECT set_config('application_name', 'it', false)")
    assert con.info.parameter_status("application_name") == "it"
    con.execute("RESET ALL")


def test_settings_are_brought_along(door: Door) -> None:
    """Also Louver's own, for programs that know nothing of ENC."""
    options = "-c default_encryption=sealed -c timezone=Asia/Tokyo"
    with door.connect(options=options) as con:
        assert con.execute("SHOW default_encryption").fetchall() == [("sealed",)]
        assert con.info.parameter_status("TimeZone") == "Asia/Tokyo"
        for sql in ("RESET ALL", "SET default_encryption = none", "RESET default_encryption",
                    "DISCARD ALL"):  # fmt: skip
            con.execute(sql)
            default = "none" if sql.startswith("SET") else "sealed"
            assert con.execute("SHOW default_encryption").fetchall() == [(default,)]
    with pytest.raises(psycopg.OperationalError, match="default_encryption"):
        door.connect(options="-c default_encryption=it's")


def test_a_refusal_has_a_code_and_says_what_to_do(con: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        con.execute("CREATE RULE r AS ON INSERT TO p DO NOTHING")
    assert "(sql.unsupported)" in str(caught.value.diag.message_hint)


def test_discard_that_fails_leaves_statements(door: Door) -> None:
    with door.connect() as con:
        con.execute("SELECT 1 + %s", (1,), prepare=True)
        con.execute("BEGIN")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            con.execute("DISCARD ALL")
        con.execute("ROLLBACK")
        assert con.execute("SELECT 1 + %s", (2,), prepare=True).fetchone() == (3,)
