"""COLLATE on columns: answers are DuckDB's under every profile, and the server gets no codes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import louver
from louver.trusted.vault.catalog import Table
from tests.generated import cases, generator
from tests.inside import context_of
from tests.twin import Twin

WORDS = ("a", "A", "á", "Á", "b", "B", "ab", "AB", "Éclair", "eclair", "", " zebra-in-the-attic")
COLLATIONS = ("NOCASE", "NOACCENT", "NOCASE.NOACCENT", "C")
CONDITIONS = (
    "a = '{}'", "a <> '{}'", "a < '{}'", "a >= '{}'", "a BETWEEN '{}' AND 'b'", "a IN ('{}', 'B')",
    "a NOT IN ('{}')", "a LIKE '{}%'", "a ILIKE '{}%'", "a IS NOT DISTINCT FROM '{}'",
    "a = b", "b = '{}' OR p = 2", "a = '{}' AND p > 2", "a COLLATE C = '{}'", "a || 'x' = '{}x'",
    "a IN (SELECT b FROM u)", "a = (SELECT max(b) FROM u)", "CASE a WHEN '{}' THEN p > 1 END",
    "EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", "a = ANY (SELECT a FROM u WHERE p < 3)",
)  # fmt: skip
FORMS = (
    "SELECT p FROM t WHERE {}", "SELECT count(*) AS n, sum(p) AS s FROM t WHERE {}",
    "SELECT count(*) AS n, sum(p) AS s FROM t WHERE {} GROUP BY a",
    "SELECT lower(min(a)) AS lo, lower(max(a)) AS hi FROM (SELECT a FROM t WHERE {} GROUP BY a)",
    "SELECT count(*) AS n FROM (SELECT DISTINCT a FROM t WHERE {})",
    "SELECT p FROM t WHERE {} ORDER BY a, p", "SELECT p FROM t WHERE {} ORDER BY b DESC, p LIMIT 3",
    "SELECT p FROM t WHERE {} ORDER BY a COLLATE NOCASE, p", "SELECT a FROM t WHERE {} ORDER BY p",
    "SELECT t.p, u.p AS q FROM t JOIN u USING (a) WHERE t.p < 4 OR {}",
    "SELECT p, rank() OVER (PARTITION BY a ORDER BY p) AS r FROM t WHERE {}",
    "SELECT p FROM (SELECT a, b, p, p + 1 AS q FROM t) AS t WHERE {}",
    "SELECT a = 'A' AS k, p FROM t WHERE {}", "SELECT p FROM v AS t WHERE {}",
    "WITH t AS (SELECT a, b, sum(p) AS p FROM t GROUP BY ALL) SELECT p FROM t WHERE {}",
)  # fmt: skip
CHANGES = (
    "UPDATE t SET p = p + 10 WHERE {}", "UPDATE t SET a = upper(a) WHERE {}",
    "DELETE FROM t WHERE p > 3 AND {}", "INSERT INTO t SELECT a, b, p + 5 FROM t WHERE {}",
)  # fmt: skip


def _filled(twin: Twin, collations: tuple[str, str], enc: str) -> None:
    first, other = collations
    body = f"(a VARCHAR {enc}COLLATE {first}, b VARCHAR COLLATE {other} {enc}, p INT)"
    random = generator(f"collations {enc}")
    for name in ("t", "u"):
        for con, columns in (
            (twin.louver, body),
            (twin.plain, body.replace(enc, "") if enc else body),
        ):
            con.execute(f"CREATE TABLE {name} {columns}")
        rows = [(random.choice(WORDS), random.choice(WORDS), p) for p in range(6)]
        twin.run(f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}, (NULL, 'A', 6)")
    twin.run("CREATE VIEW v AS SELECT a, b, p FROM t")


@pytest.mark.parametrize(
    ("profile", "enc"),
    [
        ("sealed", "ENC "),
        ("sealed", "ENC MAY REVEAL order "),
        ("cryptdb", "ENC "),
        ("sdb", "ENC "),
        ("sealed", ""),
        ("cryptdb", ""),
    ],
)
@pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
def test_drawn_statements(tmp_path: Path, key_file: Path, profile: str, enc: str) -> None:
    random = generator(f"collations {profile} {enc}")
    twin = Twin(tmp_path / "twin.duckdb", key_file, profile, own_errors=True)
    _filled(twin, (random.choice(COLLATIONS[::2]), random.choice(COLLATIONS)), enc)
    for _ in range(cases(8)):
        condition = random.choice(CONDITIONS).format(random.choice(WORDS))
        twin.either(random.choice(FORMS).format(condition))
        if random.random() < 0.2:
            condition = random.choice(CONDITIONS[:6]).format(random.choice(WORDS))
            twin.either(random.choice(CHANGES).format(condition))
            twin.run("SELECT a, b, p FROM t")
    for table in context_of(twin.louver).catalog.tables.values():
        assert _codes(table) == set()
    leaked = twin.recorded.holds(b"zebra-in", b"clair", b"OCASE", b"ocase", b"OACCENT")
    assert bool(leaked) == (not enc)
    twin.close()


def _codes(table: Table) -> set[str]:
    texts = (column for column in table.columns if column.encrypted)
    return {kind for column in texts for kind in column.stored} & {"eq", "ord", "ore", "text"}


def test_keys_and_definitions(tmp_path: Path, key_file: Path) -> None:
    twin = Twin(tmp_path / "twin.duckdb", key_file, own_errors=True)
    for sql in (
        "CREATE TABLE k (a VARCHAR ENC COLLATE NOCASE PRIMARY KEY, n INT)",
        "INSERT INTO k VALUES ('a', 1), ('A', 2)", "INSERT INTO k VALUES ('a', 3)",
        "INSERT INTO k VALUES ('A', 5) ON CONFLICT DO UPDATE SET n = excluded.n",
        "INSERT OR IGNORE INTO k VALUES ('A', 6), ('á', 7)", "FROM k",
        "CREATE TABLE child (a VARCHAR ENC REFERENCES k (a))", "INSERT INTO child VALUES ('Á')",
        "CREATE TABLE c (a VARCHAR ENC COLLATE NOCASE CHECK (a IN ('x', 'y')) DEFAULT 'X', p INT)",
        "INSERT INTO c VALUES ('X', 1), ('y', 2)", "INSERT INTO c VALUES ('z', 3)",
        "INSERT INTO c (p) VALUES (4)", "SELECT p FROM c WHERE a = 'x'",
        "ALTER TABLE k ADD COLUMN z VARCHAR ENC COLLATE NOACCENT DEFAULT 'é'",
        "SELECT n FROM k WHERE z = 'e'", "ALTER TABLE k RENAME z TO y", "ALTER TABLE k DROP n",
        "SELECT a FROM k WHERE y = 'e'", "ALTER TABLE k ALTER y TYPE VARCHAR COLLATE NOCASE",
        "SELECT a FROM k WHERE y = 'É'", "SELECT sql FROM duckdb_tables()", "DESCRIBE k",
        "CREATE TABLE made AS SELECT a, a || 'x' AS ax FROM k", "FROM made WHERE ax = 'AX'",
        "CREATE TEMP TABLE own AS SELECT a FROM k", "FROM own WHERE a = 'A'",
        "CREATE UNIQUE INDEX i ON made (a)", "INSERT INTO made VALUES ('a', '')",
        "CREATE TABLE never (a VARCHAR ENC COLLATE nothing)", "SUMMARIZE made",
        "CREATE TABLE kp (a VARCHAR COLLATE NOCASE PRIMARY KEY, e VARCHAR COLLATE NOCASE ENC)",
        "INSERT INTO kp VALUES ('a', 'A'), ('b', 'Z')", "INSERT INTO kp VALUES ('A', 'x')",
        "INSERT INTO kp VALUES ('B', 'n') ON CONFLICT DO UPDATE SET e = excluded.e", "FROM kp",
        "SELECT a FROM kp WHERE a = 'A'", "SELECT kp.a FROM kp JOIN k ON kp.a = k.a",
        "SELECT a, e FROM kp WHERE a = e", "SELECT count(*) AS n FROM kp JOIN made ON ax = kp.a",
        "SELECT k.a FROM k WHERE a IN (SELECT a FROM kp WHERE e > 'm')", "DESCRIBE kp",
        "ALTER TABLE kp ADD COLUMN f VARCHAR COLLATE NOACCENT DEFAULT 'é'", "FROM kp WHERE f = 'e'",
        "ALTER TABLE kp ALTER f TYPE VARCHAR", "SELECT a FROM kp WHERE f = 'e'",
        "ALTER TABLE kp ALTER f TYPE VARCHAR COLLATE NOCASE", "SELECT a FROM kp WHERE f = 'É'",
        "ALTER TABLE kp RENAME a TO z", "SELECT z FROM kp WHERE z < 'B' ORDER BY z LIMIT 1",
        "UPDATE kp SET e = 'q' WHERE z = 'A'", "DELETE FROM kp WHERE z = 'B'", "FROM kp",
        "CREATE TABLE plain_made AS SELECT z FROM kp", "FROM plain_made WHERE z = 'A'",
        "CREATE VIEW over AS SELECT z FROM kp", "SELECT * FROM over WHERE z = 'A'",
    ):  # fmt: skip
        twin.either(sql)
    con = twin.louver
    con.load("c", pa.table({"a": ["x", "X"], "p": [5, 6]}))
    assert len(con.execute("FROM c WHERE a = ?", ["x"]).fetchall()) == 4
    for sql in (
        "CREATE TABLE g (a VARCHAR COLLATE NOCASE, b VARCHAR AS (a || 'x'))",
        "CREATE TABLE g (a VARCHAR ENC COLLATE NOCASE, b VARCHAR AS (a || 'x'))",
    ):
        with pytest.raises(louver.Error, match="COLLATE"):
            con.execute(sql)
    with louver.connect(f"lake:///{tmp_path}/lake", keys=key_file) as lake:
        for enc in ("", " ENC"):
            with pytest.raises(louver.Error, match="COLLATE"):
                lake.execute(f"CREATE TABLE g (a VARCHAR{enc} COLLATE NOCASE)")
    assert con.execute("SELECT count(*) FROM c").fetchall() == [(5,)]
    twin.close()
