"""`rowid` in UPDATE and DELETE: the numbers that SELECT shows, as in plaintext DuckDB."""

from __future__ import annotations

import random

import pytest

from louver import errors
from tests.twin import Twin

_TABLE = "CREATE TABLE t (i INT ENC, p INT, s STRUCT(rowid INT) ENC, name VARCHAR ENC)"
_CONDITIONS = (
    "rowid = {}", "t.rowid IN ({}, 3)", "main.t.ROWID > {}", 'rowid + p < {} AND "rowid" <> 1',
    "s.rowid = {}", "rowid % 2 = {} AND p IS NOT NULL", "i > 2 AND NOT rowid = {}",
)  # fmt: skip
_CHANGES = (
    "DELETE FROM t WHERE {}",
    "UPDATE t SET p = rowid * 10, i = rowid + p WHERE {}",
    "UPDATE t SET name = name || t.rowid WHERE {}",
    "DELETE FROM t WHERE {} RETURNING i, s.rowid",
)


@pytest.mark.parametrize("keyed", ["", ", UNIQUE (p)"])
def test_conditions(twin: Twin, keyed: str) -> None:
    """Every condition in every change, on rows filled anew, which are numbered from 0 on."""
    drawn = random.Random(7)
    twin.both(_TABLE.removesuffix(")") + keyed + ")")
    rows = ", ".join(f"({n}, {n * 2}, {{rowid: {9 - n}}}, 'x{n}')" for n in range(6))
    for condition in _CONDITIONS:
        twin.both("TRUNCATE t" if twin.rows("FROM t") else "SELECT 1")
        twin.plain.execute("DROP TABLE t")
        twin.plain.execute((_TABLE.removesuffix(")") + keyed + ")").replace(" ENC", ""))
        twin.both(f"INSERT INTO t VALUES {rows}")
        twin.run("SELECT rowid, i FROM t")
        change = drawn.choice(_CHANGES).format(condition.format(drawn.randrange(5)))
        twin.run(change) if "RETURNING" in change else twin.both(change)
        twin.run("SELECT * FROM t")


def test_what_is_no_number_of_a_row(twin: Twin) -> None:
    twin.both(
        "CREATE TABLE u (rowid INT ENC, p INT)", "INSERT INTO u VALUES (5, 1), (6, 2)",
        "DELETE FROM u WHERE rowid = 5", "CREATE TABLE e (i INT ENC)",
        "DELETE FROM e WHERE rowid = 0",
    )  # fmt: skip
    twin.both(
        "DELETE FROM e RETURNING rowid", "UPDATE e SET rowid = 1", "DELETE FROM e WHERE x.rowid = 1"
    )
    twin.run("FROM u")
    with pytest.raises(errors.LeakageRefused):
        twin.session.execute("UPDATE u SET p = rowid")
    twin.both(_TABLE, "INSERT INTO t VALUES (1, 1, {rowid: 1}, 'x')")
    for sql in (
        "DELETE FROM t WHERE i IN (SELECT rowid FROM e)",
        "DELETE FROM t USING e WHERE e.rowid = t.rowid",
        "UPDATE t SET i = (SELECT max(rowid) FROM e)",
    ):
        with pytest.raises(errors.NotSupportedError):
            twin.session.execute(sql)
    with pytest.raises(errors.LeakageRefused):
        twin.session.execute("UPDATE t SET p = 1 WHERE rowid = i")
