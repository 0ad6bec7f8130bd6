"""What a lake is shown is what the ledger says: every token and every byte that is asked for.

The observer stands where the pruning service and the store stand. It records the tokens that it is
sent and the ranges of files that are read, and holds them against the ledger.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

import louver
from louver.untrusted.lake import sweep
from louver.untrusted.lake.plan import plan
from louver.wire import prune
from tests.executor.test_code_queries import TYPES, query, stored
from tests.inside import context_of
from tests.lake.tables import known_key

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


class Observer:
    """A pruning service that keeps what it is sent; it answers as it should."""

    def __init__(self, storage: Any) -> None:
        self._warehouse = storage.store.warehouse
        self.tokens: dict[bytes, int] = {}
        self.paths: set[str] = set()

    def plan(self, table: str, snapshot_id: int, where: prune.Where) -> prune.FilePlan:
        where = prune.decode(prune.encode(where))
        for token in prune.tokens(where):
            self.tokens[token] = self.tokens.get(token, 0) + 1
        root = self._warehouse.root(table, snapshot_id)
        pruned = plan(self._warehouse.objects, root, where)
        self.paths |= {entry.path for entry in pruned.files}
        return pruned


class RecordedSession:
    """The files of a warehouse, with a record of which data files were read."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.read_paths: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read(self, path: str, offset: int, length: int) -> bytes:
        self._note(path)
        data: bytes = self._inner.read(path, offset, length)
        return data

    def read_many(self, ranges: Sequence[tuple[str, int, int]]) -> Any:
        for path, _, _ in ranges:
            self._note(path)
        return self._inner.read_many(ranges)

    def _note(self, path: str) -> None:
        if path.endswith(".parquet"):
            self.read_paths.add(path)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[Any, Observer, RecordedSession]]:
    known_key(tmp_path / "k.louverkey")
    con = louver.connect(f"lake:///{tmp_path}/warehouse", keys=tmp_path / "k.louverkey")
    rng = Random(9)
    for table in ("r", "s"):
        columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
        con.execute(f"CREATE TABLE {table} (n INTEGER, {columns}); SET lake_rows_per_file = 4")
        rows = [f"({n}, {', '.join(stored(name, rng) for name in TYPES)})" for n in range(24)]
        con.execute(f"INSERT INTO {table} VALUES {', '.join(rows)}")
    storage: Any = context_of(con).storage
    observer = storage.store.pruner = Observer(storage)
    files = storage.store.warehouse.objects = RecordedSession(storage.store.warehouse.objects)
    yield con, observer, files
    con.close()


def test_the_ledger_knows_every_token_and_every_file(watched: tuple[Any, Any, Any]) -> None:
    con, observer, files = watched
    for seed in range(60):
        try:
            con.execute(query(Random(seed))).fetchall()
        except louver.Error:
            continue
    facts = con.leakage().arrow().to_pylist()
    named = {
        re.findall(r"token ([0-9a-f]{12})", fact["reveals"])[0]
        for fact in facts
        if fact["kind"] == "eds.token"
    }
    seen = {hashlib.sha256(token).hexdigest()[:12] for token in observer.tokens}
    assert seen == named
    assert len(seen) > 30
    # Files were read only if a plan kept them, or if their table was read whole.
    whole = {f["table_name"] for f in facts if f["kind"] == "scan"}
    ids = {table.label: table.id for table in context_of(con).catalog.tables.values()}
    outside = files.read_paths - observer.paths
    assert all(any(f"/t{ids[name]}/" in path for name in whole) for path in outside)


def test_equal_ranges_are_equal_tokens_and_nothing_else_is(watched: tuple[Any, Any, Any]) -> None:
    con, observer, _ = watched
    for sql in ("n < 5", "n < 5 AND n < 7", "5 > n", "n <= 4", "NOT n >= 5"):
        con.execute(f"SELECT count(*) FROM r WHERE {sql}").fetchall()
    assert list(observer.tokens.values()) == [5]
    con.execute("SELECT count(*) FROM r WHERE i < 5").fetchall()
    con.execute("SELECT count(*) FROM s WHERE n < 5").fetchall()
    con.execute("SELECT count(*) FROM r WHERE n < 6").fetchall()
    assert len(observer.tokens) == 4
    assert len({len(token) for token in observer.tokens}) == 1
    headers = [sweep.token_header(token)["index_id"] for token in observer.tokens]
    assert len(set(headers)) == 3


def test_a_ceiling_sends_no_token(tmp_path: Path) -> None:
    known_key(tmp_path / "k.louverkey")
    con = louver.connect(f"lake:///{tmp_path}/warehouse", keys=tmp_path / "k.louverkey")
    con.execute("CREATE TABLE r (n INTEGER ENC MAY REVEAL size); INSERT INTO r VALUES (1), (2)")
    storage: Any = context_of(con).storage
    observer = storage.store.pruner = Observer(storage)
    assert con.execute("SELECT n FROM r WHERE n = 1").fetchall() == [(1,)]
    assert not observer.tokens
    con.execute("ALTER TABLE r ALTER COLUMN n MAY REVEAL access")
    con.execute("INSERT INTO r VALUES (3)")
    assert con.execute("SELECT n FROM r WHERE n = 1").fetchall() == [(1,)]
    assert len(observer.tokens) == 1
    con.execute("ALTER TABLE r ALTER COLUMN n MAY REVEAL size")
    assert con.execute("SELECT n FROM r WHERE n = 2").fetchall() == [(2,)]
    assert len(observer.tokens) == 1
    con.close()
