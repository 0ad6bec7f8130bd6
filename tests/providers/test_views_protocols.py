"""What each protocol shows a provider: messages of one form and length for any secrets.

Each way is forced where the price would choose another one, at providers in this process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver import errors
from louver.trusted.executor.private import asking
from louver.trusted.planner.private.question import Alternative, Question
from louver.wire import question_codec as codec
from louver.wire import search_params
from louver.wire.questions import Ask, Prepared, Protocol, Reply, Shape
from tests.inside import context_of
from tests.providers.distinguish import findings
from tests.providers.local import connected

ROWS = 130
QUESTIONS = 64
"""Of each of two secrets: what a message holds of one in clear would show."""
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Way:
    """A question that is asked by a protocol, and secrets of every sort for it."""

    protocol: str
    sql: str
    secrets: tuple[Values, ...]
    parties: int = 2
    scheme: str = "owf"

    def __str__(self) -> str:
        limit = self.sql.partition(" LIMIT ")[2]
        return "-".join(filter(None, (self.protocol, str(self.parties), limit)))


#: Found, in other types, absent, NULL, out of range, the first and the last.
_ONE: tuple[Values, ...] = ((3,), ("3",), (3.0,), (99,), (None,), (10**30,), (0,), (16,), (3.5,))
_KEYS: tuple[Values, ...] = (
    (3, 4, 5), (3, 3, 3), (99, 98, 97), (None, None, None), (0, None, 0), ("3", 4.0, True),
    (-(10**30), 10**30, 16),
)  # fmt: skip
_SPAN: tuple[Values, ...] = (
    (20, 90), (0, ROWS), (5, 5), (9, 2), (None, 1), (1, None), (None, None), (-(10**9), 10**9),
    (1000, 2000), ("5", "7"), (5.5, 5.6), (ROWS - 1, 10**30),
)  # fmt: skip
_SPANS: tuple[Values, ...] = (
    (0, ROWS, 0, ROWS), (5, 5, 6, 6), (9, 2, 3, 1), (None, 1, 1, None), (0, 100, 50, 120),
    (0, 9, 100, 109), (-(10**30), 10**30, 7, 7),
)  # fmt: skip
_COUNT = "SELECT count(*) FROM t WHERE k = ?"
_LARGEST = "SELECT max(v) FROM t WHERE id BETWEEN ? AND ?"
_OF_TWO = "SELECT max(v) FROM t WHERE id BETWEEN ? AND ? OR id BETWEEN ? AND ?"
_TOTAL = "SELECT g, sum(v), count(*) FROM t WHERE id BETWEEN ? AND ? GROUP BY g"
_TOTALS = "SELECT sum(v) FROM t WHERE id BETWEEN ? AND ? OR id BETWEEN ? AND ?"
_FIRST = "SELECT max(v) FROM t WHERE k IN (?, ?, ?)"
_SEVERAL = "SELECT v, s FROM t WHERE k IN (?, ?, ?) ORDER BY v"
_TEXTS = "SELECT v FROM t WHERE k = ? AND s = ? OR k = ? AND s = ? ORDER BY v DESC LIMIT 3"

WAYS = (
    Way("select", _COUNT, _ONE),
    Way("select", _SEVERAL + " LIMIT 4", _KEYS),
    Way("sum", _TOTAL, _SPAN),
    Way("sum", _TOTALS, _SPANS),
    Way("nodes", _LARGEST, _SPAN),
    Way("nodes", _OF_TWO, _SPANS),
    Way("search", _FIRST, _KEYS),
    Way("search", _SEVERAL + " LIMIT 5", _KEYS),
    Way("search", _SEVERAL + " LIMIT 40", _KEYS),
    Way(
        "search",
        _TEXTS,
        (
            (3, "n3", 4, "n4"), (3, "n3", 3, "n3"), (99, "q", 98, ""), (None, None, None, None),
            (3, None, 16, "x" * 1000),
        ),
    ),
    Way("buckets", _COUNT, _ONE, 3),
    Way("buckets", _SEVERAL + " LIMIT 4", _KEYS, 3),
    Way("buckets", _COUNT, _ONE, 4),
    Way("dyadic", _LARGEST, _SPAN, 3),
    Way("dyadic", _OF_TWO, _SPANS, 3),
    Way("dyadic", _TOTAL, _SPAN, 4),
    Way("paillier", _TOTAL, _SPAN[:6], 3, "paillier"),
    Way("paillier", "SELECT g, count(*) FROM t WHERE k = ? GROUP BY g", _ONE[:6], 3, "paillier"),
    Way("paillier", _TOTALS, _SPANS[:5], 3, "paillier"),
)  # fmt: skip


def table(rows: int = ROWS) -> pa.Table:
    """Keys of several rows, values with ties, no two of one size."""
    return pa.table(
        {
            "k": pa.array([n % 17 or n % 3 for n in range(rows)], pa.int32()),
            "v": pa.array([n * 7 % 101 for n in range(rows)], pa.int32()),
            "s": pa.array([f"n{n % 5}" for n in range(rows)]),
            "g": pa.array([n % 3 == 0 for n in range(rows)]),
            "id": pa.array(range(rows), pa.int32()),
        }
    )


@contextmanager
def asked_by(way: Way, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A connection whose questions go by a protocol, whatever it costs."""

    def forced(_session: Any, question: Question) -> Alternative:
        ways = [Alternative(question.shape, question.finish), *question.alternatives]
        (alternative,) = (item for item in ways if item.shape.protocol == Protocol(way.protocol))
        return alternative

    monkeypatch.setattr(asking, "chosen", forced)
    path = folder / "t.parquet"
    pq.write_table(table(), path)
    with connected([path], folder, way.parties, way.scheme) as connection:
        yield connection


