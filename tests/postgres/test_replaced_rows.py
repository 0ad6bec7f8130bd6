"""One row in the place of one is one statement to a server, whatever its columns are stored as."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from louver import errors
from louver.wire.messages import Statement
from tests.engines.suite import EngineTwin

TABLE = """CREATE TABLE t (id BIGINT ENC PRIMARY KEY, u UUID ENC UNIQUE, s VARCHAR ENC,
 v BIGINT ENC, x DECIMAL(12, 2) ENC, p BIGINT, q UUID, w VARCHAR, b BLOB, f DOUBLE,
 k SMALLINT)"""
ROWS = """INSERT INTO t SELECT i, ('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID,
 's' || i % 5, i - 20, i * 1.25, i, '10000000-0000-0000-0000-000000000001', 'w' || i, 'b'::BLOB,
 i / 4, i FROM range(40) r(i)"""


@pytest.fixture(params=["cryptdb", "sealed"])
def twin(request: pytest.FixtureRequest, key_file: Path, tmp_path: Path) -> Iterator[EngineTwin]:
    twin = EngineTwin("postgresql", tmp_path, key_file, request.param)
    twin.fill(TABLE)
    twin.fill(ROWS)
    yield twin
    twin.close()


def changes(twin: EngineTwin, begun: int) -> list[str]:
    """The first words of what changed the table since then."""
    sent = [message for message in twin.tap.sent()[begun:] if isinstance(message, Statement)]
    return [m.sql.split()[0] for m in sent if '"t"' in m.sql and m.kind == "write"]


def test_all_columns_are_set(twin: EngineTwin) -> None:
    update = "UPDATE t SET v = ?, s = ?, w = ? WHERE id = ?"
    for number in range(30):
        begun, text = len(twin.tap.sent()), None if number % 3 == 0 else f"n{number}"
        twin.run(update, [number - 15, text, text, number % 7])
        assert changes(twin, begun) == ["UPDATE"], number
    twin.run("SELECT * FROM t")
    twin.run("SELECT count(*), sum(v), sum(x), sum(p) FROM t")
    twin.run("SELECT s, count(*) FROM t GROUP BY s")
    for number in range(10):
        twin.run(update, [number, "s1", "last", number])
    twin.run("SELECT * FROM t WHERE s = 's1'")
    twin.run("SELECT sum(v), sum(x) FROM t WHERE s = 's1'")


def test_keys_are_kept_apart(twin: EngineTwin) -> None:
    update = "UPDATE t SET id = ? WHERE id = ?"
    for new, old in ((100, 0), (101, 1), (0, 100)):
        twin.run(update, [new, old])
    for new, old in ((5, 6), (7, 5)):
        twin.either(update, [new, old])
        twin.both(f"UPDATE t SET id = {new} WHERE id = {old}")
    twin.run("SELECT * FROM t")


def test_a_repeated_key_of_a_counted_table_is_no_race(twin: EngineTwin) -> None:
    """The rows wait to be sent together with the catalog's next version."""
    twin.louver.execute("SET default_counted = on")
    twin.fill("CREATE TABLE n (id INTEGER ENC PRIMARY KEY)", "INSERT INTO n VALUES (1)")
    for _ in range(2):
        with pytest.raises(errors.IntegrityError):
            twin.louver.execute("INSERT INTO n VALUES (1)")
    twin.run("SELECT * FROM n")
