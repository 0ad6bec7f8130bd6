"""kill -9 while layers are opened: every column is wholly open or wholly closed, and goes on."""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault import schemes
from louver.trusted.vault.arrays import unwrapped
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement
from tests.executor.test_crash import FORKS
from tests.local_duckdb import local_duckdb

PAUSES_MS = (20, 80, 160, 320)
ROWS = 20_000
COLUMNS = {"a": "BIGINT", "b": "VARCHAR", "c": "DATE", "d": "INTEGER"}
VALUES = "i * 7, 'text ' || i % 50, DATE '2000-01-01' + (i % 900)::INT, nullif(i % 1000, 5)"
QUERIES = (
    "SELECT count(*) FROM {t} WHERE a = 700",
    "SELECT count(*) FROM {t} WHERE d < 500",
    "SELECT count(*) FROM {t} WHERE b = 'text 7'",
    "SELECT count(*) FROM {t} WHERE c >= DATE '2001-01-01'",
    "SELECT count(*) FROM {t} AS one JOIN {t} AS two ON one.a = two.a AND two.d = 17",
    "SELECT count(*) FROM {t} WHERE a <= 7000",
)


def opened(folder: Path) -> Session:
    keys = KeyRing.open(str(folder / "key"))
    return Session(DuckDBEngine(str(folder / "db")), keys, Policy("cryptdb"))


def work(folder: Path, table: str, said: Connection) -> None:
    """Ask one query after another, each of which opens a layer."""
    os.environ["LOUVER_STATE_DIR"] = str(folder / "state")
    session = opened(folder)
    session.execute(f"SELECT count(*) FROM {table} WHERE a + 1 = 5")
    said.send(0)
    for number, query in enumerate(QUERIES, 1):
        session.execute(query.format(t=table))
        said.send(number)
    session.close()


def killed(folder: Path, table: str, after_ms: float, layers: int) -> int:
    """Kill a client a while after it opened so many layers; how many it had opened."""
    heard, said = FORKS.Pipe(duplex=False)
    worker = FORKS.Process(target=work, args=(folder, table, said))
    worker.start()
    said.close()
    last = int(heard.recv())
    while last < layers:
        last = int(heard.recv())
    time.sleep(after_ms / 1000)
    worker.kill()
    worker.join()
    with suppress(EOFError):
        while True:
            last = int(heard.recv())
    heard.close()
    return last


def states_hold(session: Session, name: str) -> int:
    """Every code of every row is what the catalog says; the number of open layers."""
    table = session.context.catalog.table("main", name)
    assert table is not None
    count = 0
    for column in table.columns:
        for onion, state in column.layers.items():
            sql = f"SELECT row_id, {column.stored['rnd']}, {column.stored[onion]} FROM {name}"
            reply = session.context.engine.query(Statement(sql)).combine_chunks()
            rows, values, held = (reply.column(index).chunk(0) for index in range(3))
            field = session.context.local.arrow_field(column.type)
            plain = unwrapped(
                session.context.columns.open_column(table, column, values, rows, field)
            )
            wanted = schemes.seal_one(session.context.columns, table, column, onion, plain, rows)
            assert held.equals(wanted), (column.name, onion, state)
            count += state != "closed"
    return count


def test_a_client_killed_while_it_opens_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOUVER_STATE_DIR", str(tmp_path / "state"))
    KeyRing.create(str(tmp_path / "key"))
    session = opened(tmp_path)
    listed = ", ".join(f"{name} {type_} ENC" for name, type_ in COLUMNS.items())
    for number in range(len(PAUSES_MS)):
        session.execute(f"CREATE TABLE t{number} ({listed})")
        session.execute(f"INSERT INTO t{number} SELECT {VALUES} FROM range({ROWS}) r(i)")
    session.close()
    chance = random.Random("kill while peeling")
    for number, pause_ms in enumerate(PAUSES_MS):
        # However slow the machine is, the last two come as far as a layer.
        layers = max(0, number - 1)
        last = killed(tmp_path, f"t{number}", pause_ms * chance.uniform(0.5, 1.5), layers)
        assert last >= layers
        session = opened(tmp_path)
        assert states_hold(session, f"t{number}") >= last
        for query in QUERIES:
            answer = session.execute(query.format(t=f"t{number}"))
            assert answer.rows is not None
            assert session.python_rows(answer.rows) == wanted(session, query)
        assert states_hold(session, f"t{number}") >= 5
        session.close()


def wanted(session: Session, query: str) -> list[tuple[object, ...]]:
    """What plaintext DuckDB answers."""
    names = ", ".join(COLUMNS)
    source = f"(SELECT {VALUES} FROM range({ROWS}) r(i)) AS made({names})"
    workspace = local_duckdb(session.context.local).workspace
    return list(workspace.execute(query.format(t=f"(FROM {source})")).fetchall())
