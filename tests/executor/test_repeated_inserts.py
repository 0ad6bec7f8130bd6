"""INSERT … VALUES that comes again with other values: two statements of the server's, and the right
ones after whatever changed meanwhile, here or by another client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import louver
from louver import errors
from louver.trusted.executor import dispatch
from louver.trusted.executor.change import inserting
from tests.inside import context_of
from tests.twin import Twin

SQL = "INSERT INTO t (a, b) VALUES (?, ?)"


@pytest.fixture
def clients(tmp_path: Path, key_file: Path) -> Iterator[list[Any]]:
    with ExitStack() as stack:
        url = f"duckdb:///{tmp_path}/x.duckdb"
        yield [stack.enter_context(louver.connect(url, keys=key_file)) for _ in range(2)]


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_statements_of_an_insert(
    profile: str, key: str, tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside BEGIN and COMMIT: the token's, and the INSERT, of one row and of many."""
    url = f"duckdb:///{tmp_path}/x.duckdb"
    with louver.connect(url, keys=key_file, profile=profile) as con:
        con.execute(
            f"CREATE TABLE t (a INT ENC{key}, b TEXT ENC, c DECIMAL(9,2) ENC, d DATE ENC, e TEXT)"
        )
        con.execute(
            "INSERT INTO t SELECT i, 'b' || i, i, DATE '2020-01-01' + i::INT, ''"
            " FROM range(500) AS r(i)"
        )
        sql, engine = "INSERT INTO t VALUES (?, ?, ?, ?, ?)", context_of(con).engine
        con.execute(sql, [500, "b", 1, "2020-01-01", "x"])
        handled, local = list[object](), context_of(con).local
        monkeypatch.setattr(dispatch, "handler", lambda *given: handled.append(given))
        before = engine.traffic.statements
        con.execute(sql, [501, "b", 19.99, "2020-01-01", None])
        assert (engine.traffic.statements - before, handled) == (2, [])
        monkeypatch.undo()
        monkeypatch.setattr(inserting, "_rehearsed_many", None)
        rows: list[list[Any]] = [[i, "b", 1.5, "2020-01-01", "x"] for i in range(510, 700)]
        for run in (
            lambda: con.executemany(sql, rows),
            lambda: con.execute(
                f"{sql}{', (?, ?, ?, ?, ?)' * 189}", [v for i, *r in rows for v in (i + 900, *r)]
            ),
        ):
            before, revision = engine.traffic.statements, local.revision
            run()
            # And the catalog's version, which a text that is new, or many rows, ask for.
            assert engine.traffic.statements - before == 3
            assert local.revision == revision
        assert con.execute("SELECT count(*), sum(c) FROM t").fetchall()[0][0] == 882


#: What changes between two INSERTs.
CHANGES = (
    "ALTER TABLE t ADD COLUMN c INT DEFAULT 5",
    "ALTER TABLE t ALTER COLUMN b SET NOT NULL",
    "ALTER TABLE t RENAME COLUMN b TO bb",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t ALTER COLUMN a TYPE TINYINT",
    "DROP TABLE t",
    "DROP TABLE t; CREATE TABLE t (b TEXT ENC, a TEXT ENC, x INT DEFAULT 7)",
    "CREATE UNIQUE INDEX i ON t (a)",
    "CREATE TABLE u (a INT ENC); INSERT INTO u VALUES (1)",
    "DELETE FROM t",
    "INSERT INTO t VALUES (100000, 'another')",
)
FIRST: list[list[object]] = [[0, "a"], [1, "b"]]
ROWS: list[list[object]] = [[2, "x"], [1000, None], [1, "y"]]


@pytest.mark.parametrize(
    "change", [*CHANGES, "CREATE SCHEMA s; CREATE TABLE s.t (a INT ENC, b TEXT); USE s"]
)
def test_changes_of_its_own(change: str, open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    twin.fill("CREATE TABLE t (a INT ENC, b TEXT ENC)")
    for row in FIRST:
        twin.run(SQL, row)
    for sql in change.split("; "):
        twin.run(sql)
    for row in ROWS:
        twin.either(SQL, row)
        twin.either("SELECT * FROM t")


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_another_client(change: str, clients: list[Any]) -> None:
    writer, other = clients
    plain = Twin.beside(writer)
    plain.fill("CREATE TABLE t (a INT ENC, b TEXT ENC)")
    for row in FIRST:
        plain.run(SQL, row)
    other.execute(change)
    for sql in change.split("; "):
        plain.plain.execute(sql.replace(" ENC", ""))
    for row in ROWS:
        plain.either(SQL, row)
        plain.either("SELECT * FROM t")
    plain.plain.close()


def test_within_a_transaction(clients: list[Any]) -> None:
    """One that began before the schema changed fails; what it wrote does not come."""
    writer, other = clients
    writer.execute("CREATE TABLE t (a INT ENC PRIMARY KEY, b TEXT ENC)")
    for row in ([0, "a"], [1, "b"]):
        writer.execute(SQL, row)
    writer.execute("BEGIN")
    for row in ([2, "a"], [3, "b"]):
        writer.execute(SQL, row)
    writer.execute("ROLLBACK; BEGIN")
    writer.execute(SQL, [4, "c"])
    writer.execute("COMMIT; BEGIN")
    other.execute("ALTER TABLE t ADD COLUMN c INT")
    with pytest.raises(errors.OperationalError):
        writer.execute(SQL, [5, "d"])
    writer.execute("ROLLBACK; BEGIN")
    with pytest.raises(errors.IntegrityError, match="Duplicate key"):
        writer.execute(SQL, [1, "d"])
    with pytest.raises(errors.Error, match="aborted"):
        writer.execute(SQL, [6, "d"])
    writer.execute("ROLLBACK")
    writer.execute(SQL, [7, "e"])
    assert other.execute("SELECT a, c FROM t ORDER BY a").fetchall() == [
        (0, None), (1, None), (4, None), (7, None)
    ]  # fmt: skip
    with pytest.raises(errors.IntegrityError, match="Duplicate key"):
        other.execute(SQL, [7, "e"])
