"""Drawn look-ups, and changes by them, of tables of more than 1,000 rows in two worlds
(docs/concepts/two-worlds.md); `tests/worlds` draws of small tables, which are read at once.
"""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from louver.trusted.apps import cli
from tests.generated import SEED, SOAK
from tests.twin import Twin

ROWS, STATEMENTS = 1_200, 30
#: ``{k}`` and ``{n}`` are values that the worlds have in common but for their names, ``{p}`` plain.
FORMS = (
    "SELECT k, w FROM t WHERE k = {k}", "SELECT w, p FROM t WHERE k IN ({k}, {k}) AND p < {p}",
    "SELECT k FROM t WHERE w = {n} AND w || 'x' <> {n}", "SELECT k, h FROM t WHERE k < {k}",
    "SELECT count(*), sum(h) FROM t WHERE NOT (w = {n}) AND k > {k}",
    "SELECT t.k, s.w FROM t JOIN s ON t.p = s.p WHERE t.k = {k}",
    "SELECT h FROM t WHERE (k, p) IN (({k}, {p}), ({k}, {p}))",
    "SELECT h FROM t WHERE i = {i}", "SELECT w FROM t WHERE (j, i) = ({p}, {i})",
    "SELECT h FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.p = t.p AND s.k = {k})",
    "UPDATE t SET p = p + 1 WHERE k = {k}", "UPDATE t SET w = {n} WHERE k = {k} AND p > {p}",
    "DELETE FROM t WHERE k = {k} AND p < {p}", "DELETE FROM s WHERE w = {n}",
    "UPDATE t SET w = q.w FROM (VALUES ({k}, {n})) q(k, w) WHERE t.k = q.k",
    "MERGE INTO t USING (VALUES ({k}, {n})) q(k, w) ON t.k = q.k"
    " WHEN MATCHED THEN UPDATE SET w = q.w",
    "MERGE INTO s USING (VALUES ({k}, {n}, {p})) q(k, w, p) ON s.k = q.k"
    " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, w, p) VALUES (q.k, q.w, q.p)",
    "MERGE INTO t USING s ON t.p = s.p AND t.i = {i} WHEN MATCHED THEN UPDATE SET w = {n}",
    "INSERT INTO t VALUES ({i}, {p}, {k}, {n}, {k}, {p}) ON CONFLICT (i) DO UPDATE SET w = {n}",
    "INSERT INTO s VALUES ({k}, {n}, {p})",
)  # fmt: skip


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_two_worlds(tmp_path: Path, key_file: Path, profile: str) -> None:
    """The server is sent the same texts and numbers of rows, and returns as many, of a database and
    of a fork of it; what the ledger says is the same.
    """
    for seed in range(SOAK):
        worlds = []
        for stem, step in (("a", 3), ("q", 1_001)):
            path = tmp_path / f"{stem}{seed}.duckdb"
            first = _world(path, key_file, profile, f"{SEED + seed}", stem, step, fresh=True)
            copy = path.with_suffix(".copy")
            shutil.copy(path, copy)
            forked = ["status", "--fork", "--url", f"duckdb:///{copy}", "--keys", str(key_file)]
            assert cli.main(forked) == 0
            second = _world(copy, key_file, profile, f"fork {seed}", stem, step, fresh=False)
            worlds.append((first, second))
        assert worlds[0] == worlds[1]
        assert any("which rows of t a query read" in fact for fact in worlds[0][0][1])
        assert all("row_id IN" in text for text, _, _ in worlds[0])


def _world(
    path: Path, key_file: Path, profile: str, seed: str, stem: str, step: int, *, fresh: bool
) -> tuple[str, list[str], list[int]]:
    """What crossed, what the ledger says, and how statements ended."""
    draw, twin = random.Random(seed), Twin(path, key_file, profile)
    run = twin.louver.execute
    run("SET link_bandwidth = '1MB/s'")
    if fresh:
        run(
            "CREATE TABLE t (i BIGINT ENC MAY REVEAL access PRIMARY KEY, j INT, k BIGINT ENC MAY"
            " REVEAL access, w VARCHAR ENC MAY REVEAL access, h BIGINT ENC MAY REVEAL access,"
            " p INT, UNIQUE (i, j))"
        )
        run(
            f"INSERT INTO t SELECT {step} * i, i % 7, {step} * (i % 400),"
            f" '{stem}' || (1000 + i % 80), {step} * i, i % 9 FROM range({ROWS}) r(i)"
        )
        run("CREATE TABLE s (k BIGINT ENC MAY REVEAL access, w VARCHAR ENC, p INT)")
        run(f"INSERT INTO s SELECT {step} * i, '{stem}' || (1000 + i), i % 9 FROM range(20) r(i)")
    start, ends = len(twin.tap.records), list[int]()
    for _ in range(STATEMENTS):
        form = draw.choice(FORMS)
        sql = re.sub(r"\{(\w)\}", lambda match: _drawn(draw, match[1], stem, step), form)
        answer = run(sql)
        ends.append(len(answer.fetchall()) if sql.startswith("SELECT") else answer.rowcount)
    crossed = [
        (r.direction, getattr(r.message, "sql", "") or type(r.message).__name__,
         getattr(getattr(r.message, "table", None), "num_rows", 0))
        for r in twin.tap.records[start:]
    ]  # fmt: skip
    facts = sorted(fact.text for fact in twin.session.context.ledger.facts())
    text = repr(crossed)
    for table in ("t", "s"):
        stored = [v for c in twin.table(table).columns for v in c.stored.values()]
        for position, name in enumerate([*stored, *twin.table(table).tags]):
            text = text.replace(name, f"{table}{position}")
        text = text.replace(twin.table(table).tile_table.rpartition("_")[2] or table, table)
    twin.close()
    return text, facts, ends


def _drawn(draw: random.Random, kind: str, stem: str, step: int) -> str:
    """A literal of one world; the other world draws the same one."""
    number = draw.randrange(400)
    if kind == "n":
        return f"'{stem}{1000 + number % 90}'"
    return str(number % 9) if kind == "p" else str(step * number)
