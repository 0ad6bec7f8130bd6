"""UPDATE and DELETE read the rows that a SELECT with their condition would read, and show the same:
conditions on encrypted columns, tables with keys, columns that are not opened, lies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.wire.messages import Statement
from tests.generated import cases
from tests.twin import Twin

TABLE = """CREATE TABLE t (id INTEGER PRIMARY KEY, s BIGINT ENC, e VARCHAR ENC NOT NULL,
 q BIGINT ENC MAY REVEAL equality, a BIGINT ENC MAY REVEAL access, p INTEGER CHECK (p < 1000))"""
ROWS = """INSERT INTO t SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE i END, 'v' || i % 40, i % 40,
 i, i % 10 FROM range(200) r(i)"""
WHOLE = 200


def filled(key_file: Path, profile: str = "cryptdb") -> Twin:
    twin = Twin(":memory:", key_file, profile)
    twin.fill(TABLE, ROWS)
    return twin


@pytest.fixture
def twin(key_file: Path) -> Iterator[Twin]:
    twin = filled(key_file)
    yield twin
    twin.close()


def rows_read(twin: Twin, sql: str) -> int:
    """Run a statement on both and compare; the number of rows that the server sent for it."""
    before = twin.tap.traffic.rows_in
    twin.either(sql)
    return int(twin.tap.traffic.rows_in - before)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t WHERE s = 3",
        "DELETE FROM t WHERE e = 'v5' AND p > 2",
        "DELETE FROM t WHERE q IN (4, 5)",
        "DELETE FROM t WHERE s > 195 RETURNING id, e",
        "DELETE FROM main.t WHERE s = 8 RETURNING *",
        "UPDATE t SET e = e || '!' WHERE s = 9",
        "UPDATE t AS x SET p = p + 1, s = s * 2 WHERE x.q = 10",
        "UPDATE t SET s = NULL WHERE id = 12",
        "UPDATE t SET q = q + 1 WHERE s BETWEEN 20 AND 22 RETURNING q, a",
    ],
)
def test_encrypted_conditions_narrow_what_is_read(twin: Twin, sql: str) -> None:
    assert rows_read(twin, sql) < WHOLE // 4
    twin.run("SELECT * FROM t")


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t WHERE a = 3",
        "DELETE FROM t WHERE s = 3 OR a = 3",
        "UPDATE t SET id = id + 1000 WHERE s = 3",
        "UPDATE t SET id = 5 WHERE s = 3",
        "UPDATE t SET e = NULL WHERE s = 3",
        "UPDATE t SET p = 1000 WHERE s = 3",
        "DELETE FROM t WHERE s = 3 AND rowid < 100",
    ],
)
def test_what_a_change_may_break_decides_what_it_reads(twin: Twin, sql: str) -> None:
    twin.either(sql)
    twin.run("SELECT * FROM t")


def test_a_delete_opens_what_its_text_names(twin: Twin) -> None:
    twin.either("DELETE FROM t WHERE s = 3")
    table = twin.session.context.catalog.tables["main", "t"]
    stored = {column.name: set(column.stored.values()) for column in table.columns}
    texts = [getattr(message, "sql", "") for message in twin.tap.sent()]
    last = [text for text in texts if text.startswith("SELECT t0") and "WHERE" in text][-1]
    assert any(name in last for name in stored["s"]), last
    assert not any(name in last for name in stored["e"] | stored["a"])


def test_a_ceiling_below_access_reads_all(key_file: Path) -> None:
    twin = Twin(":memory:", key_file, "cryptdb")
    twin.fill(
        "CREATE TABLE t (s BIGINT ENC, h BIGINT ENC MAY REVEAL size)",
        "INSERT INTO t SELECT i, i FROM range(50) r(i)",
    )
    assert rows_read(twin, "DELETE FROM t WHERE s = 3") >= 50
    assert twin.session.context.ledger.level("t", "h") == "size"
    twin.run("SELECT * FROM t")
    twin.close()


def test_types_of_the_user_are_not_sent(key_file: Path) -> None:
    """The server has no type of the user's: a condition that names one is decided locally."""
    twin = Twin(":memory:", key_file, "cryptdb")
    twin.fill(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TABLE t (k mood PRIMARY KEY, s BIGINT ENC)",
        "INSERT INTO t VALUES ('sad', 1), ('ok', 2)",
    )
    twin.run("SELECT * FROM t WHERE k < 'ok'::mood OR k IN (CAST('ok' AS mood))")
    twin.run("UPDATE t SET s = s + 1 WHERE k = 'sad'::mood RETURNING s")
    twin.run("DELETE FROM t WHERE k = 'ok'::mood RETURNING s")
    twin.run("SELECT * FROM t")
    assert "mood" not in " ".join(getattr(message, "sql", "") for message in twin.tap.sent())
    twin.close()


