"""One provider that lies, at each place, by each protocol and in each part of its replies; and all
of them together, where a client can tell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.trusted.vault.schemes import fss
from louver.wire.questions import Ask, Reply
from tests.inside import context_of
from tests.providers.test_views_protocols import Values, Way, asked_by

FLIPS = 2
"""Of one part of one reply, besides its first bit and its last one."""
_KEYS = "SELECT v, s FROM t WHERE k IN (?, ?) ORDER BY v LIMIT 5"
_TOTAL = "SELECT g, sum(v), count(*) FROM t WHERE id BETWEEN ? AND ? GROUP BY g ORDER BY g"
_LARGEST = "SELECT max(v) FROM t WHERE id BETWEEN ? AND ?"
_FIRST = "SELECT max(v) FROM t WHERE k IN (?, ?)"
_ROWS = "SELECT v, s FROM t WHERE k = ? ORDER BY v LIMIT 3"
#: Found, and with dummies: absent, twice the same, an empty interval, NULL.
_TWO: tuple[Values, ...] = ((3, 5), (3, 3), (99, None))
_SPAN: tuple[Values, ...] = ((20, 90), (9, 2))

WAYS = (
    Way("select", _ROWS, ((3,), (99,), (None,))),
    Way("select", _KEYS, _TWO),
    Way("sum", _TOTAL, _SPAN),
    Way("nodes", _LARGEST, _SPAN),
    Way("search", _FIRST, _TWO),
    Way("search", _KEYS, _TWO),
    Way("buckets", _ROWS, ((3,), (99,), (None,)), 3),
    Way("buckets", _KEYS, _TWO, 3),
    Way("dyadic", _LARGEST, _SPAN, 3),
    Way("dyadic", _TOTAL, _SPAN[:1], 4),
    Way("paillier", _TOTAL, _SPAN, 3, "paillier"),
)


@dataclass
class Round:
    """One round of a question: the bytes of each part of a reply to it."""

    parts: Sequence[int]


def rounds_of(connection: Any, sql: str, secrets: Values) -> tuple[list[Any], list[Round]]:
    """The answer, and the rounds that it took."""
    fleet, recorded = context_of(connection).fleet, []
    honest = fleet.ask

    def ask(asks: Sequence[Ask], parts: Sequence[int]) -> list[list[bytes]]:
        recorded.append(Round(parts))
        answered: list[list[bytes]] = honest(asks, parts)
        return answered

    fleet.ask = ask
    rows = connection.execute(sql, secrets).fetchall()
    fleet.ask = honest
    return rows, recorded


class Liar:
    """A channel that changes what it answers to one step."""

    def __init__(self, channel: Any, step: int, change: Callable[[bytes], bytes]) -> None:
        self.channel, self.step, self.change = channel, step, change
        self.honest = channel.answer
        self.asks: list[Ask] = []

    def __enter__(self) -> Liar:
        self.channel.answer = self.answer
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.answer = self.honest

    def answer(self, ask: Ask) -> Reply:
        self.asks.append(ask)
        reply: Reply = self.honest(ask)
        return Reply(self.change(reply.data)) if ask.step == self.step else reply


def flipped(bit: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[bit >> 3] ^= 1 << (bit & 7)
        return bytes(changed)

    return change


def bits_of(parts: Sequence[int], chance: random.Random) -> list[int]:
    """The first bit of each part, its last one, and some between."""
    bits, at = [], 0
    for size in parts:
        bits += [at, at + 8 * size - 1]
        bits += [at + chance.randrange(8 * size) for _ in range(FLIPS)]
        at += 8 * size
    return bits


def refused(connection: Any, sql: str, secrets: Values) -> None:
    with pytest.raises(errors.VerificationError) as caught:
        connection.execute(sql, secrets).fetchall()
    assert caught.value.code == "provider.lied"


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_one_liar_at_any_place_is_found_out(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)
    with asked_by(way, tmp_path, monkeypatch) as connection:
        channels = context_of(connection).fleet.channels
        for secrets in way.secrets:
            wanted, rounds = rounds_of(connection, way.sql, secrets)
            lies = [
                (step, bit)
                for step, number in enumerate(rounds)
                for bit in bits_of(number.parts, chance)
            ]
            for number, (step, bit) in enumerate(lies):
                # Of the same bit each place has its turn in the next part.
                channel = channels[number % way.parties]
                with Liar(channel, step, flipped(bit)) as liar:
                    refused(connection, way.sql, secrets)
                assert liar.asks[-1].step == step, "a lie is found out in its own round"
            assert connection.execute(way.sql, secrets).fetchall() == wanted


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_other_lies_of_one_provider(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing at all, only ones, the reply to another question, and replies of other sizes."""
    with asked_by(way, tmp_path, monkeypatch) as connection:
        channels = context_of(connection).fleet.channels
        secrets = way.secrets[0]
        _, rounds = rounds_of(connection, way.sql, secrets)
        for step in range(len(rounds)):
            for index, channel in enumerate(channels):
                earlier: list[bytes] = []

                def again(data: bytes, earlier: list[bytes] = earlier) -> bytes:
                    earlier.append(data)
                    return earlier[0]

                with Liar(channel, step, again):
                    connection.execute(way.sql, secrets).fetchall()
                    refused(connection, way.sql, secrets)
                for change in (lambda data: bytes(len(data)), lambda data: b"\xff" * len(data)):
                    with Liar(channel, step, change):
                        refused(connection, way.sql, secrets)
                for longer in (lambda data: data + b"\0", lambda data: data[:-1]):
                    with Liar(channel, step, longer):
                        with pytest.raises(errors.OperationalError) as caught:
                            connection.execute(way.sql, secrets).fetchall()
                        assert caught.value.code == "provider.reply"
                        assert f"local:{index}" in str(caught.value)


