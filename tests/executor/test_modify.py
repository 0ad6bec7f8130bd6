"""Changes give what DuckDB gives, and put no encrypted value into a plain column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.executor import change, parameters
from louver.trusted.executor.session import Session
from louver.trusted.planner.sql import lexer
from louver.wire.messages import Statement
from tests.generated import cases
from tests.twin import Twin

TABLES = """
CREATE TABLE t (a INTEGER ENC PRIMARY KEY, b TEXT ENC, c INTEGER ENC DEFAULT 7 CHECK (c <> 13));
CREATE TABLE k (id INTEGER ENC, p INTEGER ENC REFERENCES t (a));
CREATE TABLE u (x DOUBLE ENC, y TEXT ENC, z DECIMAL(9, 2) ENC NOT NULL);
CREATE UNIQUE INDEX ui ON u (lower(y));
"""


@pytest.fixture(params=["sealed", "sdb"])
def twin(request: pytest.FixtureRequest, key_file: Path) -> Iterator[Twin]:
    twin = Twin(":memory:", key_file, request.param)
    twin.run(TABLES)
    yield twin
    twin.close()


@pytest.fixture
def session(key_file: Path) -> Iterator[Session]:
    twin = Twin(":memory:", key_file)
    yield twin.session
    twin.close()


RETURNED = (
    "t", "t, *", "t.*, t.c", "{'a': t}", "(t).b", "t AS whole, t.a", "COLUMNS('a|b'), b[1]",
    "[a], b LIKE 'x%', c IN (1, 2)", "CASE WHEN a = 1 THEN b END, a BETWEEN 1 AND 2, -c",
)  # fmt: skip


@pytest.mark.parametrize("returned", RETURNED)
def test_returning_names_columns_as_duckdb_does(twin: Twin, returned: str) -> None:
    twin.run("INSERT INTO t VALUES (1, 'x', 1)")
    for changed in (
        "INSERT INTO t VALUES (2, 'xy', 2)",
        "INSERT INTO t (a) SELECT a + 2 FROM t WHERE a = 1",
        "INSERT INTO t AS other BY NAME SELECT 4 AS a, 'n' AS b",
        "INSERT INTO t VALUES ((SELECT max(a) + 1 FROM t), 'sub', DEFAULT)",
        "INSERT INTO t VALUES (1, 'up', 2) ON CONFLICT (a) DO UPDATE SET b = excluded.b",
        "UPDATE t SET b = 'other' WHERE a = 2",
        "DELETE FROM t WHERE a = 2",
    ):
        twin.run(f"{changed} RETURNING {returned}")


FIXED = """
INSERT INTO t VALUES (1, 'a', 5), (2, NULL, 6), (3, 'c', NULL)
INSERT INTO t (a, b) VALUES (4, 'd') RETURNING a + 1, *
INSERT INTO t (b, a) SELECT b || 'x', a + 10 FROM t RETURNING a
INSERT INTO t BY NAME SELECT 30 AS a, 'n' AS b
INSERT INTO t VALUES (1, 'again', 1)
INSERT INTO t VALUES (50, 'x', 1), (50, 'x', 1)
INSERT INTO t VALUES (NULL, 'x', 1)
INSERT INTO t VALUES (60, 'x', 13)
INSERT INTO t VALUES (61, 'x', 'no number')
INSERT INTO t VALUES (62, 'x')
INSERT INTO nowhere VALUES (1)
INSERT INTO t (a, nothing) VALUES (1, 2)
INSERT INTO t VALUES ((SELECT max(a) + 1 FROM t), 'sub', DEFAULT)
WITH s AS (SELECT 70 AS a) INSERT INTO t SELECT a, 'cte', 1 FROM s
INSERT INTO t VALUES (1, 'up', 2) ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING *
INSERT INTO t VALUES (1, 'no', 2), (80, 'yes', 2) ON CONFLICT DO NOTHING
INSERT OR REPLACE INTO t VALUES (2, 'replaced', 9)
INSERT OR IGNORE INTO t VALUES (2, 'ignored', 9)
INSERT INTO k VALUES (1, 1), (2, NULL), (3, 2)
INSERT INTO k VALUES (4, 999)
INSERT INTO k SELECT a, a FROM t WHERE a > 20
UPDATE k SET p = 12345 WHERE id = 1
DELETE FROM t WHERE a = 1
UPDATE t SET a = 100 WHERE a = 1
UPDATE t SET b = 'neu', c = c + 1 WHERE c > 5
UPDATE t SET b = s.v FROM (VALUES (1, 'one'), (4, 'four')) AS s (i, v) WHERE t.a = s.i
UPDATE t SET c = 13
UPDATE t SET a = 3 WHERE a = 4
UPDATE t SET a = a
DELETE FROM k USING t WHERE k.p = t.a AND t.b = 'one' RETURNING k.id
DELETE FROM k WHERE p IN (SELECT a FROM t WHERE a > 50)
MERGE INTO t USING (VALUES (3, 'm'), (90, 'n')) AS s (i, v) ON t.a = s.i \
WHEN MATCHED THEN UPDATE SET b = s.v WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.i, s.v)
MERGE INTO t USING k ON t.a = k.p WHEN MATCHED THEN UPDATE SET b = 'has a child'
TRUNCATE t
INSERT INTO u VALUES (0.0, 'zero', 1), ('nan', 'Nan', 2.5), (NULL, NULL, 3), (NULL, NULL, 3)
INSERT INTO u VALUES (1, 'ZERO', 1)
UPDATE u SET x = -0.0 WHERE y = 'zero'
SELECT x::VARCHAR, y, z FROM u
UPDATE u SET z = 99999999
UPDATE u SET z = z * 2 WHERE x IS NULL
DELETE FROM u WHERE x IS NULL RETURNING *
DELETE FROM u
TRUNCATE TABLE u
DELETE FROM k
DELETE FROM t WHERE FALSE
DELETE FROM t
""".strip().replace("\\\n", "").splitlines()  # fmt: skip


def test_a_sequence_of_changes(twin: Twin) -> None:
    for sql in FIXED:
        twin.either(sql)
        for table in "tku":
            twin.run(f"SELECT * FROM {table}")


KEYS = st.integers(0, 6)
TEXTS = st.sampled_from(["'a'", "'B'", "''", "NULL", "'it''s'"])
NUMBERS = st.sampled_from(["1", "13", "-5", "NULL", "2147483647"])
CHANGES = st.one_of(
    st.builds("INSERT INTO t VALUES ({}, {}, {})".format, KEYS, TEXTS, NUMBERS),
    st.builds("INSERT INTO t VALUES ({}, {}, 1), ({}, 'z', 2)".format, KEYS, TEXTS, KEYS),
    st.builds("INSERT INTO t (a) SELECT a + {} FROM t RETURNING *".format, KEYS),
    st.builds("INSERT INTO k VALUES ({}, {})".format, KEYS, KEYS),
    st.builds("INSERT INTO u VALUES ({}, {}, {})".format, NUMBERS, TEXTS, NUMBERS),
    st.builds(
        "INSERT INTO t VALUES ({}, {}, 3) ON CONFLICT (a) DO UPDATE SET b = excluded.b,"
        " c = t.c + 1".format,
        KEYS,
        TEXTS,
    ),
    st.builds("INSERT OR IGNORE INTO t VALUES ({}, {}, 3)".format, KEYS, TEXTS),
    st.builds("UPDATE t SET a = a + {} WHERE a <= {}".format, KEYS, KEYS),
    st.builds("UPDATE t SET b = {}, c = c + {} WHERE a > {}".format, TEXTS, NUMBERS, KEYS),
    st.builds("UPDATE k SET p = {} WHERE id = {}".format, KEYS, KEYS),
    st.builds("UPDATE u SET y = {} WHERE x > {}".format, TEXTS, NUMBERS),
    st.builds("DELETE FROM t WHERE a = {} RETURNING *".format, KEYS),
    st.builds("DELETE FROM k WHERE id >= {}".format, KEYS),
    st.builds("DELETE FROM u WHERE y = {}".format, TEXTS),
    st.builds(
        "MERGE INTO t USING k ON t.a = k.p AND k.id = {} WHEN MATCHED THEN DELETE".format, KEYS
    ),
    st.sampled_from(["TRUNCATE k", "TRUNCATE t", "DELETE FROM u"]),
)


@settings(
    max_examples=cases(8),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(changes=st.lists(CHANGES, min_size=3, max_size=10))
@pytest.mark.parametrize("profile", ["sealed", "sdb"])
def test_any_sequence_of_changes(key_file: Path, profile: str, changes: list[str]) -> None:
    twin = Twin(":memory:", key_file, profile)
    try:
        twin.run(TABLES)
        for sql in changes:
            twin.either(sql)
            for table in "tku":
                twin.run(f"SELECT * FROM {table}")
    finally:
        twin.close()


MIXED = "CREATE TABLE m (s INTEGER ENC, plain INTEGER); CREATE TABLE p (v INTEGER, w TEXT)"
REFUSED = """
INSERT INTO p SELECT s, 'x' FROM m
INSERT INTO p SELECT plain + s, 'x' FROM m
INSERT INTO p SELECT count(*), max(s)::TEXT FROM m
INSERT INTO p SELECT row_number() OVER (ORDER BY s), '' FROM m
INSERT INTO p SELECT plain, m::TEXT FROM m
INSERT INTO p (w) SELECT (SELECT max(s) FROM m)::TEXT
INSERT INTO p SELECT x, '' FROM (SELECT s AS x FROM m)
INSERT INTO p BY NAME SELECT s AS v FROM m
INSERT INTO p WITH q AS (SELECT s FROM m) SELECT s, '' FROM q
INSERT INTO p VALUES ((SELECT max(s) FROM m), 'x')
INSERT INTO m SELECT plain, s FROM m
INSERT INTO m SELECT s AS plain, plain FROM m ORDER BY s
UPDATE m SET plain = s
UPDATE m SET plain = CASE WHEN s > 1 THEN 1 ELSE 2 END
UPDATE m SET plain = (SELECT max(s) FROM m)
UPDATE p SET v = m.s FROM m
UPDATE p SET v = q.x FROM (SELECT s AS x FROM m) AS q
MERGE INTO p USING m ON p.v = m.plain WHEN NOT MATCHED THEN INSERT VALUES (m.s, 'x')
MERGE INTO p USING m ON p.v = m.plain WHEN MATCHED THEN UPDATE SET v = m.s
MERGE INTO p USING (SELECT s AS v FROM m) q ON p.v = q.v WHEN MATCHED THEN UPDATE BY NAME
""".strip().splitlines()
ALLOWED = (
    """
