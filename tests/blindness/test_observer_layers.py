"""The proof of the ledger where layers open: see test_observer for what it is and is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from louver.trusted.executor import onion_adjustment
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.policy import Policy
from louver.wire.messages import Statement
from tests.blindness.test_observer import QUERIES, SEALED, judged, people
from tests.observer.judge import Judge
from tests.observer.recorder import Recorder

Open = Callable[..., Recorder]


@pytest.fixture
def record(key_file: Path) -> Iterator[Open]:
    recorders: list[Recorder] = []

    def opened(profile: str = "cryptdb", policy: str | None = None) -> Recorder:
        import tomllib

        rules = Policy.parse(tomllib.loads(policy), "policy", profile) if policy else None
        recorders.append(Recorder(key_file, profile, policy=rules))
        return recorders[-1]

    yield opened
    for recorder in recorders:
        recorder.close()


def test_a_settled_session_is_stated(record: Open) -> None:
    recorder = record()
    people(recorder, SEALED)
    recorder.run(*QUERIES)
    facts = judged(recorder).established
    assert ("equality", ("staff.name",)) in facts
    assert ("order", ("staff.salary",)) in facts


def test_nothing_is_open_before_a_query_and_explain_opens_nothing(record: Open) -> None:
    recorder = record()
    people(recorder, SEALED)
    recorder.run("EXPLAIN (LEAKAGE) SELECT id FROM staff WHERE name = 'Ada' AND salary > 5")
    recorder.run("SELECT name, salary, note FROM staff")
    assert {kind for kind, _ in judged(recorder).established} <= {"lengths"}


def test_the_fact_is_written_before_the_key_is_sent(record: Open) -> None:
    recorder = record()
    people(recorder, SEALED)
    step = recorder.attempt("SELECT id FROM staff WHERE name = 'Ada'")
    texts = [message.sql for message in step.messages if isinstance(message, Statement)]
    keys = [index for index, text in enumerate(texts) if "onion_open" in text]
    entries = [index for index, text in enumerate(texts) if "INTO louver_ledger" in text]
    assert keys
    assert entries[0] < keys[0]


@pytest.mark.parametrize("hidden", ["eq.open", "ord.open", "text.match"])
def test_a_missing_fact_would_be_noticed(
    record: Open, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    recorder = record()
    genuine = recorder.session.context.ledger.record

    def forgetful(facts: list[Fact], shape: str) -> list[Fact]:
        return genuine([fact for fact in facts if fact.kind != hidden], shape)

    monkeypatch.setattr(recorder.session.context.ledger, "record", forgetful)
    monkeypatch.setattr(onion_adjustment, "of_openings", lambda *_: [])
    people(recorder, SEALED)
    recorder.run(*QUERIES[:4])
    assert Judge(recorder).verdict().violations


def test_a_false_fact_would_be_noticed(record: Open) -> None:
    recorder = record()
    people(recorder, SEALED)
    text = "the server can tell which rows of staff have the same name"
    recorder.session.context.ledger.record(
        [Fact("staff", ("name",), "equality", "eq.open", text)], "x"
    )
    recorder.run("SELECT count(*) FROM staff")
    judge = Judge(recorder)
    assert judge.in_vain(judge.verdict())


def test_nulls_that_come_later(record: Open) -> None:
    recorder = record()
    recorder.run(
        "CREATE TABLE t (a VARCHAR ENC, b BIGINT ENC)",
        "INSERT INTO t SELECT 'n' || (i % 7), i * 37 % 101 FROM range(40) r(i)",
        "SELECT count(*) FROM t WHERE a = 'n1' AND b > 50",
        "INSERT INTO t VALUES (NULL, NULL), ('n1', NULL)",
        "SELECT count(*) FROM t WHERE a = 'n2' AND b < 20",
        "UPDATE t SET a = NULL WHERE b = 37",
    )
    assert ("nulls", ("t.a",)) in judged(recorder).established


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_layer_that_was_opened_in_a_transaction(record: Open, end: str) -> None:
    recorder = record()
    people(recorder, SEALED)
    recorder.run(
        "BEGIN",
        "SELECT id FROM staff WHERE name = 'Ada' AND salary < 40000",
        end,
        "INSERT INTO staff VALUES (100, 'Ada', 5, 'x'), (101, NULL, NULL, NULL)",
        "SELECT id FROM staff WHERE id = 100",
    )
    # Whatever became of the transaction, the server has the key and uses it.
    assert ("equality", ("staff.name",)) in judged(recorder).established


def test_a_ceiling_that_goes_down_and_up(record: Open) -> None:
    recorder = record()
    people(recorder, SEALED)
    recorder.run(
        "SELECT id FROM staff WHERE name = 'Ada' ORDER BY salary LIMIT 2",
        "ALTER TABLE staff ALTER COLUMN name MAY REVEAL access",
        "ALTER TABLE staff ALTER COLUMN salary MAY REVEAL size",
        "INSERT INTO staff VALUES (100, 'Ada', 5, 'x'), (101, NULL, NULL, NULL)",
        "SELECT id FROM staff WHERE name = 'Ada'",
        "ALTER TABLE staff ALTER COLUMN name MAY REVEAL order",
        "ALTER TABLE staff ALTER COLUMN salary MAY REVEAL order",
        "SELECT name FROM staff",
        "SELECT id FROM staff WHERE name > 'B' OR salary = 5",
    )
    judged(recorder)


FAMILY = (
    "CREATE TABLE parent (k BIGINT ENC PRIMARY KEY, v VARCHAR ENC)",
    "CREATE TABLE child (pk BIGINT ENC REFERENCES parent (k), n INT)",
    "CREATE TABLE grandchild (pk BIGINT ENC REFERENCES parent (k), d INT)",
    "INSERT INTO parent SELECT i * 31 % 97, 'v' || (i % 5) FROM range(30) r(i)",
    "INSERT INTO child SELECT (i % 30) * 31 % 97, i FROM range(50) r(i)",
    "INSERT INTO grandchild SELECT (i % 15) * 31 % 97, i FROM range(40) r(i)",
)


def test_joins_are_stated_pair_by_pair(record: Open) -> None:
    recorder = record()
    recorder.run(*FAMILY)
    recorder.run("SELECT n FROM child WHERE pk = 31", "SELECT d FROM grandchild WHERE pk = 62")
    assert not [kind for kind, _ in judged(recorder).established if kind == "join"]
    recorder.run("SELECT count(*) FROM parent JOIN child ON k = pk WHERE n < 10")
    recorder.run("SELECT count(*) FROM parent p JOIN grandchild g ON p.k = g.pk WHERE d < 10")
    pairs = {columns for kind, columns in judged(recorder).established if kind == "join"}
    # All three pairs: each meets each, whichever query it was.
    assert len({tuple(sorted(pair)) for pair in pairs}) == 3


MEET = "SELECT count(*) FROM a JOIN b ON a.x = b.x"
GROUPED = "\n".join(f'[{table}]\nx = {{join = "g"}}' for table in "abc")


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(("BEGIN", MEET, "ROLLBACK"), id="rolled back"),
        pytest.param((MEET, "ALTER TABLE a ALTER x MAY REVEAL access"), id="lowered"),
        pytest.param((MEET, "DROP TABLE a"), id="dropped"),
        pytest.param((MEET, "ALTER TABLE a RENAME TO d"), id="renamed"),
    ],
)
def test_joins_with_what_was_shown_before(record: Open, before: tuple[str, ...]) -> None:
    """A server keeps the codes and keys that it was shown, whatever the catalog says now."""
    recorder = record(policy=GROUPED)
    for table, factor in zip("abc", (37, 53, 41), strict=True):
        recorder.run(
            f"CREATE TABLE {table} (x BIGINT ENC, i{table} INT)",
            f"INSERT INTO {table} SELECT i * {factor} % 101, i FROM range(150) r(i)",
        )
    recorder.run(*before, "SELECT count(*) FROM c JOIN b ON c.x = b.x")
    judged(recorder)


def test_orders_of_one_group(record: Open) -> None:
    recorder = record(policy='[a]\nx = {join = "g"}\n[b]\ny = {join = "g"}\n')
    recorder.run(
        "CREATE TABLE a (x BIGINT ENC, i INT)",
        "CREATE TABLE b (y BIGINT ENC, j INT)",
        "INSERT INTO a SELECT i * 37 % 101, i FROM range(60) r(i)",
        "INSERT INTO b SELECT i * 53 % 101, i FROM range(60) r(i)",
        "SELECT i FROM a WHERE x < 40",
        "SELECT j FROM b WHERE y < 40",
        "SELECT i, j FROM a JOIN b ON x = y",
        "SELECT count(*) FROM a JOIN b ON x < y WHERE i < 3",
    )
    judged(recorder)


def test_tokens_of_order_revealing_values(record: Open) -> None:
    recorder = record(policy='[t]\nx = {order = "ore"}\n')
    recorder.run(
        "CREATE TABLE t (x BIGINT ENC MAY REVEAL order, i INT)",
        "INSERT INTO t SELECT CASE WHEN i % 9 = 0 THEN NULL ELSE i * 37 % 101 END, i"
        " FROM range(60) r(i)",
        "SELECT i FROM t WHERE x < 40",
        "SELECT i FROM t WHERE x BETWEEN 20 AND 60",
        "INSERT INTO t VALUES (5, 5), (NULL, 6)",
        "SELECT max(i) FROM t WHERE x >= 40",
    )
    judged(recorder)


def test_keys_and_conflicts(record: Open) -> None:
    recorder = record()
    recorder.run(
        "CREATE TABLE u (k VARCHAR ENC PRIMARY KEY, v BIGINT ENC UNIQUE, w INT)",
        "INSERT INTO u SELECT 'k' || i, i * 7, i FROM range(30) r(i)",
        "INSERT INTO u VALUES ('k3', 900, 1) ON CONFLICT (k) DO UPDATE SET w = 5",
        "INSERT OR IGNORE INTO u VALUES ('k4', 901, 1), ('z', 902, 2)",
    )
    assert recorder.attempt("INSERT INTO u VALUES ('k5', 903, 1)").error is not None
    recorder.run(
        "CREATE UNIQUE INDEX i ON u (v)",
        "MERGE INTO u USING (VALUES ('k7', 1)) s(k, w) ON u.k = s.k WHEN MATCHED THEN DELETE",
        "SELECT k FROM u WHERE v IN (7, 14) ORDER BY v",
    )
    judged(recorder)


def test_columns_that_come_and_go(record: Open) -> None:
    recorder = record()
    people(recorder, SEALED)
    recorder.run(
        "SELECT id FROM staff WHERE name = 'Ada'",
        "ALTER TABLE staff ADD COLUMN town VARCHAR ENC",
        "UPDATE staff SET town = name WHERE name < 'D'",
        "SELECT id FROM staff WHERE town = 'Ada'",
        "ALTER TABLE staff RENAME COLUMN name TO title",
        "SELECT id FROM staff WHERE title = 'Ben'",
        "ALTER TABLE staff DROP COLUMN town",
        "CREATE TABLE copied AS SELECT id, title FROM staff",
        "ALTER TABLE staff RENAME TO people",
        "SELECT id FROM people WHERE title = 'Ben' AND salary > 10",
        "ALTER TABLE people ALTER COLUMN salary TYPE DECIMAL(12,2)",
        "SELECT id FROM people WHERE salary < 50000",
        "DROP TABLE people",
        "CREATE TABLE people (title VARCHAR ENC)",
        "INSERT INTO people VALUES ('Ada'), ('Ada'), ('Ben')",
        "SELECT count(*) FROM people WHERE title = 'Ada'",
    )
    judged(recorder)


def test_a_name_that_comes_back_brings_nothing_new(record: Open) -> None:
    recorder = record()
    people(recorder, SEALED)
    recorder.run("SELECT id FROM staff WHERE name = 'Ada'")
    forth = ("ALTER TABLE staff RENAME COLUMN name TO title", "ALTER TABLE staff RENAME TO crew")
    back = ("ALTER TABLE crew RENAME COLUMN title TO name", "ALTER TABLE crew RENAME TO staff")
    recorder.run(*forth, *back)
    length = recorder.session.context.ledger.length
    recorder.run(*forth)
    held = [fact.text for fact in recorder.steps[-1].facts if fact.columns == ("title",)]
    assert "the server can tell which rows of crew have the same title" in held
    assert recorder.session.context.ledger.length == length
    judged(recorder)


def test_hom_sums_and_ranges(record: Open) -> None:
    recorder = record(policy='[t]\na = {sum = "paillier"}\nb = {sum = "paillier"}\n'
                             'c = {order = "bucket"}\n')  # fmt: skip
    recorder.run(
        "CREATE TABLE t (a INT ENC, b INT ENC, c INT ENC, i INT)",
        "INSERT INTO t SELECT CASE WHEN i % 9 <> 1 THEN i * 37 % 101 END, i * 53 % 97,"
        " i * 7919 % 5003 * 400000, i FROM range(80) r(i)",
        "SELECT sum(a), count(a), avg(b) FROM t WHERE i < 40",
        "SELECT i % 3, sum(b) FROM t GROUP BY 1",
        "SELECT i FROM t WHERE c < 900000000",
        "UPDATE t SET a = a + 1 WHERE i > 60",
        "SELECT sum(a) FROM t WHERE c > 1500000000",
    )
    assert ("order", ("t.c",)) in judged(recorder).established
