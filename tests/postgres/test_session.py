"""The client of PostgreSQL's wire protocol, against real servers."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver._rust import postgres

Open = Callable[[], postgres.Session]


def rows_of(session: postgres.Session, sql: str, *values: Any) -> list[Any]:
    """The rows of a statement, as Python's."""
    ((_, _, arrays),) = session.run([(sql, list(values))])
    return list(zip(*(array.to_pylist() for array in arrays), strict=True))


def code_of(raised: pytest.ExceptionInfo[postgres.ServerError]) -> str:
    return str(raised.value.args[0]["code"])


VALUES: dict[str, Any] = {
    "true": True, "NULL::int": None, "7::smallint": 7, "(-7)::int": -7, "1::bigint << 62": 1 << 62,
    "1.5::real": 1.5, "'NaN'::float8": float("nan"), "'é'::text": "é", "'a'::varchar(3)": "a",
    "'\\x00ff'::bytea": b"\x00\xff", "DATE '1999-12-31'": date(1999, 12, 31),
    "TIMESTAMP '1969-12-31 23:59:59.000001'": datetime(1969, 12, 31, 23, 59, 59, 1),
    "TIMESTAMPTZ '2020-01-01 00:00+02'": datetime(2019, 12, 31, 22, tzinfo=UTC),
    "-12345678901234567890.0001230": "-12345678901234567890.0001230", "'NaN'::numeric": "NaN",
    "1e-20::numeric": "0.00000000000000000001", "0::numeric(9,2)": "0.00", "1e30::numeric": "1" +
    "0" * 30, "'00000000-0000-0000-0000-0000000000ff'::uuid": uuid.UUID(int=255),
}  # fmt: skip


@pytest.mark.parametrize("sql", VALUES)
def test_values_come_as_they_are(session: postgres.Session, sql: str) -> None:
    ((value,),) = rows_of(session, f"SELECT {sql}")
    assert value == VALUES[sql] or repr(value) == repr(VALUES[sql])


def test_a_type_without_a_form_of_its_own_comes_as_bytes(session: postgres.Session) -> None:
    ((array,),) = rows_of(session, "SELECT ARRAY[1, 2]")
    assert isinstance(array, bytes)
    ((tag, columns, _),) = session.run([("SELECT ARRAY[1, 2] AS a", [])])
    assert tag == "SELECT 1"
    assert columns == [("a", 1007, -1, 0, 0)]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats()
    | st.binary(max_size=2000) | st.text(st.characters(exclude_characters="\0",
                                                       exclude_categories=["Cs"]), max_size=50)
)  # fmt: skip
def test_bound_values_return(session: postgres.Session, value: Any) -> None:
    types = {bool: "boolean", int: "bigint", float: "float8", bytes: "bytea", str: "text"}
    ((back,),) = rows_of(session, f"SELECT $1::{types.get(type(value), 'text')}", value)
    assert back == value or repr(back) == repr(value)


def test_a_text_takes_the_type_that_the_server_infers(session: postgres.Session) -> None:
    assert rows_of(session, "SELECT x FROM (VALUES (1), (2)) v(x) WHERE x = $1", "2") == [(2,)]
    key = "00000000-0000-0000-0000-0000000000ff"
    assert rows_of(session, "SELECT $1::uuid", key) == [(uuid.UUID(key),)]


def test_arrow_columns_are_arrays(session: postgres.Session) -> None:
    numbers, texts = pa.array([1, None, 3]), pa.array(["a", "", None])
    rows = rows_of(
        session, "SELECT * FROM unnest($1::bigint[], $2::text[])", (numbers, 20), (texts, 25)
    )
    assert rows == [(1, "a"), (None, ""), (3, None)]
    assert (
        rows_of(session, "SELECT * FROM unnest($1::bigint[])", (pa.array([], pa.int64()), 20)) == []
    )
    with pytest.raises(ValueError, match="cannot be sent"):
        rows_of(session, "SELECT * FROM unnest($1::bigint[])", (texts, 20))


def test_a_statement_is_described_and_not_run(session: postgres.Session) -> None:
    session.run([("CREATE TABLE t (id int, price numeric(9,2))", [])])
    parameters, columns = session.describe("INSERT INTO t VALUES ($1, $2) RETURNING price AS p")
    assert parameters == [23, 1700]
    ((name, type_, modifier, table, attribute),) = columns
    assert (name, type_, modifier, attribute) == ("p", 1700, (9 << 16 | 2) + 4, 2)
    assert table > 0
    assert rows_of(session, "SELECT count(*) FROM t") == [(0,)]


