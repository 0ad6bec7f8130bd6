"""Two real providers are loaded again, at different moments, while questions are asked."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import duckdb
import pytest

import louver
from tests.providers.services import replaced, serving

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
QUERY = "SELECT count(*), sum(b) FROM t WHERE a = ?"


def rows(factor: int) -> str:
    return f"SELECT i % 10 AS a, i * {factor} AS b FROM range(1000) r(i)"


def expected(factor: int, key: int) -> tuple[int, int]:
    with duckdb.connect() as connection:
        query = f"SELECT count(*), sum(b)::BIGINT FROM ({rows(factor)}) WHERE a = {key}"
        row = connection.execute(query).fetchall()[0]
    return (int(row[0]), int(row[1]))


def until_newest(con: louver.Connection, newest: tuple[int, int]) -> None:
    """Wait until answers are of the newest version: old ones are removed in the background."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        with contextlib.suppress(louver.errors.OperationalError):
            row = con.execute(QUERY, [3]).fetchall()[0]
            if (int(row[0]), int(row[1])) == newest:
                return
        time.sleep(0.05)
    pytest.fail("a version that was replaced is still answered from after a minute")


@pytest.mark.parametrize("keep", ["600", "0.01"])
def test_every_answer_is_of_one_version(tmp_path: Path, keep: str) -> None:
    """Also where a provider forgets the old version at once: then it is asked once more."""
    paths = [replaced(tmp_path / f"{name}/t.parquet", rows(1)) for name in "ab"]
    options = ("--watch=0.1", f"--keep-seconds={keep}")
    with (
        serving(paths[0], *options, fake=False) as first,
        serving(paths[1], *options, fake=False) as second,
        louver.connect(f"providers://{first.address},{second.address}") as con,
    ):
        right = {factor: [expected(factor, key) for key in range(10)] for factor in range(1, 5)}
        now = 1
        ended = threading.Event()

        def change() -> None:
            nonlocal now
            try:
                for factor in range(2, 5):
                    for path, running in zip(paths, (first, second), strict=True):
                        replaced(path, rows(factor))
                        assert running.event("reloaded")["changed"]
                    now = factor
            finally:
                ended.set()

        changing = threading.Thread(target=change)
        changing.start()
        answers, failed = 0, list[str]()
        while not ended.is_set() or answers < 20:
            try:
                row = con.execute(QUERY, [answers % 10]).fetchall()[0]
            except louver.errors.OperationalError as error:
                failed.append(error.code)
                continue
            # The newest version that both hold may be older than the newest of either.
            fitting = [right[factor][answers % 10] for factor in range(1, min(now + 2, 5))]
            assert (int(row[0]), int(row[1])) in fitting
            answers += 1
        changing.join()
        assert now == 4
        # While one of them alone holds the new data, there may be nothing in common.
        lost = {"provider.differ", "provider.version"} if keep == "0.01" else set()
        assert set(failed) <= lost
        if keep == "0.01":
            until_newest(con, right[4][3])
        assert con.execute(QUERY, [3]).fetchall()[0] is not None
    assert (first.code, second.code) == (0, 0)
