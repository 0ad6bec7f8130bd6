"""What a change shows beyond its statement: which rows get the values that they have, whether a
value is new to its column, and which rows a rewritten table shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import louver
from louver import errors
from louver.wire.messages import Statement
from tests.inside import context_of


@pytest.fixture
def connection(tmp_path: Path, key_file: Path) -> Any:
    with louver.connect(f"duckdb:///{tmp_path / 'db'}", keys=str(key_file)) as connection:
        yield connection


def stored_rows(connection: Any) -> set[int]:
    """The numbers of the rows that the server has of the only table."""
    context = context_of(connection)
    (table,) = context.catalog.tables.values()
    sql = f"SELECT row_id FROM {context.backend.table(table)}"
    return set(context.engine.query(Statement(sql, kind="query")).column(0).to_pylist())


KEPT = (
    "UPDATE t SET a = greatest(a, p) WHERE g < 3", "UPDATE t SET a = p WHERE g < 3",
    "UPDATE t SET a = CASE WHEN a < p THEN -1 ELSE a END WHERE g < 3",
    "UPDATE t SET a = greatest(t.a, o.p) FROM t o WHERE t.id = o.id AND t.g < 3",
    "INSERT INTO t VALUES (0, 0, 5, 0), (0, 1, 5, 1), (0, 2, 5, 2)"
    " ON CONFLICT (id) DO UPDATE SET a = greatest(t.a, t.p)",
    "INSERT OR REPLACE INTO t SELECT p + 0, g, p, id FROM t WHERE id < 3",
    "MERGE INTO t USING (SELECT * FROM range(3) r(i)) ON t.g = i"
    " WHEN MATCHED THEN UPDATE SET a = greatest(a, p)",
)  # fmt: skip


@pytest.mark.parametrize("sql", KEPT)
def test_rows_that_keep_their_values_go_as_well(connection: Any, sql: str) -> None:
    """Otherwise the rows that stay are those where a plain column is as large as the ENC one."""
    connection.execute("CREATE TABLE t (a BIGINT ENC, g INT, p BIGINT, id INT PRIMARY KEY)")
    connection.execute("INSERT INTO t SELECT i % 2 * 10, i, 5, i FROM range(6) r(i)")
    before = stored_rows(connection)
    connection.execute(sql)
    assert len(before - stored_rows(connection)) in (3, 6)


def test_a_constant_is_compared_as_in_a_condition(connection: Any) -> None:
    connection.execute("CREATE TABLE t (a BIGINT ENC, g INT)")
    connection.execute("INSERT INTO t SELECT i % 2, i FROM range(6) r(i)")
    before = stored_rows(connection)
    connection.execute("UPDATE t SET a = 0")
    assert len(before - stored_rows(connection)) == 3


@pytest.mark.parametrize("type_", ["BIGINT", "VARCHAR", "BOOLEAN"])
@pytest.mark.parametrize("ceiling", ["size", "access"])
def test_a_value_that_is_new_to_its_column_does_not_show(
    connection: Any, type_: str, ceiling: str
) -> None:
    values = ["1", "0", "NULL", "1", "0", "NULL", "0", "NULL", "1"]
    worlds = []
    for table, given in (("t", values), ("u", ["1"] * len(values))):
        connection.execute(f"CREATE TABLE {table} (a {type_} ENC MAY REVEAL {ceiling})")
        # The bounds of a number show, where they double.
        connection.execute(f"INSERT INTO {table} VALUES (0), (1)")
        versions = [context_of(connection).catalog.version]
        for value in given:
            connection.execute(f"INSERT INTO {table} VALUES (CAST({value} AS {type_}))")
            versions.append(context_of(connection).catalog.version)
        worlds.append([after - versions[0] for after in versions])
    assert worlds[0] == worlds[1]


REFUSED = (
    "UPDATE t SET e = NULL WHERE z > 5", "UPDATE t SET e = 3 WHERE z = 7",
    "UPDATE t SET e = 1 FROM (VALUES (7)) v(x) WHERE z = x", "DELETE FROM t WHERE z > 5",
    "MERGE INTO t USING (VALUES (7)) v(x) ON z = x WHEN MATCHED THEN UPDATE SET e = 1",
)  # fmt: skip


@pytest.mark.parametrize("more", ["MAY REVEAL equality", "MAY REVEAL order", "USING sdb"])
@pytest.mark.parametrize("sql", REFUSED)
def test_codes_do_not_show_rows_that_lengths_hide(connection: Any, sql: str, more: str) -> None:
    connection.execute(f"CREATE TABLE t (e BIGINT ENC {more}, z BIGINT ENC MAY REVEAL size)")
    connection.execute("INSERT INTO t SELECT i, i FROM range(9) r(i)")
    with pytest.raises(errors.LeakageRefused):
        connection.execute(sql)


def test_what_no_code_shows_is_allowed(connection: Any) -> None:
    connection.execute("CREATE TABLE t (e BIGINT ENC, z BIGINT ENC MAY REVEAL size)")
    connection.execute("INSERT INTO t SELECT i, i FROM range(9) r(i)")
    connection.execute("UPDATE t SET e = NULL WHERE z > 5")
    connection.execute("DELETE FROM t WHERE z < 2")
    assert connection.execute("SELECT count(*), count(e) FROM t").fetchall() == [(7, 4)]
