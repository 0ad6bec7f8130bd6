"""Two doors over databases that differ in the secrets of ENC columns only, and what crosses to
their servers.

A mark (type, n) stands for the n-th value of a type: in each world another one, with the same order
and as long. Values are large and unusual, so that they are not met by chance.
"""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import psycopg

from tests.front_door import relay
from tests.front_door.door import Door, opened
from tests.front_door.relay import Reader, Relay
from tests.postgres import servers

ROWS = 300
"""How many values of each type there are; of few rows all are read."""
TYPES = {
    "id": "bigint", "n": "bigint", "s": "text", "m": "numeric(12,2)", "d": "date",
    "f": "double precision", "u": "uuid", "j": "jsonb",
}  # fmt: skip
Mark = tuple[str, int]
#: Of these any value is met by chance.
_SHORT = ("d",)
#: So many bytes of a secret are searched for first.
_BEGIN = 8
_CLIENTS = 2
_numbers = itertools.count()


@dataclass(frozen=True)
class Act:
    """What one of the clients runs: a text with %s, or a word that begins with a dot."""

    text: str
    values: tuple[Any, ...] = ()
    how: str = "prepared"
    binary: bool = False
    client: int = 0


def pools(draw: Random) -> dict[str, list[Any]]:
    """The values of a world, in order."""

    def some(low: int, high: int) -> list[int]:
        return sorted({draw.randrange(low, high, 2) for _ in range(2 * ROWS)})[:ROWS]

    letters = "abcdefghijklmnopqrstuvwxyz"
    texts = {"".join(draw.choices(letters, k=12)) for _ in range(2 * ROWS)}
    return {
        "id": some(1 << 57, 1 << 58),
        "n": some(1 << 57, 1 << 58),
        "s": sorted(draw.sample(sorted(texts), ROWS)),
        "m": [Decimal(n) / 100 for n in some(10**11 + 1, 10**12 - 1)],
        "d": [date(1900, 1, 1) + timedelta(n) for n in some(0, 50_000)],
        "f": [n / 1024 for n in some(1 << 49, 1 << 50)],
        "u": [UUID(int=n) for n in some(1 << 126, 1 << 127)],
        "j": [f'{{"{letters[n % 7]}": {n}}}' for n in some(10**11, 10**12)],
    }


class World:
    """A door behind which a relay is, with its clients."""

    def __init__(self, door: Door, between: Relay, secrets: dict[str, list[Any]]) -> None:
        self.door, self.relay, self.secrets = door, between, secrets
        self.clients = [door.connect() for _ in range(_CLIENTS)]
        self.marks = list[tuple[str, list[tuple[int, int]]]]()
        #: how long the longest time was between two statements of a client
        self.pause_s = 0.0
        self._ran_s = dict[int, float]()

    @classmethod
    @contextmanager
    def opened(cls, words: Sequence[str], profile: str, seed: int, number: int) -> Iterator[World]:
        """With secrets of its own."""
        with closing(Relay()) as between:
            url = between.url(f"door_{seed}_{number}{next(_numbers)}")
            with opened(*words, profile=profile, url=url) as door:
                world = cls(door, between, pools(Random(f"{seed} {number}")))
                yield world
                for client in world.clients:
                    client.close()

    def run(self, act: Act) -> object:
        """What came of it: rows and columns, or the state of an error."""
        self.marks.append((act.text, self.relay.lengths()))
        con = self.clients[act.client]
        now = time.monotonic()
        self.pause_s = max(self.pause_s, now - self._ran_s.get(act.client, now))
        try:
            return self._outcome(con, act)
        except psycopg.Error as error:
            return error.sqlstate
        finally:
            self._ran_s[act.client] = time.monotonic()

    def end(self) -> None:
        """Clients go, and the door is stopped: all has crossed."""
        for client in self.clients:
            client.close()
        self.door.stop()

    def _outcome(self, con: psycopg.Connection[Any], act: Act) -> object:
        values = [self._value(value) for value in act.values]
        if act.text.startswith("COPY") and "FROM" in act.text:
            with con.cursor().copy(act.text) as copy:
                width = len(TYPES) + 1
                for at in range(0, len(values), width):
                    copy.write_row(values[at : at + width])
            return "copied"
        if act.text.startswith("COPY"):
            with con.cursor().copy(act.text) as copy:
                return len(b"".join(copy).splitlines())
        if act.how == "simple":
            own = psycopg.ClientCursor(con)
            own.execute(act.text.encode(), values)
            return own.rowcount
        if act.how == "pipelined":
            with con.pipeline():
                cursors = [con.execute(act.text.encode(), values) for _ in range(2)]
            return [cursor.rowcount for cursor in cursors]
        cursor = con.execute(
            act.text.encode(), values, prepare=act.how == "prepared", binary=act.binary
        )
        return cursor.rowcount, len(cursor.fetchall()) if cursor.description else None

    def _value(self, value: Any) -> Any:
        return self.secrets[value[0]][value[1]] if isinstance(value, tuple) else value

    def during(self, connection: int, direction: int, at: int) -> str:
        """The statement that a byte crossed in."""
        begun = [
            text for text, lengths in self.marks
            if len(lengths) <= connection or lengths[connection][direction] <= at
        ]  # fmt: skip
        return f"{len(begun)} {begun[-1][:100]}" if begun else ""

    def leaked(self) -> list[str]:
        """The secrets that occur in what crossed, of both directions."""
        every = b"\0\0".join(
            bytes(part) for c in self.relay.connections for part in (c.sent, c.received)
        )
        begun = {every[at : at + _BEGIN] for at in range(len(every))}
        return [
            f"{kind}: {value}"
            for kind, values in self.secrets.items() if kind not in _SHORT
            for value in values
            if any(form[:_BEGIN] in begun and form in every for form in _forms(kind, value))
        ]  # fmt: skip


