"""The section `oltp` in its smallest size, and the conditions that its mix ends with."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from bench import report
from bench.oltp import earlier, growth, section, sides, statements, tpcc, tpcc_tables
from bench.oltp import together as crowd

SMALLEST = section.Extent(
    (50,), 1, 0.0, 6, 2, 0.1, tpcc_tables.Scale(2, 2, 9, 30, 2), 0.0, ("cryptdb",)
)


def test_the_section_runs() -> None:
    measured = section.measured(SMALLEST)
    keyed, keyless, grown, together, mix = measured.grids
    assert [row[0] for row in keyed.rows] == list(statements.STATEMENTS)
    assert [row[0] for row in keyless.rows] == list(statements.STATEMENTS)[:-1]
    for grid in measured.grids:
        assert grid.rows
        assert all(len(row) == len(grid.header) for row in grid.rows)
    assert [len(grid.rows) for grid in (together, mix)] == [len(crowd.FORMS), 1]
    ways = [(name, way) for name in growth.FORMS for way in growth.ways(name)]
    assert [tuple(row[:2]) for row in grown.rows] == ways
    assert mix.rows[0][1] == str(sum(tpcc.DECK.values()))
    assert "These tables cover 50 rows" in measured.notes[0]
    assert report.piped(mix.header, mix.rows) in measured.markdown()


def test_earlier_figures_stand_beside_those_of_the_run() -> None:
    now = {name: {"ours": [3.0, 1.0, 2.0], "plain": [0.5]} for name in earlier.NAMES}
    grid = earlier.grid({("cryptdb", 2_000, False): now, ("cryptdb", 200_000, True): now})
    assert [row[0] for row in grid.rows] == ["`cryptdb`, 2,000", "`cryptdb`, 50,000, PRIMARY KEY"]
    assert grid.rows[0][1:3] == ["4.5 → 2 (0.5)", "7.5 → 2 (0.5)"]
    assert all(len(row) == len(grid.header) for row in grid.rows)


def test_plaintext_has_the_keys_of_louver() -> None:
    with sides.opened("sealed") as pair:
        pair.table("t0", 3, key=True)
        for side in pair.both():
            with pytest.raises(Exception, match=r"(?i)duplicate"):
                side.execute("INSERT INTO t0 VALUES (1, 1, 'v')")


def test_sides_that_differ_are_no_measurement() -> None:
    with sides.opened("sealed") as pair:
        pair.table("t0", 3, key=False)
        pair.plain.execute("UPDATE t0 SET v = 7 WHERE id = 1")
        with pytest.raises(RuntimeError, match="another answer"):
            pair.equal("SELECT sum(v) FROM t0")


@pytest.mark.parametrize(
    ("clause", "change"),
    [
        ("3.3.2.1", "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1"),
        ("3.3.2.2", "UPDATE district SET d_next_o_id = 99 WHERE d_id = 1"),
        ("3.3.2.3", "DELETE FROM new_order WHERE no_o_id = 8"),
        ("3.3.2.4", "DELETE FROM order_line WHERE ol_number = 1"),
    ],
)
def test_a_contradiction_is_noticed(clause: str, change: str, tmp_path: Path) -> None:
    plain = duckdb.connect()
    pair = sides.Sides(tmp_path, "sealed", None, plain)
    for name, columns in tpcc_tables.TABLES.items():
        plain.execute(f"CREATE TABLE {name} ({columns.format(enc=pair.enc(plain))})")
        rows = tpcc_tables.ROWS[name]
        plain.execute(
            f"INSERT INTO {name} "
            + rows.format(warehouses=2, districts=2, customers=9, items=30, lines=3)
        )
    tpcc_tables.check(plain)
    plain.execute(change)
    with pytest.raises(tpcc_tables.Inconsistent, match=clause):
        tpcc_tables.check(plain)