def test_references_hold(key_file: Path) -> None:
    twin = Twin(":memory:", key_file, "cryptdb")
    twin.either("CREATE TABLE p (k BIGINT PRIMARY KEY, v BIGINT ENC)")
    twin.either("CREATE TABLE c (k BIGINT REFERENCES p (k), s BIGINT ENC, n VARCHAR NOT NULL)")
    twin.either("INSERT INTO p SELECT i, i FROM range(200) r(i)")
    twin.either("INSERT INTO c SELECT i, i, 'n' FROM range(1, 200) r(i)")
    assert rows_read(twin, "UPDATE p SET v = 9 WHERE v = 3") < 40
    assert rows_read(twin, "UPDATE c SET s = 900 WHERE s = 4") < 40
    assert rows_read(twin, "DELETE FROM c WHERE s = 5") < 40
    twin.either("UPDATE c SET k = 999 WHERE s = 6")
    twin.either("UPDATE c SET k = 5 WHERE s = 6")
    twin.either("DELETE FROM p WHERE v = 7")
    twin.either("DELETE FROM p WHERE v = 0")
    twin.either("UPDATE p SET k = 777 WHERE v = 8")
    twin.run("SELECT * FROM p")
    twin.run("SELECT * FROM c")
    twin.close()


def test_rows_of_the_own_transaction(twin: Twin) -> None:
    twin.either("BEGIN")
    twin.either("INSERT INTO t VALUES (900, 7000, 'x', 1, 1, 1)")
    twin.either("UPDATE t SET s = 8000 WHERE s = 7000")
    twin.either("DELETE FROM t WHERE s = 8000 RETURNING id")
    twin.either("UPDATE t SET e = 'y' WHERE s = 11")
    twin.either("ROLLBACK")
    twin.either("DELETE FROM t WHERE s = 11")
    twin.run("SELECT * FROM t")


PARTS = st.sampled_from(
    ["s = {}", "s > {}", "e = 'v{}'", "q = {}", "q IN ({}, 3)", "a = {}", "p = {}", "s IS NULL",
     "s BETWEEN {} AND 50", "e LIKE 'v{}%'", "(s = {} OR q = 7)", "(q = {} OR a = 4)", "id < {}",
     "s + 1 > {}", "NOT q = {}"]
)  # fmt: skip
CONDITIONS = st.builds(
    lambda parts, word, number: f" {word} ".join(parts).replace("{}", str(number)),
    st.lists(PARTS, min_size=1, max_size=3), st.sampled_from(["AND", "OR", "AND"]),
    st.integers(0, 60),
)  # fmt: skip
CHANGES = ("DELETE FROM t WHERE ", "UPDATE t SET s = s + p, e = 'w' WHERE ",
           "UPDATE t SET p = p + 1 WHERE ", "UPDATE t SET id = id + 1000 WHERE ")  # fmt: skip


def revealed(twin: Twin, sql: str) -> tuple[set[tuple[str, ...]], list[Any]]:
    """What EXPLAIN (LEAKAGE) says of a statement: its facts, and the layers that it opens."""
    ((_, text),) = twin.rows(f"EXPLAIN (LEAKAGE, FORMAT json) {sql}")
    body = json.loads(text)
    listed = body["reveals"]["new"] + body["reveals"]["known"]
    return {(fact["kind"], fact["reveals"]) for fact in listed}, body["layers"]


@settings(
    max_examples=cases(15),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(condition=CONDITIONS)
def test_a_change_shows_what_the_select_of_its_rows_shows(key_file: Path, condition: str) -> None:
    twin = filled(key_file)
    try:
        read, layers = revealed(twin, f"SELECT * FROM t WHERE {condition}")
        for change in CHANGES[:3]:
            shown, opened = revealed(twin, f"{change}{condition} RETURNING *")
            assert read <= shown, change
            assert opened == layers, change
    finally:
        twin.close()


@settings(
    max_examples=cases(10),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    changes=st.lists(st.tuples(st.sampled_from(CHANGES), CONDITIONS), min_size=2, max_size=5),
    profile=st.sampled_from(["sealed", "cryptdb", "sdb"]),
)
def test_any_change(key_file: Path, changes: list[tuple[str, str]], profile: str) -> None:
    twin = filled(key_file, profile)
    try:
        for change, condition in changes:
            twin.either(change + condition)
            twin.run("SELECT * FROM t")
    finally:
        twin.close()


def test_wrong_rows_are_decided_again_and_repeated_ones_refused(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin.either("DELETE FROM t WHERE s = 2")
    real, changed = twin.tap.query, list[bool]()

    def too_many(statement: Statement) -> pa.Table:
        changed.append("AS r0" in statement.sql and "\nWHERE " in statement.sql)
        return real(replace(statement, sql=statement.sql + " OR true" * changed[-1]))

    def repeated(statement: Statement) -> pa.Table:
        reply = real(statement)
        return pa.concat_tables([reply, reply]) if "r0" in reply.column_names else reply

    monkeypatch.setattr(twin.tap, "query", too_many)
    twin.either("DELETE FROM t WHERE s = 3")
    twin.either("UPDATE t SET e = 'z' WHERE s = 4")
    assert changed.count(True) == 2
    monkeypatch.setattr(twin.tap, "query", repeated)
    with pytest.raises(errors.VerificationError):
        twin.session.execute("DELETE FROM t WHERE s = 5")
    monkeypatch.setattr(twin.tap, "query", real)
    twin.run("SELECT * FROM t")
