"""DESCRIBE and SHOW PROTECTION: what is said of ENC, and DuckDB's own columns unchanged."""

from __future__ import annotations

import pytest

from louver import errors
from tests.twin import Twin, plain_sql

SETUP = """
CREATE TABLE t (id INTEGER, a BIGINT ENC, b VARCHAR ENC USING onion, c DATE ENC MAY REVEAL size);
CREATE TABLE plain (a INTEGER);
INSERT INTO t SELECT i, i, 'b' || i, NULL FROM range(4) r(i);
"""


def test_describe_keeps_the_columns_of_duckdb(twin: Twin) -> None:
    for sql in SETUP.strip().splitlines():
        twin.run(sql)
    for statement in ("DESCRIBE t", "DESC t", "DESCRIBE TABLE t", "DESCRIBE main.t"):
        cursor = twin.louver.execute(statement)
        own = twin.plain.execute(statement)
        assert [(d[0], str(d[1])) for d in cursor.description] == [
            (d[0], str(d[1])) for d in own.description
        ]
        rows, expected = cursor.fetchall(), own.fetchall()
        assert [row[:5] for row in rows] == [row[:5] for row in expected]
        assert [row[5] for row in rows] == [
            None,
            "ENC USING sealed MAY REVEAL access",
            "ENC USING onion MAY REVEAL order",
            "ENC USING sealed MAY REVEAL size",
        ]
    for statement in ("DESCRIBE plain", "DESCRIBE SELECT a FROM t", "SELECT * FROM (DESCRIBE t)"):
        twin.run(statement)
    twin.run("SELECT count(*) FROM t WHERE b = 'b1'")
    extra = [row[5] for row in twin.rows("DESCRIBE t")]
    assert extra[2] == "ENC USING onion MAY REVEAL order; open: equality"


def test_all_tables_with_their_columns(twin: Twin) -> None:
    """DuckDB's columns, and behind a type what is said of ENC."""
    twin.louver.execute(SETUP)
    twin.plain.execute(plain_sql(SETUP))
    twin.run("SELECT count(*) FROM t WHERE b = 'b1'")
    own, cursor = twin.plain.execute("SHOW ALL TABLES"), twin.louver.execute("SHOW ALL TABLES")
    assert [d[0] for d in cursor.description] == [d[0] for d in own.description]
    rows, expected = cursor.fetchall(), own.fetchall()
    assert [row[2:4] for row in rows] == [row[2:4] for row in expected]
    by_name = {row[2]: dict(zip(row[3], row[4], strict=True)) for row in rows}
    assert by_name["t"]["b"] == "VARCHAR ENC USING onion MAY REVEAL order; open: equality"
    assert by_name["t"]["c"].endswith(" ENC USING sealed MAY REVEAL size")
    assert by_name["t"]["id"] == expected[[row[2] for row in expected].index("t")][4][0]
    assert [row[4] for row in rows if row[2] == "plain"] == [
        row[4] for row in expected if row[2] == "plain"
    ]


def test_show_protection(twin: Twin) -> None:
    twin.louver.execute(SETUP)
    assert twin.rows("SELECT count(*) FROM t WHERE b > 'b1'") == [(2,)]
    cursor = twin.louver.execute("SHOW PROTECTION FOR t")
    assert [d[0] for d in cursor.description] == [
        "table_name", "column_name", "column_type", "scheme", "may_reveal", "open", "revealed",
        "clause",
    ]  # fmt: skip
    rows = {row[1]: row for row in cursor.fetchall()}
    assert rows["id"][3:7] == (None, "plaintext", None, "plaintext")
    assert rows["b"][3:7] == ("onion", "order", "order", "order")
    assert rows["c"][3:6] == ("sealed", "size", None)
    assert rows["c"][7] == "ENC USING sealed MAY REVEAL size"
    every = twin.rows("SHOW PROTECTION")
    assert {row[0] for row in every} == {"t", "plain"}
    with pytest.raises(errors.ProgrammingError):
        twin.rows("SHOW PROTECTION FOR nope")
