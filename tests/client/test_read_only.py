"""Connections that only read: no statement of theirs changes the database or its ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import louver
from louver.trusted.client.connect import open_session
from louver.trusted.client.dbapi import Connection
from louver.wire.messages import Append, Statement
from tests.client.harness import connection, key_file

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")

SETUP = """
CREATE TABLE staff (name VARCHAR ENC MAY REVEAL equality, salary BIGINT ENC USING onion, age INT);
CREATE SEQUENCE numbers;
CREATE VIEW grown AS SELECT name FROM staff WHERE age > 30;
INSERT INTO staff VALUES ('Ada', 9000, 36), ('Grace', 8500, 45), ('Edsger', 700, 20)
"""
KNOWN = "SELECT name, age FROM staff ORDER BY age"


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"duckdb:///{tmp_path}/cloud.duckdb"
    with connection(url) as con:
        con.execute(SETUP)
        con.execute(KNOWN)
    return url


@pytest.fixture
def con(url: str) -> Iterator[louver.Connection]:
    with connection(url, read_only=True) as connected:
        yield connected


def contents(url: str) -> dict[str, str]:
    """The bytes of the database's files."""
    path = Path(url.removeprefix("duckdb:///"))
    files = path.parent.glob(path.name + "*")
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_what_is_known_already_is_answered(url: str) -> None:
    before = contents(url)
    with connection(url, read_only=True) as con:
        assert con.sql(KNOWN).fetchall() == [("Edsger", 20), ("Ada", 36), ("Grace", 45)]
        assert con.sql("SELECT name FROM staff WHERE age > 30 ORDER BY name").explain()
        frame = pa.table({"age": [36]})  # noqa: F841
        joined = con.sql(f"SELECT name FROM ({KNOWN}) JOIN frame USING (age)")
        assert joined.fetchall() == [("Ada",)]
        con.execute("BEGIN")
        assert len(con.sql(KNOWN).fetchall()) == 3
        con.execute("ROLLBACK")
        con.execute("SET threads = 2; CREATE TEMP TABLE mine AS SELECT 1 AS a")
        assert con.sql("FROM mine").fetchall() == [(1,)]
        assert con.sql("DESCRIBE staff").fetchall()
        assert len(con.leakage()) > 0
    assert contents(url) == before


def test_what_is_new_is_refused_until_somebody_may_record_it(url: str) -> None:
    query = "SELECT count(*) FROM staff WHERE salary > 800"
    before = contents(url)
    with connection(url, read_only=True) as con:
        new = con.sql(query).explain(leakage=True)
        assert "+ " in new
        with pytest.raises(louver.LeakageRefused) as caught:
            con.execute(query)
        assert caught.value.code == "ledger.read_only"
        assert "staff" in str(caught.value)
    assert contents(url) == before
    with connection(url) as con:
        expected = con.execute(query).fetchall()
    with connection(url, read_only=True) as con:
        assert con.execute(query).fetchall() == expected == [(2,)]


CHANGES = (
    "INSERT INTO staff VALUES ('Kurt', 1, 1)",
    "INSERT INTO staff SELECT * FROM staff",
    "UPDATE staff SET age = 1",
    "DELETE FROM staff",
    "TRUNCATE staff",
    "MERGE INTO staff USING (SELECT 1 AS age) AS s ON staff.age = s.age WHEN MATCHED THEN DELETE",
    "CREATE TABLE other (a INTEGER ENC)",
    "CREATE TABLE other AS SELECT * FROM staff",
    "CREATE VIEW v AS SELECT 1",
    "CREATE INDEX i ON staff (age)",
    "CREATE SCHEMA s",
    "CREATE MACRO m() AS 1",
    "CREATE TYPE mood AS ENUM ('ok')",
    "ALTER TABLE staff ADD COLUMN b INTEGER",
    "ALTER TABLE staff ALTER COLUMN name MAY REVEAL order",
    "ALTER TABLE staff RENAME TO people",
    "COMMENT ON TABLE staff IS 'x'",
    "DROP TABLE staff",
    "DROP VIEW grown",
    "SELECT nextval('numbers')",
    "BEGIN; INSERT INTO staff VALUES ('Kurt', 1, 1)",
    "PREPARE p AS DELETE FROM staff; EXECUTE p",
    "EXPLAIN ANALYZE DELETE FROM staff",
)


def test_changes_are_refused_and_nothing_is_sent(url: str) -> None:
    session = open_session(url, key_file(), tapped=True, read_only=True)
    tap: Any = session.context.engine
    before = contents(url)
    with Connection(session) as con:
        for sql in CHANGES:
            with pytest.raises(louver.Error) as caught:
                con.execute(sql)
            assert caught.value.code in ("connection.read_only", "ledger.read_only"), sql
            con.rollback()
        for change in (
            lambda: con.load("staff", pa.table({"name": ["x"], "salary": [1], "age": [1]})),
            lambda: con.load("fresh", pa.table({"a": [1]}), encrypt=True),
            lambda: con.executemany("INSERT INTO staff VALUES (?, ?, ?)", [("x", 1, 1)]),
            lambda: con.sql(KNOWN).to_table("copied"),
            lambda: con.execute("CHECKPOINT"),
        ):
            with pytest.raises(louver.Error) as caught:
                change()
            assert caught.value.code in ("connection.read_only", "ledger.read_only")
            con.rollback()
        sent = tap.sent()
        assert not [m for m in sent if isinstance(m, Append)]
        assert not [m for m in sent if isinstance(m, Statement) and m.kind != "query"]
        assert con.sql(KNOWN).fetchall()
    assert contents(url) == before


def test_a_missing_database_is_not_created(tmp_path: Path) -> None:
    for url in (f"duckdb:///{tmp_path}/none.duckdb", "duckdb:///:memory:"):
        with pytest.raises(louver.Error) as caught:
            connection(url, read_only=True)
        assert caught.value.code == "database.missing"
    assert not list(tmp_path.glob("none*"))


def test_what_is_attached_is_only_read_too(url: str, tmp_path: Path) -> None:
    other = f"duckdb:///{tmp_path}/other.duckdb"
    with connection(other) as con:
        con.execute("CREATE TABLE t (a INTEGER ENC); INSERT INTO t VALUES (1)")
    before = contents(other)
    with connection(url, read_only=True) as con:
        con.attach(other, "o")
        with pytest.raises(louver.LeakageRefused):
            con.execute("SELECT a FROM o.t").fetchall()
    assert contents(other) == before
