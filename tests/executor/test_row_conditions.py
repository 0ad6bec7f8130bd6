"""Conditions over opened rows: decided once for all rows that have the same values, where these
have to be sent to the engine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.executor import row_conditions
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine

TYPES = {"i": "BIGINT", "n": "NUMERIC(9, 2)", "s": "VARCHAR", "d": "DATE", "f": "DOUBLE PRECISION"}
CONDITIONS = (
    "t.i < 3", "t.i IS NULL OR t.s LIKE '%a%'", "t.n * 2 > t.i", "t.s IN ('a', 'b ')",
    "NOT (t.d BETWEEN DATE '2020-01-02' AND DATE '2020-01-05')", "t.i + 1 = 4 AND t.n <> 1.50",
    "coalesce(t.s, 'a') = 'a' OR t.f < 0", "t.s = t.s", "t.i > 100",
)  # fmt: skip
FAILING = "10 / t.i > 1 AND CAST(t.s AS BIGINT) = 1"


@pytest.fixture(scope="module", params=[DuckDBLocalEngine, PostgresLocalEngine])
def local(request: pytest.FixtureRequest) -> Iterator[LocalEngine]:
    engine = request.param()
    yield engine
    engine.close()


def drawn(dice: random.Random, count: int, values: int) -> pa.Table:
    """Rows of so many values a column, NULL and texts that differ in blanks or case among them."""
    start = date(2020, 1, 1)
    pools: dict[str, list[Any]] = {
        "i": list(range(values)), "n": [Decimal(k * 75) / 100 for k in range(values)],
        "s": ["a", "A", "a ", "b", "", *(f"ba{k}" for k in range(values))],
        "d": [start + timedelta(days=k) for k in range(values)],
        "f": [0.0, -0.0, float("nan"), -1.5, *map(float, range(values))],
    }  # fmt: skip
    types = [pa.int64(), pa.decimal128(9, 2), pa.string(), pa.date32(), pa.float64()]
    columns = [
        pa.array([dice.choice([None, *pools[name]]) for _ in range(count)], type_)
        for name, type_ in zip(TYPES, types, strict=True)
    ]
    # What is not looked at comes along, and tells rows of the same values apart.
    return pa.table([*columns, pa.array(range(count))], names=[*TYPES, "number"])


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("values", [1, 6, 2_000])
def test_rows_pass_as_if_each_was_decided_by_itself(
    local: LocalEngine, monkeypatch: pytest.MonkeyPatch, condition: str, values: int
) -> None:
    dice = random.Random(f"{condition} {values}")
    rows = drawn(dice, 2_500, values)
    columns = [(name, TYPES[name]) for name in TYPES if f"t.{name}" in condition]
    passed = row_conditions.passing(local, "t", columns, rows, condition)
    monkeypatch.setattr(row_conditions, "_MANY_ROWS", len(rows) + 1)
    alone = row_conditions.passing(local, "t", columns, rows, condition)
    assert passed.column("number").to_pylist() == alone.column("number").to_pylist()
    assert passed.schema == rows.schema


def test_the_engine_is_given_each_combination_once(
    local: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    finish_over = type(local).finish_over

    def counted(self: Any, name: str, columns: Any, rows: pa.Table, *rest: Any) -> pa.Table:
        counts.append(rows.num_rows)
        return finish_over(self, name, columns, rows, *rest)

    monkeypatch.setattr(type(local), "finish_over", counted)
    rows = drawn(random.Random(1), 10_000, 6)
    for names in ("i", "is", "ins", "f", "if"):
        columns = [(name, TYPES[name]) for name in names]
        row_conditions.passing(local, "t", columns, rows, "t.i = 2" if "i" in names else "t.f = 0")
    different = [
        len(set(zip(*(rows.column(name).to_pylist() for name in names), strict=True)))
        for names in ("i", "is", "ins")
    ]
    # Floats are not told apart by their values alone. DuckDB, in this process, takes all rows.
    combined = [*different, len(rows), len(rows)]
    assert counts == (combined if local.dialect.reads_off else [len(rows)] * 5)


def test_all_rows_pass_where_the_condition_fails(local: LocalEngine) -> None:
    rows = drawn(random.Random(2), 5_000, 6)
    columns = [("i", TYPES["i"]), ("s", TYPES["s"])]
    with pytest.raises(errors.Error):
        local.finish_over("t", columns, rows.select(["i", "s"]), f"SELECT 1 FROM t WHERE {FAILING}")
    assert row_conditions.passing(local, "t", columns, rows, FAILING) is rows
    empty = rows.slice(0, 0)
    assert row_conditions.passing(local, "t", columns, empty, FAILING) is empty
