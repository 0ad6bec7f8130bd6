"""The worlds at providers of public data: private constants differ, and no message does but for
the bytes of shares.

Here the data is public and the same in both worlds, so private constants may be anything: values
that are there and that are not, NULL, equal ones, empty intervals. Texts, shapes, the number and
order of messages, the version asked for and the lengths of shares and replies must be the same.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import duckdb

from louver import errors
from louver.wire import question_codec as codec
from tests.providers import local
from tests.worlds.known_faults import left_out
from tests.worlds.runner import Difference, Report, unlike
from tests.worlds.session import Step
from tests.worlds.world import shown

_SETUP = (
    "CREATE TABLE t AS SELECT (i % 7)::INTEGER AS a, 'city ' || i % 5 AS b,"
    " DATE '2020-01-01' + (i % 11)::INTEGER AS d, (i * 37 % 101)::BIGINT AS x,"
    " i % 3 = 0 AS f FROM range(60) r(i)"
)
_CONDITIONS = (
    "a = ?", "b = ?", "a = ? AND b = ?", "a BETWEEN ? AND ?", "d >= ?", "d > ? AND d < ?",
    "a = ? OR a = ?", "b IN (?, ?, ?)", "b = ? AND a BETWEEN ? AND ?", "a <> ?",
    "b = ? AND (a = ? OR a = ?)", "a = PRIVATE(?)", "a + 1 = ?", "a BETWEEN ? AND ? OR a = ?",
)  # fmt: skip
_ITEMS = (
    "count(*)", "sum(x)", "avg(a)", "max(x)", "min(b)", "count(*), sum(a)", "max(d)",
    "b, count(*)", "f, sum(x)",
)  # fmt: skip
_PUBLIC = ("", " AND f", " AND x > 50", " AND b <> 'city 1'")


def question(dice: Random) -> tuple[str, list[str]]:
    """A text, and of which column each placeholder is compared."""
    condition, items = dice.choice(_CONDITIONS), dice.choice(_ITEMS)
    where = f"({condition}){dice.choice(_PUBLIC)}"
    text = f"SELECT {items} FROM t WHERE {where}"
    first = items.split(",")[0]
    if first in ("b", "f"):
        text += f" GROUP BY {first}"
    elif dice.random() < 0.15:
        text = f"SELECT a, b, x, d FROM t WHERE {where} ORDER BY x LIMIT {dice.randint(1, 4)}"
    columns, last = [], "a"
    for word in condition.replace("(", " ").replace(")", " ").split():
        last = word if word in ("a", "b", "d") else last
        columns += [last] * word.count("?")
    return text, columns


def private(dice: Random, columns: list[str]) -> list[Any]:
    """Private constants: hits, misses, NULL, whatever."""
    sessions: list[Any] = []
    for column in columns:
        day = datetime.date(2019, 12, 28) + datetime.timedelta(dice.randrange(20))
        value = {
            "a": dice.choice((0, 3, 6, 7, -5, dice.randrange(10))),
            "b": f"city {dice.choice((0, 1, 4, 9, 'of a name that is much longer than any'))}",
            "d": day,
        }[column]
        sessions.append(None if dice.random() < 0.05 else value)
    return sessions


class Recorder:
    """What crosses to all providers of a connection."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record every message of the local channels."""
        prepare, answer = local.LocalChannel.prepare, local.LocalChannel.answer

        def prepared(channel: Any, shape: Any, version: bytes, report: Any = None) -> Any:
            prepared = prepare(channel, shape, version, report)
            self.seen.append(("prepare", channel.address, codec.encode(shape), prepared))
            return prepared

        def answered(channel: Any, ask: Any) -> Any:
            reply = answer(channel, ask)
            self.seen.append(("ask", channel.address, _shape(ask), len(codec.encode(ask))))
            self.seen.append(("reply", channel.address, len(codec.encode(reply))))
            return reply

        channel = "tests.providers.local.LocalChannel"
        with mock.patch(f"{channel}.prepare", prepared), mock.patch(f"{channel}.answer", answered):
            yield

    def taken(self) -> list[Any]:
        """What was recorded since the last time; messages to several providers side by side may
        come in either order.
        """
        calls, self.seen = self.seen, []
        return sorted(map(repr, calls))


def _shape(ask: Any) -> list[Any]:
    """A message with its random bytes as lengths."""
    parts: list[Any] = []
    for field in fields(ask):
        value = getattr(ask, field.name)
        if field.name == "query_id":
            value = len(value)
        elif field.name != "version":
            value = _lengths(value)
        parts.append((field.name, value))
    return parts


def _lengths(value: Any) -> Any:
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, tuple | list):
        return [_lengths(item) for item in value]
    return value


def run(folder: Path, seed: str, questions: int, parties: int = 2) -> Report:
    """Ask questions in both worlds, at providers in this process."""
    dice, report, recorder = Random(f"providers:{seed}"), Report(), Recorder()
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as plain:
        plain.execute(_SETUP)
        plain.execute(f"COPY t TO '{folder}/t.parquet'")
        held = local.connected([folder / "t.parquet"], folder, parties)
        with held as connection, recorder.watching():
            for _ in range(questions):
                difference = _asked(connection, plain, recorder, dice, report)
                if difference is not None:
                    difference.seed = f"providers:{seed}"
                    report.differences.append(difference)
    return report


def _asked(
    connection: Any, plain: Any, recorder: Recorder, dice: Random, report: Report
) -> Difference | None:
    text, columns = question(dice)
    sides: list[list[Any]] = []
    texts: list[str] = []
    failed: list[str] = []
    wrong = ""
    # Before the worlds part: who asks first prepares, and the other one need not.
    order = [private(dice, columns) for _ in range(3)]
    noted = dice.random() < 0.2 and not left_out("comments")
    for values in order:
        said = f"{text} -- it was {values[0]!r}" if noted else text
        texts.append(said)
        try:
            rows = shown(connection.execute(said, values).fetchall())
            ask = text.replace("PRIVATE(?)", "?")
            expected = shown(plain.execute(ask, values).fetchall())
            if rows != expected and "avg" not in text and "LIMIT" not in text:
                wrong = f"{values}: {rows[:4]} instead of {expected[:4]}"
        except errors.Error as error:
            failed.append(error.code)
        sides.append(recorder.taken())
    (report.refused if failed else report.ran)["question"] += 1
    report.codes.update(failed)
    step = Step("question", text)
    if sides[1] != sides[2]:
        detail = f"{order[1]} / {order[2]}: {unlike(sides[1], sides[2])}"
        return Difference("crosses differently", step, (texts[1], texts[2]), detail)
    if wrong:
        return Difference("another answer", step, (texts[1], texts[2]), wrong)
    return None
