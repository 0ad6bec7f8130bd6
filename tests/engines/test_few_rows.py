"""Few rows go to a DuckDB server as values, many as Arrow: what is stored is the same."""

from __future__ import annotations

import math
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from louver.untrusted.engines import prepared
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement

_COLUMNS = {
    "n": ("BIGINT", pa.array([1, None, -(1 << 63), (1 << 63) - 1], pa.int64())),
    "u": ("UBIGINT", pa.array([0, (1 << 64) - 1, None, 7], pa.uint64())),
    "s": ("TINYINT", pa.array([-128, 127, None, 0], pa.int8())),
    "f": ("DOUBLE", pa.array([math.nan, -0.0, math.inf, None], pa.float64())),
    "b": ("BLOB", pa.array([b"", b"\x00\xff'", None, b"x" * 300], pa.binary())),
    "t": ("BOOLEAN", pa.array([True, False, None, True], pa.bool_())),
    "c": ("VARCHAR", pa.array(["", None, "it's \0é", "NULL"], pa.string())),
    "d": (
        "DECIMAL(10,2)",
        pa.array([Decimal("1.5"), Decimal("-99999999.99"), None, Decimal(0)], pa.decimal128(10, 2)),
    ),
    "e": ("DECIMAL(38,30)", pa.array([Decimal("-1e-30"), None] * 2, pa.decimal128(38, 30))),
    "y": ("DATE", pa.array([-719162, 0, None, 2932896], pa.date32())),
    "i": (
        "UUID",
        pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([bytes(16), b"\xff" * 16, None, uuid.uuid4().bytes], pa.binary(16))
        ),
    ),
}


def _stored(engine: DuckDBEngine, rows: pa.Table, *, as_arrow: bool) -> pa.Table:
    types = ", ".join(f"{name} {_COLUMNS[name][0]}" for name in rows.column_names)
    engine.run(Statement(f"CREATE OR REPLACE TABLE t ({types})", kind="ddl"))
    if as_arrow:
        engine.append("t", pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()))
    else:
        engine.append("t", rows)
    items = ", ".join(f"{name}::VARCHAR" for name in rows.column_names)
    return engine.query(Statement(f"SELECT {items} FROM t"))


def test_values_are_stored_as_arrow_is() -> None:
    """Limits, NULL, NaN, -0.0, the empty and the odd bytes."""
    rows = pa.table({name: values for name, (_, values) in _COLUMNS.items()})
    engine = DuckDBEngine()
    assert prepared.values_of("t", rows) is not None
    assert _stored(engine, rows, as_arrow=False) == _stored(engine, rows, as_arrow=True)
    engine.close()


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"n": pa.array([], pa.int64())}),
        pa.table({"n": pa.array(range(prepared.MOST_VALUES + 1), pa.int64())}),
        pa.table({"d": pa.array([1, 1 << 30], pa.date32())}),
        pa.table({"m": pa.array([1], pa.timestamp("us"))}),
        pa.table({"l": pa.array([[1]], pa.list_(pa.int64()))}),
        pa.table({"x": pa.array([1.5], pa.float32())}),
    ],
)
def test_others_go_as_arrow(rows: pa.Table) -> None:
    """None, many, and types of which a Python value may be another one."""
    assert prepared.values_of("t", rows) is None


def test_a_statement_is_parsed_once_and_forgotten_in_time() -> None:
    """However many texts there are, the memory of them has an end."""
    engine = DuckDBEngine()
    for number in range(600):
        sql = f"SELECT $1::BIGINT + {number} AS n"
        assert engine.query(Statement(sql, (1,))).to_pylist() == [{"n": number + 1}]
    assert len(engine._prepared._known) <= 256
    engine.close()


def test_a_statement_that_comes_again_with_the_same_numbers() -> None:
    """It counts the rows that it touches, under other numbers and another table too."""
    engine = DuckDBEngine()
    engine.run(Statement("CREATE TABLE t AS SELECT range AS i, 0 AS n FROM range(4)", kind="ddl"))
    sql = "UPDATE t SET n = n + $2 WHERE i < $1"
    for low in (2, 2, 2, 3, 2, 0, 0, 0):
        assert engine.run(Statement(sql, (low, 1), kind="write")) == low
    assert engine.query(Statement("SELECT n FROM t ORDER BY i")).column(0).to_pylist() == [
        5,
        5,
        1,
        0,
    ]
    engine.run(Statement("DROP TABLE t", kind="ddl"))
    engine.run(Statement("CREATE TABLE t AS SELECT 'x' AS a, 1 AS i, 5 AS n", kind="ddl"))
    engine.begin()
    assert [engine.run(Statement(sql, (2, 1), kind="write")) for _ in range(3)] == [1, 1, 1]
    engine.rollback()
    assert engine.value(Statement("SELECT n FROM t")) == 5
    engine.close()
