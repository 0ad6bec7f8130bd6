"""Runs of row numbers: exact or unknown, never wrong."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from louver.trusted.vault import row_id_ranges
from louver.trusted.vault.catalog import Table
from louver.wire.messages import Statement
from tests.twin import Twin


def covered(table: Table) -> set[int]:
    return {first + offset for first, count in table.runs for offset in range(count)}


def test_runs_are_what_a_set_would_be() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        table, there = Table("main", "t", 1, runs_known=True), set[int]()
        following = 0
        for _ in range(30):
            if chance.random() < 0.6 or not there:
                following += chance.choice((0, 0, 3))
                count = chance.randrange(1, 9)
                there |= set(range(following, following + count))
                table.row_count = len(there)
                row_id_ranges.append(table, following, count)
                following += count
            else:
                gone = chance.sample(sorted(there), chance.randrange(1, len(there) + 1))
                there -= set(gone)
                table.row_count = len(there)
                row_id_ranges.remove(table, pa.array(gone, pa.int64()))
            assert table.runs_known
            assert covered(table) == there
            assert sum(count for _, count in table.runs) == len(there)
            assert table.runs == sorted(table.runs)


def test_appends_of_two_sessions_stay_in_order() -> None:
    table = Table("main", "t", 1, runs_known=True)
    for first, count in ((100, 5), (200, 5), (105, 5), (0, 100), (195, 5), (110, 85)):
        row_id_ranges.append(table, first, count)
    assert table.runs == [[0, 205]]


def test_too_many_pieces_are_unknown_until_the_table_is_empty() -> None:
    table = Table("main", "t", 1, row_count=5000, runs_known=True)
    row_id_ranges.append(table, 0, 5000)
    table.row_count -= 2000
    row_id_ranges.remove(table, pa.array(range(1, 4001, 2), pa.int64()))
    assert (table.runs, table.runs_known) == ([], False)
    row_id_ranges.append(table, 9000, 10)
    assert (table.runs, table.runs_known) == ([], False)
    table.row_count = 0
    row_id_ranges.remove(table, pa.array([9000], pa.int64()))
    assert (table.runs, table.runs_known) == ([], True)


@pytest.mark.parametrize("gone", [[7], [3, 3], [-1], [10**15]])
def test_a_row_that_was_not_there_leaves_nothing_known(gone: list[int]) -> None:
    table = Table("main", "t", 1, row_count=3, runs_known=True)
    row_id_ranges.append(table, 2, 4)
    row_id_ranges.remove(table, pa.array(gone, pa.int64()))
    assert not table.runs_known


def agrees(twin: Twin) -> None:
    """The catalog's runs are the server's rows."""
    table = twin.table("t")
    reply = twin.session.context.engine.query(Statement(f"SELECT row_id FROM {table.local_name}"))
    assert table.runs_known
    assert covered(table) == set(reply.column(0).to_pylist())


def test_runs_follow_the_table(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin()
    run = twin.session.execute
    run("SET default_counted = on; CREATE TABLE t (a INT ENC, b INT)")
    agrees(twin)
    run("INSERT INTO t SELECT i, i FROM range(1000) r(i)")
    run("DELETE FROM t WHERE b % 10 = 3")
    agrees(twin)
    run("UPDATE t SET a = 0 WHERE b < 7")
    agrees(twin)
    run("BEGIN; INSERT INTO t VALUES (1, 1); DELETE FROM t WHERE b > 500; ROLLBACK")
    agrees(twin)
    twin.reopen()
    twin.session.execute("INSERT INTO t VALUES (1, 2), (3, 4)")
    agrees(twin)
    twin.session.execute("ALTER TABLE t ADD COLUMN c INT ENC DEFAULT 5")
    agrees(twin)
    twin.session.execute("ALTER TABLE t ALTER COLUMN a MAY REVEAL size")
    agrees(twin)
    twin.session.execute("TRUNCATE t")
    assert twin.table("t").runs == []
    twin.session.execute("INSERT INTO t VALUES (1, 2, 3)")
    agrees(twin)
