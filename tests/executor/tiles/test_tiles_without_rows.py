"""CHECKPOINT removes the tiles of which no row is left, and no others."""

from __future__ import annotations

import re
from random import Random

import duckdb
import pyarrow as pa
import pytest

from louver.trusted.backends import tile_texts
from louver.trusted.backends.duckdb import BACKEND
from louver.trusted.vault import tile_forms
from louver.trusted.vault.catalog import Table
from louver.wire.messages import Statement
from tests.executor.tiles.stored import tiles
from tests.generated import cases, generator
from tests.twin import Twin

_TABLE = Table("main", "t", 1, tile_table="louver_tiles_1", tile_columns=["c"])


def _stored(draw: Random) -> tuple[dict[int, bytes], list[int], list[int]]:
    """Rows by their ids, with what stands for their value; the tiles, and those without rows."""
    rows, firsts, gone = dict[int, bytes](), list[int](), list[int]()
    at = draw.choice((0, 1 << 36)) + draw.randint(0, 3_000)
    for _ in range(draw.randint(0, 12)):
        size = draw.choice((1, draw.randint(1, 300), 1_023, 1_024))
        left = draw.choice((0, 0, 1, 2, size))
        ids = draw.sample(range(at, at + size), min(left, size))
        rows |= dict.fromkeys(ids, b"")
        firsts.append(at)
        gone += [] if ids else [at]
        at += size
        alone = draw.choice((0, 0, 1, 900, 3_000))
        rows |= dict.fromkeys(draw.sample(range(at, at + alone), alone // 2), b"x")
        at += alone
    return rows, firsts, gone


@pytest.mark.parametrize("number", range(cases(60)))
def test_of_any_rows_and_tiles(number: int) -> None:
    rows, firsts, gone = _stored(generator(f"tiles without rows {number}"))
    with duckdb.connect() as server:
        ids, starts = pa.array(rows, pa.int64()), pa.array(firsts, pa.int64())
        server.register("given", pa.table({"row_id": ids, "c": [*rows.values()]}))
        server.register("chosen", pa.table({"first_row": starts, "c": [b"x"] * len(firsts)}))
        server.execute("CREATE TABLE t (row_id BIGINT, c BLOB); INSERT INTO t FROM given")
        server.execute("CREATE TABLE louver_tiles_1 (first_row BIGINT, c BLOB)")
        server.execute("INSERT INTO louver_tiles_1 FROM chosen")
        (counts,) = server.execute(tile_texts.counts(BACKEND, _TABLE)).fetchall()
        server.execute(tile_texts.without_rows(BACKEND, _TABLE))
        left = server.execute("SELECT first_row FROM louver_tiles_1 ORDER BY 1").fetchall()
    assert counts == (sum(not copy for copy in rows.values()), len(firsts))
    assert [first for (first,) in left] == sorted({*firsts} - {*gone})


def _removals(twin: Twin) -> int:
    sent = [message for message in twin.tap.sent() if isinstance(message, Statement)]
    return sum(bool(re.match(r'DELETE FROM "?louver_tiles_', m.sql)) for m in sent)


def test_nothing_is_compared_where_no_row_is_gone(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tile_forms, "ROWS", tile_forms.MOST_ROWS)
    twin.fill("CREATE TABLE t (a BIGINT ENC)", "INSERT INTO t SELECT i FROM range(4096) r(i)")
    twin.fill("CHECKPOINT", "CHECKPOINT")
    assert tiles(twin).num_rows == 4
    assert not _removals(twin)
    twin.fill("DELETE FROM t WHERE a < 1023", "CHECKPOINT")
    assert tiles(twin).num_rows == 4
    twin.fill("DELETE FROM t WHERE a < 1024", "CHECKPOINT")
    assert tiles(twin).num_rows == 3
    assert _removals(twin) == 2
    twin.run("SELECT * FROM t ORDER BY a")