class Seen:
    """All that a provider gets to see of a connection."""

    def __init__(self, channel: Any) -> None:
        self.all: list[tuple[Any, ...]] = []
        self._answer, self._prepare = channel.answer, channel.prepare
        channel.answer, channel.prepare = self.answer, self.prepare

    def prepare(self, shape: Shape, *given: Any) -> Prepared:
        self.all.append(("prepare", shape))
        prepared: Prepared = self._prepare(shape, *given)
        return prepared

    def answer(self, ask: Ask) -> Reply:
        reply: Reply = self._answer(ask)
        form: Any = ask.form
        if form:
            form = search_params.read_form(form, len(ask.shares))
            if form.sample is not None:
                slots, seeds = form.sample.slots, len(form.sample.seeds)
                form = (slots, seeds, form.prefix_bits)
        self.all.append(
            (
                "answer", len(codec.encode(ask)), len(ask.query_id), ask.version, ask.shape_id,
                ask.step, form, tuple(map(len, ask.shares)), len(codec.encode(reply)),
            )
        )  # fmt: skip
        return reply

    def taken(self) -> list[tuple[Any, ...]]:
        """What was seen since the last time."""
        calls, self.all = self.all, []
        return calls


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_protocol_shows_the_same_for_any_secrets(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked_by(way, tmp_path, monkeypatch) as connection:
        seen = [Seen(channel) for channel in context_of(connection).fleet.channels]
        connection.execute(way.sql, way.secrets[0]).fetchall()
        first = [channel.taken() for channel in seen]
        assert first[0][0][0] == "prepare"
        assert Protocol(way.protocol) in {call[1].protocol for call in first[0] if len(call) == 2}
        asks = [[call for call in here if call[0] == "answer"] for here in first]
        assert all(asks)
        if way.scheme == "owf":
            assert all(here == asks[0] for here in asks), "no provider is told more than another"
        answers = set()
        for secrets in (*way.secrets, way.secrets[0]):
            answers.add(repr(connection.execute(way.sql, secrets).fetchall()))
            assert [channel.taken() for channel in seen] == asks, secrets
        assert len(answers) > 1


@pytest.mark.parametrize("way", WAYS[:8] + WAYS[10:11], ids=str)
def test_first_questions_are_prepared_alike(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a new connection sends, the shape included, tells nothing of the secrets either."""
    views = []
    with asked_by(way, tmp_path, monkeypatch) as connection:
        fleet = context_of(connection).fleet
        seen = [Seen(channel) for channel in fleet.channels]
        for secrets in (way.secrets[0], way.secrets[2], way.secrets[4]):
            fleet._known.clear()
            connection.execute(way.sql, secrets).fetchall()
            views.append([channel.taken() for channel in seen])
    assert views[0] == views[1] == views[2]


#: A way, and two secrets: some found and none. (`test_views` has the other protocols.)
APART = (
    (WAYS[6], (3, 4, 5), (None, None, None)),
    (WAYS[7], (0, 1, 2), (99, 98, 97)),
)


@pytest.mark.parametrize(("way", "first", "second"), APART, ids=str)
def test_messages_of_a_search_cannot_be_told_apart(
    way: Way, first: Values, second: Values, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a question sends, byte by byte: its name, its form and its shares."""
    with asked_by(way, tmp_path, monkeypatch) as connection:
        channels = context_of(connection).fleet.channels
        connection.execute(way.sql, first).fetchall()
        views: list[list[list[bytes]]] = []
        for secrets in (first, second):
            views.append([[] for _ in channels])
            for _ in range(QUESTIONS):
                for channel in channels:
                    channel.asks.clear()
                connection.execute(way.sql, secrets).fetchall()
                for seen, channel in zip(views[-1], channels, strict=True):
                    seen.append(b"".join(channel.asks))
        for left, other in zip(*views, strict=True):
            assert not findings(left, other)


@pytest.mark.parametrize("parties", [2, 3])
def test_nothing_is_sent_of_secrets_that_cannot_be_compared(
    parties: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even the shape: it alone, without shares after it, would tell of such a secret."""
    way = dataclasses.replace(WAYS[0], protocol="select" if parties == 2 else "buckets")
    with asked_by(dataclasses.replace(way, parties=parties), tmp_path, monkeypatch) as connection:
        seen = [Seen(channel) for channel in context_of(connection).fleet.channels]
        for sql, secret in (
            (_COUNT, "a word"),
            ("SELECT count(*) FROM t WHERE k = CAST(? AS INTEGER)", "a word"),
            ("SELECT count(*) FROM t WHERE k = ? + 1", 2**31 - 1),
        ):
            with pytest.raises(errors.Error) as caught:
                connection.execute(sql, [secret]).fetchall()
            assert caught.value.code == "provider.constant"
            assert str(secret) not in str(caught.value)
            assert [channel.taken() for channel in seen] == [[]] * parties
