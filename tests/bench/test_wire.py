"""The section `wire` in its smallest size; its transactions leave every condition of TPC-C, each of
which can fail.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from bench import report
from bench.wire import section, sides, statements, together, tpcc, tpcc_tables

SMALLEST = section.Extent(
    (40,), (1, 2), 1, 2, 0.0, (2,), 0.0, 100, tpcc_tables.Scale(1, 2, 10, 20), 1, 0.0, 20, 3
)


def test_the_section_runs() -> None:
    measured = section.measured(SMALLEST)
    alone, more, crowd, mix, used = measured.grids
    for grid in (alone, more):
        assert [row[0] for row in grid.rows] == list(statements.FORMS)
    assert [row[1] for row in crowd.rows] == list(together.FORMS)
    assert [row[0] for row in mix.rows][:-1] == list(tpcc.DECK)
    assert all(int(row[1]) and int(row[3]) for row in mix.rows[:-1])
    for grid in measured.grids:
        assert all(len(row) == len(grid.header) for row in grid.rows)
    names = [f"COPY in, text, {SMALLEST.copied} rows", "TPC-C, all columns of customer ENC"]
    assert set(names) < {line.what for line in measured.lines}
    assert used.rows[-1][1] in ("2", "3")
    assert report.piped(mix.header, mix.rows) in measured.markdown()


@pytest.fixture(scope="module")
def pair() -> Iterator[sides.Sides]:
    with sides.opened() as opened:
        tpcc_tables.fill(opened.direct, tpcc_tables.Scale(2, 2, 12, 20))
        yield opened


@pytest.mark.parametrize(
    ("clause", "change"),
    [
        ("3.3.2.1", "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1"),
        ("3.3.2.2", "UPDATE district SET d_next_o_id = 99 WHERE d_id = 1"),
        ("3.3.2.3", "DELETE FROM new_order WHERE no_o_id = 11"),
        ("3.3.2.4", "DELETE FROM order_line WHERE ol_number = 1"),
        ("3.3.2.5", "UPDATE orders SET o_carrier_id = 1 WHERE o_id = 12"),
        ("3.3.2.6", "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 1 THEN 1 ELSE -1 END"
                    " WHERE o_id IN (1, 2)"),
        ("3.3.2.7", "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_o_id = 1"),
        ("3.3.2.8", "UPDATE history SET h_w_id = 3 - h_w_id WHERE h_c_id = 1 AND h_w_id = 1"),
        ("3.3.2.9", "UPDATE history SET h_d_id = 3 - h_d_id WHERE h_c_id = 1 AND h_d_id = 1"),
        ("3.3.2.10", "UPDATE customer SET c_balance = 7 WHERE c_id = 3"),
        ("3.3.2.11", "INSERT INTO new_order SELECT o_id, o_d_id, o_w_id FROM orders LIMIT 0"),
        ("3.3.2.12", "UPDATE customer SET c_ytd_payment = 7 WHERE c_id = 3"),
    ],
)  # fmt: skip
def test_a_contradiction_is_noticed(clause: str, change: str, pair: sides.Sides) -> None:
    with pair.direct.connect() as con:
        tpcc_tables.check(con)
        if clause == "3.3.2.11":
            # What breaks it breaks another one before.
            assert con.execute(tpcc_tables.CONDITIONS[clause]).fetchall() == [(0,)]
            return
        con.execute("BEGIN")
        con.execute(change)
        with pytest.raises(tpcc_tables.Inconsistent, match=rf"{clause} "):
            tpcc_tables.check(con)
        con.execute("ROLLBACK")


def test_sides_that_differ_are_no_measurement(pair: sides.Sides) -> None:
    statements.table(pair, "t0", 3, enc=True)
    statements.equal(pair.both(), "SELECT count(*), sum(v), min(s) FROM t0")
    with pair.server.connect() as con, pytest.raises(psycopg.errors.UndefinedColumn):
        con.execute("SELECT v FROM t0")
    with pair.direct.connect() as con:
        con.execute("UPDATE t0 SET v = 7 WHERE id = 1")
    with pytest.raises(RuntimeError, match="another answer"):
        statements.equal(pair.both(), "SELECT sum(v) FROM t0")