INSERT INTO p SELECT plain, 'x' FROM m
INSERT INTO p SELECT plain * 2 + 1, 'x' FROM m WHERE plain > 3
INSERT INTO m SELECT s + 1, plain FROM m
INSERT INTO m (s) SELECT s * 2 FROM m
UPDATE m SET plain = plain + 1 WHERE s > 1
UPDATE m SET s = plain
UPDATE m SET plain = 3, s = s + plain
DELETE FROM p USING m WHERE m.s = 2
MERGE INTO m USING (VALUES (1, 2)) AS q (x, y) ON m.s = q.x \
WHEN MATCHED THEN UPDATE SET plain = q.y WHEN NOT MATCHED THEN INSERT VALUES (q.x, q.y)
""".strip()
    .replace("\\\n", "")
    .splitlines()
)


@pytest.fixture(scope="module")
def mixed(key_file: Path) -> Iterator[Session]:
    """Encrypted and plain columns side by side, for many statements."""
    twin = Twin(":memory:", key_file)
    twin.session.execute(MIXED)
    twin.session.execute("INSERT INTO m VALUES (1, 10), (2, 20); INSERT INTO p VALUES (1, '')")
    yield twin.session
    twin.close()


@pytest.mark.parametrize("sql", REFUSED)
def test_no_encrypted_value_gets_into_a_plain_column(mixed: Session, sql: str) -> None:
    with pytest.raises(errors.LeakageRefused) as caught:
        mixed.execute(sql)
    assert caught.value.code == "leak.flow"


@pytest.mark.parametrize("sql", ALLOWED)
def test_plain_values_and_constants_may(mixed: Session, sql: str) -> None:
    mixed.execute(f"BEGIN; {sql}; ROLLBACK")


def test_upsert_into_a_plain_column(session: Session) -> None:
    session.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, s INTEGER ENC, v INTEGER)")
    session.execute("INSERT INTO t VALUES (1, 10, 100)")
    with pytest.raises(errors.LeakageRefused):
        session.execute(
            "INSERT INTO t VALUES (1, 77, 1) ON CONFLICT (id) DO UPDATE SET v = excluded.s"
        )
    session.execute("INSERT INTO t VALUES (1, 77, 1) ON CONFLICT (id) DO UPDATE SET v = excluded.v")
    assert rows(session, "SELECT * FROM t") == [(1, 10, 1)]


def rows(session: Session, sql: str) -> list[tuple[object, ...]]:
    answer = session.execute(sql).rows
    assert answer is not None
    return sorted(session.python_rows(answer), key=repr)


def test_a_ceiling_of_plaintext_allows_it_and_the_ledger_says_so(session: Session) -> None:
    session.execute("CREATE TABLE m (s INTEGER ENC MAY REVEAL plaintext, v INTEGER)")
    session.execute("INSERT INTO m VALUES (1, 10)")
    session.execute("UPDATE m SET v = s")
    assert session.context.ledger.level("m", "s") == "plaintext"


def test_changed_rows_show_as_access(session: Session) -> None:
    session.execute("CREATE TABLE m (s INTEGER ENC); INSERT INTO m VALUES (1), (2), (3)")
    assert session.context.ledger.level("m", "s") == "size"
    session.execute("UPDATE m SET s = 9 WHERE s = 2")
    assert session.context.ledger.level("m", "s") == "access"


def test_a_ceiling_of_size_rewrites_every_row(key_file: Path) -> None:
    twin = Twin(":memory:", key_file)
    session = twin.session
    session.execute("CREATE TABLE m (s INTEGER ENC MAY REVEAL size, v INTEGER ENC MAY REVEAL size)")
    session.execute("INSERT INTO m VALUES (1, 1), (2, 2), (3, 3)")
    before = numbers(session)
    for sql in (
        "UPDATE m SET s = 9 WHERE s = 2",
        "DELETE FROM m WHERE s = 3",
        "UPDATE m SET s = 9 WHERE s = 12345",
    ):
        session.execute(sql)
        after = numbers(session)
        assert not before & after
        before = after
    assert rows(session, "SELECT * FROM m") == [(1, 1), (9, 2)]
    assert session.context.ledger.level("m", "s") == "size"
    twin.close()


def numbers(session: Session) -> set[int]:
    table = session.context.engine.query(Statement('SELECT row_id FROM "main"."m"'))
    return set(table.column(0).to_pylist())


def test_literals_and_parameters_stay_at_home(key_file: Path) -> None:
    twin = Twin(":memory:", key_file)
    session = twin.session
    session.execute("CREATE TABLE m (s TEXT ENC DEFAULT 'canary zero', n BIGINT ENC)")
    session.execute("INSERT INTO m VALUES ('canary one', 7777777)")
    session.execute("INSERT INTO m VALUES ($1, $2), ($1, 1)", ["canary two", 7777777])
    session.execute("INSERT INTO m (n) VALUES (1)")
    session.execute("UPDATE m SET s = 'canary three' WHERE s = 'canary one'")
    session.execute("UPDATE m SET s = :s WHERE n = :n", {"s": "canary four", "n": 1})
    session.execute("DELETE FROM m WHERE s = 'canary two' OR s = NULL")
    sent = repr(twin.tap.records).encode() + b"".join(
        str(record).encode() for record in twin.tap.records
    )
    assert b"canary" not in sent
    assert b"7777777" not in sent
    twin.close()


def test_a_transaction_sees_its_own_changes_and_can_undo_them(session: Session) -> None:
    session.execute("CREATE TABLE m (s INTEGER ENC PRIMARY KEY); INSERT INTO m VALUES (1), (2)")
    session.execute("BEGIN; INSERT INTO m VALUES (3); UPDATE m SET s = 10 WHERE s = 1")
    assert rows(session, "SELECT * FROM m") == [(10,), (2,), (3,)]
    session.execute("ROLLBACK")
    assert rows(session, "SELECT * FROM m") == [(1,), (2,)]
    session.execute("INSERT INTO m VALUES (3)")
    assert session.context.catalog.table("main", "m").row_count == 3  # type: ignore[union-attr]
    with pytest.raises(errors.IntegrityError):
        session.execute("INSERT INTO m VALUES (3)")


def test_sequences_and_generated_columns(session: Session) -> None:
    session.execute("CREATE SEQUENCE q START 5")
    session.execute(
        "CREATE TABLE g (id INTEGER ENC DEFAULT nextval('q') PRIMARY KEY, a INTEGER ENC,"
        " double INTEGER GENERATED ALWAYS AS (a * 2))"
    )
    session.execute("INSERT INTO g (a) VALUES (1), (2)")
    session.execute("UPDATE g SET a = 10 WHERE a = 1")
    session.execute("INSERT INTO g (a) SELECT a FROM g WHERE a = 2")
    assert rows(session, "SELECT * FROM g") == [(5, 10, 20), (6, 2, 4), (7, 2, 4)]


def test_a_table_that_refers_to_itself(session: Session) -> None:
    session.execute("CREATE TABLE n (id INTEGER ENC PRIMARY KEY, up INTEGER ENC REFERENCES n (id))")
    session.execute("INSERT INTO n VALUES (3, NULL)")
    session.execute("INSERT INTO n VALUES (2, 3)")
    session.execute("INSERT INTO n VALUES (1, 2)")
    session.execute("UPDATE n SET up = 3 WHERE id = 1")
    with pytest.raises(errors.IntegrityError):
        session.execute("DELETE FROM n WHERE id = 3")
    assert rows(session, "SELECT * FROM n") == [(1, 3), (2, 3), (3, None)]


def test_insert_many(session: Session) -> None:
    session.execute("CREATE TABLE m (a INTEGER ENC PRIMARY KEY, b TEXT ENC, c DECIMAL(9, 2))")

    def many(sql: str, given: list[list[object]]) -> int:
        (text,) = lexer.split(sql)
        bound = [parameters.bound(text, row) for row in given]
        return change.insert_many(session.context, text, lexer.tokens(text.plain), bound).affected

    assert many("INSERT INTO m VALUES (?, ?, ?)", [[1, "a", 2], [2, None, 3]]) == 2
    assert many("INSERT INTO m (b, a) VALUES (upper(?), ?)", [["x", 3], ["y", 4]]) == 2
    assert many("INSERT INTO m VALUES ($2, $1, $2), ($2 + 10, $1, 1.5)", [["p", 5]]) == 2
    assert many("INSERT OR IGNORE INTO m VALUES (?, '', 0)", [[1], [6]]) == 1
    with pytest.raises(errors.IntegrityError):
        many("INSERT INTO m VALUES (?, ?, ?)", [[7, "a", 2], [7, None, 3]])
    assert len(rows(session, "SELECT * FROM m")) == 7


def test_copy(session: Session, tmp_path: Path) -> None:
    session.execute("CREATE TABLE m (a INTEGER ENC PRIMARY KEY, b TEXT ENC)")
    session.execute("INSERT INTO m VALUES (1, 'a,b'), (2, NULL)")
    file = tmp_path / "m.csv"
    assert session.execute(f"COPY m TO '{file}' (HEADER, DELIMITER ';')").affected == 2
    with pytest.raises(errors.IntegrityError):
        session.execute(f"COPY m FROM '{file}' (HEADER, DELIMITER ';')")
    session.execute("DELETE FROM m")
    assert session.execute(f"COPY m FROM '{file}' (HEADER, DELIMITER ';')").affected == 2
    assert rows(session, "SELECT * FROM m") == [(1, "a,b"), (2, None)]
    parquet = tmp_path / "q.parquet"
    session.execute(f"COPY (SELECT a + 10 AS a FROM m) TO '{parquet}' (FORMAT parquet)")
    session.execute(f"COPY m (a) FROM '{parquet}' (FORMAT parquet)")
    assert rows(session, "SELECT a FROM m") == [(1,), (11,), (12,), (2,)]


@pytest.mark.parametrize("type_", ["DOUBLE", "FLOAT", "DOUBLE[]", "STRUCT(x DOUBLE)"])
def test_minus_zero_stays_beside_what_a_change_sets(
    open_twin: Callable[..., Twin], type_: str
) -> None:
    """DuckDB gives the numbers that it sorts by as 0.0, and rows are sent in the order of what
    shows of them.
    """
    twin = open_twin("sealed")
    zero = {"DOUBLE[]": "['-0.0'::DOUBLE]", "STRUCT(x DOUBLE)": "{'x': '-0.0'::DOUBLE}"}
    value = zero.get(type_, f"'-0.0'::{type_}")
    twin.fill(
        f"CREATE TABLE t (k INTEGER ENC PRIMARY KEY, d {type_}, v INTEGER ENC)",
        f"INSERT INTO t VALUES (1, {value}, 1), (2, NULL, 2)",
        "UPDATE t SET k = k + 10",
        f"INSERT INTO t VALUES (11, {value}, 3), (13, {value}, 4) ON CONFLICT DO UPDATE SET v = 5",
        "INSERT INTO t SELECT k + 100, d, v FROM t",
        "INSERT OR REPLACE INTO t SELECT k, d, v + 1 FROM t",
    )
    assert len(twin.run("SELECT k, d, d::VARCHAR, v FROM t")) == 6