@pytest.mark.parametrize("sql", [_FIRST, _KEYS])
def test_a_search_whose_rounds_contradict_each_other_is_no_answer(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All providers together may answer nothing, which verifies; not in one round alone."""
    way = Way("search", sql, _TWO)
    with asked_by(way, tmp_path, monkeypatch) as connection:
        first, second = context_of(connection).fleet.channels
        _, rounds = rounds_of(connection, sql, (3, 5))
        for step in range(1, len(rounds)):
            with (
                Liar(first, step, lambda data: bytes(len(data))),
                Liar(second, step, lambda data: bytes(len(data))),
            ):
                refused(connection, sql, (3, 5))


def test_ranks_that_hold_nothing_are_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All providers together that count keys, and then have no record of them."""
    with asked_by(WAYS[3], tmp_path, monkeypatch) as connection:
        first, second = context_of(connection).fleet.channels
        with (
            Liar(first, 1, lambda data: bytes(len(data))),
            Liar(second, 1, lambda data: bytes(len(data))),
        ):
            refused(connection, _LARGEST, (20, 90))
            assert connection.execute(_LARGEST, (9, 2)).fetchall() == [(None,)]


@pytest.mark.parametrize("way", WAYS[3:6], ids=str)
def test_counts_that_no_table_has_are_no_answer(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of any size verify; a count is none below zero, nor above the number of rows."""
    honest = fss._Additive.open
    with asked_by(way, tmp_path, monkeypatch) as connection:
        connection.execute(way.sql, way.secrets[0]).fetchall()
        for change in (lambda n: -n - 1, lambda n: n + 131, lambda n: n - 2**62):

            def opened(function: Any, replies: list[bytes], change: Any = change) -> list[int]:
                return [change(number) for number in honest(function, replies)]

            with monkeypatch.context() as patched:
                patched.setattr(fss._Additive, "open", opened)
                refused(connection, way.sql, way.secrets[0])


@pytest.mark.parametrize("way", [WAYS[0], WAYS[5], WAYS[8], WAYS[10]], ids=str)
def test_a_lie_is_not_asked_again(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that lies at times would have its way, and see which questions end by it."""
    with asked_by(way, tmp_path, monkeypatch) as connection:
        fleet = context_of(connection).fleet
        connection.execute(way.sql, way.secrets[0]).fetchall()
        lies = [flipped(0)]

        def once(data: bytes) -> bytes:
            return lies.pop()(data) if lies else data

        with Liar(fleet.channels[-1], 0, once) as liar:
            refused(connection, way.sql, way.secrets[0])
        assert len(liar.asks) == 1
        assert connection.execute(way.sql, way.secrets[0]).fetchall()
