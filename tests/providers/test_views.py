"""What whole sessions show each provider: the same for any secrets, whatever the answer is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import louver
from examples.providers import running, url
from louver.trusted.executor.private import asking
from louver.trusted.planner.private.question import Alternative, Question
from louver.wire import question_codec
from louver.wire.questions import Ask
from tests.generated import cases
from tests.inside import context_of
from tests.providers.distinguish import findings

ROWS = 600
QUESTIONS = cases(64)
"""Of each of two secrets: that a session sends a secret's bit somewhere would show."""

Values = tuple[Any, ...]


def rows() -> pa.Table:
    """Groups of very different sizes, texts of different lengths, gaps between keys."""
    chance = np.random.default_rng(3)
    key = (chance.zipf(1.6, ROWS) % 40) * 3
    return pa.table(
        {
            "id": pa.array(np.arange(ROWS), pa.int32()),
            "k": pa.array(key, pa.int32()),
            "day": pa.array(chance.integers(0, 300, ROWS).astype("datetime64[D]")),
            "name": pa.array([f"n{'x' * int(k % 20)}" for k in key]),
            "v": pa.array(chance.integers(-1000, 1000, ROWS), pa.int64()),
        }
    )


@dataclass(frozen=True)
class RecordedSession:
    """A session, and what each of its providers keeps of it."""

    con: Any
    folders: list[Path]

    def _asked(self, sql: str, parameters: Values) -> list[list[Path]]:
        """For each provider, what it records of one question, in its order."""
        known = [set(os.listdir(folder)) for folder in self.folders]
        self.con.execute(sql, list(parameters)).fetchall()
        return [
            [folder / name for name in sorted(set(os.listdir(folder)) - old)]
            for folder, old in zip(self.folders, known, strict=True)
        ]

    def seen(self, sql: str, parameters: Values) -> list[list[tuple[str, int]]]:
        """For each provider: kinds and sizes of requests, and bytes that went back."""
        channels = context_of(self.con).fleet.channels
        before = [channel.traffic.bytes_in for channel in channels]
        recorded = self._asked(sql, parameters)
        views = []
        for new, channel, bytes_in in zip(recorded, channels, before, strict=True):
            requests = [(path.stem.partition("-")[2], path.stat().st_size) for path in new]
            views.append([*requests, ("back", channel.traffic.bytes_in - bytes_in)])
        return views

    def shares(self, sql: str, parameters: Values) -> list[bytes]:
        """For each provider, all shares of one question that it was sent, in a row."""
        parts = []
        for new in self._asked(sql, parameters):
            asks = [question_codec.decode(Ask, path.read_bytes()) for path in new]
            parts.append(b"".join(share for ask in asks for share in ask.shares))
        return parts


@pytest.fixture(scope="module", params=[2, 3])
def watched(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RecordedSession]:
    """A session with two or three providers that record."""
    folder = tmp_path_factory.mktemp("views")
    pq.write_table(rows(), folder / "t.parquet")
    folders = [folder / str(number) for number in range(request.param)]
    each = [("--record", str(path), "--threads", "1", "--asks", "100000") for path in folders]
    with (
        running(folder / "t.parquet", request.param, each=each) as providers,
        louver.connect(url(providers)) as con,
    ):
        yield RecordedSession(con, folders)


