"""The traps that other systems fell into (DESIGN, section 4): one test each, under every profile.

Each checks the answer, against plaintext DuckDB, and blindness: what crossed to the server, and
what lies in its files, is searched for the secrets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import louver
from louver import errors
from louver.trusted.client.dbapi import Connection
from tests.recorded import needles
from tests.twin import Twin

SECRET = "capybara-in-the-cellar"
NUMBER = 7_402_113_000_000
SETUP = (
    "CREATE TABLE t (id INTEGER ENC PRIMARY KEY, name VARCHAR ENC, n BIGINT ENC, p INTEGER)",
    f"INSERT INTO t SELECT i, '{SECRET}' || i % 4, {NUMBER} + i % 5, i % 3 FROM range(40) r(i)",
    "INSERT INTO t VALUES (100, NULL, NULL, 1), (101, NULL, 5, NULL), (102, '', NULL, 2)",
)


class Trap(Twin):
    """A twin that holds secrets, and what was sent of them."""

    def __init__(self, folder: Path, key_file: Path, profile: str) -> None:
        super().__init__(
            folder / "watched.duckdb", key_file, profile, modulus_bits=2048, own_errors=True
        )
        self.fill(*SETUP)

    def same(self, sql: str, parameters: Sequence[object] = ()) -> None:
        """One answer on both; twice, because plans are cached."""
        self.run(sql, parameters, ordered=False)
        self.run(sql, parameters, ordered=False)

    def blind(self, *more: bytes) -> None:
        """No secret is in what the server was sent, nor in its files."""
        texts = [SECRET.encode(), SECRET.upper().encode(), SECRET[:12].encode()]
        numbers = [needle for value in range(5) for needle in needles(NUMBER + value)]
        assert not self.recorded.holds(*texts, *numbers, *more)


PROFILES = ("sealed", "sdb", "cryptdb")


@contextmanager
def _set(folder: Path, key_file: Path, profile: str) -> Iterator[Trap]:
    trap = Trap(folder, key_file, profile)
    yield trap
    trap.close()


@pytest.fixture(params=PROFILES)
def trap(request: pytest.FixtureRequest, tmp_path: Path, key_file: Path) -> Iterator[Trap]:
    """For tests that change what is there."""
    with _set(tmp_path, key_file, request.param) as trap:
        yield trap


@pytest.fixture(scope="module", params=PROFILES)
def _read(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, key_file: Path
) -> Iterator[Trap]:
    with _set(tmp_path_factory.mktemp("traps"), key_file, request.param) as trap:
        yield trap


@pytest.fixture
def read(_read: Trap) -> Trap:
    """For tests that leave `t` as it is. What was sent counts from here on; the files hold what all
    of them left.
    """
    _read.recorded.tap.records.clear()
    return _read


def test_on_conflict_do_update(trap: Trap) -> None:
    trap.either(
        f"INSERT INTO t VALUES (1, '{SECRET}a', {NUMBER}, 1), (200, '{SECRET}b', 1, 1)"
        f" ON CONFLICT DO UPDATE SET name = '{SECRET}c', n = excluded.n + {NUMBER}"
    )
    trap.either(
        "INSERT INTO t VALUES (?, ?, ?, 1) ON CONFLICT (id) DO UPDATE SET name = ? || name",
        [2, f"{SECRET}d", NUMBER, f"{SECRET}e"],
    )
    trap.either(f"INSERT OR REPLACE INTO t VALUES (3, '{SECRET}f', {NUMBER + 4}, 2)")
    trap.either(f"INSERT OR IGNORE INTO t VALUES (3, '{SECRET}g', {NUMBER + 4}, 2)")
    trap.same("SELECT * FROM t")
    trap.same(f"SELECT id FROM t WHERE name = '{SECRET}c' OR n = {2 * NUMBER}")
    trap.blind(*needles(2 * NUMBER))


@pytest.mark.parametrize("sign", ["=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
def test_null_comparands(read: Trap, sign: str) -> None:
    for column, value in (("name", SECRET + "1"), ("n", NUMBER + 1)):
        literal = repr(value)
        read.same(f"SELECT id FROM t WHERE {column} {sign} NULL")
        read.same(f"SELECT id FROM t WHERE {column} {sign} ?", [None])
        read.same(f"SELECT id FROM t WHERE {column} {sign} ?", [value])
        read.same(f"SELECT id FROM t WHERE {column} {sign} coalesce(NULL, {literal})")
        read.same(f"SELECT id FROM t WHERE {column} {sign} nullif({literal}, {literal})")
        read.same(f"SELECT id FROM t WHERE coalesce({column}, {literal}) {sign} {literal}")
        read.same(f"SELECT id FROM t WHERE {column} IN ({literal}, NULL)")
        read.same(f"SELECT id FROM t WHERE {column} NOT IN ({literal}, NULL)")
        read.same(f"SELECT id FROM t WHERE ({column} {sign} {literal}) IS NULL")
    read.blind()


def test_literals_that_escape_typing(read: Trap) -> None:
    for query in (
        f"SELECT id FROM t WHERE n = '{NUMBER}'",
        f"SELECT id FROM t WHERE n = {NUMBER}.0",
        f"SELECT id FROM t WHERE n = {NUMBER}::DOUBLE",
        f"SELECT id FROM t WHERE n < {NUMBER + 1}.5 AND p = 1",
        f"SELECT id FROM t WHERE n = CAST('{NUMBER}' AS HUGEINT)",
        f"SELECT id FROM t WHERE name = $${SECRET}2$$",
        f"SELECT id FROM t WHERE name = E'{SECRET}2'",
        f"SELECT id FROM t WHERE name = CAST('{SECRET}2' AS VARCHAR) AND p < 5",
        f"SELECT id FROM t WHERE name = '{SECRET[:9]}' || '{SECRET[9:]}2'",
        f"SELECT id FROM t WHERE encode(name) = '{SECRET}2'::BLOB",
        f"SELECT id FROM t WHERE name = concat('{SECRET}', p)",
        f"SELECT id FROM t WHERE n = {NUMBER} + p",
        f"SELECT '{SECRET}' AS x, {NUMBER} AS y, id FROM t WHERE p = 1",
        f"SELECT CASE WHEN name = '{SECRET}1' THEN '{SECRET}' ELSE 'no' END AS x FROM t",
        f"SELECT id FROM t WHERE name = (SELECT '{SECRET}3')",
        f"SELECT id FROM t WHERE name = (VALUES ('{SECRET}3'))",
        f"SELECT id FROM t WHERE {{'a': name}} = {{'a': '{SECRET}3'}}",
        f"SELECT id FROM t WHERE (name, n) = ('{SECRET}3', {NUMBER + 3})",
        f"SELECT id FROM t WHERE hash(name) = hash('{SECRET}3')",
    ):
        read.same(query)
    read.blind()


def test_json_paths(read: Trap) -> None:
    read.either("CREATE TABLE j (id INTEGER, doc JSON ENC, text VARCHAR ENC)")
    body = f'{{"{SECRET}": {{"n": {NUMBER}}}, "list": ["{SECRET}", 2]}}'
    read.either(f"INSERT INTO j VALUES (1, '{body}', '{body}'), (2, NULL, '{{}}')")
    for column in ("doc", "text"):
        for query in (
            f"SELECT id, {column}->>'$.{SECRET}.n' AS x FROM j",
            f"SELECT id FROM j WHERE {column}->'list'->>0 = '{SECRET}'",
            f"SELECT id FROM j WHERE json_extract_string({column}, '$.{SECRET}.n') = '{NUMBER}'",
            f"SELECT id FROM j WHERE json_contains({column}, '\"{SECRET}\"')",
            f"SELECT id FROM j WHERE json_exists({column}, '$.\"{SECRET}\"')",
        ):
            read.same(query)
    read.blind()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT name FROM t",
        "SELECT DISTINCT name, n FROM t",
        "SELECT DISTINCT ON (name) name FROM t",
        "SELECT DISTINCT p, name FROM t WHERE p = 1",
    ],
)
def test_distinct(read: Trap, query: str) -> None:
    read.same(query)
    read.blind()


def test_count_distinct(read: Trap) -> None:
    read.same("SELECT count(DISTINCT name), count(DISTINCT n), count(name), count(*) FROM t")
    read.same("SELECT p, count(DISTINCT name) FROM t GROUP BY p")
    read.same("SELECT sum(DISTINCT n), approx_count_distinct(p) FROM t")
    read.same("SELECT name, count(*) FROM t GROUP BY name HAVING count(*) > 3")
    read.blind()


def test_window_order(read: Trap) -> None:
    read.same("SELECT id, row_number() OVER (ORDER BY n, id) AS x FROM t")
    read.same("SELECT id, rank() OVER (PARTITION BY p ORDER BY name) AS x FROM t")
    read.same("SELECT id, sum(n) OVER (PARTITION BY name) AS x FROM t")
    read.same("SELECT id, lag(name) OVER (ORDER BY id) AS x FROM t")
    read.same("SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY name ORDER BY id) = 1")
    read.blind()


def test_union(read: Trap) -> None:
    read.same("SELECT name FROM t UNION SELECT name FROM t")
    read.same(f"SELECT name FROM t WHERE p = 1 UNION SELECT '{SECRET}1'")
    read.same("SELECT name FROM t WHERE p = 1 EXCEPT SELECT name FROM t WHERE p = 2 AND id > 8")
    read.same("SELECT n FROM t WHERE p = 1 INTERSECT SELECT n FROM t WHERE p = 2")
    read.same("SELECT name, n FROM t UNION ALL SELECT name, n FROM t WHERE n IS NULL")
    read.blind()


def test_select_distinct_star(read: Trap) -> None:
    read.either("CREATE TABLE d (a VARCHAR ENC, b BIGINT ENC)")
    read.either("INSERT INTO d SELECT name, n FROM t")
    read.either("INSERT INTO d SELECT name, n FROM t")
    read.same("SELECT DISTINCT * FROM d")
    read.same("SELECT count(*) FROM (SELECT DISTINCT * FROM d)")
    read.blind()


def test_a_parameter_that_is_stored_and_compared(trap: Trap) -> None:
    values = [SECRET + "z", NUMBER + 2]
    sql = (
        "INSERT INTO t SELECT 300, $1, $2, 1"
        " WHERE NOT EXISTS (SELECT 1 FROM t WHERE name = $1 AND n = $2)"
    )
    trap.either(sql, values)
    trap.either(sql.replace("300", "301"), values)
    trap.either("UPDATE t SET name = $1, n = $2 WHERE name = $1 OR n = $2 - 2", values)
    trap.either("DELETE FROM t WHERE name = $1 AND n <> $2", values)
    trap.same("SELECT * FROM t")
    trap.same("SELECT id, $1 AS x FROM t WHERE name = $1", values[:1])
    trap.blind(*needles(NUMBER - 2))


def test_the_same_name_in_another_schema(trap: Trap) -> None:
    trap.either("CREATE SCHEMA other")
    trap.either("CREATE TABLE other.t (id INTEGER, name VARCHAR, n BIGINT ENC, p VARCHAR ENC)")
    trap.either(f"INSERT INTO other.t VALUES (1, 'shown', {NUMBER}, '{SECRET}'), (2, NULL, 1, '')")
    trap.same(f"SELECT id FROM t WHERE name = '{SECRET}1'")
    trap.same("SELECT id FROM other.t WHERE name = 'shown'")
    trap.same(f"SELECT id FROM other.t WHERE p = '{SECRET}' AND n = {NUMBER}")
    trap.same("SELECT a.id, b.id FROM t AS a JOIN other.t AS b ON a.n = b.n")
    trap.same("SELECT main.t.id FROM main.t, other.t WHERE main.t.name = other.t.p || 1")
    # What was read encrypted is not written in clear because a table bears the same name.
    with pytest.raises(errors.LeakageRefused):
        trap.session.execute("INSERT INTO other.t SELECT id, name, n, name FROM main.t")
    trap.same("SELECT * FROM other.t")
    trap.blind()


@pytest.mark.parametrize(
    "pattern", [f"{SECRET}%", f"%{SECRET[3:]}_", f"{SECRET}1", "%", "", f"{SECRET[:5]}%x"]
)
def test_like_on_a_column_that_has_no_words(read: Trap, pattern: str) -> None:
    for query in (
        f"SELECT id FROM t WHERE name LIKE '{pattern}'",
        f"SELECT id FROM t WHERE name NOT LIKE '{pattern}'",
        f"SELECT id FROM t WHERE name ILIKE '{pattern.upper()}'",
        f"SELECT id FROM t WHERE n::VARCHAR LIKE '{NUMBER // 100}%' OR name LIKE '{pattern}'",
        f"SELECT id FROM t WHERE regexp_matches(name, '{pattern.strip('%')}')",
        f"SELECT id FROM t WHERE starts_with(name, '{pattern.strip('%_')}')",
    ):
        read.same(query)
    read.same("SELECT id FROM t WHERE name LIKE ? AND p = 1", [pattern])
    read.blind()


def test_numbers_that_are_not_themselves(read: Trap) -> None:
    read.either("CREATE TABLE f (id INTEGER, d DOUBLE ENC, r FLOAT ENC)")
    values = "(1, '-0.0'), (2, '0'), (3, 'NaN'), (4, 'inf'), (5, '-inf'), (6, NULL), (7, '1.5')"
    read.either(f"INSERT INTO f SELECT i, d::DOUBLE, d::FLOAT FROM (VALUES {values}) v(i, d)")
    read.either("INSERT INTO f VALUES (8, ?, ?)", [-0.0, -0.0])
    for sign in ("=", "<>", "<", "<=", ">", ">="):
        for value in ("0", "-0.0", "'NaN'", "'inf'::DOUBLE", "1.5", "'-inf'::FLOAT"):
            read.same(f"SELECT id FROM f WHERE d {sign} {value}")
            read.same(f"SELECT id FROM f WHERE r {sign} {value}")
        read.same(f"SELECT id FROM f WHERE d {sign} ?", [-0.0])
        read.same(f"SELECT id FROM f WHERE d {sign} ?", [math.nan])
        read.same(f"SELECT a.id, b.id FROM f AS a, f AS b WHERE a.d {sign} b.d")
    read.same("SELECT d FROM f")
    read.same("SELECT d, count(*) FROM f WHERE id <> 8 AND id <> 1 GROUP BY d")
    read.same("SELECT min(d), max(d), max(r) FROM f")
    read.blind()


def test_empty_and_very_long_values(read: Trap) -> None:
    long = (SECRET + "-") * 6_000
    read.either("CREATE TABLE l (id INTEGER, s VARCHAR ENC, b BLOB ENC)")
    read.either("INSERT INTO l VALUES (1, ?, ?)", [long, long.encode()])
    read.either("INSERT INTO l VALUES (2, '', ''::BLOB), (3, NULL, NULL), (4, ' ', ' '::BLOB)")
    read.either("INSERT INTO l VALUES (5, ?, ?)", [long + "!", (long + "!").encode()])
    for value in ("", long, long + "!", " "):
        read.same("SELECT id FROM l WHERE s = ?", [value])
        read.same("SELECT id FROM l WHERE b = ?", [value.encode()])
        read.same("SELECT id FROM l WHERE s > ?", [value])
        read.same("SELECT id FROM l WHERE s LIKE ?", [value + "%"])
    read.same("SELECT s FROM l WHERE s = ''")
    read.same("SELECT id, length(s), octet_length(b) FROM l")
    read.blind()


def test_any_of_an_array(read: Trap) -> None:
    for query in (
        f"SELECT id FROM t WHERE name = ANY(ARRAY['{SECRET}1', '{SECRET}2'])",
        f"SELECT id FROM t WHERE n = ANY([{NUMBER}, NULL])",
        f"SELECT id FROM t WHERE n <> ALL([{NUMBER}, {NUMBER + 1}])",
        f"SELECT id FROM t WHERE n > ANY(ARRAY[{NUMBER + 2}])",
        f"SELECT id FROM t WHERE list_contains(['{SECRET}1'], name)",
        f"SELECT id FROM t WHERE name IN (SELECT unnest(['{SECRET}0', '{SECRET}3']))",
        f"SELECT id FROM t WHERE n = ANY(SELECT n FROM t WHERE name = '{SECRET}1')",
    ):
        read.same(query)
    read.same("SELECT id FROM t WHERE name = ANY(?)", [[SECRET + "1", SECRET + "2"]])
    read.same("SELECT id FROM t WHERE n = ANY(?)", [[NUMBER, NUMBER + 1]])
    read.blind()


def test_names_of_prepared_statements(trap: Trap) -> None:
    """A name means the last statement that was prepared under it, over the tables of now."""
    trap.either(f"PREPARE q AS SELECT id FROM t WHERE name = '{SECRET}1'")
    trap.same("EXECUTE q")
    with pytest.raises(errors.ProgrammingError):
        trap.session.execute(f"EXECUTE q('{SECRET}')")
    trap.either("PREPARE q AS SELECT id FROM t WHERE name = $1")
    trap.same(f"EXECUTE q('{SECRET}1')")
    trap.either("DEALLOCATE q")
    query = "SELECT id FROM t WHERE n = ?"
    for value in (NUMBER, None, str(NUMBER + 1), NUMBER + 0.5, float(NUMBER), True, NUMBER + 2):
        trap.same(query, [value])
    trap.either("ALTER TABLE t RENAME TO gone")
    trap.either("CREATE TABLE t (id VARCHAR ENC, n VARCHAR ENC, name INTEGER)")
    trap.either(f"INSERT INTO t VALUES ('{SECRET}', '{NUMBER}', 1)")
    trap.same(query, [str(NUMBER)])
    trap.same(query, [NUMBER])
    trap.blind()


def test_an_error_that_overtakes_replies(read: Trap) -> None:
    connection = Connection(read.session)
    first, second = connection.cursor(), connection.cursor()
    first.execute("SELECT id, name FROM t ORDER BY id")
    head = first.fetchmany(5)
    with pytest.raises(louver.Error):
        second.execute(f"SELECT id FROM t WHERE name = '{SECRET}1' AND nothing = 1")
    with pytest.raises(louver.Error):
        second.execute(f"INSERT INTO t VALUES (1, '{SECRET}', {NUMBER}, 1)")
    second.execute(f"SELECT id FROM t WHERE name = '{SECRET}2' ORDER BY id")
    rest = first.fetchall()
    wanted = read.plain.execute("SELECT id, name FROM t ORDER BY id").fetchall()
    assert [*head, *rest] == wanted
    ids = read.plain.execute(f"SELECT id FROM t WHERE name = '{SECRET}2' ORDER BY id").fetchall()
    assert second.fetchall() == ids
    read.blind()


def test_plaintext_in_an_error_message(read: Trap) -> None:
    """Errors are made at home, so the server takes no part in them; the ledger repeats none."""
    for sql in (
        f"SELECT id FROM t WHERE n = '{SECRET}'",
        f"SELECT CAST(name AS INTEGER) FROM t WHERE name = '{SECRET}1'",
        f"SELECT n * {NUMBER * 10**6} FROM t",
        f"INSERT INTO t VALUES (1, '{SECRET}', {NUMBER}, 1)",
        f"INSERT INTO t VALUES (500, '{SECRET}', '{SECRET}', 1)",
        f"UPDATE t SET id = 1 WHERE name = '{SECRET}2'",
        f"SELECT nothing, '{SECRET}' FROM t",
        f"SELECT error('{SECRET}' || name) FROM t",
        f"SELECT * FROM t WHERE name = '{SECRET}",
    ):
        read.fails(sql)
    entries = read.session.context.ledger.table().to_pylist()
    assert not [row for row in entries if SECRET in str(row) or str(NUMBER) in str(row)]
    from louver.wire.messages import Failure

    failures = [str(r.message) for r in read.recorded.tap.records if isinstance(r.message, Failure)]
    assert not [text for text in failures if SECRET in text or str(NUMBER) in text]
    read.blind()