def test_a_pipeline_is_one_transaction(session: postgres.Session) -> None:
    session.run([("CREATE TABLE t (id int PRIMARY KEY)", [])])
    insert = "INSERT INTO t VALUES ($1)"
    replies = session.run([(insert, [1]), (insert, [2]), ("SELECT count(*) FROM t", [])])
    assert [reply[0] for reply in replies] == ["INSERT 0 1", "INSERT 0 1", "SELECT 1"]
    with pytest.raises(postgres.ServerError) as raised:
        session.run([(insert, [3]), (insert, [1]), (insert, [4])])
    assert code_of(raised) == "23505"
    assert raised.value.args[0]["constraint"] == "t_pkey"
    assert rows_of(session, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]
    assert session.state() == "idle"


def test_a_long_pipeline_with_long_answers_does_not_wait_for_itself(
    session: postgres.Session,
) -> None:
    step = ("SELECT repeat('x', 20000), $1", ["y" * 20000])
    replies = session.run([step] * 400)
    assert len(replies) == 400


def test_the_state_of_a_transaction(session: postgres.Session) -> None:
    session.run([("BEGIN", [])])
    assert session.state() == "within"
    with pytest.raises(postgres.ServerError) as raised:
        session.run([("SELEC 1", [])])
    assert (code_of(raised), raised.value.args[0]["position"]) == ("42601", 1)
    assert session.state() == "failed"
    # Whoever commits must look at the tag.
    assert session.run([("COMMIT", [])])[0][0] == "ROLLBACK"
    assert session.state() == "idle"


def test_a_table_that_changes_under_a_prepared_statement(session: postgres.Session) -> None:
    session.run([("CREATE TABLE t (a int)", []), ("INSERT INTO t VALUES (1)", [])])
    assert rows_of(session, "SELECT * FROM t") == [(1,)]
    session.run([("ALTER TABLE t ADD COLUMN b text DEFAULT 'x'", [])])
    assert rows_of(session, "SELECT * FROM t") == [(1, "x")]
    session.run([("DISCARD ALL", [])])
    assert rows_of(session, "SELECT * FROM t") == [(1, "x")]


def test_tables_that_a_transaction_makes_anew(session: postgres.Session) -> None:
    """Plans of the session's own definitions are void in time: the error would end the block."""
    for texts in (("CREATE TABLE m (a int)",), ("DROP TABLE m", "CREATE TABLE m (a text)")):
        session.run([("BEGIN", []), *((text, []) for text in texts)])
        assert rows_of(session, "SELECT a FROM m") == []
        session.run([("COMMIT", [])])
    session.run([("BEGIN", []), ("ALTER TABLE m ALTER a TYPE date USING NULL", [])])
    assert rows_of(session, "SELECT a FROM m") == []
    session.run([("ROLLBACK", [])])
    session.run([("BEGIN", [])])
    assert rows_of(session, "SELECT a FROM m") == []
    assert session.state() == "within"
    session.run([("COMMIT", [])])


def test_statements_are_prepared_anew(session: postgres.Session) -> None:
    text = "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%pg_prepared%'"
    ((before,),) = rows_of(session, text)
    assert rows_of(session, text) == [(before,)]
    session.forget_statements()
    ((after,),) = rows_of(session, text)
    assert after != before


def test_more_statements_than_stay_prepared(session: postgres.Session) -> None:
    for number in range(600):
        assert rows_of(session, f"SELECT {number}") == [(number,)]
    ((count,),) = rows_of(session, "SELECT count(*) FROM pg_prepared_statements")
    assert count <= 256


def test_rows_in_parts(session: postgres.Session) -> None:
    session.run([("BEGIN", [])])
    columns = session.open_portal("p", "SELECT i FROM generate_series(1, $1) g(i)", [25])
    seen, more = [], True
    while more:
        (array,), more = session.fetch("p", columns, 10)
        seen.append(array.to_pylist())
        # Other statements may run between.
        assert rows_of(session, "SELECT 1") == [(1,)]
    assert [len(part) for part in seen] == [10, 10, 5]
    session.run([("COMMIT", [])])


TABLE = "CREATE TABLE t (a int, b text, c bytea, d numeric(9,2), e uuid, f date, g timestamptz)"
TYPES = [23, 25, 17, 1700, 2950, 1082, 1184]
COPY = "COPY t FROM STDIN (FORMAT binary)"


