"""kill -9 at random moments of a mix like that of TPC-C: the conditions 3.3.2.1 to 3.3.2.4 hold
afterwards, what was committed is there, and every row can be decrypted.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import louver
from bench.oltp import tpcc, tpcc_tables
from tests.generated import SOAK, generator

ROUNDS = 2 if SOAK == 1 else 30 * SOAK
SCALE = tpcc_tables.Scale(2, 2, 9, 30, 2)
#: Workers are forked from a process that has imported everything already.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__, "pandas"])  # which DuckDB imports where it is there
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


def opened(folder: Path, profile: str) -> Any:
    return louver.connect(f"duckdb:///{folder}/db", keys=folder / "key", profile=profile)


def work(folder: Path, profile: str, seed: str, said: Connection) -> None:
    """Run one transaction after the other; say the name of each that is committed."""
    os.environ["LOUVER_STATE_DIR"] = str(folder / "state")
    chance = random.Random(seed)
    client = opened(folder, profile)
    cards = [name for name, count in tpcc.DECK.items() for _ in range(count)]
    said.send("")
    while True:
        name = chance.choice(cards)
        client.begin()
        _, commits = tpcc.TRANSACTIONS[name](client, tpcc.inputs(SCALE, chance))
        client.commit() if commits else client.rollback()
        said.send(name if commits else "")


def killed(folder: Path, profile: str, seed: str, after: int, delay_s: float) -> list[str]:
    """Run a worker, kill it a time after so many transactions, and return what it saw committed."""
    heard, said = FORKS.Pipe(duplex=False)
    worker = FORKS.Process(target=work, args=(folder, profile, seed, said))
    worker.start()
    said.close()
    names = [heard.recv() for _ in range(1 + after)]
    time.sleep(delay_s)
    worker.kill()
    worker.join()
    with suppress(EOFError):
        while True:
            names.append(heard.recv())
    heard.close()
    return names


def filled(client: Any) -> None:
    """Every column of customer is ENC, the other tables are plain."""
    for name, columns in tpcc_tables.TABLES.items():
        client.execute(f"CREATE TABLE {name} ({columns.format(enc=' ENC')})")
        client.execute(f"INSERT INTO {name} {tpcc_tables.ROWS[name].format(**asdict(SCALE))}")


def counts(client: Any) -> dict[str, int]:
    """The rows of every table, all of which are decrypted."""
    return {
        name: client.execute(f"SELECT * FROM {name}").arrow().num_rows
        for name in tpcc_tables.TABLES
    }


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_a_killed_client_leaves_the_conditions(
    profile: str, tmp_path: Path, own_state: Path
) -> None:
    chance = generator(f"mix {profile}")
    louver.KeyRing.create(tmp_path / "key")
    with opened(tmp_path, profile) as client:
        filled(client)
        before = counts(client)
    committed = 0
    for number in range(ROUNDS):
        moment = chance.randint(1, 4), chance.uniform(0, 0.3)
        names = killed(tmp_path, profile, f"{chance.random()}", *moment)
        with opened(tmp_path, profile) as client:  # verifies catalog and ledger against the pin
            tpcc_tables.check(client)
            after = counts(client)
        payments, orders = names.count("payment"), names.count("new order")
        assert after["history"] - before["history"] - payments in (0, 1), number
        assert after["orders"] - before["orders"] - orders in (0, 1), number
        fixed = ("warehouse", "district", "customer", "item", "stock")
        assert [after[name] for name in fixed] == [before[name] for name in fixed]
        before, committed = after, committed + len(names) - 1
    assert committed >= ROUNDS
