"""Of a table that is joined with one of few rows, those rows are asked for that have its keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver.trusted.executor import keys_read
from louver.trusted.planner import cost
from tests.executor.test_joined_changes import read
from tests.generated import cases
from tests.twin import Twin

ROWS = 3_000
RANDOM = settings(
    max_examples=cases(25),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def filled(key_file: Path, profile: str = "cryptdb", *, clause: str = "", few: str = "") -> Twin:
    twin = Twin(":memory:", key_file, profile)
    twin.fill(
        f"CREATE TABLE n (k BIGINT ENC {clause}, v BIGINT ENC, s VARCHAR ENC)",
        f"CREATE TABLE few (k INTEGER ENC {few}, v BIGINT ENC)",
        f"INSERT INTO n SELECT i, i % 100, 's' || i % 7 FROM range({ROWS}) r(i)",
        "INSERT INTO few SELECT i * 3, i FROM range(5) r(i)",
    )
    return twin


@pytest.fixture
def twin(key_file: Path) -> Iterator[Twin]:
    twin = filled(key_file)
    yield twin
    twin.close()


NARROW = {
    "UPDATE n SET v = few.v FROM few WHERE n.k = few.k": 5,
    "DELETE FROM n USING few WHERE n.k = few.k AND few.v > 2 RETURNING n.k": 2,
    "MERGE INTO n USING few ON n.k = few.k WHEN MATCHED THEN UPDATE SET v = few.v": 5,
    "MERGE INTO n USING few AS f ON f.k = n.k WHEN MATCHED THEN UPDATE SET v = f.v"
    " WHEN NOT MATCHED THEN INSERT (k, v) VALUES (f.k, f.v)": 5,
    "DELETE FROM n WHERE k IN (SELECT k FROM few WHERE v = 2)": 1,
    "DELETE FROM n WHERE EXISTS (SELECT 1 FROM few WHERE few.k = n.k)": 5,
    "UPDATE n SET v = 1 WHERE n.k = (SELECT max(k) FROM few)": ROWS,
    "DELETE FROM n WHERE k NOT IN (SELECT k FROM few) AND v = 3": 30,
    "SELECT n.v FROM n, few WHERE n.k = few.k": ROWS,
    "SELECT n.v FROM n, few WHERE n.k = few.k AND few.v = 2": 1,
}  # fmt: skip
OF_KEYS = {
    "SELECT n.v FROM n, few WHERE n.k = few.k": 5,
    "SELECT * FROM few LEFT JOIN n ON n.k = few.k": 5,
    "SELECT * FROM few RIGHT JOIN n ON n.k = few.k": ROWS,
    "SELECT * FROM few FULL JOIN n ON n.k = few.k": ROWS,
    "SELECT * FROM few SEMI JOIN n ON n.k = few.k": ROWS,
    "SELECT * FROM n, few WHERE n.k = few.k OR n.k = 3": ROWS,
    "SELECT a.v FROM n a, n b, few WHERE a.k = few.k AND a.v = b.v": ROWS,
    "SELECT (SELECT max(s) FROM n WHERE n.k = few.k) FROM few": 5,
}  # fmt: skip


@pytest.mark.parametrize("sql", NARROW)
def test_few_keys_choose_the_rows_of_a_large_table(twin: Twin, sql: str) -> None:
    assert read(twin, sql)["n"][0] == NARROW[sql]
    twin.run("SELECT * FROM n")


@pytest.mark.parametrize("sql", OF_KEYS)
def test_few_keys_choose_the_rows_that_have_them(key_file: Path, sql: str) -> None:
    twin = filled(key_file, clause="UNIQUE")
    assert read(twin, sql)["n"][0] == OF_KEYS[sql]
    twin.close()


STATED = {
    "UPDATE n SET v = s.w FROM (VALUES (3, 1), (9, 2), (NULL, 3)) AS s(k, w) WHERE n.k = s.k": 2,
    "DELETE FROM n USING (VALUES (3), (4)) AS s WHERE s.col0 = n.k RETURNING k": 2,
    "MERGE INTO n USING (VALUES (3, 1), (-5, 2)) AS s(k, w) ON n.k = s.k"
    " WHEN MATCHED THEN UPDATE SET v = s.w WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)": 1,
    "MERGE INTO n USING (SELECT 7 AS k, 1 AS w UNION ALL SELECT 8, 2 + 2) AS s ON n.k = s.k"
    " WHEN MATCHED THEN UPDATE SET v = s.w": 2,
    "SELECT n.v FROM n JOIN (VALUES (1), (2)) AS s(k) ON n.k = s.k": 2,
    "SELECT n.v FROM (VALUES (1), (2)) AS s(k) LEFT JOIN n ON n.k = s.k": 2,
    "SELECT n.v FROM n LEFT JOIN (VALUES (1), (2)) AS s(k) ON n.k = s.k": ROWS,
    "SELECT n.v FROM n FULL JOIN (VALUES (1), (2)) AS s(k) ON n.k = s.k": ROWS,
    "SELECT n.v FROM n, (VALUES (1), (2.5)) AS s(k) WHERE n.k = s.k": ROWS,
    "SELECT n.v FROM n, (VALUES ('1'), ('2')) AS s(k) WHERE n.k = s.k": ROWS,
    "SELECT n.v FROM n, (VALUES (1), (2)) AS s(k) WHERE n.k = s.k OR n.k = 1": ROWS,
    "SELECT n.v FROM n, (SELECT 1 AS k UNION SELECT 2) AS s WHERE n.k = s.k": ROWS,
    "SELECT n.v FROM n, (SELECT 1 AS k WHERE 1 = 1) AS s WHERE n.k = s.k": ROWS,
    "SELECT n.v FROM n WHERE EXISTS (FROM (VALUES (1), (2)) AS s(k) WHERE n.k = s.k)": ROWS,
}  # fmt: skip


@pytest.mark.parametrize("sql", STATED)
def test_constants_of_the_statement_choose_the_rows(twin: Twin, sql: str) -> None:
    assert read(twin, sql)["n"][0] == STATED[sql]
    twin.run("SELECT * FROM n")


def test_a_key_is_looked_up_by_its_tag_at_access(key_file: Path) -> None:
    twin = filled(key_file, "sealed", clause="PRIMARY KEY")
    for values in ((3, 4), (5, 6), (6, 5)):
        sql = "MERGE INTO n USING (VALUES (?, 1), (?, 2)) AS s(k, w) ON n.k = s.k"
        sql = sql.replace("?", "{}").format(*values) + " WHEN MATCHED THEN UPDATE SET v = s.w"
        assert read(twin, sql)["n"][0] == 2
    assert twin.session.context.ledger.level("n", "k") == "access"
    twin.run("SELECT * FROM n")
    twin.close()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("INSERT INTO few SELECT 7, 7", 6),
        ("INSERT INTO few SELECT NULL, 7", 5),
        ("INSERT INTO few VALUES (2147483647, 7), (-1, NULL)", 5),
        ("DELETE FROM few", 0),
        ("UPDATE few SET k = NULL", 0),
        ("UPDATE few SET k = 9", 1),
        ("INSERT INTO few SELECT i, i FROM range(1000, 1020) r(i)", 25),
        (f"INSERT INTO few SELECT i, i FROM range(20, {ROWS}) r(i)", ROWS),
    ],
)
def test_the_keys_are_those_that_are_there_now(twin: Twin, sql: str, rows: int) -> None:
    twin.run("UPDATE n SET v = 1 FROM few WHERE n.k = few.k")
    twin.run(sql)
    assert read(twin, "UPDATE n SET v = few.v FROM few WHERE n.k = few.k")["n"][0] == rows
    twin.run("SELECT * FROM n")


def test_many_keys_read_the_table(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_read, "MOST_KEYS", 4)
    assert read(twin, "UPDATE n SET v = few.v FROM few WHERE n.k = few.k")["n"][0] == ROWS


def test_many_keys_go_beside_the_text(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_read, "MOST_LISTED", 2)
    assert read(twin, "UPDATE n SET v = few.v FROM few WHERE n.k = few.k")["n"][0] == 5
    beside = [getattr(record.message, "tables", {}) for record in twin.tap.records]
    (keys,) = [tables["louver_keys"] for tables in beside if "louver_keys" in tables]
    codes = keys.column(0).to_pylist()
    assert len(codes) == 5
    assert codes == sorted(codes)
    twin.run("SELECT * FROM n")


def test_the_ledger_says_which_rows_gave_keys(key_file: Path) -> None:
    sql = "SELECT n.v FROM n, few WHERE n.k = few.k AND few.v % 5 = 2"
    twin = filled(key_file)
    assert read(twin, sql)["n"][0] == 1
    shown = {(f.table, f.kind, f.columns) for f in twin.session.context.ledger.facts()}
    assert {("few", "rows", ("v",)), ("few", "eq.met", ("k",))} <= shown
    twin.close()
    twin = Twin(":memory:", key_file, "cryptdb")
    twin.fill(
        "CREATE TABLE n (k BIGINT ENC, v BIGINT ENC)",
        "CREATE TABLE few (k INTEGER ENC, v BIGINT ENC MAY REVEAL size)",
        f"INSERT INTO n SELECT i, i % 100 FROM range({ROWS}) r(i)",
        "INSERT INTO few SELECT i * 3, i FROM range(5) r(i)",
    )
    assert read(twin, sql)["n"][0] == ROWS
    twin.close()


def test_a_chain_of_tables(twin: Twin) -> None:
    twin.fill("ALTER TABLE n RENAME TO o", "CREATE TABLE n (k BIGINT ENC UNIQUE, s VARCHAR ENC)",
              "INSERT INTO n SELECT k, s FROM o",
              "CREATE TABLE m (k BIGINT ENC UNIQUE, n BIGINT ENC)",
              f"INSERT INTO m SELECT i, i * 7 FROM range({ROWS - 500}) r(i)")  # fmt: skip
    came = read(twin, "SELECT n.s FROM n, m, few WHERE n.k = m.n AND m.k = few.k")
    assert (came["few"][0], came["m"][0], came["n"][0]) == (5, 5, 5)


def test_rows_that_refer_to_a_key_are_expected_to_meet_it(key_file: Path) -> None:
    twin = filled(key_file, few="UNIQUE")
    assert read(twin, "UPDATE n SET v = few.v FROM few WHERE n.k = few.k")["n"][0] == ROWS
    twin.close()


def test_a_key_is_looked_up_by_its_tag(key_file: Path) -> None:
    twin = filled(key_file, clause="PRIMARY KEY")
    assert read(twin, "UPDATE n SET v = few.v FROM few WHERE n.k = few.k")["n"][0] == 5
    assert twin.column("n", "k").layers["eq"] == "closed"
    kinds = {fact.kind for fact in twin.session.context.ledger.facts()}
    assert {"key.asked", "eq.met"} <= kinds
    twin.run("SELECT * FROM n")
    twin.close()


@pytest.mark.parametrize(
    ("clause", "few"),
    [
        ("MAY REVEAL access", "MAY REVEAL access"),
        ("MAY REVEAL equality", "MAY REVEAL access"),
        ("MAY REVEAL access", "MAY REVEAL equality"),
        ("MAY REVEAL order", "MAY REVEAL equality"),
        ("MAY REVEAL access PRIMARY KEY", "MAY REVEAL access"),
        ("MAY REVEAL size", "MAY REVEAL size"),
    ],
)
def test_ceilings_forbid_to_show_what_is_equal(key_file: Path, clause: str, few: str) -> None:
    twin = filled(key_file, clause=clause, few=few)
    came = read(twin, "SELECT n.v FROM n JOIN few ON n.k = few.k")
    assert came["n"][0] == ROWS
    assert not any(f.kind == "eq.met" for f in twin.session.context.ledger.facts())
    twin.close()


def test_the_ledger_says_that_values_met_before_it_is_asked(twin: Twin) -> None:
    sql = "UPDATE n SET v = few.v FROM few WHERE n.k = few.k"
    ((_, text),) = twin.rows(f"EXPLAIN (LEAKAGE, FORMAT json) {sql}")
    stated = {(f["table"], f["kind"]) for f in json.loads(text)["reveals"]["new"]}
    assert {("n", "eq.met"), ("few", "eq.met"), ("n", "eq.open/unique")} & stated
    assert ("few", "eq.open") not in stated
    assert twin.session.context.ledger.level("few", "k") != "equality"
    twin.run(sql)
    known = {(f.table, f.kind) for f in twin.session.context.ledger.facts()}
    assert stated <= known
    assert twin.session.context.ledger.level("few", "k") == "equality"
    assert twin.column("few", "k").layers["eq"] == "closed"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("MERGE INTO n USING (VALUES (3, 1), (-5, 2)) AS s(k, w) ON n.k = s.k"
         " WHEN MATCHED THEN UPDATE SET v = s.w WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)", 1),
        ("MERGE INTO n USING (VALUES (-5, 2), (-5, 3)) AS s(k, w) ON n.k = s.k"
         " WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)", 0),
        ("MERGE INTO n USING (VALUES (-5, 2), (-6, 3)) AS s(k, w) ON n.k = s.k"
         " WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k + 9)", 0),
        ("MERGE INTO n USING (VALUES (4, 2), (-6, 3)) AS s(k, w) ON n.k = s.k"
         " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)", 1),
        ("MERGE INTO n USING (VALUES (4, 2), (-6, 3)) AS s(k, w) ON n.k = s.k"
         " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k) VALUES (4)", 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("profile", ["cryptdb", "sealed"])
def test_the_servers_index_decides_the_keys_of_new_rows(
    key_file: Path, profile: str, sql: str, rows: int
) -> None:
    twin = filled(key_file, profile, clause="PRIMARY KEY")
    assert read(twin, sql)["n"][0] == rows
    twin.run("SELECT * FROM n")
    twin.close()


# -- drawn beside plaintext DuckDB ------------------------------------------------------------

TYPES = {
    "BIGINT": "{} - 4", "INTEGER": "{} - 4", "UTINYINT": "{}", "DECIMAL(9, 2)": "{} / 4",
    "DECIMAL(18, 2)": "{} / 4", "FLOAT": "{} / 4",
    "DOUBLE": "CASE {} WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN -0.0 WHEN 2 THEN 0.0 ELSE {} / 4 END",
    "VARCHAR": "CASE {} WHEN 0 THEN '' ELSE 'v' || {} END",
    "VARCHAR COLLATE NOCASE": "CASE {} WHEN 1 THEN 'V1' ELSE 'v' || {} % 3 END",
    "DATE": "DATE '2020-01-01' + {}::INTEGER", "BOOLEAN": "{} % 2 = 0",
    "TIMESTAMP": "TIMESTAMP '2020-01-01' + INTERVAL ({}) DAY",
    "UUID": "('00000000-0000-0000-0000-00000000000' || {})::UUID", "BLOB": "('b' || {})::BLOB",
    "HUGEINT": "{} * 10::HUGEINT ** 20",
}  # fmt: skip
#: Pairs of types that DuckDB compares in ever another one.
PAIRS = [
    *((name, name) for name in TYPES), ("BIGINT", "INTEGER"), ("UTINYINT", "BIGINT"),
    ("INTEGER", "DECIMAL(9, 2)"), ("DECIMAL(9, 2)", "DECIMAL(18, 2)"), ("BIGINT", "DOUBLE"),
    ("FLOAT", "DOUBLE"), ("VARCHAR", "BIGINT"), ("DATE", "TIMESTAMP"), ("HUGEINT", "BIGINT"),
    ("VARCHAR", "VARCHAR COLLATE NOCASE"),
]  # fmt: skip
STATEMENTS = [
    "SELECT w FROM big JOIN (VALUES {}) AS s(k, x) ON big.k = s.k",
    "SELECT w, s.x FROM (VALUES {}) AS s(k, x) LEFT JOIN big ON big.k = s.k",
    "SELECT w FROM big LEFT JOIN (VALUES {}) AS s(k, x) ON big.k = s.k",
    "UPDATE big SET w = s.x FROM (VALUES {}) AS s(k, x) WHERE big.k = s.k AND s.x % 2 = 0",
    "DELETE FROM big WHERE EXISTS (SELECT 1 FROM (VALUES {}) AS s(k, x) WHERE big.k = s.k)",
    "MERGE INTO big USING (VALUES {}) AS s(k, x) ON big.k = s.k WHEN MATCHED THEN DELETE"
    " WHEN NOT MATCHED THEN INSERT (w) VALUES (s.x)",
]
FORMS = [
    "SELECT big.w, little.x FROM big JOIN little ON big.k = little.k",
    "SELECT big.w, little.x FROM little LEFT JOIN big ON big.k = little.k AND big.w > 10",
    "SELECT big.w, little.x FROM little RIGHT JOIN big ON big.k = little.k",
    "SELECT big.w FROM big WHERE k IN (SELECT k FROM little WHERE x > 1)",
    "SELECT big.w FROM big WHERE k NOT IN (SELECT k FROM little WHERE k IS NOT NULL)",
    "SELECT big.w FROM big WHERE NOT EXISTS (SELECT 1 FROM little WHERE little.k = big.k)",
    "SELECT (SELECT count(*) FROM big WHERE big.k = little.k) FROM little",
    "SELECT w FROM little, big WHERE (big.k = little.k AND x > 1) OR (little.k = big.k AND w < 5)",
    "SELECT w FROM little a, little b, big WHERE a.k = b.k AND b.k = big.k AND a.x = 3",
    "SELECT a.w FROM big a, big b, little WHERE a.k = little.k AND b.k = a.k AND little.x < 3",
    "SELECT a.x, b.x, w FROM little a, little b, big WHERE big.k = a.k AND b.x = a.x",
    "SELECT w FROM little JOIN big USING (k)",
    "SELECT w FROM (SELECT k FROM little WHERE x < 4) AS s JOIN big ON big.k = s.k",
    "UPDATE big SET w = 7 FROM little WHERE big.k = little.k AND little.x < 5",
    "DELETE FROM big USING little WHERE big.k = little.k AND x % 2 = 0",
    "MERGE INTO big USING little ON big.k = little.k AND little.x > 1"
    " WHEN MATCHED THEN UPDATE SET w = 9"
    " WHEN NOT MATCHED THEN INSERT (w) VALUES (little.x + 100)",
    "DELETE FROM big WHERE EXISTS (SELECT 1 FROM little WHERE little.k = big.k AND x = 3)",
    "MERGE INTO big USING little ON big.k = little.k AND little.x <> 3"
    " WHEN MATCHED THEN UPDATE SET w = 9"
    " WHEN NOT MATCHED THEN INSERT (k, w) VALUES (little.k, little.x)",
]
VALUES = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=12)


def _rows(table: str, expression: str, values: list[int | None]) -> list[str]:
    cells = [
        f"({'NULL' if v is None else expression.replace('{}', str(v))}, {i})"
        for i, v in enumerate(values)
    ]
    return [f"INSERT INTO {table} VALUES {', '.join(cells)}"] if cells else []


def _sealed(type_: str) -> str:
    bare, collate, name = type_.partition(" COLLATE")
    return f"{bare} ENC{collate}{name}"


@RANDOM
@given(
    pair=st.sampled_from(PAIRS), big=VALUES, little=VALUES, unique=st.booleans(),
    statements=st.lists(st.sampled_from(FORMS), min_size=1, max_size=3),
    profile=st.sampled_from(["cryptdb", "cryptdb", "sealed"]),
)  # fmt: skip
def test_any_join(
    key_file: Path, pair: tuple[str, str], big: list[int | None], little: list[int | None],
    unique: bool, statements: list[str], profile: str,
) -> None:  # fmt: skip
    twin = Twin(":memory:", key_file, profile)
    least, cost.LEAST_ROWS = cost.LEAST_ROWS, 0
    unique = unique and pair[0] in ("BIGINT", "INTEGER", "VARCHAR", "DATE", "UUID", "HUGEINT")
    try:
        twin.fill(
            f"CREATE TABLE big (k {_sealed(pair[0])}{' UNIQUE' if unique else ''}, w BIGINT ENC)",
            f"CREATE TABLE little (k {_sealed(pair[1])}, x BIGINT ENC)",
            *_rows("big", TYPES[pair[0]], [*range(10)] + ([] if unique else [*big, *range(10)])),
            *_rows("little", TYPES[pair[1]], little),
        )
        for sql in statements:
            try:
                twin.either(sql)
            except AssertionError as error:
                # Whether a text that is no number is converted depends on the order of conditions.
                if pair == ("VARCHAR", "BIGINT") and "Conversion Error" in str(error):
                    return
                raise
            twin.run("SELECT * FROM big")
    finally:
        cost.LEAST_ROWS = least
        twin.close()


@RANDOM
@given(
    pair=st.sampled_from(PAIRS), big=VALUES, little=VALUES.filter(bool),
    cast=st.booleans(), statements=st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=3),
    profile=st.sampled_from(["cryptdb", "cryptdb", "sealed"]),
)  # fmt: skip
def test_any_join_with_constants(
    key_file: Path, pair: tuple[str, str], big: list[int | None], little: list[int | None],
    cast: bool, statements: list[str], profile: str,
) -> None:  # fmt: skip
    twin = Twin(":memory:", key_file, profile)
    try:
        twin.fill(
            f"CREATE TABLE big (k {_sealed(pair[0])}, w BIGINT ENC)",
            *_rows("big", TYPES[pair[0]], [*big, *range(10)]),
        )
        form = "({}::{})" if cast else "{}"
        type_ = pair[1].partition(" COLLATE")[0]
        cells = [
            "NULL" if v is None
            else form.format(TYPES[pair[1]].replace("{}", str(v)), type_) if cast
            else TYPES[pair[1]].replace("{}", str(v))
            for v in little
        ]  # fmt: skip
        rows = ", ".join(f"({cell}, {i})" for i, cell in enumerate(cells))
        for sql in statements:
            if sql.startswith("UPDATE") and len({*little}) < len(little):
                continue  # which of several partners a row gets is not said
            twin.either(sql.replace("{}", rows))
            twin.run("SELECT * FROM big")
    finally:
        twin.close()
