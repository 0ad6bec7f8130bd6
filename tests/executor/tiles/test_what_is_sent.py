"""What EXPLAIN says is sent of a table with tiles, is what is sent."""

from __future__ import annotations

import json
import re

import pytest

from louver.trusted.executor.tiles import asking
from louver.trusted.planner import cost
from louver.wire.messages import Statement
from tests.generated import cases, generator
from tests.twin import Twin

_QUERIES = (
    "SELECT * FROM t", "SELECT a, p FROM t WHERE p < {n}", "SELECT b FROM t WHERE p = {n}",
    "SELECT id FROM t WHERE b LIKE '%1{k}%'", "SELECT p, a FROM t WHERE a > {n} AND p < 40",
    "SELECT max(a), min(b) FROM t", "SELECT p % 3, max(a), count(*) FROM t GROUP BY 1",
    "SELECT a FROM t WHERE id = {n}", "SELECT b FROM t WHERE id IN ({n}, {k}, 17)",
    "SELECT t.b, u.c FROM t JOIN u ON t.id = u.id WHERE u.p = {k}", "SELECT p FROM t",
    "SELECT t.b, u.c FROM t JOIN u ON t.p = u.p", "SELECT count(*) FROM t WHERE p > {n}",
    "SELECT a, b FROM t ORDER BY p LIMIT {k}", "SELECT DISTINCT b FROM t WHERE p < {n}",
    "SELECT c FROM u UNION ALL SELECT b FROM t",
    "SELECT a FROM t WHERE id = (SELECT max(p) FROM u)",
)  # fmt: skip
_TILES = re.compile(r'SELECT (first_row, .*? FROM "?louver_tiles_\w+"?)')


def _normal(texts: list[str]) -> list[str]:
    """Statements without what answers decide: of which rows tiles are, and how many rows or keys
    are asked for.
    """
    results = set[str]()
    for text in texts:
        tiles = _TILES.match(text)
        if tiles:
            results.add(tiles[1])
        elif not text.startswith("SELECT first_row FROM"):
            text = re.sub(r"row_id IN \(SELECT row_id FROM \w+\)", "row_id IN ()", text)
            results.add(re.sub(r" IN \([$\d:, UID]+\)", " IN ()", text))
    return sorted(results)


@pytest.fixture
def filled(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> Twin:
    monkeypatch.setattr(asking, "LEAST_ROWS", 20)
    monkeypatch.setattr(cost, "LEAST_ROWS", 20)
    twin.fill(
        "CREATE TABLE t (id BIGINT ENC PRIMARY KEY, a BIGINT ENC, b VARCHAR ENC, p INTEGER)",
        "CREATE TABLE u (id BIGINT ENC, c VARCHAR ENC, p INTEGER)",
        "INSERT INTO t SELECT i, i * 7, 'x' || i, i % 50 FROM range(203) r(i)",
        "INSERT INTO u SELECT i, 'y' || i, i % 20 FROM range(53) r(i)",
    )
    return twin


@pytest.mark.in_turn
@pytest.mark.parametrize("number", range(cases(12)))
def test_it_is_what_explain_says(filled: Twin, number: int) -> None:
    draw = generator(f"what is sent {number}")
    for _ in range(8):
        values = {"n": draw.randint(0, 48), "k": draw.randint(1, 9)}
        sql = draw.choice(_QUERIES).format(**values)
        filled.run(sql, ordered=False)  # what opens layers does so now
        relation = filled.louver.sql(sql)
        said = relation.remote_sql()
        shown = json.loads(relation.explain(format="json"))
        assert [server["sql"] for server in shown["servers"]] == said
        before = len(filled.tap.sent())
        relation.fetchall()
        sent = [m.sql for m in filled.tap.sent()[before:] if isinstance(m, Statement)]
        own = [text for text in sent if "louver_catalog" not in text]
        expected = _normal([part for text in said for part in text.split(";\n")])
        assert _normal(own) == expected, sql
        ran = [part for text in relation.remote_sql() for part in text.split(";\n")]
        assert _normal(ran) == expected, sql


@pytest.mark.parametrize("sql", ["SELECT a, b FROM t", "SELECT a, b FROM t WHERE id = 7"])
def test_of_which_rows_tiles_are(filled: Twin, sql: str) -> None:
    """All, or the one that has a row."""
    filled.run(sql)
    relation = filled.louver.sql(sql)
    (said,) = relation.remote_sql()
    before = len(filled.tap.sent())
    relation.fetchall()
    sent = [m.sql for m in filled.tap.sent()[before:] if isinstance(m, Statement)]
    assert said.split(";\n") == [text for text in sent if "louver_catalog" not in text]
    assert relation.remote_sql() == [said]
    assert ("first_row BETWEEN $1 AND $2" in said) == ("WHERE id" in sql)
    explained = relation.explain(leakage=True)
    assert all(f" {line}\n" in explained for line in said.splitlines())
    levels = set(re.findall(r" \[(\w+)\]", explained))
    assert ("access" in levels) == ("WHERE id" in sql)
    assert levels <= {"size", "access"}
