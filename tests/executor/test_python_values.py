"""The Python values of an answer: DuckDB's, whether DuckDB or Arrow makes them."""

from __future__ import annotations

import random

import duckdb
import pytest

from louver.trusted.executor.local.local_engine import DuckDBLocalEngine

VALUES = {
    "DATE": ["'2020-02-29'", "'0001-01-01'", "'9999-12-31'", "'infinity'", "'-infinity'",
             "'10000-01-01'", "'0001-01-01 (BC)'", "NULL"],
    "TIMESTAMP": ["'2020-02-29 23:59:59.999999'", "'0001-01-01 00:00:00'", "NULL", "'infinity'",
                  "'9999-12-31 23:59:59.999999'", "'10000-01-01 00:00:00'", "'-infinity'"],
    "TIMESTAMP_S": ["'2020-02-29 23:59:59'", "NULL"],
    "TIMESTAMP_NS": ["'2020-02-29 23:59:59.123456789'", "NULL"],
    "TIMESTAMPTZ": ["'2020-02-29 23:59:59+02'", "NULL"],
    "TIME": ["'23:59:59.999999'", "NULL"],
    "BIGINT": ["1", "NULL"],
    "DECIMAL(9,2)": ["1.50", "-0.01", "NULL"],
    "DOUBLE": ["0.1", "'-0.0'", "'inf'", "NULL"],
    "VARCHAR": ["'ä'", "''", "NULL"],
}  # fmt: skip


@pytest.mark.parametrize("rows", [0, 1, 3, 400])
def test_values_are_those_of_duckdb(rows: int) -> None:
    dice, engine, plain = random.Random(rows), DuckDBLocalEngine(), duckdb.connect()
    for _ in range(40):
        types = dice.choices(list(VALUES), k=dice.randint(1, 4))
        columns = [
            f"[{', '.join(f'{dice.choice(VALUES[t])}::{t}' for _ in range(rows))}]::{t}[]"
            for t in types
        ]
        listed = ", ".join(f"unnest({text}) AS c{i}" for i, text in enumerate(columns))
        sql = f"SELECT {listed}"
        wanted = plain.execute(sql).fetchall()
        answer = engine.python_rows(plain.execute(sql).to_arrow_table())
        assert list(map(repr, answer)) == list(map(repr, wanted)), sql
    engine.close()
