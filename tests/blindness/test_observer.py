"""The proof of the ledger: an observer with everything that a server sees finds what it states.

Nothing more: each relation that the observer establishes beyond chance is entailed by a fact that
was recorded before. Nothing in vain: each static fact of equality or order is established on data
that shows it. What an observer here does not try: timing, memory, sizes of messages, the order in
which rows came (their numbers show it: THREAT_MODEL.md), and knowledge from elsewhere (`louver
attack` tries that).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from louver.wire.messages import Statement
from tests.observer.judge import Judge, Verdict
from tests.observer.recorder import Recorder

ROWS = 60
Open = Callable[..., Recorder]


@pytest.fixture
def record(key_file: Path) -> Iterator[Open]:
    recorders: list[Recorder] = []

    def opened(profile: str) -> Recorder:
        recorders.append(Recorder(key_file, profile))
        return recorders[-1]

    yield opened
    for recorder in recorders:
        recorder.close()


def people(recorder: Recorder, columns: str, seed: int = 1) -> None:
    """A table of people with repeated names, scattered salaries, some NULLs."""
    dice = random.Random(seed)
    recorder.run(f"CREATE TABLE staff ({columns})")
    rows = []
    for number in range(ROWS):
        name = dice.choice(["Ada", "Ben", "Cleo", "Dora", "Emil", "Fay"])
        salary = dice.randrange(1_000, 90_000)
        note = "NULL" if number % 11 == 3 else f"'{name} of room {dice.randrange(5)}'"
        rows.append(f"({number}, '{name}', {salary}, {note})")
    recorder.run(f"INSERT INTO staff VALUES {', '.join(rows)}")


def judged(recorder: Recorder) -> Verdict:
    """No violation either way; what was established."""
    judge = Judge(recorder)
    verdict = judge.verdict()
    assert not verdict.violations, "\n".join(map(str, verdict.violations))
    vain = judge.in_vain(verdict)
    assert not vain, "\n".join(map(str, vain))
    return verdict


SEALED = "id INT, name VARCHAR ENC, salary BIGINT ENC, note VARCHAR ENC"
QUERIES = (
    "SELECT id, salary FROM staff WHERE name = 'Ada'",
    "SELECT name, count(*), sum(salary), min(salary), max(note) FROM staff GROUP BY name",
    "SELECT id FROM staff WHERE salary BETWEEN 20000 AND 40000 ORDER BY salary LIMIT 5",
    "SELECT id FROM staff WHERE note LIKE 'Ada%'",
    "SELECT a.id, b.id FROM staff a JOIN staff b ON a.name = b.name WHERE a.id < 5",
    "SELECT name FROM staff WHERE id = 7",
    "UPDATE staff SET salary = salary + 1 WHERE name = 'Ben'",
    "DELETE FROM staff WHERE salary < 9000",
    "SELECT sum(salary), avg(salary), count(note) FROM staff WHERE id < 30",
)


def test_sealed_columns_show_lengths_alone(record: Open) -> None:
    recorder = record("sealed")
    people(recorder, SEALED)
    for sql in QUERIES:
        recorder.run(sql)
    kinds = {kind for kind, _ in judged(recorder).established}
    assert kinds <= {"lengths", "condition"}


def test_an_observer_sees_what_there_is_to_see(record: Open) -> None:
    """The observer is no fool: of columns that are not encrypted it would tell everything."""
    recorder = record("sealed")
    people(recorder, "id INT, name VARCHAR, salary BIGINT, note VARCHAR ENC")
    judge = Judge(recorder)
    from tests.observer.observer import Observer

    observer = Observer()
    facts = {
        (proposal.kind, proposal.columns[0].rsplit(".", 1)[1])
        for step in recorder.steps
        for proposal in observer.see(step)
        if judge.holds(proposal)
    }
    assert {("equality", "name"), ("order", "salary")} <= facts


def test_shares_are_stated(record: Open) -> None:
    recorder = record("sdb")
    people(recorder, "id INT, name VARCHAR ENC, salary BIGINT ENC, note VARCHAR ENC")
    for sql in QUERIES:
        recorder.run(sql)
    judged(recorder)


def test_the_catalog_has_one_length(record: Open) -> None:
    """What the client remembers of values lies sealed on the server; its length must not tell."""
    lengths = set()
    for count in (1, 2, 20, 100):
        recorder = record("sealed")
        recorder.run(
            "CREATE TABLE t (x BIGINT ENC MAY REVEAL size, y VARCHAR ENC)",
            f"INSERT INTO t SELECT i % {count}, lpad((i % {count})::VARCHAR, 4, '0')"
            " FROM range(200) r(i)",
            f"INSERT INTO t VALUES ({count} + 5, '00ab')",
        )
        rows = recorder.engine.query(Statement("SELECT * FROM louver_catalog")).to_pylist()
        lengths.add(sum(len(value) for value in rows[-1].values() if isinstance(value, bytes)))
    assert len(lengths) == 1
