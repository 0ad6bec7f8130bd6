"""The binary search over a private index, and rows gathered by hashes: forced, where the price
would choose one query for each clause.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.executor.private import asking, sampling
from tests.generated import cases
from tests.inside import context_of
from tests.providers.test_answers import CONDITIONS, TABLES, both, compared

FEW = settings(max_examples=cases(6), deadline=None, suppress_health_check=list(HealthCheck))
DISJOINT = ["b IN (?, ?, ?)", "b = ? AND (a = ? OR a = ?)"]


@pytest.fixture(autouse=True)
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def last(_session: Any, question: Any) -> Any:
        assert question.alternatives
        return question.alternatives[-1]

    monkeypatch.setattr(asking, "chosen", last)


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, list[Any]]:
    condition = draw(st.sampled_from(DISJOINT))
    secrets = [draw(values) for values in CONDITIONS[condition]]
    item = draw(st.sampled_from(["max(c)", "min(d)", "max(x) + 1", "min(b)", "max(a)"]))
    return f"SELECT {item} FROM t WHERE {condition}", secrets


@FEW
@given(TABLES, st.lists(questions(), min_size=4, max_size=8))
def test_extremes_are_found(rows: list[Any], questions: list[tuple[str, list[Any]]]) -> None:
    with both(rows) as (connection, plain):
        for text, secrets in questions:
            before = context_of(connection).fleet.rounds
            compared(connection, plain, text, secrets)
            count = plain.execute("SELECT count(*) FROM t").fetchone()[0]
            rounds = context_of(connection).fleet.rounds - before
            assert rounds <= 3 + max(count - 1, 1).bit_length() // 3


@FEW
@given(TABLES, st.data())
def test_first_rows_are_gathered(rows: list[Any], data: st.DataObject) -> None:
    with both(rows) as (connection, plain):
        plain.execute("ALTER TABLE t ADD COLUMN place BIGINT")
        plain.execute("UPDATE t SET place = rowid")
        for _ in range(5):
            condition = data.draw(st.sampled_from(DISJOINT))
            secrets = [data.draw(values) for values in CONDITIONS[condition]]
            limit = data.draw(st.integers(1, 9))
            head = f"SELECT a, b, c, x FROM t WHERE {condition} ORDER BY c DESC"
            mine = connection.execute(f"{head} LIMIT {limit}", secrets).fetchall()
            theirs = plain.execute(f"{head}, place LIMIT {limit}", secrets).fetchall()
            assert mine == theirs, (condition, secrets, limit)


def test_rows_that_hide_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one slot, two rows hide for ever: the question ends with an error, never with less."""
    monkeypatch.setattr(sampling, "LEAST_SLOTS", 1)
    monkeypatch.setattr(sampling, "SLOTS_A_ROW", 0)
    rows = [(n, "x", None, None, n, 0.0, True) for n in range(6)]
    with both(rows) as (connection, _), pytest.raises(errors.InternalError):
        connection.execute(
            "SELECT a FROM t WHERE b IN (?, ?) ORDER BY a LIMIT 3", ["x", "y"]
        ).fetchall()
