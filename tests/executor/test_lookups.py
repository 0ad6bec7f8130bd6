"""Rows looked up in two steps: the columns of a condition, then those of the rows that pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.executor.storage import different
from louver.wire.messages import Statement
from tests.generated import cases
from tests.twin import Twin

ROWS = 1_200
TABLE = """CREATE TABLE t (id BIGINT ENC, s BIGINT ENC, e VARCHAR ENC, d DOUBLE ENC, w VARCHAR ENC,
 p INTEGER, n BIGINT ENC)"""
FILL = f"""INSERT INTO t SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 300 END,
 'v' || i % 90, CASE i % 5 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN -0.0 ELSE i / 8 END,
 repeat('w', i % 40), i % 10, i FROM range({ROWS}) r(i)"""


def filled(key_file: Path, profile: str = "sealed", table: str = TABLE) -> Twin:
    twin = Twin(":memory:", key_file, profile)
    twin.fill(table, FILL)
    twin.session.execute("SET link_bandwidth = '1MB/s'")
    return twin


@pytest.fixture
def twin(key_file: Path) -> Iterator[Twin]:
    twin = filled(key_file)
    yield twin
    twin.close()


def read(twin: Twin, sql: str, *parameters: object) -> tuple[int, int]:
    """Run a statement on both and compare; the statements and rows that crossed for it."""
    start = len(twin.tap.records)
    twin.either(sql, parameters)
    statements, rows, reading = 0, 0, False
    for record in twin.tap.records[start:]:
        if record.direction == "sent":
            reading = _reads(getattr(record.message, "sql", ""))
            statements += reading
        elif reading:
            rows += getattr(record.message, "table", pa.table({})).num_rows
    return statements, rows


def _reads(text: str) -> bool:
    """Whether a text asks for rows of the table."""
    return text.startswith("SELECT") and '"t"' in text


def texts(twin: Twin) -> list[str]:
    """The queries of the table's rows that were sent."""
    return [text for m in twin.tap.sent() if _reads(text := getattr(m, "sql", ""))]


def revealed(twin: Twin, sql: str) -> set[tuple[str, ...]]:
    """What EXPLAIN (LEAKAGE) says of a statement."""
    ((_, text),) = twin.rows(f"EXPLAIN (LEAKAGE, FORMAT json) {sql}")
    listed = json.loads(text)["reveals"]
    return {(f["kind"], f["level"], f["reveals"]) for f in listed["new"] + listed["known"]}


def refused(twin: Twin, sql: str) -> bool:
    """Whether a change may not depend on what it reads."""
    try:
        twin.rows(f"EXPLAIN (LEAKAGE) {sql}")
    except errors.LeakageRefused:
        return True
    return False


FEW = {
    "SELECT * FROM t WHERE id = 77": 1,
    "SELECT w, n FROM t WHERE id IN (5, 6, 7) AND s > 5": 1,
    "SELECT count(*), sum(n), max(w) FROM t WHERE e LIKE 'v7_' AND s % 2 = 0": 56,
    "SELECT * FROM t WHERE d > 148.0 AND d < 149": 3,
    "SELECT * FROM t WHERE upper(e) || 'x' = 'V5x' ORDER BY id LIMIT 3": 14,
    "SELECT * FROM t WHERE id = 5000": 0,
    "SELECT n FROM t WHERE id * 2 = 10 OR id = 6": 2,
    "SELECT x.n, y.w FROM t AS x, t AS y WHERE x.id = 3 AND y.id = 4": 2,
    "SELECT n FROM t WHERE id = 3 AND EXISTS (SELECT 1 FROM t AS i WHERE i.id = 9)": 2,
    "SELECT (SELECT max(n) FROM t WHERE id < 4), (SELECT min(w) FROM t WHERE id = 9)": 5,
    "WITH c AS (SELECT * FROM t WHERE CAST(id AS VARCHAR) = '12') SELECT n, w FROM c": 1,
}