def batch(start: int, count: int) -> pa.RecordBatch:
    rows = range(start, start + count)
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    return pa.record_batch(
        [
            pa.array(rows, pa.int64()), pa.array([f"é{i}" if i % 3 else None for i in rows]),
            pa.array([bytes([i % 256, 0]) for i in rows]),
            pa.array([Decimal(i) / 4 for i in rows], pa.decimal128(9, 2)),
            pa.array([uuid.UUID(int=i).bytes for i in rows], pa.binary(16)),
            pa.array([date(2020, 1, 1)] * count), pa.array([moment] * count),
        ],
        names=list("abcdefg"),
    )  # fmt: skip


def test_rows_in_bulk(session: postgres.Session) -> None:
    session.run([(TABLE, [])])
    assert session.copy_in(COPY, TYPES, iter([batch(0, 1000), batch(1000, 10)])) == 1010
    ((total, first),) = rows_of(session, "SELECT sum(a), sum(d) FROM t")
    assert (total, first) == (sum(range(1010)), str(Decimal(sum(range(1010))) / 4))
    assert rows_of(session, "SELECT b, c, e, f, g FROM t WHERE a = 258") == [
        (None, b"\x02\x00", uuid.UUID(int=258), date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC))
    ]
    assert session.copy_in(COPY, TYPES, iter([])) == 0


def test_rows_that_end_early_write_nothing(session: postgres.Session) -> None:
    session.run([(TABLE, [])])

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch(0, 100)
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        session.copy_in(COPY, TYPES, rows())
    assert rows_of(session, "SELECT count(*) FROM t") == [(0,)]
    with pytest.raises(ValueError, match="cannot be sent"):
        session.copy_in(COPY, [25, *TYPES[1:]], iter([batch(0, 1)]))
    with pytest.raises(postgres.ServerError) as raised:
        session.copy_in("COPY nothing FROM STDIN (FORMAT binary)", TYPES, iter([batch(0, 1)]))
    assert code_of(raised) == "42P01"
    assert rows_of(session, "SELECT count(*) FROM t") == [(0,)]


def test_a_statement_is_cancelled_and_no_later_one(session: postgres.Session) -> None:
    session.cancel()
    assert rows_of(session, "SELECT 1") == [(1,)]
    for _ in range(5):
        timer = threading.Timer(0.05, session.cancel)
        timer.start()
        with pytest.raises(postgres.ServerError) as raised:
            session.run([("SELECT pg_sleep(20)", [])])
        assert code_of(raised) == "57014"
        timer.join()
        for number in range(20):
            assert rows_of(session, "SELECT $1::bigint", number) == [(number,)]


def test_ctrl_c(session: postgres.Session) -> None:
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        session.run([("SELECT pg_sleep(20)", [])])
    assert time.monotonic() - started < 10
    assert rows_of(session, "SELECT 1") == [(1,)]


def test_a_session_that_the_server_ends(open_session: Open) -> None:
    first, second = open_session(), open_session()
    ((pid,),) = rows_of(first, "SELECT pg_backend_pid()")
    rows_of(second, "SELECT pg_terminate_backend($1::int)", str(pid))
    time.sleep(0.1)
    with pytest.raises((postgres.ServerError, postgres.ConnectionLost)):
        rows_of(first, "SELECT 1")
    assert first.is_broken()
    with pytest.raises(postgres.ConnectionLost):
        rows_of(first, "SELECT 1")


def test_notices_and_notifications(session: postgres.Session) -> None:
    session.run([("LISTEN louver", []), ("DROP TABLE IF EXISTS nothing", [])])
    (notice,) = session.notices()
    assert notice["severity"] == "NOTICE"
    assert session.notices() == []
    session.run([("SELECT pg_notify('louver', 'said')", [])])
    assert session.notifications() == [("louver", "said")]
    assert session.parameters()["server_encoding"] == "UTF8"


def test_a_closed_session(session: postgres.Session) -> None:
    session.close()
    with pytest.raises(postgres.ConnectionLost, match="closed"):
        session.run([("SELECT 1", [])])
    session.close()


@pytest.mark.parametrize("text", ["SELECT '\0'", "SELECT $1"])
def test_what_cannot_be_sent(session: postgres.Session, text: str) -> None:
    with pytest.raises((ValueError, TypeError, postgres.ServerError)):
        session.run([(text, [] if "\0" in text else ["a\0b"])])
    assert rows_of(session, "SELECT 1") == [(1,)]


def test_no_server(tmp_path: Any) -> None:
    with pytest.raises(postgres.ConnectionLost, match="No such file"):
        postgres.Session(str(tmp_path), 5432, "nobody", "nothing")


def test_another_machine_is_refused_without_tls() -> None:
    with pytest.raises(postgres.TlsError, match="another machine"):
        postgres.Session("192.0.2.1", 5432, "nobody", "nothing", timeout_ms=200)
