"""Answers that need opening only: what they are equals DuckDB's, and what a server adds is left out
as it is where the workspace decides again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from louver.trusted.planner.sql import lexer
from louver.wire.messages import Statement
from tests.inside import context_of
from tests.twin import Twin

#: By type: constants that are stored, and columns for, some of them equal in more than one way.
_VALUES = {
    "BIGINT": ("0", "7", "-9223372036854775808", "7.0", "'7'", "NULL"),
    "TINYINT": ("0", "-128", "127", "300", "NULL"),
    "HUGEINT": ("0", "170141183460469231731687303715884105727", "-1", "NULL"),
    "DECIMAL(9,2)": ("0", "1.50", "1.5", "1.505", "-0.01", "NULL"),
    "DOUBLE": ("0.0", "-0.0", "'nan'::DOUBLE", "'inf'::DOUBLE", "1", "1.5", "NULL"),
    "BOOLEAN": ("true", "false", "1", "NULL"),
    "VARCHAR": ("''", "'a'", "'A'", "'a '", "'ä'", "NULL"),
    "BLOB": ("''::BLOB", "'\\x00a'::BLOB", "NULL"),
    "UUID": ("'00000000-0000-0000-0000-000000000001'", "NULL"),
    "DATE": ("'2020-02-29'", "'infinity'", "DATE '1969-12-31'", "NULL"),
    "TIMESTAMP": ("'2020-02-29 01:02:03.5'", "'-infinity'", "DATE '2020-02-29'", "NULL"),
    "TIME": ("'00:00:00'", "'23:59:59.999999'", "NULL"),
}


def _is_stored(type_: str, text: str) -> bool:
    return (type_, text) not in {("TINYINT", "300"), ("DECIMAL(9,2)", "1.505")}


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_point_reads_of_every_type(profile: str, open_twin: Callable[..., Twin]) -> None:
    """Each constant against each column of its type, of rows with all of them."""
    twin = open_twin(profile)
    for number, (type_, texts) in enumerate(_VALUES.items()):
        twin.run(f"CREATE TABLE t{number} (k INT, v {type_} ENC, w {type_} ENC)")
        for row, text in enumerate(item for item in texts if _is_stored(type_, item)):
            twin.run(f"INSERT INTO t{number} VALUES ({row}, {text}, {texts[0]})")
    chance = random.Random(profile)
    for number, texts in enumerate(_VALUES.values()):
        for text in texts:
            columns = chance.choice(["*", "v", "w, k", "v, v", "t.v AS x, k", "t.*", "k + 0, v"])
            more = chance.choice(["", "", f" AND w = {chance.choice(texts)}", " AND k < 3"])
            twin.either(f"SELECT {columns} FROM t{number} AS t WHERE v = {text}{more}")


def test_it_is_the_short_way(open_twin: Callable[..., Twin]) -> None:
    """Which statements are opened only, and which run on their rows as they came."""
    twin = open_twin("cryptdb")
    twin.run("CREATE TABLE t (k INT ENC, v VARCHAR ENC, p INT)")
    twin.run("INSERT INTO t SELECT i, 'v' || i, i FROM range(200) AS r(i)")
    planner = context_of(twin.louver)
    for sql, alone, columns in (
        ("SELECT * FROM t WHERE k = 1", "t", ("k", "v", "p")),
        ("SELECT V FROM t AS x WHERE x.k = 1 AND v = 'a'", "t", ("v",)),
        ("SELECT v, p + 1 FROM t WHERE k = 1", "t", ()),
        ("SELECT v FROM t WHERE k = 1 AND p = 1", "t", ()),
        ("SELECT v FROM t WHERE k = 1 AND length(v) = 1", "t", ()),
        ("SELECT v FROM main.t WHERE k = 1", "", ()),
        ("SELECT DISTINCT v FROM t WHERE k = 1 AND length(v) = 1", "", ()),
        ("SELECT row_number() OVER (ORDER BY v || 'x') FROM t WHERE k = 1", "", ()),
    ):
        (text,) = lexer.split(sql)
        plan, _ = planner.plan(text, [])
        assert (plan.alone if plan.kind == "scans" else "", plan.columns) == (alone, columns), sql


@pytest.mark.parametrize("columns", ["*", "v", "v, p + 1"])
def test_a_server_that_sends_other_rows_adds_nothing(
    columns: str, open_twin: Callable[..., Twin], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that do not meet the condition are left out, however the answer is finished."""
    twin = open_twin("cryptdb")
    twin.run("CREATE TABLE t (k INT ENC, v VARCHAR ENC, p INT)")
    twin.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (NULL, 'c', 3), (1, NULL, 4)")
    twin.run("INSERT INTO t SELECT i, 'v' || i, i FROM range(5, 200) AS r(i)")
    sql = f"SELECT {columns} FROM t WHERE k = ?"
    wanted = twin.run(sql, [1])
    engine: Any = context_of(twin.louver).engine
    honest = engine.query

    def lying(statement: Statement) -> pa.Table:
        chosen = r"WHERE .*=.*\$1.*$"
        everything = re.sub(chosen, "WHERE $1 IS NOT NULL", statement.sql, flags=re.DOTALL)
        return honest(replace(statement, sql=everything))

    monkeypatch.setattr(engine, "query", lying)
    assert sorted(map(repr, twin.rows(sql, [1]))) == sorted(map(repr, wanted))
    assert twin.rows(sql, [3]) == []