@pytest.mark.parametrize("sql", FEW)
def test_other_columns_are_read_of_the_rows_that_pass(twin: Twin, sql: str) -> None:
    statements, rows = read(twin, sql)
    assert rows == ROWS + FEW[sql]
    assert statements == (2 if FEW[sql] else 1)
    assert revealed(twin, sql) == {
        fact for fact in revealed(twin, sql) if fact[0] == "rows" and fact[1] == "access"
    }


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, s FROM t WHERE id = 7 OR s = 8",
        "SELECT count(*) FROM t WHERE e LIKE 'v1%'",
        "SELECT * FROM t WHERE NOT id = 5",
        "SELECT * FROM t WHERE id = 5 OR random() < 2",
        "SELECT * FROM t WHERE id = 5 OR rowid < 3",
        "SELECT x.* FROM t AS x, t AS y WHERE x.id = 3 AND y.n = x.n",
        "SELECT * FROM t WHERE id = 5 OR id NOT IN (SELECT n FROM t)",
        "SELECT n FROM t WHERE id NOT IN (SELECT n FROM t WHERE n < 7)",
        "SELECT count(*) FROM t AS x LEFT JOIN t AS y ON x.id = y.id AND y.s = 3",
        "SELECT * FROM t WHERE regexp_matches(e, 'v1$')",
    ],
)
def test_where_that_is_not_certain_all_is_read_at_once(twin: Twin, sql: str) -> None:
    statements, rows = read(twin, sql)
    assert (statements, rows) == (1, ROWS)
    assert {kind for kind, *_ in revealed(twin, sql)} == {"scan"}


@pytest.mark.parametrize("value", ["v12", 12, 1 << 40, 12.5, True, None, b"v", "⟪0⟫"])
def test_bound_values(twin: Twin, value: object) -> None:
    for sql in ("SELECT * FROM t WHERE e = ?", "SELECT * FROM t WHERE id = ? AND p = 2",
                "SELECT n FROM t WHERE e LIKE ? || '%' AND id > 5"):  # fmt: skip
        twin.either(sql, (value,))


def test_many_matches_are_read_whole(twin: Twin) -> None:
    assert read(twin, "SELECT * FROM t WHERE id > 10") == (2, 2 * ROWS)
    assert "IN (" not in texts(twin)[-1]
    assert read(twin, "SELECT * FROM t WHERE id > 900")[1] == ROWS + 299
    assert "louver_numbers" in texts(twin)[-1]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("UPDATE t SET w = w || '!' WHERE id = 5", 1),
        ("UPDATE t SET s = n + 1 WHERE e LIKE 'v8%' AND d > 100 RETURNING id, s", 61),
        ("DELETE FROM t WHERE id = 9 RETURNING *", 1),
        ("UPDATE t SET p = 3 WHERE id = 5000", 0),
    ],
)
def test_changes_look_their_rows_up(twin: Twin, sql: str, rows: int) -> None:
    assert read(twin, sql)[1] == ROWS + rows
    assert read(twin, "SELECT * FROM t") == (1, len(twin.rows("SELECT id FROM t")))


def test_texts_that_come_again_look_other_rows_up(twin: Twin) -> None:
    for number in (5, 6, 1_100):
        assert read(twin, f"UPDATE t SET w = 'x{number}' WHERE id = {number}") == (2, ROWS + 1)
        assert read(twin, "UPDATE t SET s = ? WHERE id = ?", 7, number)[1] == ROWS + 1
        assert read(twin, "SELECT * FROM t WHERE id = ?", number) == (2, ROWS + 1)
        twin.either("SELECT * FROM t WHERE e LIKE ? AND id < ?", (f"v{number % 7}%", number))
    twin.run("SELECT * FROM t")


@pytest.mark.parametrize(
    "numbers", [[], [3], [1, 2, 3], [3, 1, 2], [1, 2, 2], [2, 1, 2], [1, None]]
)
def test_numbers_that_differ(numbers: list[int | None]) -> None:
    rows = pa.chunked_array([pa.array(numbers, pa.int64())])
    assert different(rows) == len(set(numbers))


def test_a_delete_opens_the_columns_of_its_condition(twin: Twin) -> None:
    assert read(twin, "DELETE FROM t WHERE id = 5 OR e = 'v9'") == (1, ROWS)
    assert read(twin, "SELECT * FROM t") == (1, len(twin.rows("SELECT id FROM t")))


