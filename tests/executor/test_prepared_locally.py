"""Queries that are prepared once, over rows that come later."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.executor.local import repeated
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine

COLUMNS = [("a", "INTEGER"), ("b", "VARCHAR")]
Row = tuple[int | None, str | None]
QUERY = "SELECT b AS name, sum(a) AS total FROM found GROUP BY b ORDER BY b"


@pytest.fixture
def home() -> Iterator[DuckDBLocalEngine]:
    engine = DuckDBLocalEngine()
    yield engine
    engine.close()


def _rows(*rows: Row) -> pa.Table:
    kinds = {"a": pa.int32(), "b": pa.string()}
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table(
        [pa.array(c, t) for c, t in zip(columns, kinds.values(), strict=True)], names=list(kinds)
    )


def _prepared(home: DuckDBLocalEngine) -> int:
    return len(home._repeated._statements)


def test_each_time_the_rows_are_those_of_that_time(home: DuckDBLocalEngine) -> None:
    """Also none, and many in several chunks: one statement for all of these, and one for each small
    number of rows, which go as values.
    """
    many: list[Row] = [(n, f"n{n % 3}") for n in range(9000)]
    batches: list[list[Row]] = [[(1, "x"), (2, "x")], [], [(None, None)], many, [(7, "y")]]
    for rows in batches:
        answer = home.finish_over("found", COLUMNS, _rows(*rows), QUERY)
        values = ", ".join(f"({'NULL' if a is None else a}, "
                           f"{'NULL' if b is None else repr(b)})" for a, b in rows)  # fmt: skip
        given = f"(VALUES {values}) t(a, b)" if rows else "(SELECT 1 AS a, 'x' AS b LIMIT 0)"
        with duckdb.connect() as plain:
            wanted = plain.execute(QUERY.replace("found", given)).fetchall()
        assert home.python_rows(answer) == wanted
    chunks = pa.concat_tables([_rows(batch) for batch in many])
    assert home.python_rows(home.finish_over("found", COLUMNS, chunks, QUERY))[0][0] == "n0"
    assert _prepared(home) == 3


def test_rows_are_not_kept(home: DuckDBLocalEngine) -> None:
    """What was read is let go of."""
    home.finish_over("found", COLUMNS, _rows(*[(n, "x") for n in range(100)]), QUERY)
    (incoming,) = home._repeated._incoming.values()
    assert incoming.rows.num_rows == 0


def test_rows_of_other_types_are_read_as_such(home: DuckDBLocalEngine) -> None:
    """The same columns from another schema: cast, not misread."""
    assert home.finish_over("found", COLUMNS, _rows((1, "x")), QUERY).num_rows == 1
    wide = pa.table({"a": pa.array([1 << 20], pa.int64()), "b": pa.array(["x"])})
    answer = home.finish_over("found", COLUMNS, wide, QUERY)
    assert home.python_rows(answer) == [("x", 1 << 20)]
    assert _prepared(home) == 1


def test_a_setting_holds_from_when_it_is_changed(home: DuckDBLocalEngine) -> None:
    """Also for a query that was prepared before."""
    sql = "SELECT a / 2 AS half FROM found"
    assert home.finish_over("found", COLUMNS, _rows((7, "x")), sql).to_pydict() == {"half": [3.5]}
    home.change_setting("integer_division", "SET integer_division = true")
    assert home.finish_over("found", COLUMNS, _rows((7, "x")), sql).to_pydict() == {"half": [3]}


def test_a_failure_leaves_the_query_as_it_was(home: DuckDBLocalEngine) -> None:
    """One of a row, and one of the query itself."""
    sql = "SELECT a::TINYINT AS small FROM found"
    for _ in range(2):
        with pytest.raises(errors.Error) as caught:
            home.finish_over("found", COLUMNS, _rows((300, "x")), sql)
        assert caught.value.code == "duckdb.conversion"
        answer = home.finish_over("found", COLUMNS, _rows((3, "x")), sql)
        assert answer.to_pydict() == {"small": [3]}
    with pytest.raises(errors.Error):
        home.finish_over("found", COLUMNS, _rows((3, "x")), "SELECT nothing FROM found")
    assert _prepared(home) == 1


def test_so_many_are_kept(home: DuckDBLocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is prepared again when it comes back."""
    monkeypatch.setattr(repeated, "MOST", 3)
    for n in (*range(5), 0):
        answer = home.finish_over(
            "found", COLUMNS, _rows((1, "x")), f"SELECT a + {n} AS n FROM found"
        )
        assert answer.to_pydict() == {"n": [1 + n]}
        assert _prepared(home) <= 3
