"""UPDATE and DELETE read only the rows that the server may pick, and change what DuckDB changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.wire.messages import Statement
from tests.generated import cases
from tests.twin import Twin

TABLE = "CREATE TABLE t (s INTEGER ENC, p INTEGER, q VARCHAR, d DATE, e VARCHAR ENC)"
ROWS = """INSERT INTO t SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 10 END,
 chr(97 + i % 5), DATE '2020-01-01' + i, 'v' || i % 3
 FROM (SELECT range::INTEGER AS i FROM range(60))"""


def filled(key_file: Path, profile: str = "sealed") -> Twin:
    twin = Twin(":memory:", key_file, profile)
    twin.fill(TABLE, ROWS)
    assert twin.plain.execute("SELECT count(*) FROM t").fetchone() == (60,)
    return twin


def rows_read(twin: Twin, sql: str, parameters: Sequence[object] = ()) -> int:
    """Run a statement on both and compare; the number of rows that the server sent for it."""
    before = twin.tap.traffic.rows_in
    twin.either(sql, parameters)
    return int(twin.tap.traffic.rows_in - before)


@pytest.fixture(params=["sealed", "sdb"])
def twin(request: pytest.FixtureRequest, key_file: Path) -> Iterator[Twin]:
    twin = filled(key_file, request.param)
    yield twin
    twin.close()


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
    "UPDATE t SET s = $1 WHERE p > $2 AND s <> $1": (-5, 6),
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
def test_the_server_sends_what_may_match(twin: Twin, sql: str) -> None:
    assert rows_read(twin, sql, NARROWED[sql]) < 60
    twin.run("SELECT * FROM t")


@pytest.mark.parametrize("sql", [*WHOLE, *BAD])
def test_anything_else_is_done_at_home(twin: Twin, sql: str) -> None:
    twin.either(sql)
    twin.run("SELECT * FROM t")


def test_keys_and_ceilings_are_not_narrowed(key_file: Path) -> None:
    twin = Twin(":memory:", key_file)
    twin.either("CREATE TABLE k (s INTEGER ENC UNIQUE, p INTEGER)")
    twin.either("INSERT INTO k VALUES (1, 1), (2, 2), (3, 3)")
    twin.either("UPDATE k SET s = 2 WHERE p = 1")
    twin.either("UPDATE k SET s = 9 WHERE p = 1")
    twin.run("SELECT * FROM k")
    twin.session.execute("CREATE TABLE c (s INTEGER ENC MAY REVEAL size, p INTEGER)")
    twin.session.execute("INSERT INTO c VALUES (1, 1), (2, 2)")
    twin.session.execute("UPDATE c SET s = 9 WHERE p = 1")
    assert twin.session.context.ledger.level("c", "s") == "size"
    twin.close()


def test_a_collation_concerns_texts_alone(key_file: Path) -> None:
    twin = Twin(":memory:", key_file)
    twin.fill(
        "CREATE TABLE c (p INTEGER, q VARCHAR COLLATE NOCASE, s INTEGER ENC)",
        "INSERT INTO c SELECT i % 10, chr((65 + i % 2 * 32 + i % 5)::INTEGER), i"
        " FROM range(60) r(i)",
    )
    assert rows_read(twin, "DELETE FROM c WHERE p = 3") < 20
    assert rows_read(twin, "UPDATE c SET s = 0 WHERE p = 4 AND q = 'E'") < 20
    # The server knows NOCASE, and only such collations are on plain columns.
    assert rows_read(twin, "UPDATE c SET s = 1 WHERE q = 'a'") < 54
    assert rows_read(twin, "DELETE FROM c WHERE p = 5 OR q = 'b'") < 54
    twin.run("SELECT * FROM c")
    twin.either("SET default_collation = 'nocase'")
    twin.either("DELETE FROM c WHERE q = 'C'")
    twin.run("SELECT * FROM c")
    twin.close()


def test_odd_texts(key_file: Path) -> None:
    twin = Twin(":memory:", key_file)
    twin.either("CREATE TABLE c (q VARCHAR, r VARCHAR, s INTEGER ENC)")
    twin.either("INSERT INTO c VALUES ('a', '⟪0⟫', 1), ('A', '⟦0⟧', 2), ('b', '3', 3)")
    for sql in ("UPDATE c SET s = 9 WHERE q = 'A'", "UPDATE c SET s = 8 WHERE r = '⟪0⟫' AND s > 3",
                "UPDATE c SET s = 8 WHERE r = '⟦0⟧'"):  # fmt: skip
        twin.either(sql)
    twin.either("UPDATE c SET s = 1 WHERE r = $1", ["⟪0⟫"])
    assert twin.rows("SELECT s FROM c ORDER BY 1") == [
        (1,), (3,), (8,)
    ]  # fmt: skip
    twin.close()


def test_what_narrowing_shows_is_written_down(key_file: Path) -> None:
    twin = filled(key_file)
    assert twin.session.context.ledger.level("t", "s") == "size"
    twin.either("DELETE FROM t WHERE p = 3 AND s = 123456")
    assert twin.session.context.ledger.level("t", "s") == "access"
    twin.close()


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
    twin = filled(key_file)
    try:
        for change, condition in changes:
            twin.either(change + condition)
            twin.run("SELECT * FROM t")
    finally:
        twin.close()


def test_a_row_sent_twice_is_noticed(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    real = twin.tap.query

    def doubled(statement: Statement) -> pa.Table:
        reply = real(statement)
        return pa.concat_tables([reply, reply]) if "r0" in reply.column_names else reply

    monkeypatch.setattr(twin.tap, "query", doubled)
    with pytest.raises(errors.VerificationError):
        twin.session.execute("DELETE FROM t WHERE p = 3")
