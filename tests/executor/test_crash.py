"""kill -9 in the middle of writing: data, catalog and ledger agree afterwards."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pytest

from louver.trusted.backends import tile_texts
from louver.trusted.executor import state
from louver.trusted.executor.load import load
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault import tile_forms
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement

ROUNDS = 3
LOADED = 3_000
#: Workers are forked from a process that has imported everything already.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__, "pandas"])  # which DuckDB imports where it is there


def work(folder: Path, what: str, start: int, said: Connection) -> None:
    """Make one change after another, and say which of them are done."""
    os.environ["LOUVER_STATE_DIR"] = str(folder / "state")
    session = opened(folder)

    def loading(number: int) -> None:
        ids = range(number * LOADED, (number + 1) * LOADED)
        data = pa.table({"a": ids, "b": [f"text {i}" for i in ids]})
        load(session.context, "loaded", data.to_reader(500))

    def inserting(number: int) -> None:
        session.execute("INSERT INTO inserted VALUES ($1, $2)", [number, f"text {number}"])
        if number % 3 == 0:
            session.execute("UPDATE inserted SET b = b || '!' WHERE a = $1", [number])

    def declaring(number: int) -> None:
        session.execute(f"CREATE TABLE made_{number} (a INTEGER ENC, b TEXT)")
        session.execute(f"INSERT INTO made_{number} VALUES (1, 'x')")

    if what == "fold":
        tile_forms.ROWS, state.FOLDED_ROWS = 4, 8
    act = {"load": loading, "insert": inserting, "fold": inserting, "catalog": declaring}[what]
    said.send(start - 1)
    for number in itertools.count(start):
        act(number)
        said.send(number)


def opened(folder: Path) -> Session:
    keys = KeyRing.open(str(folder / "key"))
    return Session(DuckDBEngine(str(folder / "db")), keys, Policy())


def killed(folder: Path, what: str, start: int, after_ms: float) -> int:
    """Run a worker, kill it after a time, and return the last change that it saw committed."""
    heard, said = FORKS.Pipe(duplex=False)
    worker = FORKS.Process(target=work, args=(folder, what, start, said))
    worker.start()
    said.close()
    last = int(heard.recv())
    time.sleep(after_ms / 1000)
    worker.kill()
    worker.join()
    with suppress(EOFError):
        while True:
            last = int(heard.recv())
    heard.close()
    return last


def contents(session: Session, table: str, at_once: int) -> list[tuple[object, ...]]:
    """All rows of a table, opened, as many as the catalog says: it knows of them when they double,
    and before they are there: the last change (of rows ``at_once``) may have been killed between.
    """
    rows = session.execute(f"SELECT * FROM {table}").rows
    known = session.context.catalog.table("main", table)
    assert rows is not None
    assert known is not None
    assert not known.counted
    # Each client that was killed may have written rows that are not noted, until they doubled.
    assert known.row_count - at_once <= rows.num_rows <= (ROUNDS + 1) * (known.row_count + 1)
    return session.python_rows(rows)


def check_loaded(session: Session, last: int) -> int:
    ids = sorted(row[0] for row in contents(session, "loaded", LOADED))  # type: ignore[type-var]
    assert ids == list(range(len(ids)))
    assert len(ids) % LOADED == 0, "a load is there whole or not at all"
    done = len(ids) // LOADED
    assert done - 1 in (last, last + 1), "what was committed stays"
    return done


def check_inserted(session: Session, last: int) -> int:
    rows = sorted(contents(session, "inserted", 1), key=repr)
    ids = sorted(row[0] for row in rows)  # type: ignore[type-var]
    assert ids == list(range(len(ids)))
    assert len(ids) - 1 in (last, last + 1)
    for number, text in rows:
        assert text in (f"text {number}", f"text {number}!")
    untouched = [int(str(number)) % 3 == 0 and str(text)[-1] != "!" for number, text in rows]
    assert sum(untouched) <= ROUNDS
    return len(ids)


def check_folded(session: Session, last: int) -> int:
    """Rows are in the tile that has them, or by themselves."""
    count = check_inserted(session, last)
    table = session.context.catalog.table("main", "inserted")
    assert table is not None
    sql = tile_texts.counts(session.context.backend, table)
    held, tiles = session.context.engine.query(Statement(sql)).to_pylist()[0].values()
    assert tiles >= (count - 3 * (ROUNDS + 1)) // 12
    assert held <= 4 * tiles
    return count


def check_declared(session: Session, last: int) -> int:
    tables = [
        table for table in session.context.catalog.tables.values() if table.name.startswith("made_")
    ]
    states = [contents(session, table.name, 1) for table in tables]
    assert all(rows in ([(1, "x")], []) for rows in states)
    assert states.count([]) <= ROUNDS
    assert len(tables) - 1 in (last, last + 1)
    return len(tables)


@pytest.mark.parametrize("what", ["load", "insert", "fold", "catalog"])
def test_a_killed_client_leaves_everything_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv("LOUVER_STATE_DIR", str(tmp_path / "state"))
    KeyRing.create(str(tmp_path / "key"))
    session = opened(tmp_path)
    session.execute(
        "CREATE TABLE loaded (a BIGINT ENC PRIMARY KEY, b TEXT ENC);"
        "CREATE TABLE inserted (a BIGINT ENC PRIMARY KEY, b TEXT ENC)"
    )
    session.close()
    check = {
        "load": check_loaded, "insert": check_inserted, "fold": check_folded,
        "catalog": check_declared,
    }[what]  # fmt: skip
    chance = random.Random(f"kill {what}")
    start = 0
    for _ in range(ROUNDS):
        last = killed(tmp_path, what, start, chance.uniform(20, 400))
        session = opened(tmp_path)  # verifies catalog and ledger against the pin
        start = check(session, last)
        assert {fact.table for fact in session.context.ledger.facts()} <= {
            table.label for table in session.context.catalog.tables.values()
        }
        session.close()