def test_a_ceiling_below_access_reads_all(key_file: Path) -> None:
    hidden = TABLE.replace("w VARCHAR ENC", "w VARCHAR ENC MAY REVEAL size")
    twin = filled(key_file, table=hidden)
    for sql in ("SELECT * FROM t WHERE id = 5", "SELECT id FROM t WHERE w = 'www' AND n = 43",
                "SELECT n FROM t WHERE id = 3 OR w = 'ww'"):  # fmt: skip
        assert read(twin, sql) == (1, ROWS)
        assert {level for _, level, _ in revealed(twin, sql)} == {"size"}
    assert read(twin, "SELECT n FROM t WHERE id = 5") == (2, ROWS + 1)
    assert read(twin, "UPDATE t SET n = 3 WHERE id = 5") == (1, ROWS)
    assert twin.session.context.ledger.level("t", "w") == "size"
    twin.close()


def test_what_is_shown_is_written_down_before_it_is_sent(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, levels, real = twin.session.context.ledger, list[str](), twin.tap.query

    def watched(statement: Statement) -> pa.Table:
        levels.append(ledger.level("t", "w"))
        return real(statement)

    monkeypatch.setattr(twin.tap, "query", watched)
    assert ledger.level("t", "w") == "size"
    twin.run("SELECT w FROM t WHERE id = 5")
    assert levels == ["access", "access"]


def test_an_error_of_the_condition_is_the_users(twin: Twin) -> None:
    for sql in ("SELECT * FROM t WHERE CAST(e AS INTEGER) = 3",
                "SELECT * FROM t WHERE id + 9223372036854775807 > 0",
                "UPDATE t SET s = 1 WHERE CAST(w AS INTEGER) > 0"):  # fmt: skip
        twin.either(sql)


def _swapped(reply: pa.Table) -> pa.Table:
    return reply.set_column(0, "row_id", pa.array([reply.column(0)[0].as_py() - 1], pa.int64()))


@pytest.mark.parametrize(
    "lie",
    [
        lambda reply: reply.slice(0, 0),
        lambda reply: pa.concat_tables([reply, reply]),
        _swapped,
        lambda reply: reply.drop_columns([reply.column_names[-1]]),
        lambda reply: reply.append_column("more", reply.column(0)),
    ],
)
@pytest.mark.parametrize("sql", ["SELECT * FROM t WHERE id = 5", "UPDATE t SET w='x' WHERE id = 5"])
def test_a_server_that_returns_other_rows(
    twin: Twin, monkeypatch: pytest.MonkeyPatch, lie: Callable[[pa.Table], pa.Table], sql: str
) -> None:
    real = twin.tap.query

    def lying(statement: Statement) -> pa.Table:
        reply = real(statement)
        return lie(reply) if " IN (" in statement.sql else reply

    monkeypatch.setattr(twin.tap, "query", lying)
    with pytest.raises(errors.VerificationError):
        twin.session.execute(sql)
    monkeypatch.setattr(twin.tap, "query", real)
    twin.run("SELECT * FROM t")


def test_another_row_under_the_number_that_was_asked_for(
    twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sealed values are bound to their own row."""
    real = twin.tap.query

    def lying(statement: Statement) -> pa.Table:
        if " IN (" not in statement.sql:
            return real(statement)
        (number,) = statement.constants
        assert isinstance(number, int)
        reply = real(Statement(statement.sql, (number + 1,)))
        return reply.set_column(0, "row_id", pa.array([number], pa.int64()))

    monkeypatch.setattr(twin.tap, "query", lying)
    with pytest.raises(errors.VerificationError) as caught:
        twin.session.execute("SELECT * FROM t WHERE id = 5")
    assert caught.value.code == "value.tampered"


CHANGES = ["UPDATE t SET w = 'z' WHERE id = 5", "DELETE FROM t WHERE id = 5",
           "INSERT INTO t VALUES (5, 1, 'v', 1, 'w', 1, 1)"]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("sql", ["SELECT * FROM t WHERE id = 5", "UPDATE t SET w='x' WHERE id = 5"])
def test_another_client_between_the_steps(
    key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, sql: str
) -> None:
    """The answer is that of one state: before the other's change, or after it."""
    path = tmp_path / "shared.duckdb"
    twin = Twin(path, key_file, "sealed")
    twin.fill(TABLE, FILL)
    twin.session.execute("SET link_bandwidth = '1MB/s'")
    other, real, done = Twin(path, key_file, "sealed"), twin.tap.query, list[bool]()

    def interrupted(statement: Statement) -> pa.Table:
        if " IN (" in statement.sql and not done:
            done.append(True)
            other.louver.execute(change)
        return real(statement)

    monkeypatch.setattr(twin.tap, "query", interrupted)
    before = twin.plain.execute("SELECT * FROM t WHERE id = 5").fetchall()
    cursor = twin.louver.execute(sql)
    assert done
    if not sql.startswith("SELECT") and change.startswith("INSERT"):
        # The other's row stands in no one's way, so it comes after what did not see it.
        twin.plain.execute(f"{sql}; {change}")
        twin.run("SELECT * FROM t")
        other.close()
        twin.close()
        return
    twin.plain.execute(change)
    if sql.startswith("SELECT"):
        rows = cursor.fetchall()
        after = twin.plain.execute("SELECT * FROM t WHERE id = 5").fetchall()
        assert sorted(map(repr, rows)) in (sorted(map(repr, before)), sorted(map(repr, after)))
    else:
        twin.plain.execute(sql)
        twin.run("SELECT * FROM t")
    other.close()
    twin.close()


def test_in_a_transaction(twin: Twin) -> None:
    twin.either("BEGIN")
    twin.either("INSERT INTO t VALUES (9000, 1, 'x', 1, 'y', 1, 1)")
    assert read(twin, "SELECT * FROM t WHERE id = 9000") == (2, ROWS + 2)
    twin.either("UPDATE t SET w = 'z' WHERE id = 9000")
    twin.run("SELECT w FROM t WHERE id >= 9000")
    twin.either("ROLLBACK")
    twin.run("SELECT w FROM t WHERE id >= 1190")


PARTS = st.sampled_from(
    ["id = {}", "s > {}", "e = 'v{}'", "e LIKE 'v{}%'", "d < {}", "p = {}", "s IS NULL",
     "id BETWEEN {} AND 90", "(id = {} OR e = 'v7')", "s + n > {}", "NOT s = {}", "length(w) = {}",
     "coalesce(s, 5) = {}", "d <> d", "w ILIKE 'WWw'",
     "CASE WHEN p > 5 THEN s = {} ELSE id = 8 END"]
)  # fmt: skip
CONDITIONS = st.builds(
    lambda parts, word, number: f" {word} ".join(parts).replace("{}", str(number)),
    st.lists(PARTS, min_size=1, max_size=3), st.sampled_from(["AND", "OR", "AND"]),
    st.integers(0, 60),
)  # fmt: skip
FORMS = st.sampled_from(
    ["SELECT * FROM t WHERE {}", "SELECT p, count(*), sum(n) FROM t WHERE {} GROUP BY p",
     "SELECT x.w FROM t AS x JOIN t AS y ON x.id = y.n WHERE y.id < 50 AND x.id < 90 AND x.n > 3",
     "UPDATE t SET w = w || 'a', s = p WHERE {}", "DELETE FROM t WHERE {} RETURNING n",
     "SELECT max(w) FROM t WHERE id IN (SELECT n FROM t WHERE {})"]
)  # fmt: skip


@settings(
    max_examples=cases(12),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    statements=st.lists(st.tuples(FORMS, CONDITIONS), min_size=2, max_size=6),
    profile=st.sampled_from(["sealed", "cryptdb", "order"]),
)
def test_any_statement(key_file: Path, statements: list[tuple[str, str]], profile: str) -> None:
    table = TABLE
    if profile == "order":
        table = TABLE.replace("id BIGINT ENC", "id BIGINT ENC MAY REVEAL order")
    twin = filled(key_file, profile.replace("order", "sealed"), table)
    try:
        for form, condition in statements:
            sql = form.replace("{}", condition)
            if not refused(twin, sql):
                twin.either(sql)
        twin.run("SELECT * FROM t")
    finally:
        twin.close()


@settings(
    max_examples=cases(10),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(condition=CONDITIONS)
def test_a_change_shows_what_its_select_shows(key_file: Path, condition: str) -> None:
    twin = filled(key_file)
    try:
        shown = revealed(twin, f"SELECT * FROM t WHERE {condition}")
        for change in ("DELETE FROM t", "UPDATE t SET w = e"):
            sql = f"{change} WHERE {condition} RETURNING *"
            assert refused(twin, sql) or shown <= revealed(twin, sql)
    finally:
        twin.close()
