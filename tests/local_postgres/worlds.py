"""Two worlds in PostgreSQL's language: sessions that differ in secrets only.

The values of one world correspond to those of the other by their order, so whatever a ceiling may
show is the same in both; the names of ENC columns differ too, and those of channels, savepoints,
cursors and prepared statements. What crosses is compared as by `tests/worlds/crossing.py`, and so
is each round trip.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from louver import errors
from louver._rust import postgres
from louver.trusted.client.dbapi import Connection
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from tests import shared
from tests.local_postgres.tapped import ServerCrossing, ServerTap
from tests.local_postgres.world_statements import Statements
from tests.local_postgres.world_values import Act, data, parameter, rendered
from tests.postgres import servers
from tests.worlds.world import aligned

Draw = Callable[[Random], Statements]
"""What draws the statements of a session."""
_PATIENCE_S = 20.0
_numbers = itertools.count()
_WAITING = (
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN"
    " (SELECT pid FROM pg_stat_activity WHERE datname = $1)"
)


class World:
    """Clients of one database."""

    def __init__(self, number: int, profile: str, seed: str, clients: int = 2) -> None:
        self._seed, self._statements = seed, 0
        self._database = f"world_{next(_numbers)}"
        self.number, self._crossing = number, ServerCrossing()
        self._taps = list[ServerTap]()
        self.connections = list[Connection]()
        self._admin: postgres.Session | None = None
        with aligned(seed):
            for _ in range(clients):
                tap = ServerTap.at(servers.database_url(self._database))
                ring = KeyRing.open(shared.key_file())
                session = Session(tap, ring, Policy(profile), language="postgres")
                self._taps.append(tap)
                self.connections.append(Connection(session))
        self.crossed()

    def close(self) -> None:
        """End all clients."""
        for connection in self.connections:
            connection.close()
        if self._admin is not None:
            self._admin.close()

    def crossed(self) -> list[object]:
        """What has crossed since it was asked last."""
        results = list[object]()
        for tap in self._taps:
            results += self._crossing.seen(tap.records)
            results += self._crossing.trips(tap.trips)
            tap.records.clear()
            tap.trips.clear()
        return results

    def run(self, said: Act | str) -> object:
        """Run a statement; its error's code and SQLSTATE, or how many rows it gave."""
        act = Act(said) if isinstance(said, str) else said
        self._statements += 1
        with aligned(f"{self._seed} {self._statements}"), self._alongside(act.during):
            return self._outcome(act)

    def _outcome(self, act: Act) -> object:
        connection = self.connections[act.client]
        text = rendered(act.text, self.number)
        try:
            if text == "poll":
                return len(connection.poll())
            cursor = connection.cursor()
            if act.data is not None:
                with cursor.copy(text) as copy:
                    if not act.data:
                        return len(b"".join(copy).splitlines())
                    copy.write(data(act.data, self.number))
                return cursor.rowcount
            cursor.execute(text, [parameter(mark, self.number) for mark in act.parameters])
            return len(cursor.fetchall()) if cursor.description else cursor.rowcount
        except errors.Error as error:
            return f"{error.code} {error.sqlstate}"

    @contextmanager
    def _alongside(self, text: str) -> Iterator[None]:
        """While another client waits, or else afterwards, the first one runs a statement."""
        if not text:
            yield
            return
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(0.01) and not self._someone_waits():
                pass
            with aligned(f"{self._seed} {self._statements} {text}"):
                self.connections[0].execute(text)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(_PATIENCE_S)

    def _someone_waits(self) -> bool:
        if self._admin is None:
            server = servers.shared()
            self._admin = postgres.Session(
                str(server.folder), servers.PORT, servers.USER, "postgres"
            )
        ((_, _, (counts,)),) = self._admin.run([(_WAITING, [self._database])])
        return bool(counts[0].as_py())


@contextmanager
def both(profile: str, seed: str) -> Iterator[tuple[World, World]]:
    """The two worlds."""
    worlds = World(0, profile, seed), World(1, profile, seed)
    try:
        yield worlds
    finally:
        for world in worlds:
            world.close()


@dataclass
class Played:
    """What came of a session: what differed, and how many statements ran, by their outcome."""

    differences: list[str] = field(default_factory=list)
    ran: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    drawn: dict[str, int] = field(default_factory=dict)


def play(profile: str, seed: int, length: int, draw: Draw = Statements) -> Played:
    """One session of each world."""
    drawn, played = draw(Random(seed)), Played()
    with both(profile, str(seed)) as (first, second):
        for number in range(length):
            act = drawn.next()
            outcomes = first.run(act), second.run(act)
            crossed = first.crossed(), second.crossed()
            failed = isinstance(outcomes[0], str)
            drawn.ran(act, failed=failed)
            played.ran += not failed
            if isinstance(outcomes[0], str):
                played.failed[outcomes[0]] = played.failed.get(outcomes[0], 0) + 1
            same = outcomes[0] == outcomes[1] or not drawn.same_outcomes
            if not same or crossed[0] != crossed[1]:
                shown = f"{rendered(act.text, 0)} {act.parameters} {act.during}"
                played.differences.append(f"[{profile}:{seed}:{number}] {shown}: {outcomes}")
                played.differences += _differing(*crossed)
                break
    return played


def _differing(first: list[Any], second: list[Any]) -> list[str]:
    pairs = zip(first, second, strict=False)
    lines = [f"  {a}\n  {b}" for a, b in pairs if a != b][:3]
    return [*lines, f"  {len(first)} and {len(second)} messages"]
