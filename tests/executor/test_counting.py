"""ALTER TABLE … SET COUNTED: from then on the rows of a table are counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import louver
from louver import errors
from louver.wire.messages import Statement
from tests.inside import context_of
from tests.twin import Twin
from tests.vault.test_row_id_ranges import agrees

_ROWS = "SELECT i, 'x' || i, i FROM range({}) r(i)"


@pytest.fixture
def counting(twin: Twin) -> Twin:
    twin.fill("CREATE TABLE t (k INT ENC PRIMARY KEY, s TEXT ENC, p INT)")
    twin.fill("INSERT INTO t " + _ROWS.format(50), "DELETE FROM t WHERE p % 10 = 3")
    return twin


def drop_a_row(twin: Twin) -> None:
    twin.session.context.engine.run(
        Statement("DELETE FROM t WHERE row_id = (SELECT max(row_id) FROM t)", kind="write")
    )


def test_a_row_that_the_server_leaves_out_is_found_out_from_then_on(counting: Twin) -> None:
    counting.louver.execute("ALTER TABLE t SET COUNTED")
    assert counting.table("t").counted
    assert counting.table("t").row_count == 45
    counting.run("FROM t")
    drop_a_row(counting)
    with pytest.raises(errors.VerificationError) as caught:
        counting.rows("FROM t")
    assert caught.value.code == "row.missing"
    counting.louver.execute("ALTER TABLE t SET NOT COUNTED")
    assert len(counting.rows("FROM t")) == 44


def test_the_count_follows_the_table_and_ends(counting: Twin) -> None:
    run = counting.louver.execute
    run("alter table if exists main.t set counted")
    agrees(counting)
    counting.fill("UPDATE t SET s = 'y' WHERE k < 9", "INSERT INTO t VALUES (100, 'z', 1)")
    agrees(counting)
    counting.reopen()
    assert counting.table("t").counted
    agrees(counting)
    version = counting.session.context.catalog.version
    run = counting.louver.execute
    run("ALTER TABLE t SET COUNTED")
    assert counting.session.context.catalog.version == version
    run("ALTER TABLE t SET NOT COUNTED")
    version = counting.session.context.catalog.version
    counting.fill("INSERT INTO t VALUES (101, 'z', 1)", "DELETE FROM t WHERE k = 101")
    assert counting.session.context.catalog.version == version
    assert not counting.table("t").runs_known
    counting.run("SELECT count(*), sum(k) FROM t")


def test_within_a_transaction_the_own_rows_are_counted(counting: Twin) -> None:
    for end in ("ROLLBACK", "COMMIT"):
        counting.fill("BEGIN", "INSERT INTO t VALUES (200, 'z', 1), (201, 'z', 1)")
        counting.louver.execute("ALTER TABLE t SET COUNTED")
        counting.fill("DELETE FROM t WHERE k = 1", end)
        assert counting.table("t").counted == (end == "COMMIT")
        counting.run("FROM t")
    agrees(counting)
    counting.fill("BEGIN", "DELETE FROM t WHERE k = 2")
    counting.louver.execute("ALTER TABLE t SET NOT COUNTED")
    counting.fill("INSERT INTO t VALUES (2, 'z', 1)", "ROLLBACK", "INSERT INTO t VALUES (3, '', 1)")
    agrees(counting)


def test_other_clients_count_too(tmp_path: Path, key_file: Path) -> None:
    url = f"duckdb:///{tmp_path}/x.duckdb"
    first, other = (louver.connect(url, keys=key_file) for _ in range(2))
    first.execute("CREATE TABLE t (a INT ENC)")
    other.execute("BEGIN")
    other.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(errors.OperationalError) as caught:
        first.execute("BEGIN; ALTER TABLE t SET COUNTED")
    assert caught.value.code == "catalog.conflict"
    first.execute("ROLLBACK")
    other.execute("COMMIT")
    first.execute("ALTER TABLE t SET COUNTED")
    other.execute("INSERT INTO t VALUES (2)")
    assert first.execute("SELECT sum(a) FROM t").fetchall() == [(3,)]
    for client in (first, other):
        table = context_of(client).catalog.table("main", "t")
        assert table is not None
        assert table.counted
        assert table.row_count == 2
        client.close()


@pytest.mark.parametrize("sql", ["ALTER TABLE none SET COUNTED", "ALTER TABLE v SET COUNTED",
                                 "ALTER VIEW v SET COUNTED", "ALTER TABLE t SET COUNTED NOT",
                                 "ALTER TABLE t DROP COUNTED"])  # fmt: skip
def test_other_words_are_errors(counting: Twin, sql: str) -> None:
    counting.fill("CREATE VIEW v AS FROM t")
    with pytest.raises(louver.Error):
        counting.louver.execute(sql)
    assert not counting.table("t").counted


def test_a_column_of_that_name_is_one(open_twin: Callable[..., Any]) -> None:
    twin = open_twin()
    twin.fill("CREATE TABLE t (a INT ENC, counted INT ENC)", "ALTER TABLE t DROP counted")
    twin.same_schema()
