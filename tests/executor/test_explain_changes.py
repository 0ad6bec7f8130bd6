"""EXPLAIN (LEAKAGE) of changes: what is recorded when a change runs was stated before it ran."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from louver import errors
from louver.wire import control
from tests.generated import cases, generator
from tests.twin import Twin

SETUP = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a BIGINT ENC MAY REVEAL equality, b VARCHAR ENC, c INTEGER);
CREATE TABLE u (a BIGINT ENC MAY REVEAL equality, b VARCHAR ENC, d INTEGER);
CREATE TABLE o (k BIGINT ENC USING onion, p INTEGER);
INSERT INTO t SELECT i, i % 3, 'b' || i, i FROM range(6) r(i);
INSERT INTO u SELECT i, 'b' || i, i FROM range(4) r(i);
INSERT INTO o SELECT i, i FROM range(4) r(i);
"""
CHANGES = (
    "INSERT INTO u VALUES (1, 'x', 2)",
    "INSERT INTO t VALUES (%d, 1, 'x', 2)",
    "INSERT INTO u SELECT a, b, c FROM t WHERE c < 3",
    "INSERT INTO u SELECT a, b, c FROM t WHERE a = 1",
    "INSERT INTO u SELECT k, 'x', p FROM o WHERE k > 1",
    "INSERT INTO t VALUES (1, 2, 'y', 3) ON CONFLICT (id) DO UPDATE SET a = excluded.a",
    "INSERT OR REPLACE INTO t VALUES (2, 2, 'y', 3)",
    "UPDATE t SET b = b || '!' WHERE c = 1",
    "UPDATE t SET c = c + 1 WHERE a = 1",
    "UPDATE u SET d = 4 FROM t WHERE t.a = u.a",
    "UPDATE o SET p = 7 WHERE p = 2",
    "DELETE FROM t WHERE a = 0",
    "DELETE FROM u WHERE d > 2",
    "DELETE FROM u USING t WHERE t.b = u.b",
    "DELETE FROM u",
    "TRUNCATE o",
    "MERGE INTO u USING t ON u.a = t.a WHEN MATCHED THEN UPDATE SET d = 1",
    "WITH q AS (SELECT a, b, c FROM t) INSERT INTO u SELECT * FROM q",
    "CREATE TABLE n%d AS SELECT a, b, c + 1 AS c FROM t WHERE c < 4",
    "CREATE TABLE n%d (x ENC, y) AS SELECT c, d FROM t JOIN u USING (a)",
    "CREATE TABLE n%d AS SELECT k FROM o WHERE k BETWEEN 1 AND 2",
    "COPY u FROM '{folder}/u.csv' (HEADER)",
)


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_what_is_recorded_was_stated(
    profile: str, open_twin: Callable[..., Twin], tmp_path: Path
) -> None:
    dice = generator(f"stated {profile}")
    (tmp_path / "u.csv").write_text("a,b,d\n5,x,6\n")
    recorded = 0
    for _ in range(cases(3)):
        twin = open_twin(profile)
        twin.louver.execute(SETUP)
        changes = list(CHANGES)
        dice.shuffle(changes)
        for number, change in enumerate(changes):
            sql = change.format(folder=tmp_path)
            sql = sql % (number + 100) if "%d" in sql else sql
            recorded += compare(twin, sql)
        twin.close()
    assert recorded > 20


def compare(twin: Twin, sql: str) -> int:
    """The number of facts that running a change added, each of which EXPLAIN has stated."""
    context = twin.session.context
    sent, length = twin.sent(), context.ledger.length
    layers = str([c.layers for t in context.catalog.tables.values() for c in t.columns])
    ((_, text),) = twin.rows(f"EXPLAIN (LEAKAGE, FORMAT json) {sql}")
    body = json.loads(text)
    twin.rows(f"EXPLAIN (LEAKAGE) {sql}")
    assert context.ledger.length == length, "nothing is recorded"
    said = {getattr(message, "sql", "") for message in twin.tap.sent()[sent:]}
    assert said <= {control.CATALOG_VERSION.sql}, "the version of the catalog at most"
    assert layers == str([c.layers for t in context.catalog.tables.values() for c in t.columns])
    before = {(f.kind, f.level, f.columns) for f in context.ledger.facts()}
    twin.louver.execute(sql)
    after = {(f.kind, f.level, f.columns) for f in context.ledger.facts()}
    stated = {
        (f["kind"], f["level"], tuple(f["columns"]))
        for f in body["reveals"]["new"] + body["reveals"]["known"]
    }
    assert after - before <= stated, f"{sql}: {after - before - stated}"
    return len(after - before)


def test_the_text_names_what_is_new(twin: Twin) -> None:
    twin.louver.execute(SETUP)
    ((key, text),) = twin.rows("EXPLAIN (LEAKAGE) UPDATE t SET b = 'x' WHERE c = 1")
    assert key == "leakage"
    assert "reveals\n" in text
    assert "+ " in text
    ((_, text),) = twin.rows("EXPLAIN (LEAKAGE) INSERT INTO u SELECT k, 'x', p FROM o WHERE k > 1")
    assert "opens    o.k: order layer" in text
    for sql in ("DROP TABLE t", "CREATE TABLE z (a INTEGER)", "COPY t TO 'x.csv'"):
        with pytest.raises(errors.NotSupportedError):
            twin.rows(f"EXPLAIN (LEAKAGE) {sql}")
    with pytest.raises(errors.LeakageRefused):
        twin.rows("EXPLAIN (LEAKAGE) INSERT INTO u (d) SELECT a FROM t")
