"""UPDATE … FROM, DELETE … USING, MERGE and subqueries read the rows that a SELECT would read, and
of tables that are only read the columns that are named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from tests.generated import cases
from tests.twin import Twin

TABLES = (
    "CREATE TABLE t (k BIGINT ENC, s BIGINT ENC, e VARCHAR ENC NOT NULL,"
    " c BIGINT ENC CHECK (c < 900))",
    "CREATE TABLE u (k BIGINT ENC PRIMARY KEY, x BIGINT ENC NOT NULL, w VARCHAR ENC NOT NULL)",
    "CREATE TABLE v (k BIGINT ENC, y BIGINT ENC REFERENCES u (k), z VARCHAR ENC)",
)  # fmt: skip
ROWS = (
    "INSERT INTO t SELECT i % 40, CASE WHEN i % 7 = 0 THEN NULL ELSE i END, 'e' || i % 9, i"
    " FROM range(120) r(i)",
    "INSERT INTO u SELECT i, i % 10, 'w' || i % 5 FROM range(60) r(i)",
    "INSERT INTO v SELECT i % 30, i % 60, 'z' || i % 4 FROM range(80) r(i)",
)


def filled(key_file: Path, profile: str = "cryptdb") -> Twin:
    twin = Twin(":memory:", key_file, profile)
    twin.fill(*TABLES, *ROWS)
    return twin


@pytest.fixture
def twin(key_file: Path) -> Iterator[Twin]:
    twin = filled(key_file)
    yield twin
    twin.close()


def read(twin: Twin, sql: str) -> dict[str, tuple[int, int]]:
    """Run a statement on both and compare; of each table the rows and columns that came."""
    start = len(twin.tap.records)
    twin.either(sql)
    came, name = dict[str, tuple[int, int]](), ""
    for record in twin.tap.records[start:]:
        if record.direction == "sent":
            text = getattr(record.message, "sql", "")
            clause = text.partition("FROM ")[2].partition(" AS t0")[0]
            name = clause.rpartition(".")[2].strip('"') if text.startswith("SELECT t0.") else ""
        elif name:
            reply: Any = record.message
            table = reply.table
            rows, _ = came.get(name, (0, 0))
            came[name] = (rows + table.num_rows, table.num_columns - 1)
    return came


def everything(twin: Twin) -> None:
    for table in "tuv":
        twin.run(f"SELECT * FROM {table}")


NARROW = {
    "UPDATE t SET s = u.x FROM u WHERE t.k = u.k AND u.k = 3": {"t": (120, 4), "u": (1, 2)},
    "UPDATE t AS a SET s = 7 FROM u WHERE a.k = u.k AND u.x = 3 AND a.c = 13":
        {"t": (1, 4), "u": (6, 2)},
    "DELETE FROM t USING u WHERE t.k = u.k AND u.k IN (4, 5)": {"t": (120, 1), "u": (2, 1)},
    "DELETE FROM t USING u, v WHERE t.k = u.k AND v.y = u.k AND v.y = 9 AND u.x = 9":
        {"t": (120, 1), "u": (1, 2), "v": (2, 2)},
    "DELETE FROM t WHERE k IN (SELECT k FROM u WHERE k = 7)": {"t": (120, 1), "u": (1, 1)},
    "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.k = 8) RETURNING e":
        {"t": (120, 2), "u": (1, 1)},
    "UPDATE t SET e = (SELECT max(w) FROM u WHERE u.k = t.k) WHERE k = 5":
        {"t": (3, 4), "u": (60, 2)},
    "MERGE INTO t USING u ON t.k = u.k AND u.k = 11 WHEN MATCHED THEN UPDATE SET s = u.x":
        {"t": (120, 4), "u": (1, 2)},
    "MERGE INTO t USING (SELECT k, x FROM u WHERE k > 57) AS n ON t.k = n.k AND t.k > 35"
    " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, s, e) VALUES (n.k, n.x, 'new')":
        {"t": (12, 4), "u": (2, 2)},
}  # fmt: skip


@pytest.mark.parametrize("sql", NARROW)
def test_tables_are_read_as_far_as_the_change_needs_them(twin: Twin, sql: str) -> None:
    assert read(twin, sql) == NARROW[sql]
    everything(twin)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("DELETE FROM t WHERE k NOT IN (SELECT k FROM u WHERE x > 3)", {"t": 120}),
        ("DELETE FROM t WHERE k NOT IN (SELECT k FROM u)", {"t": 120, "u": 60}),
        ("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", {"t": 120}),
        ("DELETE FROM t WHERE c > (SELECT avg(k) FROM u) AND c < 50", {"u": 60}),
        ("UPDATE t SET s = (SELECT count(*) FROM u) WHERE k = 5", {"u": 60}),
        ("MERGE INTO t USING u ON t.k = u.k WHEN NOT MATCHED THEN INSERT (k, e) VALUES (u.k, 'n')",
         {"u": 60}),
        ("MERGE INTO t USING u ON t.k = u.k AND u.k = 3 WHEN NOT MATCHED BY SOURCE THEN DELETE",
         {"t": 120, "u": 60}),
        ("DELETE FROM t USING u LEFT JOIN v ON u.k = v.y AND v.k = 3 WHERE t.k = u.k", {"u": 60}),
        ("UPDATE u SET k = u.k + 100 FROM v WHERE u.k = v.k AND v.y = 3", {"u": 60}),
        ("DELETE FROM t USING main.u WHERE t.k = u.k AND u.k = 3", {"t": 120, "u": 60}),
        ("MERGE INTO t USING (SELECT k, x AS s, w AS e, 1 AS c FROM u WHERE k < 9) n ON t.k = n.k"
         " WHEN MATCHED THEN UPDATE", {"t": 120, "u": 60}),
        ("WITH n AS (SELECT k FROM u WHERE k = 3) DELETE FROM t USING n WHERE t.k = n.k",
         {"u": 60}),
    ],
)  # fmt: skip
def test_what_must_be_seen_whole_is(twin: Twin, sql: str, rows: dict[str, int]) -> None:
    came = {name: count for name, (count, _) in read(twin, sql).items()}
    assert rows.items() <= came.items(), came
    everything(twin)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET e = NULL FROM u WHERE t.k = u.k AND u.k = 3",
        "UPDATE t SET c = 5000 FROM u WHERE t.k = u.k AND u.k = 3",
        "DELETE FROM u USING v WHERE u.k = v.y AND v.k = 3",
        "UPDATE v SET y = 999 FROM u WHERE u.k = v.k AND u.x = 3",
        "DELETE FROM t USING u WHERE k = 3",
        "DELETE FROM t USING u WHERE t.k = u.nothing",
        "UPDATE t SET s = (SELECT k FROM u WHERE x = 3) WHERE k = 5",
        "UPDATE t SET s = max(u.k) FROM u WHERE t.k = u.k",
    ],
)
def test_errors_are_those_of_duckdb(twin: Twin, sql: str) -> None:
    twin.either(sql)
    everything(twin)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE a SET s = b.x FROM b WHERE a.k = b.k AND b.k = 3",
        "DELETE FROM a USING b WHERE a.k = b.k AND b.k IN (4, 5)",
        "DELETE FROM a WHERE k IN (SELECT k FROM b WHERE k = 7 AND x < 90)",
        "MERGE INTO a USING b ON a.k = b.k AND b.k = 9 WHEN MATCHED THEN DELETE",
    ],
)
def test_joins_on_plain_columns_reduce_both_tables(key_file: Path, sql: str) -> None:
    twin = Twin(":memory:", key_file)
    twin.fill("CREATE TABLE a (k BIGINT, s BIGINT ENC)", "CREATE TABLE b (k BIGINT, x BIGINT ENC)",
              "INSERT INTO a SELECT i % 40, i FROM range(120) r(i)",
              "INSERT INTO b SELECT i, i % 10 FROM range(60) r(i)")  # fmt: skip
    twin.session.execute("SET link_bandwidth = '10KB/s'")
    came = read(twin, sql)
    assert came["a"][0] <= 6
    assert came["b"][0] <= 2
    twin.run("SELECT * FROM a")
    twin.close()


def test_a_ceiling_below_access_is_kept(key_file: Path) -> None:
    twin = Twin(":memory:", key_file, "cryptdb")
    twin.fill("CREATE TABLE t (k BIGINT ENC, s BIGINT ENC)",
              "CREATE TABLE u (k BIGINT ENC, h BIGINT ENC MAY REVEAL size)",
              "INSERT INTO t SELECT i, i FROM range(50) r(i)",
              "INSERT INTO u SELECT i, i FROM range(50) r(i)")  # fmt: skip
    assert read(twin, "DELETE FROM t USING u WHERE t.k = u.k AND u.k = 3")["u"] == (1, 1)
    with pytest.raises(errors.LeakageRefused):
        twin.session.execute("DELETE FROM t USING u WHERE t.k = u.k AND u.k = 5 AND u.h = 5")
    assert twin.session.context.ledger.level("u", "h") == "size"
    twin.run("SELECT * FROM t")
    twin.close()


def revealed(twin: Twin, sql: str) -> tuple[set[tuple[str, ...]], list[object]]:
    """What EXPLAIN (LEAKAGE) says of a statement: its facts, and the layers that it opens."""
    ((_, text),) = twin.rows(f"EXPLAIN (LEAKAGE, FORMAT json) {sql}")
    body = json.loads(text)
    listed = body["reveals"]["new"] + body["reveals"]["known"]
    return {(fact["kind"], fact["reveals"]) for fact in listed}, body["layers"]


PARTS = st.sampled_from(
    ["u.k = {}", "u.x = {}", "t.s > {}", "t.e = 'e{}'", "u.w = 'w3'", "t.c < 3 * {}", "t.s IS NULL",
     "u.k IN (3, {})", "(t.c = {} OR u.x = 4)", "t.s + u.k > {}", "NOT u.x = {}", "u.w LIKE 'w{}%'",
     "EXISTS (SELECT 1 FROM v WHERE v.y = u.k AND v.k = {})", "t.k NOT IN (SELECT k FROM v)",
     "t.k IN (SELECT y FROM v WHERE z = 'z2')"]
)  # fmt: skip
CONDITIONS = st.builds(
    lambda parts, number: " AND ".join(parts).replace("{}", str(number)),
    st.lists(PARTS, min_size=1, max_size=3), st.integers(0, 40),
)  # fmt: skip
FORMS = (
    "UPDATE t SET s = c + 1 FROM u WHERE t.k = u.k AND {}",
    "UPDATE t SET e = 'n', c = u.k FROM u WHERE t.k = u.k AND {} RETURNING t.c",
    "DELETE FROM t USING u WHERE t.k = u.k AND {}",
    "DELETE FROM t USING u LEFT JOIN v ON u.k = v.y WHERE t.k = u.k AND {} RETURNING e",
    "DELETE FROM t WHERE k IN (SELECT u.k FROM u, t AS o WHERE o.k = u.k AND {})",
    "UPDATE t SET s = (SELECT count(*) FROM u WHERE u.k = t.k AND {}) WHERE t.k < 9",
    "MERGE INTO t USING u ON t.k = u.k AND {} WHEN MATCHED THEN UPDATE SET s = 5",
    "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED AND {} THEN DELETE"
    " WHEN NOT MATCHED AND u.x = 3 THEN INSERT (k, e) VALUES (u.k, u.w)",
)
RANDOM = settings(
    max_examples=cases(15),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@RANDOM
@given(
    statements=st.lists(st.tuples(st.sampled_from(FORMS), CONDITIONS), min_size=2, max_size=5),
    profile=st.sampled_from(["sealed", "cryptdb", "order"]),
)
def test_any_change(key_file: Path, statements: list[tuple[str, str]], profile: str) -> None:
    twin = Twin(":memory:", key_file, profile.replace("order", "sealed"))
    order = profile == "order"
    twin.fill(*(t.replace(" ENC", " ENC MAY REVEAL order") if order else t for t in TABLES), *ROWS)
    try:
        for form, condition in statements:
            twin.either(form.replace("{}", condition))
        everything(twin)
    finally:
        twin.close()


@RANDOM
@given(condition=CONDITIONS)
def test_a_change_shows_what_the_select_of_its_rows_shows(key_file: Path, condition: str) -> None:
    twin = filled(key_file)
    try:
        query = "SELECT t.k, t.s, t.e, t.c, u.k, u.x, u.w FROM u, t"
        shown, layers = revealed(twin, f"{query} WHERE t.k = u.k AND {condition}")
        change = f"UPDATE t SET s = u.k + u.x, e = u.w FROM u WHERE t.k = u.k AND {condition}"
        facts, opened = revealed(twin, change)
        assert shown <= facts
        assert opened == layers
    finally:
        twin.close()
