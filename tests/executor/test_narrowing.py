"""UPDATE and DELETE read only the rows that the server may pick, and change what DuckDB changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement
from louver.wire.tap import Tap
from tests.generated import cases

TABLE = "CREATE TABLE t (s INTEGER ENC, p INTEGER, q VARCHAR, d DATE, e VARCHAR ENC)"
ROWS = """INSERT INTO t SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 10 END,
 chr(97 + i % 5), DATE '2020-01-01' + i, 'v' || i % 3
 FROM (SELECT range::INTEGER AS i FROM range(60))"""


class Pair:
    """The same database through a tap and in the clear."""

    def __init__(self, key_file: Path, profile: str = "sealed") -> None:
        self.tap = Tap(DuckDBEngine(":memory:"))
        policy = Policy(profile)
        self.session = Session(self.tap, KeyRing.open(key_file), policy, modulus_bits=512)
        self.plain = duckdb.connect(":memory:")

    def run(self, sql: str, parameters: Any = ()) -> int:
        """Run a statement on both and compare; how many rows the server sent for it."""
        wanted: object
        found: object
        try:
            done = self.plain.execute(re.sub(r"\bENC\b", "", sql), parameters)
            wanted = sorted(done.fetchall(), key=repr)
        except duckdb.Error as error:
            wanted = type(errors.from_duckdb(error))
        before = self.tap.traffic.rows_in
        try:
            answer = self.session.execute(sql, parameters)
            if answer.rows is None:
                found = [(answer.affected,)] if answer.affected >= 0 else []
            else:
                found = sorted(self.session.python_rows(answer.rows), key=repr)
        except errors.Error as error:
            found = type(error)
        assert repr(found) == repr(wanted), sql
        return int(self.tap.traffic.rows_in - before)

    def fill(self) -> None:
        self.run(TABLE)
        self.run(ROWS)
        assert self.plain.execute("SELECT count(*) FROM t").fetchone() == (60,)

    def close(self) -> None:
        self.session.close()
        self.plain.close()


@pytest.fixture(params=["sealed", "sdb"])
def pair(request: pytest.FixtureRequest, key_file: Path) -> Iterator[Pair]:
    made = Pair(key_file, request.param)
    made.fill()
    yield made
    made.close()


NARROWED = {
    "UPDATE t SET s = s + 1 WHERE p = 3": (),
    "UPDATE t AS x SET e = e || '!' WHERE x.p BETWEEN 2 AND 3 AND x.s > 20 RETURNING s, e": (),
    "UPDATE t SET p = p + 1, s = p WHERE p + 1 > 8 AND q <> 'a'": (),
    "UPDATE t SET s = $1 WHERE p = $2": (5, 4),
    "UPDATE main.t SET s = NULL WHERE q LIKE 'b%' AND length(e) = 2": (),
    "DELETE FROM t WHERE d < DATE '2020-01-11'": (),
    "DELETE FROM t WHERE p IS NULL": (),
    "DELETE FROM t WHERE p IN (1, 2) AND s % 2 = 0 RETURNING *": (),
    "DELETE FROM t WHERE q = ?": ("c",),
    "DELETE FROM t WHERE q > ? AND e <> ?": ("c'c", "v1"),
    "UPDATE t SET s = $1 WHERE p > $2 AND s <> $1": (-5, -(2**40)),
    "DELETE FROM t WHERE p = 123456": (),
}
WHOLE = [
    "UPDATE t SET s = 1",
    "UPDATE t SET s = 1 WHERE p = 1 OR s = 2",
    "DELETE FROM t WHERE s = 3",
    "DELETE FROM t WHERE p = (SELECT min(p) FROM t)",
    "UPDATE t SET s = x.p FROM t AS x WHERE t.p = 4 AND x.s = t.s",
    "DELETE FROM t USING t AS x WHERE t.p = 5 AND x.s = t.s",
]
BAD = ["DELETE FROM t WHERE p = 'no number'", "UPDATE t SET s = 1 WHERE nothing = 3",
       "UPDATE t SET s = 'x' WHERE p = 3", "DELETE FROM t WHERE p = 1 AND sum(p) > 1"]  # fmt: skip


@pytest.mark.parametrize("sql", NARROWED)
def test_the_server_sends_what_may_match(pair: Pair, sql: str) -> None:
    assert pair.run(sql, NARROWED[sql]) < 60
    pair.run("SELECT * FROM t")


@pytest.mark.parametrize("sql", [*WHOLE, *BAD])
def test_anything_else_is_done_at_home(pair: Pair, sql: str) -> None:
    pair.run(sql)
    pair.run("SELECT * FROM t")


def test_keys_and_ceilings_are_not_narrowed(key_file: Path) -> None:
    pair = Pair(key_file)
    pair.run("CREATE TABLE k (s INTEGER ENC UNIQUE, p INTEGER)")
    pair.run("INSERT INTO k VALUES (1, 1), (2, 2), (3, 3)")
    pair.run("UPDATE k SET s = 2 WHERE p = 1")
    pair.run("UPDATE k SET s = 9 WHERE p = 1")
    pair.run("SELECT * FROM k")
    pair.session.execute("CREATE TABLE c (s INTEGER ENC MAY REVEAL size, p INTEGER)")
    pair.session.execute("INSERT INTO c VALUES (1, 1), (2, 2)")
    pair.session.execute("UPDATE c SET s = 9 WHERE p = 1")
    assert pair.session.context.ledger.level("c", "s") == "size"
    pair.close()


def test_odd_texts(key_file: Path) -> None:
    pair = Pair(key_file)
    pair.run("CREATE TABLE c (q VARCHAR, r VARCHAR, s INTEGER ENC)")
    pair.run("INSERT INTO c VALUES ('a', '⟪0⟫', 1), ('A', '⟦0⟧', 2), ('b', '3', 3)")
    for sql in ("UPDATE c SET s = 9 WHERE q = 'A'", "UPDATE c SET s = 8 WHERE r = '⟪0⟫' AND s > 3",
                "UPDATE c SET s = 8 WHERE r = '⟦0⟧'"):  # fmt: skip
        pair.run(sql)
    pair.run("UPDATE c SET s = 1 WHERE r = $1", ["⟪0⟫"])
    assert pair.session.python_rows(pair.session.execute("SELECT s FROM c ORDER BY 1").rows) == [
        (1,), (3,), (8,)
    ]  # fmt: skip
    pair.close()


def test_what_narrowing_shows_is_written_down(key_file: Path) -> None:
    pair = Pair(key_file)
    pair.fill()
    assert pair.session.context.ledger.level("t", "s") == "size"
    pair.run("DELETE FROM t WHERE p = 3 AND s = 123456")
    assert pair.session.context.ledger.level("t", "s") == "access"
    pair.close()


PARTS = st.sampled_from(
    ["p > {}", "p = {}", "NOT p < {}", "p * 2 <= {}", "q >= 'b'", "s > {}", "e = 'v1'",
     "p IS NOT NULL", "d > DATE '2020-01-20'", "(p = {} OR q = 'c')", "(p = {} OR s = 7)"]
)  # fmt: skip
CONDITIONS = st.builds(
    lambda parts, word, number: f" {word} ".join(parts).replace("{}", str(number)),
    st.lists(PARTS, min_size=1, max_size=3), st.sampled_from(["AND", "OR", "AND"]),
    st.integers(-1, 12),
)  # fmt: skip
CHANGES = st.sampled_from(["DELETE FROM t WHERE ", "UPDATE t SET s = s + p, e = q WHERE ",
                           "UPDATE t SET p = p + 1 WHERE "])  # fmt: skip


@settings(
    max_examples=cases(15),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(changes=st.lists(st.tuples(CHANGES, CONDITIONS), min_size=2, max_size=5))
def test_any_condition(key_file: Path, changes: list[tuple[str, str]]) -> None:
    pair = Pair(key_file)
    try:
        pair.fill()
        for change, condition in changes:
            pair.run(change + condition)
            pair.run("SELECT * FROM t")
    finally:
        pair.close()


def test_a_row_sent_twice_is_noticed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    real = pair.tap.stream

    def doubled(statement: Statement) -> Any:
        batches = list(real(statement))
        return type(real(statement)).from_batches(batches[0].schema, batches * 2)

    monkeypatch.setattr(pair.tap, "stream", doubled)
    with pytest.raises(errors.VerificationError):
        pair.session.execute("DELETE FROM t WHERE p = 3")
