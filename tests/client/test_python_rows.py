"""The Python values of an answer's rows are those that DuckDB gives, whoever makes them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from louver.trusted.executor.local.local_engine import DuckDBLocalEngine

VALUES = [
    "TRUE", "(-128)::TINYINT", "-5::SMALLINT", "7", "-9223372036854775808", "255::UTINYINT",
    "65535::USMALLINT", "4294967295::UINTEGER", "18446744073709551615::UBIGINT",
    "170141183460469231731687303715884105727::HUGEINT", "1::UHUGEINT", "0.1::FLOAT",
    "1e38::FLOAT", "-0.0::DOUBLE", "'inf'::DOUBLE", "'nan'::FLOAT", "'-inf'::FLOAT",
    "0.00::DECIMAL(9, 2)", "-1.50::DECIMAL(38, 10)", "1e-7::DECIMAL(38, 10)", "5::DECIMAL(4, 0)",
    "0::DECIMAL(38, 38)", "100000::DECIMAL(18, 3)", "''", "'ü' || chr(0)", r"'\xFF\x00'::BLOB",
    "''::BLOB", "DATE '2024-02-29'", "DATE 'infinity'", "DATE '-infinity'", "TIME '24:00:00'",
    "TIMESTAMP '2024-02-29 12:00:00.000001'", "TIMESTAMP_NS '2024-02-29 12:00:00.5'",
    "TIMESTAMPTZ '2024-02-29 12:00:00+00'", "INTERVAL '1 month 2 days'",
    "uuid '00000000-0000-0000-0000-000000000001'", "[1, NULL]", "{'a': 1}", "NULL",
    "MAP {'a': 1}", "'x'::ENUM('x', 'y')", "'0101'::BIT",
]  # fmt: skip


@pytest.fixture(scope="module")
def home() -> Iterator[DuckDBLocalEngine]:
    engine = DuckDBLocalEngine()
    yield engine
    engine.close()


@pytest.mark.parametrize("value", VALUES)
def test_values_are_those_of_duckdb(home: DuckDBLocalEngine, value: str) -> None:
    """With a NULL of the type beside it; in a column alone, and beside others."""
    nothing = f"CASE WHEN x > 1 THEN {value} END"
    for items in (f"{nothing} AS v", f"{nothing} AS v, x AS v, 'text' AS w"):
        sql = f"SELECT {items} FROM range(3) t(x) ORDER BY x"
        with duckdb.connect() as plain:
            wanted = plain.execute(sql).fetchall()
        rows = home.python_rows(home.workspace.execute(sql).to_arrow_table())
        assert repr(rows) == repr(wanted)
        assert [[*map(type, row)] for row in rows] == [[*map(type, row)] for row in wanted]


def test_rows_without_columns_or_without_rows(home: DuckDBLocalEngine) -> None:
    """Chunks of a column make no difference, nor does their absence."""
    many = home.workspace.execute("SELECT x, x::VARCHAR FROM range(5000) t(x)").to_arrow_table()
    assert home.python_rows(many.slice(3, 4990)) == [(x, str(x)) for x in range(3, 4993)]
    assert home.python_rows(many.slice(0, 0)) == []
