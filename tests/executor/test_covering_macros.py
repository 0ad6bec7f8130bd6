"""Macros that cover functions of DuckDB's own: no statement may come to read what it does not name,
and what generated columns hold stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import louver
from tests.twin import Twin


@pytest.fixture(scope="module")
def twin(open_module_twin: Callable[..., Twin]) -> Twin:
    twin = open_module_twin()
    twin.run("CREATE TABLE g (p INT, q INT AS (abs(p)))")
    twin.run("CREATE MACRO outer_one(x) AS x + 1")
    twin.run("CREATE TABLE h (p INT, q INT AS (p + 1))")
    twin.run("CREATE TABLE t (a INT ENC, p INT)")
    twin.run("INSERT INTO t VALUES (8317, 1), (5, 2)")
    twin.run("INSERT INTO g VALUES (-3)")
    return twin


@pytest.mark.parametrize("word", ["", "OR REPLACE ", "TEMP ", "OR REPLACE TEMP "])
@pytest.mark.parametrize(
    "macro",
    [
        "abs(x) AS x",
        '"+"(a, b) AS a - b',
        "\"~~\"(a, b) AS 'no'",
        "list_value(x) AS getvariable('x')",
        "list_value(x) AS (SELECT max(a) FROM t)",
        "list_value(x) AS a",
        "list_value(x) AS nextval('s')",
        "list_value(x) AS x, (x, y) AS (SELECT max(a) FROM t)",
        "list_value(x, y := getvariable('x')) AS y",
        "struct_pack(x) AS outer_one(x)",
        "count_star() AS (SELECT max(a) FROM t)",
        "date_part(x, y) AS getvariable('x')",
        "read_csv_auto(x) AS TABLE SELECT a FROM t",
    ],
)
def test_refused(twin: Twin, word: str, macro: str) -> None:
    with pytest.raises(louver.Error) as caught:
        twin.louver.execute(f"CREATE {word}MACRO {macro}")
    assert caught.value.code == "sql.unsupported"
    assert "macro" in str(caught.value)


def test_those_that_compute_with_their_arguments(twin: Twin) -> None:
    for sql in (
        "CREATE MACRO list_sum(x) AS x[1]", "SELECT list_sum([a]) FROM t", "DROP MACRO list_sum",
        "CREATE TEMP MACRO lower(x) AS upper(x)", "SELECT lower('Ab')", "DROP MACRO lower",
        "CREATE MACRO inner_one(x) AS (SELECT max(p) FROM t)", "SELECT inner_one(1)",
        "FROM g", "INSERT INTO h VALUES (4)", "FROM h",
    ):  # fmt: skip
        twin.run(sql)
