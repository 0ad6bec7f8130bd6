"""The trees that plans are made of read a text as DuckDB does: numbers, and the order of operators.

DuckDB evaluates the text itself, and the tree's text with brackets around all that it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import duckdb
import pytest
from sqlglot import exp

from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import DUCKDB
from louver.trusted.planner.sql.trees import local_text, parse, parse_one
from tests.generated import cases, generator
from tests.twin import Twin

_VALUES = ("a", "b", "s", "o", "1", "2", "-1", "NULL", "'a'", "true", "(a)", "1_0", "upper(s)")
_BETWEEN = (
    "+", "-", "*", "//", "=", "=", "<", ">=", "<>", "AND", "OR", "==", "==", "LIKE", "NOT LIKE",
    "||", "IS DISTINCT FROM", "~", "!~", "~~", "^@", "&", "<<",
)  # fmt: skip
_BEHIND = ("IS NULL", "ISNULL", "IS NOT TRUE", "::INTEGER", "::BOOLEAN", "IN (1, 2)",
           "NOT IN (0)", "BETWEEN 0 AND 2", "NOT BETWEEN 0 AND 1", "!")  # fmt: skip
_BEFORE = ("NOT", "-", "+", "@", "~")
_ROWS = """SELECT i % 3 AS a, i // 3 % 3 - 1 AS b, ['a', 'b', 'ab', NULL][1 + i % 4] AS s,
 i % 2 = 0 AS o FROM range(36) r(i)"""


def _condition(chance: Random) -> str:
    words: list[str] = []
    for number in range(chance.randint(2, 4)):
        words += [chance.choice(_BETWEEN)] if number else []
        words += [chance.choice(_BEFORE)] if chance.random() < 0.15 else []
        words.append(chance.choice(_VALUES))
        words += [chance.choice(_BEHIND)] if chance.random() < 0.25 else []
    return " ".join(words)


def _bracketed(tree: exp.Expr) -> exp.Expr:
    loose = (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Cast)
    copy = tree.copy()
    for node in list(copy.find_all(*loose))[::-1]:
        if node is not copy and not isinstance(node, exp.Paren):
            node.replace(exp.Paren(this=node.copy()))
    return copy


def test_operators_are_read_in_the_order_of_duckdb() -> None:
    chance, rows = generator("order of operators"), duckdb.connect()
    rows.execute(f"CREATE TABLE t AS {_ROWS}")
    compared = 0
    for _ in range(cases(2_500)):
        text = _condition(chance)
        tree = parse(f"SELECT * FROM t WHERE {text}")
        where = tree.args.get("where") if tree is not None else None
        if where is None:
            continue
        sql = "SELECT list(x ORDER BY n) FROM (SELECT ({}) AS x, rowid AS n FROM t)"
        try:
            wanted = rows.execute(sql.format(text)).fetchall()
            read = rows.execute(sql.format(local_text(_bracketed(where.this)))).fetchall()
            printed = rows.execute(sql.format(local_text(where.this))).fetchall()
        except duckdb.Error:
            continue
        assert read == printed == wanted, text
        compared += 1
    assert compared > 100


@pytest.mark.parametrize("text", ["s ~ 'a'", "NOT s ~ 'a'", "s !~ 'a'", "'a' ~ 'a' || s"])
def test_a_pattern_matches_as_in_the_engines_version(text: str) -> None:
    """Up to DuckDB 1 it matches the whole text, and from 2 on a part of it; sqlglot knows both."""
    assert ".".join(map(str, DUCKDB.sqlglot.version)) == duckdb.__version__
    tree = parse(f"SELECT {text} AS x FROM (VALUES ('a'), ('ab'), ('b')) AS v(s)")
    if tree is not None:
        shown = [duckdb.sql(sql).fetchall() for sql in (local_text(tree), tree.sql("duckdb"))]
        assert shown == [duckdb.sql(f"SELECT {text} FROM (VALUES ('a'), ('ab'), ('b')) v(s)")
                         .fetchall()] * 2  # fmt: skip


@pytest.mark.parametrize(("text", "number", "after"), [
    ("1_000", "1000", ""),
    ("1_0.2_5 + 1", "10.25", "+"),
    ("1_2e1_0", "12e10", ""),
    ("1.5_5)", "1.55", ")"),
    ("1_2AND a", "12", "AND"),
    ("12", "12", ""),
    ("1__2", "1", "__2"),
    ("1_a", "1", "_a"),
])  # fmt: skip
def test_a_number_with_bars_is_one_token(text: str, number: str, after: str) -> None:
    tokens = lexer.tokens(f"x = {text}")
    assert tokens[2].text == number
    assert "".join(token.text for token in tokens[3:4]) == after
    assert (tokens[2].start, tokens[-1].end) == (4, 3 + len(text))


@pytest.mark.parametrize(("text", "words"), [
    ("1e1+1", "1e1 + 1"), ("2*1e1-a", "2 * 1e1 - a"), ("1e+1+1", "1e+1 + 1"),
    ("1_0.5e1_0-1_0e-2+3", "10.5e10 - 10e-2 + 3"), ("1e5", "1e5"),
])  # fmt: skip
def test_a_sign_behind_an_exponent_is_one(text: str, words: str) -> None:
    tokens = lexer.tokens(f"x = {text}")
    assert " ".join(token.text for token in tokens[2:]) == words
    assert tokens[-1].end == 3 + len(text)
    assert local_text(parse_one(text)) == words


def test_a_sum_with_an_exponent_is_what_duckdb_reads(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("sdb")
    twin.fill("CREATE TABLE t (v INT ENC)", "INSERT INTO t VALUES (1), (20), (30)")
    for sql in ("SELECT v FROM t WHERE v > 2*1e1+5", "SELECT v * 1e0+1 FROM t",
                "SELECT count(*) FROM t WHERE v*2 >= 3*1e1+10"):  # fmt: skip
        twin.run(sql)


@pytest.mark.parametrize("text", ["'!'", "'=='", '"@"', "'~'", "'@' AND b == '!'"])
def test_what_stands_in_quotes_is_no_operator(text: str) -> None:
    assert parse(f"SELECT * FROM t WHERE a < b AND s = {text}") is not None


@pytest.mark.parametrize("profile", ["cryptdb", "sealed"])
def test_numbers_with_bars_are_what_duckdb_reads(
    open_twin: Callable[..., Twin], profile: str
) -> None:
    twin = open_twin(profile)
    twin.fill(
        "CREATE TABLE t (id INT ENC PRIMARY KEY, v INT ENC, z INT)",
        "INSERT INTO t SELECT i, i, i FROM range(1_200) r(i)",
        "CREATE VIEW w AS SELECT id FROM t WHERE v > 1_190",
        "CREATE MACRO m(x) AS x + 1_000",
    )
    for sql in (
        "SELECT * FROM t WHERE id = 1_2",
        "SELECT * FROM t WHERE id = 1_3",
        "SELECT id FROM t WHERE v IN (1_2, 1_1_0_0) OR v >= 1_197.0",
        "SELECT id, z + 1_0 FROM t WHERE z < 1_0 ORDER BY id LIMIT 1_0",
        "SELECT count(*) FROM t WHERE v + 1_0 = 20",
        "FROM w",
        "SELECT m(id) FROM t WHERE m(v) = 1_5_00",
        "INSERT INTO t VALUES (1_2, 0, 0), (1_0_0_0_0, 0, 0) ON CONFLICT DO UPDATE SET v = 1_1_1",
        "UPDATE t SET v = 1_2_3_4 WHERE id = 1_4",
        "UPDATE t SET v = 1_2_3_5 WHERE id = 1_5",
        "DELETE FROM t WHERE id = 1_7",
        "SELECT * FROM t WHERE z == 2 IN (1, 2)",
        "SELECT count(*) FROM t WHERE z NOT IN (1) < (v = 2)",
        "SELECT count(*) FROM t WHERE z BETWEEN 0 AND 2 == 1",
        "SELECT id FROM t WHERE z == 4 AND id == 4",
        "FROM t",
    ):
        twin.run(sql)


def test_a_text_is_no_operator() -> None:
    """What stands between quotes is read as it is, also where it looks like an operator."""
    for sql in ("SELECT a || '!'", "UPDATE t SET a = '@'", "SELECT \"~\" FROM t WHERE a = '=='"):
        assert parse(sql) is not None, sql
