"""What a session says of columns: DuckDB's own names and types, whatever was asked before."""

from __future__ import annotations

import pytest

from tests.twin import PROFILES, Twin

SETUP = (
    "CREATE TABLE t (a INTEGER ENC, b VARCHAR ENC NOT NULL, u UNION(x INTEGER, y VARCHAR))",
    "CREATE TABLE n (s STRUCT(u UNION(x INTEGER, y VARCHAR)), l UNION(x INTEGER, y TEXT)[], i INT)",
    "CREATE VIEW nothing AS SELECT NULL AS n, a, b FROM t WHERE false",
    "CREATE VIEW everything AS SELECT * FROM t",
)
QUERIES = (
    "SELECT a FROM everything",
    "SELECT a FROM everything JOIN nothing USING (a)",
    "SELECT count(*) FROM nothing",
    "FROM (SELECT b FROM everything WHERE a = ?)",
    "SELECT 1 FROM nothing WHERE a > ? AND b = ?",
    "SELECT u FROM everything",
    "SELECT * FROM n",
    "SELECT u, a FROM t WHERE a = 7",
    "SUMMARIZE SELECT a, b FROM t",
    "SUMMARIZE SELECT a + ? AS q FROM t WHERE b <> ?",
    "SELECT * FROM (SUMMARIZE SELECT a + 1 AS q FROM t)",
    "FROM (DESCRIBE SELECT a + 1 AS q, b FROM t)",
)
TOLD = (
    "PRAGMA table_info('t')",
    "PRAGMA show_tables",
    "PRAGMA show_tables_expanded",
    "PRAGMA collations",
    "DESCRIBE t",
    "SHOW ALL TABLES",
)


@pytest.fixture(params=PROFILES)
def twin(request, open_connection) -> Twin:
    twin = Twin.beside(open_connection(request.param), own_errors=True)
    twin.fill(*SETUP)
    return twin


def test_columns_after_any_query(twin: Twin) -> None:
    for rows in ("", "INSERT INTO t VALUES (1, 'p', 5), (NULL, 'q', 'z'), (7, 'r', NULL)"):
        if rows:
            twin.fill(rows)
        for sql in QUERIES:
            twin.either(sql, [7, "p"][: sql.count("?")])
            twin.either(
                "SELECT table_name, column_name, data_type FROM information_schema.columns"
                " WHERE table_schema = 'main'"
            )


def test_types_of_what_is_told(twin: Twin) -> None:
    for sql in TOLD:
        facts = [
            [(item[0], str(item[1])) for item in run.execute(sql).description]
            for run in (twin.plain, twin.louver)
        ]
        assert facts[0] == facts[1], sql


ENUMS = (
    "INSERT INTO e VALUES ('ok', ['ok'], 1) RETURNING *",
    "INSERT INTO e (m) VALUES ('sad') RETURNING m, l",
    "UPDATE e SET l = ['sad'] WHERE m = 'ok' RETURNING m, l",
    "DELETE FROM e WHERE m = 'sad' RETURNING m",
    "PIVOT e ON a USING count(*) GROUP BY m",
    "FROM (PIVOT e ON a IN (1, 2) USING min(m) GROUP BY l)",
    "UNPIVOT e ON a INTO NAME n VALUE v",
)


def test_an_enum_is_one_in_every_answer(twin: Twin) -> None:
    twin.fill(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TABLE e (m mood ENC, l mood[] ENC, a INTEGER)",
    )
    for sql in ENUMS:
        twin.either(sql)


@pytest.mark.parametrize("word", ["TEMP TABLE", "TABLE"])
def test_rows_of_a_table_made_by_a_query_are_counted(open_connection, word: str) -> None:
    connection = open_connection("sealed")
    connection.execute("CREATE TABLE t (a INTEGER ENC)")
    connection.execute("INSERT INTO t VALUES (1), (2)")
    assert connection.execute(f"CREATE {word} made AS FROM t").rowcount == 2
    assert connection.execute(f"CREATE {word} none AS FROM t WHERE a > 5").rowcount == 0
