"""A provider that answers something else is found out, by every protocol; so is other data."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from typing import Any

import pytest

from louver import errors
from louver.wire.questions import Ask, Prepared, Reply
from tests.inside import context_of
from tests.providers.test_answers import both

ROWS = [
    (n % 5, "xyz"[n % 3], Decimal(n), dt.date(2020, 2, n % 28 + 1), n, n / 2, n % 2 == 0)
    for n in range(40)
]
QUESTIONS = {
    "select": ("SELECT count(*), max(c) FROM t WHERE a = ?", [3]),
    "absent": ("SELECT count(*), max(c) FROM t WHERE a = ?", [77]),
    "rows": ("SELECT a, c FROM t WHERE b = ? ORDER BY c LIMIT 3", ["x"]),
    "sum": ("SELECT f, sum(x) FROM t WHERE d BETWEEN ? AND ? GROUP BY f ORDER BY f",
            ["2020-02-02", "2020-02-09"]),
    "nodes": ("SELECT max(c) FROM t WHERE d >= ?", ["2020-02-07"]),
    "several": ("SELECT b, min(x) FROM t WHERE b IN (?, ?) GROUP BY b ORDER BY b", ["x", "z"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    """A connection for tests that have all of its providers honest again."""
    with both(ROWS) as (connection, _):
        yield connection


@contextmanager
def lying(channel: Any, change: Callable[[Reply], Reply], step: int) -> Iterator[None]:
    honest = channel.answer

    def answer(ask: Ask) -> Reply:
        reply = honest(ask)
        return change(reply) if ask.step == step else reply

    channel.answer = answer
    try:
        yield
    finally:
        channel.answer = honest


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("party", [0, 1])
def test_an_altered_answer_is_no_answer(connection: Any, name: str, party: int) -> None:
    text, secrets = QUESTIONS[name]
    chance = random.Random(party)
    fleet = context_of(connection).fleet
    before = fleet.rounds
    wanted = connection.execute(text, secrets).fetchall()
    steps = fleet.rounds - before
    for _ in range(25):

        def flip(reply: Reply) -> Reply:
            data = bytearray(reply.data)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return Reply(bytes(data))

        with (
            lying(fleet.channels[party], flip, chance.randrange(steps)),
            pytest.raises(errors.VerificationError) as caught,
        ):
            connection.execute(text, secrets).fetchall()
        assert caught.value.code == "provider.lied"
    assert connection.execute(text, secrets).fetchall() == wanted


@pytest.mark.parametrize("name", QUESTIONS)
def test_replies_of_another_size_are_refused(connection: Any, name: str) -> None:
    text, secrets = QUESTIONS[name]
    for change in (
        lambda reply: Reply(reply.data * 2),
        lambda reply: Reply(reply.data + b"\0"),
        lambda reply: Reply(reply.data[:-1]),
        lambda reply: Reply(b""),
    ):
        with (
            lying(context_of(connection).fleet.channels[1], change, 0),
            pytest.raises(errors.OperationalError) as caught,
        ):
            connection.execute(text, secrets).fetchall()
        assert caught.value.code == "provider.reply"
        assert "local:1" in str(caught.value)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_reply_to_another_question_is_no_answer(connection: Any, name: str) -> None:
    """Nothing in a reply says what it answers: the question's own key does."""
    text, secrets = QUESTIONS[name]
    # Both together may say "no such key" again: equal answers join to that (spec/fss.md).
    for parties in ((0,), (1,)) if name == "absent" else ((0,), (1,), (0, 1)):
        connection.execute(text, secrets).fetchall()
        earlier: dict[tuple[int, int], Reply] = {}

        def swap(party: int, step: int, earlier: dict[Any, Reply] = earlier) -> Any:
            def change(reply: Reply) -> Reply:
                return earlier.setdefault((party, step), reply)

            return change

        with ExitStack() as lies:
            for party in parties:
                channel = context_of(connection).fleet.channels[party]
                lies.enter_context(lying(channel, swap(party, 0), 0))
            connection.execute(text, secrets).fetchall()
            with pytest.raises(errors.VerificationError) as caught:
                connection.execute(text, secrets).fetchall()
            assert caught.value.code == "provider.lied"


def test_another_preparation_is_noticed_before_a_share_leaves() -> None:
    with both(ROWS) as (connection, _):
        first, second = context_of(connection).fleet.channels
        honest = second.prepare

        def prepare(*given: Any) -> Prepared:
            prepared: Prepared = honest(*given)
            return dataclasses.replace(prepared, digest=bytes(32))

        second.prepare = prepare
        with pytest.raises(errors.OperationalError) as caught:
            connection.execute(*QUESTIONS["select"]).fetchall()
        assert caught.value.code == "provider.differ"
        assert not first.asks
        assert not second.asks


def test_a_failed_question_is_asked_with_fresh_shares() -> None:
    """No provider ever sees the other's share, nor one share twice."""
    with both(ROWS) as (connection, _):
        fleet = context_of(connection).fleet
        text, secrets = QUESTIONS["select"]
        connection.execute(text, secrets).fetchall()
        broken = fleet.channels[1]
        honest, times = broken.answer, []

        def answer(ask: Ask) -> Reply:
            times.append(ask)
            if len(times) == 1:
                raise errors.make("provider.shape")
            reply: Reply = honest(ask)
            return reply

        broken.answer = answer
        assert connection.execute(text, secrets).fetchall()
        assert len(times) == 2
        assert times[0].shares != times[1].shares
        assert times[0].query_id != times[1].query_id
        bodies = [share[8:24] for ask in times for share in ask.shares]
        assert not any(body in ask for body in bodies for ask in fleet.channels[0].asks)
