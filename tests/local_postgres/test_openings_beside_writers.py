"""Queries that would have a layer opened wait for no one who is writing: they do without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import louver
from louver.trusted.executor import spot_check
from tests import shared
from tests.local_postgres.twin import PostgresTwin
from tests.postgres import servers

#: Far less than a lock is waited for.
LIMIT_S = 10.0
QUERIES = (
    "SELECT k FROM t WHERE v = 30",
    "SELECT v, count(*) FROM t GROUP BY v ORDER BY v",
    "SELECT k FROM t WHERE v > 60 ORDER BY k",
    "SELECT t.k FROM t JOIN u ON t.v = u.w ORDER BY t.k",
)


@pytest.fixture
def pair() -> Iterator[tuple[PostgresTwin, PostgresTwin]]:
    first = PostgresTwin()
    second = PostgresTwin(beside=first)
    first.both("CREATE TABLE t (k bigint ENC PRIMARY KEY, v bigint ENC)")
    first.both("CREATE TABLE u (k bigint ENC PRIMARY KEY, w bigint ENC)")
    first.both("INSERT INTO t SELECT i, 10 * i FROM generate_series(1, 9) i")
    first.both("INSERT INTO u SELECT i, 20 * i FROM generate_series(1, 9) i")
    second.both("SELECT count(*) FROM t")
    yield first, second
    second.close()
    first.close()


@pytest.mark.parametrize("within", ["", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"])
@pytest.mark.parametrize("writes", ["INSERT INTO t VALUES (100, 30)", "DELETE FROM t WHERE k = 3"])
def test_they_do_without(pair: tuple[PostgresTwin, PostgresTwin], within: str, writes: str) -> None:
    writer, reader = pair
    writer.both("BEGIN")
    writer.both(writes)
    if within:
        reader.both(within)
    for sql in QUERIES:
        begun = time.monotonic()
        assert not reader.differs(sql), sql
        assert time.monotonic() - begun < LIMIT_S, sql
    if within:
        reader.both("COMMIT")
    writer.both("COMMIT")
    for sql in QUERIES:
        assert not reader.differs(sql), sql


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE"])
def test_a_transaction_that_did_nothing_commits(
    pair: tuple[PostgresTwin, PostgresTwin], begin: str
) -> None:
    """Whatever others have defined meanwhile."""
    first, second = pair
    for between in ("", "SELECT 1"):
        second.both(begin)
        if between:
            second.both(between)
        first.both("CREATE TABLE meanwhile (a integer ENC)")
        first.both("DROP TABLE meanwhile")
        assert not second.differs("COMMIT")


def test_a_layer_that_another_client_opens_during_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rows of the sample are of an epoch that only the newer catalog knows, in which the layer
    is open: nothing was tampered with.
    """
    url = servers.database_url("checked_meanwhile")
    keys = str(shared.key_file())
    first = louver.connect(url, keys, "cryptdb", language="postgres")
    first.execute("CREATE TABLE t (k int, a int ENC)")
    other = louver.connect(url, keys, "cryptdb", language="postgres")
    sample, met = spot_check._sample, list[str]()

    def meanwhile(*given: Any) -> Any:
        if not met:
            met.append("once")
            other.execute("INSERT INTO t SELECT i, i % 1000 FROM generate_series(1001, 1900) i")
            assert len(other.execute("SELECT k FROM t WHERE a = 5").fetchall()) == 2
        return sample(*given)

    first.execute("INSERT INTO t SELECT i, i FROM generate_series(3, 60) i")
    monkeypatch.setattr(spot_check, "_sample", meanwhile)
    assert sorted(first.execute("SELECT k FROM t WHERE a = 5").fetchall()) == [(5,), (1005,)]
    assert met
    first.close()
    other.close()
