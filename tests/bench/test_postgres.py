"""The section `postgres` in its smallest size, and what stands for plaintext in it."""

from __future__ import annotations

import pytest

from bench import report
from bench.oltp.together import MIX
from bench.postgres import bulk, clients, section, sides, statements

SMALLEST = section.Extent((40,), (1, 2), 1, 1, 0.0, (2,), 0.05, 40, 60)


def test_the_section_runs() -> None:
    measured = section.measured(SMALLEST)
    alone, together, queue = measured.grids
    names = [line.what.partition(", 40 rows")[0] for line in measured.lines]
    loads = [f"{name}, 60 rows" for name in bulk.LOADS]
    assert names == [*section.AIMED * 2, f"2 clients: {MIX}", *loads]
    assert [row[0] for row in alone.rows] == list(statements.FORMS)
    assert [row[1] for row in together.rows] == list(clients.FORMS)
    assert [row[0] for row in queue.rows] == list(bulk.TAKES)
    for grid in measured.grids:
        assert all(len(row) == len(grid.header) for row in grid.rows)
    assert report.piped(together.header, together.rows) in measured.markdown()


def test_its_databases_have_the_language_of_postgresql() -> None:
    with sides.opened("cryptdb") as pair:
        assert pair.ours.execute("SELECT pg_typeof(1)::text").fetchall() == [("integer",)]


def test_sides_that_differ_are_no_measurement() -> None:
    with sides.opened("cryptdb") as pair:
        pair.table("t0", 3)
        pair.equal("SELECT count(*), sum(v), min(s) FROM t0")
        with pytest.raises(Exception, match=r"(?i)duplicate"):
            pair.plain.execute("INSERT INTO t0 VALUES (?, ?, ?)", [1, 1, "v"])
        pair.plain.execute("UPDATE t0 SET v = 7 WHERE id = 1")
        with pytest.raises(RuntimeError, match="another answer"):
            pair.equal("SELECT sum(v) FROM t0")
        read = "SELECT v FROM t0 WHERE id = 1"
        with pytest.raises(RuntimeError, match="another answer"):
            statements.timed(pair, lambda side, _: side.execute(read).fetchall(), 0, 1, 0.0)
