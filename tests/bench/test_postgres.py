"""The section `postgres` in its smallest size, and what stands for plaintext in it."""

from __future__ import annotations

import pytest

from bench import report
from bench.postgres import clients, section, sides, statements

SMALLEST = section.Extent(((40, 2), (60, 3)), 1, 1, 0.0, (2,), 0.05)


def test_the_section_runs() -> None:
    measured = section.measured(SMALLEST)
    grown, together = measured.grids
    assert [line.what.partition(",")[0] for line in measured.lines] == list(section.AIMED)
    assert [row[0] for row in grown.rows] == list(statements.FORMS)
    assert [row[1] for row in together.rows] == list(clients.FORMS)
    for grid in measured.grids:
        assert all(len(row) == len(grid.header) for row in grid.rows)
    assert report.piped(together.header, together.rows) in measured.markdown()


def test_sides_that_differ_are_no_measurement() -> None:
    with sides.opened("cryptdb") as pair:
        pair.table("t0", 3, key=True)
        pair.equal("SELECT count(*), sum(v), min(s) FROM t0")
        with pytest.raises(Exception, match=r"(?i)duplicate"):
            pair.plain.execute("INSERT INTO t0 VALUES (?, ?, ?)", [1, 1, "v"])
        pair.plain.execute("UPDATE t0 SET v = 7 WHERE id = 1")
        with pytest.raises(RuntimeError, match="another answer"):
            pair.equal("SELECT sum(v) FROM t0")
