"""Cursors that lock rows leave out what their own transaction has changed since."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin

_ORDERED = "DECLARE c CURSOR FOR SELECT * FROM t ORDER BY a FOR UPDATE"
_JOINED = (
    "DECLARE c CURSOR FOR SELECT x.a, y.b FROM t AS x JOIN t AS y ON x.a = y.a ORDER BY 1"
    " FOR UPDATE OF x"
)


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (a int ENC, b text ENC)")
    opened.run("INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 8) AS n")
    yield opened
    opened.close()


@pytest.mark.parametrize("statements", [
    (_ORDERED, "FETCH c", "UPDATE t SET b = 'k' WHERE a = 1", "FETCH c",
     "UPDATE t SET b = 'k' WHERE a = 3", "FETCH c", "FETCH BACKWARD 1 FROM c"),
    (_ORDERED, "UPDATE t SET b = b WHERE a = 2", "FETCH c", "FETCH c",
     "DELETE FROM t WHERE a > 6", "FETCH ALL FROM c", "FETCH ALL FROM c"),
    (_ORDERED, "SAVEPOINT s", "UPDATE t SET a = a + 10", "ROLLBACK TO s", "FETCH 2 FROM c",
     "UPDATE t SET a = a + 10 WHERE a > 4", "FETCH ALL FROM c"),
    (_JOINED, "FETCH 1 FROM c", "INSERT INTO t VALUES (7, 'n')", "DELETE FROM t WHERE a = 3",
     "MOVE 1 IN c", "FETCH 1 FROM c", "FETCH ALL FROM c"),
    ("DECLARE c SCROLL CURSOR FOR SELECT * FROM t FOR UPDATE",),
    ("DECLARE c INSENSITIVE CURSOR FOR SELECT * FROM t FOR SHARE",),
    (_ORDERED, "FETCH 2 FROM c", "FETCH PRIOR FROM c"),
    ("DECLARE c BINARY SCROLL CURSOR FOR SELECT a FROM t ORDER BY a", "FETCH 2 FROM c",
     "FETCH PRIOR FROM c", "DECLARE d SILLY CURSOR FOR SELECT 1"),
])  # fmt: skip
def test_as_on_plaintext(twin: PostgresTwin, statements: tuple[str, ...]) -> None:
    for sql in ("BEGIN", *statements, "ROLLBACK"):
        assert not twin.differs(sql, ordered=True), sql


def test_what_is_wrong_with_the_query_comes_first(twin: PostgresTwin) -> None:
    for sql in ("DECLARE c CURSOR FOR SELECT * FROM t", "DECLARE c CURSOR FOR SELECT * FROM nope",
                "DECLARE c CURSOR FOR SELECT", "DECLARE c CURSOR FOR SELECT z FROM t",
                "DECLARE c CURSOR FOR SELECT * FROM t FOR UPDATE"):  # fmt: skip
        twin.run(sql)


@pytest.mark.parametrize("seed", range(6))
def test_random_steps(twin: PostgresTwin, seed: int) -> None:
    chance = random.Random(seed)
    for sql in ("BEGIN", chance.choice((_ORDERED, _JOINED)), "SAVEPOINT s"):
        twin.run(sql)
    for _ in range(12):
        key = chance.randrange(1, 9)
        sql = chance.choice((
            "FETCH c", "FETCH 2 FROM c", "MOVE 1 IN c", f"UPDATE t SET b = 'k' WHERE a = {key}",
            f"DELETE FROM t WHERE a = {key}", f"UPDATE t SET a = a + 9 WHERE a = {key}",
            "SAVEPOINT s", "ROLLBACK TO s",
        ))  # fmt: skip
        assert not twin.differs(sql, ordered=True), sql
    twin.run("ROLLBACK")