def _forms(kind: str, value: Any) -> Iterator[bytes]:
    if kind == "j":
        yield value.partition(": ")[2].rstrip("}").encode()
        return
    text = str(value).encode()
    yield text
    yield text.hex().encode()
    if isinstance(value, int):
        yield struct.pack(">q", value)
        yield struct.pack("<q", value)
    if isinstance(value, float):
        yield struct.pack(">d", value)
        yield struct.pack("<d", value)
    if isinstance(value, UUID):
        yield value.bytes
        yield value.hex.encode()
    if isinstance(value, Decimal):
        whole, _, part = str(value).partition(".")
        digits = whole.zfill(12) + part.ljust(4, "0")
        yield struct.pack(">4h", *(int(digits[at : at + 4]) for at in range(0, 16, 4)))


@contextmanager
def both(words: Sequence[str], profile: str, seed: int) -> Iterator[Pair]:
    """The two worlds."""
    servers.shared()
    with ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        stack.callback(servers.drop_databases)
        worlds = [World.opened(words, profile, seed, number) for number in range(2)]
        # Each is entered by a thread, since it takes seconds.
        first, second = threads.map(lambda world: world.__enter__(), worlds)
        for world in worlds:
            stack.push(world)
        yield Pair(first, second, threads)


@dataclass
class Pair:
    """Two worlds, and the threads that they run in."""

    first: World
    second: World
    _threads: ThreadPoolExecutor

    def __iter__(self) -> Iterator[World]:
        return iter((self.first, self.second))

    def run(self, act: Act) -> tuple[object, object]:
        """Run it in both at the same time, so that clocks go alike."""
        first, second = self._threads.map(lambda world: world.run(act), self)
        return first, second


def differences(worlds: Pair) -> list[str]:
    """Where what crossed differs, connection by connection: the first message of each direction."""
    first, second = (world.relay.connections for world in worlds)
    results = list[str]()
    if len(first) != len(second):
        results.append(f"{len(first)} and {len(second)} connections")
    readers = Reader(), Reader()
    for number, pair in enumerate(zip(first, second, strict=False)):
        seen = [reader.messages(c) for reader, c in zip(readers, pair, strict=True)]
        for direction in range(2):
            sides = [relay.in_any_order(both_ways[direction]) for both_ways in seen]
            if sides[0] == sides[1]:
                continue
            at = next(
                (n for n, (a, b) in enumerate(zip(*sides, strict=False)) if a != b),
                min(map(len, sides)),
            )
            where = [
                world.during(
                    number,
                    direction,
                    both_ways[direction][min(at, len(both_ways[direction]) - 1)][0],
                )
                for world, both_ways in zip(worlds, seen, strict=True)
            ]
            results.append(
                f"connection {number} {('sent', 'received')[direction]} {at} of"
                f" {[len(side) for side in sides]} during {where}:"
            )
            results += [f"  {str(side[max(at - 1, 0) : at + 2])[:700]}" for side in sides]
    return results
