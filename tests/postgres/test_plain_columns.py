"""Plain columns of every type that a server stores: it computes of them what DuckDB does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.twin import Twin

TABLE = (
    "CREATE TABLE s (i INTEGER, t VARCHAR, f DOUBLE, r FLOAT, b BOOLEAN, d DATE, m TIMESTAMP,"
    " n DECIMAL(9,3), u UUID, y BLOB, s SMALLINT, w UINTEGER, z UTINYINT, x INTEGER ENC)"
)
ROWS = """
    INSERT INTO s SELECT nullif(k % 11, 3), 'ß' || nullif(chr((60 + k * 7 % 40)::INTEGER), 'd'),
        CASE k % 6 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN -0.0 WHEN 2 THEN 0.0 WHEN 3 THEN NULL
            WHEN 4 THEN '-inf'::DOUBLE ELSE k / 3 END,
        CASE WHEN k % 8 > 0 THEN k / 7 END, nullif(k % 3, 2) = 0,
        CASE k % 5 WHEN 0 THEN 'infinity'::DATE WHEN 1 THEN NULL
            ELSE DATE '0044-03-15 (BC)' + (k * 5000)::INTEGER END,
        CASE k % 5 WHEN 0 THEN '-infinity'::TIMESTAMP
            ELSE TIMESTAMP '1999-12-31' + to_hours(k) END,
        nullif(k % 13, 4) / -7, md5((k % 50)::VARCHAR)::UUID,
        nullif(encode('a' || (k % 4)), 'a1'::BLOB),
        k * 150, 4294967295 - k % 9, k % 256, nullif(k % 17, 0)
    FROM range(200) AS q(k)
"""
COLUMNS = "i t f r b d m n u y s w z x".split()
FORMS = (
    "SELECT {c}, count(*) FROM s GROUP BY {c}", "SELECT DISTINCT {c} FROM s",
    "SELECT count(DISTINCT {c}), count({c}), min({c}), max({c}) FROM s",
    "SELECT {c} FROM s ORDER BY {c} LIMIT 9", "SELECT {c} FROM s ORDER BY {c} DESC LIMIT 9",
    "SELECT {c} FROM s ORDER BY {c} DESC NULLS FIRST LIMIT 60",
    "SELECT count(*) FROM s WHERE {c} IS NOT NULL", "SELECT count(*) FROM s WHERE {c} > {c}",
    "SELECT a.i, b.i FROM s a JOIN s b ON a.{c} = b.{c} WHERE a.i = 5 AND b.i = 4",
    "SELECT count(*) FROM s WHERE {c} IN (SELECT {c} FROM s WHERE i = 1)",
    "SELECT count(*) FROM s WHERE {c} >= (SELECT max({c}) FROM s WHERE i < 4)",
)  # fmt: skip


@pytest.fixture
def twin(open_connection: Callable[..., Any]) -> Any:
    twin = Twin.beside(open_connection("sealed", "postgresql"), own_errors=True)
    twin.fill(TABLE, ROWS)
    yield twin
    twin.plain.close()


@pytest.mark.parametrize("column", COLUMNS)
def test_columns(twin: Twin, column: str) -> None:
    for form in FORMS:
        twin.run(form.format(c=column))
