"""One row in the place of one: one statement of a server that does with it what it does with a
deletion and another row, two of any other; what is there afterwards is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from louver.trusted.backends import duckdb as backend
from louver.wire.messages import Append, Statement
from tests.twin import Twin

TABLE = """CREATE TABLE t (id BIGINT ENC PRIMARY KEY, s VARCHAR ENC UNIQUE, v DOUBLE ENC,
 p BIGINT, l BIGINT[], d DATE)"""
ROWS = """INSERT INTO t SELECT i, 's' || i, i * 1.5, CASE WHEN i % 2 = 0 THEN i END, [i],
 '2020-01-01' FROM range(40) r(i)"""
PLAIN = ("ALTER TABLE t DROP COLUMN l", "ALTER TABLE t DROP COLUMN d")
SET = "UPDATE t SET v = ? WHERE id = ?"


def filled(twin: Twin, *more: str) -> Twin:
    for sql in (TABLE, ROWS, *more):
        twin.fill(sql)
    twin.run(SET, [0.5, 0])
    return twin


def writes(twin: Twin, begun: int) -> list[str]:
    """The first words of what changed the server's table since then."""
    sent = twin.tap.sent()[begun:]
    texts = [m.sql for m in sent if isinstance(m, Statement) and '"t"' in m.sql]
    changes = [text.split()[0] for text in texts if not text.startswith("SELECT")]
    return changes + ["append" for m in sent if isinstance(m, Append)]


def row_ids(twin: Twin) -> pa.ChunkedArray:
    """The numbers of the server's rows, as they are stored."""
    return twin.tap.engine.query(Statement('SELECT row_id FROM "main"."t"')).column(0)


@pytest.mark.parametrize("profile", ["cryptdb", "sealed", "sdb"])
def test_one_statement_removes_and_adds(profile: str, open_twin: Callable[..., Twin]) -> None:
    twin = filled(open_twin(profile), *PLAIN)
    for number, (value, key) in enumerate([(7.25, 3), (None, 4), (8.5, 3), (1.0, 39)]):
        before, begun = row_ids(twin).to_pylist(), len(twin.tap.sent())
        twin.run(SET, [value, key])
        assert writes(twin, begun) == ["UPDATE"], number
        after = row_ids(twin).to_pylist()
        gone = set(before) - set(after)
        # A number that no row has had, at the end, as an INSERT would have put it.
        assert len(gone) == 1
        assert len(after) == len(before)
        assert after == [row for row in before if row not in gone] + [after[-1]]
        assert after[-1] > max(before)
    twin.run("SELECT * FROM t")


def test_what_is_no_constant_takes_two(open_twin: Callable[..., Twin]) -> None:
    """A list and a date go as Arrow does."""
    twin = filled(open_twin("cryptdb"))
    begun = len(twin.tap.sent())
    twin.run(SET, [7.25, 3])
    assert writes(twin, begun) == ["DELETE", "append"]
    twin.run("SELECT * FROM t")


def test_a_server_that_does_not_takes_two(
    open_twin: Callable[..., Twin], monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = filled(open_twin("cryptdb"), *PLAIN)
    assert backend.BACKEND.replaces
    storage: Any = twin.session.context.storage
    other = replace(storage._parts, backend=replace(backend.BACKEND, replaces=False))
    monkeypatch.setattr(storage, "_parts", other)
    begun = len(twin.tap.sent())
    twin.run(SET, [7.25, 3])
    assert writes(twin, begun) == ["DELETE", "append"]
    twin.run("SELECT * FROM t")


def test_one_key_again_and_again_in_a_transaction(open_twin: Callable[..., Twin]) -> None:
    """Keys that went, came back, and moved to other rows in one transaction."""
    twin = filled(open_twin("cryptdb"), *PLAIN)
    key = "UPDATE t SET id = ? WHERE id = ?"
    for end in ("ROLLBACK", "COMMIT"):
        twin.fill("BEGIN")
        for value in (1.0, 2.0, 3.0):
            twin.run(SET, [value, 5])
        twin.run("DELETE FROM t WHERE id = ?", [6])
        twin.run("INSERT INTO t VALUES (?, ?, ?, ?)", [6, "s6", 1.0, 2])
        twin.run(SET, [9.0, 6])
        for new, old in ((90, 6), (6, 90), (91, 5)):
            twin.run(key, [new, old])
        twin.run("INSERT INTO t VALUES (?, ?, ?, ?)", [5, "new", None, None])
        twin.run(SET, [4.0, 5])
        twin.run("SELECT * FROM t")
        twin.fill(end)
        twin.run("SELECT * FROM t")
    assert '"id: 8"' in twin.fails(key, [8, 7]).message
    assert '"s: s8"' in twin.fails("UPDATE t SET s = ? WHERE id = ?", ["s8", 7]).message
    twin.run("SELECT * FROM t")
