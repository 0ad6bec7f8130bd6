"""Several clients at once on one database, as applications are: transactions with savepoints over
tables with serial keys, cascades and counters. ``python -m tests.local_postgres.crowd --clients 6
--transactions 50`` plays against Louver and against plaintext.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import louver
from louver import errors
from louver._rust import postgres
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.type_names import TypeNames
from tests import shared
from tests.local_postgres.twin import plain_text
from tests.postgres import servers

_TABLES = (
    "CREATE TABLE parent (id serial PRIMARY KEY, total bigint ENC)",
    "CREATE TABLE child (id serial PRIMARY KEY, parent int NOT NULL REFERENCES parent"
    " ON DELETE CASCADE ON UPDATE CASCADE, amount bigint ENC)",
    "CREATE TABLE counter (id int PRIMARY KEY, n bigint ENC)",
    "CREATE TABLE log (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, who int, what text ENC)",
    "INSERT INTO parent (total) VALUES (0), (0), (0), (0)",
    "INSERT INTO counter VALUES (1, 0), (2, 0), (3, 0)",
)
Rows = list[tuple[Any, ...]]
Run = Callable[[str, Sequence[object]], Rows]


class Plain:
    """A database of plaintext PostgreSQL."""

    def __init__(self, name: str) -> None:
        servers.database_url(name)
        self._name, self._server = name, servers.shared()

    def open(self) -> tuple[Run, Callable[[], None]]:
        """A session: what runs a statement, and what ends it."""
        folder = str(self._server.folder)
        raw = postgres.Session(folder, servers.PORT, servers.USER, self._name)
        connection = PostgresConnection(raw, TypeNames())

        def run(sql: str, parameters: Sequence[object]) -> Rows:
            reply = connection.run(plain_text(sql), list(parameters))
            return connection.python_rows(connection.table(reply)) if reply[1] else []

        return run, connection.close


class Crowded:
    """A database of Louver's."""

    def __init__(self, name: str, profile: str = "cryptdb") -> None:
        self._url, self._profile = servers.database_url(name), profile

    def open(self) -> tuple[Run, Callable[[], None]]:
        """See `Plain`."""
        connection: Any = louver.connect(
            self._url, str(shared.key_file()), self._profile, language="postgres"
        )

        def run(sql: str, parameters: Sequence[object]) -> Rows:
            cursor = connection.execute(sql, list(parameters))
            return list(cursor.fetchall()) if cursor.description is not None else []

        return run, connection.close


class Client:
    """One client, which draws its transactions from a seed."""

    def __init__(self, run: Run, number: int, seed: int) -> None:
        self._session, self._number = run, number
        self._random = Random(f"{seed}.{number}")
        #: statements sent, errors by code, and what committed transactions have done
        self.statements, self.failed, self.done = 0, Counter[str](), Counter[str]()
        self.slowest_s = 0.0
        self._own = list[int]()
        self._kinds = (
            self._adds, self._adds, self._makes, self._counts, self._counts, self._locks,
            self._removes, self._logs, self._logs, self._moves, self._looks,
        )  # fmt: skip

    def play(self, transactions: int) -> None:
        """Run so many transactions; each that fails is undone and counted."""
        for _ in range(transactions):
            kind = self._random.choice(self._kinds)
            begun = time.monotonic()
            try:
                self.done.update(kind())
            except errors.Error as error:
                code = str(getattr(error, "sqlstate", "") or error.code)
                self.failed[f"{kind.__name__}: {code} {error.code}"] += 1
                self._run("ROLLBACK")
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)

    def _run(self, sql: str, *parameters: object) -> Rows:
        self.statements += 1
        return self._session(sql, parameters)

    def _add(self, parent: int) -> None:
        amount = self._random.randrange(100)
        self._run("INSERT INTO child (parent, amount) VALUES ($1, $2)", parent, amount)
        self._run("UPDATE parent SET total = total + $1 WHERE id = $2", amount, parent)

    def _adds(self) -> dict[str, int]:
        self._run("BEGIN")
        self._run("SAVEPOINT one")
        # The parent first: two who lock a row shared, and then alone, are a deadlock.
        parent = self._random.randint(1, 4)
        self._run("SELECT total FROM parent WHERE id = $1 FOR UPDATE", parent)
        self._add(parent)
        self._run("RELEASE one")
        self._run("COMMIT")
        return {"children": 1}

    def _makes(self) -> dict[str, int]:
        self._run("BEGIN")
        ((parent,),) = self._run("INSERT INTO parent (total) VALUES (0) RETURNING id")
        self._run("SAVEPOINT one")
        self._add(parent)
        self._run("ROLLBACK TO one")
        self._add(parent)
        self._run("SAVEPOINT two")
        self._add(parent)
        self._run("RELEASE two")
        self._run("COMMIT")
        self._own.append(parent)
        return {"parents": 1, "children": 2}

    def _counts(self) -> dict[str, int]:
        self._run("UPDATE counter SET n = n + 1 WHERE id = $1", self._random.randint(1, 3))
        return {"counted": 1}

    def _locks(self) -> dict[str, int]:
        key = self._random.randint(1, 3)
        self._run("BEGIN")
        self._run("INSERT INTO log (who, what) VALUES ($1, 'locks')", self._number)
        ((held,),) = self._run("SELECT n FROM counter WHERE id = $1 FOR UPDATE", key)
        self._run("SAVEPOINT one")
        self._run("UPDATE counter SET n = $1 WHERE id = $2", held + 1, key)
        self._run("RELEASE one")
        self._run("COMMIT")
        return {"counted": 1, "logged": 1}

    def _removes(self) -> dict[str, int]:
        if not self._own:
            return {}
        self._run("DELETE FROM parent WHERE id = $1", self._own[-1])
        self._own.pop()
        return {"parents": -1, "children": -2}

    def _moves(self) -> dict[str, int]:
        if not self._own:
            return {}
        self._run("BEGIN")
        self._run("SAVEPOINT one")
        fresh = -self._own[-1] if self._own[-1] > 0 else self._own[-1] - 100_000
        self._run("UPDATE parent SET id = $1 WHERE id = $2", fresh, self._own[-1])
        self._run("RELEASE one")
        self._run("COMMIT")
        self._own[-1] = fresh
        return {}

    def _logs(self) -> dict[str, int]:
        count = self._random.randint(1, 3)
        values = ", ".join(["($1, 'logs')"] * count)
        self._run(f"INSERT INTO log (who, what) VALUES {values}", self._number)
        return {"logged": count}

    def _looks(self) -> dict[str, int]:
        self._run("SELECT sum(n) FROM counter")
        self._run("SELECT count(*) FROM child WHERE parent = $1", self._random.randint(1, 4))
        return {}


