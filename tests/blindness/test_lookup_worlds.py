"""Look-ups in two worlds (docs/concepts/two-worlds.md), on tables large enough for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from louver.trusted.executor import send_order
from louver.wire.tap import Record
from tests.twin import Twin

ROWS = 1_200


@pytest.fixture(autouse=True)
def _drawn_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows lie that a change writes anew is drawn, and so is which tiles are read of them."""
    monkeypatch.setattr(send_order, "secrets", SimpleNamespace(randbits=lambda _: 7))


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_two_worlds(key_file: Path, profile: str) -> None:
    """Two tables whose values and literals correspond one to one: the server is sent the same texts
    and numbers of rows, and returns as many; what the ledger says is the same.
    """
    worlds = []
    for stem, step in (("a", 3), ("q", 1_001)):
        twin = Twin(":memory:", key_file, profile)
        twin.session.execute("SET link_bandwidth = '1MB/s'")
        twin.fill(
            "CREATE TABLE t (k BIGINT ENC MAY REVEAL access, w VARCHAR ENC MAY REVEAL access,"
            " h BIGINT ENC MAY REVEAL size, p INTEGER)",
            f"INSERT INTO t SELECT {step} * (i % 400), '{stem}' || (1000 + i % 80), {step} * i,"
            f" i % 9 FROM range({ROWS}) r(i)",
        )
        start = len(twin.tap.records)
        for sql in (
            f"SELECT k, w FROM t WHERE k = {5 * step}",
            f"SELECT w, p FROM t WHERE k IN ({7 * step}, {9 * step}) AND p < 5",
            f"SELECT k FROM t WHERE w = '{stem}1033' AND w || 'x' <> '{stem}'",
            f"SELECT k, h FROM t WHERE k < {40 * step}",
            f"SELECT k FROM t WHERE h > {900 * step} OR w LIKE '{stem}%'",
            f"UPDATE t SET p = p + 1 WHERE k = {8 * step} AND p IS NOT NULL",
            f"SELECT k, w FROM t WHERE k = {8 * step}",
        ):
            twin.either(sql)
        crossed = []
        for record in twin.tap.records[start:]:
            sent = getattr(record.message, "sql", "") or type(record.message).__name__
            table = getattr(record.message, "table", None)
            crossed.append((record.direction, sent, getattr(table, "num_rows", 0)))
        facts = sorted(fact.text for fact in twin.session.context.ledger.facts())
        names = {
            v: f"c{i}" for i, c in enumerate(twin.table("t").columns) for v in c.stored.values()
        } | _tiles(twin, "t")
        worlds.append((_renamed(repr(crossed), names), facts))
        twin.close()
    assert worlds[0] == worlds[1]
    assert any("which rows of t a query read" in fact for fact in worlds[0][1])
    assert not any("(h)" in fact and "which rows" in fact for fact in worlds[0][1])


@pytest.mark.parametrize("clause", ["", " UNIQUE"])
def test_two_worlds_of_keys_that_were_read(key_file: Path, clause: str) -> None:
    """The same of a table that is asked for rows by the keys of another one."""
    worlds = []
    for step in (3, 1_001):
        twin = Twin(":memory:", key_file, "cryptdb")
        twin.fill(
            f"CREATE TABLE n (k BIGINT ENC{clause}, w BIGINT ENC, p INTEGER)",
            "CREATE TABLE few (k BIGINT ENC, w BIGINT ENC)",
            f"INSERT INTO n SELECT {step} * i, {step} * (i % 400), i % 9 FROM range({ROWS}) r(i)",
            f"INSERT INTO few SELECT {step} * (i % 4) * 5, {step} * i FROM range(9) r(i)",
        )
        start = len(twin.tap.records)
        for sql in (
            "UPDATE n SET w = few.w FROM few WHERE n.k = few.k AND few.w > 0",
            "SELECT n.w FROM few LEFT JOIN n ON n.k = few.k WHERE n.w + few.w > 0",
            f"INSERT INTO few VALUES (NULL, 1), ({step * 700}, 2)",
            "DELETE FROM n USING few WHERE n.k = few.k AND n.p < 5",
            "MERGE INTO n USING few ON n.k = few.k WHEN MATCHED THEN UPDATE SET p = 3",
            "DELETE FROM few",
            "UPDATE n SET p = 1 FROM few WHERE n.k = few.k",
        ):
            twin.either(sql)
        sent = [getattr(r.message, "sql", "") for r in twin.tap.records[start:]]
        rows = _rows(twin.tap.records[start:])
        facts = sorted(fact.text for fact in twin.session.context.ledger.facts())
        names = {
            v: f"{table}{i}"
            for table in ("n", "few")
            for i, c in enumerate(twin.table(table).columns)
            for v in c.stored.values()
        } | {v: f"tag{i}" for i, v in enumerate(twin.table("n").tags)}
        names |= _tiles(twin, "n", "few")
        worlds.append((_renamed(repr(sent), names), rows, facts))
        twin.close()
    assert worlds[0] == worlds[1]
    assert any("a value that k of few had" in fact for fact in worlds[0][2])


def _rows(records: Sequence[Record]) -> list[int]:
    """How many rows each message has, but for tiles of rows that the server has drawn."""
    results, sql = list[int](), ""
    for record in records:
        sql = getattr(record.message, "sql", sql)
        rows = getattr(getattr(record.message, "table", None), "num_rows", 0)
        results.append(-1 if rows and "first_row BETWEEN" in sql else rows)
    return results


def _tiles(twin: Twin, *tables: str) -> dict[str, str]:
    """What the random names of tables of tiles end with."""
    names = (twin.table(table).tile_table for table in tables)
    return {name.rpartition("_")[2]: f"tiles{i}" for i, name in enumerate(names) if name}


def _renamed(text: str, names: dict[str, str]) -> str:
    """A text with the pseudonyms of columns replaced by their places."""
    for name, position in names.items():
        text = text.replace(name, position)
    return text