#: A query and secrets: common and rare keys, misses, duplicates, empty and full intervals, NULL.
SHAPES: dict[str, tuple[str, list[Values]]] = {
    "count of a key": ("SELECT count(*) FROM t WHERE k = ?", [(3,), (117,), (4,), (-9,), (None,)]),
    "groups of a key": (
        "SELECT name, sum(v) AS s FROM t WHERE k = ? GROUP BY name",
        [(3,), (117,), (4,)],
    ),
    "top rows of a key": (
        "SELECT name, v FROM t WHERE k = ? ORDER BY v DESC, id LIMIT 5",
        [(3,), (60,), (4,), (10**6,)],
    ),
    "sum of an interval": (
        "SELECT sum(v) AS s, count(*) AS n FROM t WHERE day BETWEEN ? AND ?",
        [
            ("1970-01-01", "1970-12-31"),
            ("1970-02-03", "1970-02-03"),
            ("1970-05-01", "1970-04-01"),
            ("1999-01-01", "1999-12-31"),
        ],
    ),
    "maximum of an interval": (
        "SELECT max(v) AS m FROM t WHERE k BETWEEN ? AND ?",
        [(0, 200), (3, 3), (4, 5), (9, 2), (-5, -1)],
    ),
    "key and interval": (
        "SELECT max(v) AS m FROM t WHERE name = ? AND day BETWEEN ? AND ?",
        [("nxxx", "1970-01-01", "1970-12-31"), ("other", "1970-03-01", "1970-03-02")],
    ),
    "one of several keys": (
        "SELECT k, max(v) AS m FROM t WHERE k IN (?, ?, ?) GROUP BY k",
        [(3, 6, 9), (3, 3, 3), (1, 2, 4), (3, None, 3)],
    ),
    "top rows of several keys": (
        "SELECT name, v FROM t WHERE k = ? OR k = ? ORDER BY v, id LIMIT 3",
        [(3, 6), (3, 3), (1, 2)],
    ),
    "maximum of very many keys": (
        f"SELECT max(v) AS m FROM t WHERE k IN ({', '.join('?' * 30)})",
        [tuple(range(30)), (3,) * 30, tuple(range(1000, 1030))],
    ),
}


#: Asked by a search, which is dearer for so few rows (at three providers there is none).
SEARCHED: dict[str, tuple[str, list[Values]]] = {
    "best row of several keys": (
        "SELECT max(v) AS m FROM t WHERE k IN (?, ?, ?)",
        [(3, 6, 9), (3, 3, 3), (1, 2, 4), (3, None, 3), (117, 10**9, -1)],
    ),
    "first rows of several keys": (
        "SELECT name, v FROM t WHERE k IN (?, ?, ?) ORDER BY v, id LIMIT 6",
        [(3, 6, 9), (3, 3, 3), (1, 2, 4), (None, None, None), (117, 114, 111)],
    ),
}


def alike(watched: RecordedSession, sql: str, secrets: list[Values]) -> list[tuple[str, int]]:
    """What a provider sees, which is the same for all secrets and for every provider."""
    watched.con.execute(sql, list(secrets[0])).fetchall()
    first, *others = [watched.seen(sql, view) for view in secrets]
    assert all(other == first for other in others)
    assert all(call == first[0] for call in first), "no provider is told more than another"
    assert {kind for call in first for kind, _ in call} == {"Answer", "back"}
    return first[0]


@pytest.mark.parametrize("name", SHAPES)
def test_messages_have_the_same_sizes_for_any_secrets(watched: RecordedSession, name: str):
    alike(watched, *SHAPES[name])


@pytest.mark.parametrize("name", SEARCHED)
def test_a_search_has_the_same_messages_for_any_secrets(
    watched: RecordedSession, name: str, monkeypatch: pytest.MonkeyPatch
):
    def searched(_session: Any, question: Question) -> Alternative:
        return [Alternative(question.shape, question.finish), *question.alternatives][-1]

    monkeypatch.setattr(asking, "chosen", searched)
    *asks, _ = alike(watched, *SEARCHED[name])
    # Three bits of the index of 600 rows a round, then the rows.
    assert len(asks) == (5 if len(watched.folders) == 2 else 1)


@pytest.mark.parametrize("name", ["count of a key", "maximum of an interval"])
def test_shares_of_a_session_cannot_be_told_apart(watched: RecordedSession, name: str):
    sql, secrets = SHAPES[name]
    watched.con.execute(sql, list(secrets[0])).fetchall()
    first, second = (
        list(zip(*(watched.shares(sql, secret) for _ in range(QUESTIONS)), strict=True))
        for secret in secrets[:2]
    )
    for here, other in zip(first, second, strict=True):
        assert not findings(here, other)
