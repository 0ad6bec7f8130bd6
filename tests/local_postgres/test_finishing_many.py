"""Queries that are finished over many opened rows, which go into tables by COPY."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from louver.trusted.executor.local.postgres import finishing
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine

ROWS = 5_000
COLUMNS = [("a", "integer"), ("b", "positive"), ("c", "text"), ("d", "positive")]


@pytest.fixture(scope="module")
def local() -> Iterator[PostgresLocalEngine]:
    engine = PostgresLocalEngine()
    for connection in engine.instances:
        connection.execute("CREATE DOMAIN positive AS integer DEFAULT 7 NOT NULL")
    yield engine
    engine.close()


def _rows(**columns: list[int | str | None]) -> pa.Table:
    types = {"a": pa.int32(), "b": pa.int32(), "c": pa.string(), "d": pa.int32()}
    arrays = {
        name: pa.array(columns[name], type_) if name in columns else pa.nulls(ROWS, type_)
        for name, type_ in types.items()
    }
    return pa.table(arrays)


def _finished(local: PostgresLocalEngine, rows: pa.Table, sql: str) -> list[tuple[object, ...]]:
    columns = [(name, type_.replace("positive", "positive_or_not")) for name, type_ in COLUMNS]
    return local.python_rows(local.finish({("public", "t"): (columns, rows)}, sql))


def test_a_null_that_was_read_is_not_the_default_of_its_domain(local: PostgresLocalEngine) -> None:
    for connection in local.instances:
        connection.execute("CREATE DOMAIN positive_or_not AS integer DEFAULT 7")
    nulls: list[int | str | None] = [None] * ROWS
    rows = _rows(a=list(range(ROWS)), b=nulls)
    assert _finished(local, rows, "SELECT count(*), count(b), max(a) FROM t") == [
        (ROWS, 0, ROWS - 1)
    ]
    # Nor is one that was not, where a row is taken as a whole.
    assert _finished(
        local, rows, "SELECT count(*) FROM t WHERE (to_jsonb(t) -> 'd') <> 'null'"
    ) == [(0,)]


def test_what_was_not_read_may_be_null_whatever_its_domain_says(local: PostgresLocalEngine) -> None:
    rows = _rows(a=list(range(ROWS)))
    answered = local.finish({("public", "t"): (COLUMNS, rows)}, "SELECT sum(a) FROM t")
    assert local.python_rows(answered) == [(ROWS * (ROWS - 1) // 2,)]


def test_rows_without_any_column_are_counted(local: PostgresLocalEngine) -> None:
    columns = [("a", "integer"), ("b", "integer"), ("c", "text"), ("d", "integer")]
    answered = local.finish({("public", "t"): (columns, _rows())}, "SELECT count(*) FROM t")
    assert local.python_rows(answered) == [(ROWS,)]


def test_what_is_analyzed_are_the_columns_that_were_read() -> None:
    few = finishing._analysis("t", _rows(a=list(range(ROWS))).slice(0, 300))
    assert few == ['ANALYZE t ("a")']
    alter, analyze = finishing._analysis("t", _rows(a=list(range(ROWS)), c=["x"] * ROWS))
    assert alter.count("SET STATISTICS") == 2
    assert analyze == 'ANALYZE t ("a", "c")'
    assert finishing._analysis("t", _rows()) == ["ANALYZE t"]