def wrongs(run: Run, done: Counter[str]) -> list[str]:
    """What does not add up."""
    expected = {
        "SELECT count(*), count(DISTINCT id) FROM log": (done["logged"], done["logged"]),
        "SELECT count(*), count(DISTINCT id) FROM parent": (done["parents"] + 4,) * 2,
        "SELECT count(*), count(DISTINCT id) FROM child": (done["children"],) * 2,
        "SELECT sum(n) FROM counter": (done["counted"],),
        "SELECT count(*) FROM child WHERE parent NOT IN (SELECT id FROM parent)": (0,),
        "SELECT count(*) FROM parent p WHERE total <>"
        " (SELECT coalesce(sum(amount), 0) FROM child WHERE parent = p.id)": (0,),
    }
    results = {sql: run(sql, [])[0] for sql in expected}
    return [f"{sql}: {results[sql]}" for sql, row in expected.items() if results[sql] != row]


def crowd(
    database: Plain | Crowded, clients: int, transactions: int, seed: int
) -> tuple[list[str], Counter[str], int, float]:
    """What is wrong in the end, the errors by transaction and code, how many statements were sent,
    and how long the slowest transaction took, in seconds.
    """
    run, close = database.open()
    for sql in _TABLES:
        run(sql, [])
    sessions = [database.open() for _ in range(clients)]
    players = [Client(own, number, seed) for number, (own, _) in enumerate(sessions)]
    threads = [threading.Thread(target=player.play, args=(transactions,)) for player in players]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _, ends in sessions:
        ends()
    done, failed = Counter[str](), Counter[str]()
    for player in players:
        for name, count in player.done.items():
            done[name] += count
        failed.update(player.failed)
    wrong = wrongs(run, done)
    close()
    statements = sum(player.statements for player in players)
    return wrong, failed, statements, max(player.slowest_s for player in players)


def main() -> int:
    """Play against both, and say how often what failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--transactions", type=int, default=50, help="of each client")
    parser.add_argument("--seed", type=int, default=1)
    options, failures = parser.parse_args(), 0
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        shared.make(Path(folder))
        os.environ[shared.FOLDER] = folder
        os.environ["LOUVER_STATE_DIR"] = str(shared.state(Path(folder) / "own"))
        for database in (Plain("crowd_plain"), Crowded("crowd")):
            begun = time.monotonic()
            wrong, failed, statements, slowest_s = crowd(
                database, options.clients, options.transactions, options.seed
            )
            took_s = time.monotonic() - begun
            sys.stdout.write(
                f"{type(database).__name__}: {statements} statements in {took_s:.1f} s,"
                f" the slowest transaction {slowest_s:.1f} s\n"
            )
            for name, count in sorted(failed.items()):
                often = 10_000 * count / statements
                sys.stdout.write(f"  {name}: {count}, {often:.1f} of 10,000 statements\n")
            for line in wrong:
                sys.stdout.write(f"  wrong: {line}\n")
            failures += bool(wrong)
    return bool(failures)


if __name__ == "__main__":
    raise SystemExit(main())
