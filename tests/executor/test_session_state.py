"""No statement leaves a session worse than it found it: statements that succeed and that fail are
drawn, and after each one the session is asked what a plaintext DuckDB is asked that has run the
same ones.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import duckdb
import pytest

import louver
from tests.generated import cases, generator
from tests.slt import script
from tests.slt.runner import Run
from tests.slt.sides import Borrowed

SETUP = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE TABLE t (a INT CHECK (a < 1000), b VARCHAR, c DOUBLE)",
    "CREATE TABLE k (a INT PRIMARY KEY, b VARCHAR NOT NULL)",
    "CREATE TABLE e (m mood, l mood[], u UNION(i INT, s VARCHAR))",
    "CREATE SEQUENCE s",
    "INSERT INTO t VALUES (1, 'x', 1.5), (2, 'y', NULL), (NULL, '3', 0)",
    "INSERT INTO e VALUES ('sad', [], 1), ('ok', ['ok'], 'p'), (NULL, NULL, NULL)",
)
#: {n} is a small number, {big} one that no INT holds.
DRAWN = (
    # changes of rows
    "INSERT INTO t VALUES ({n}, 'z{n}', {n} / 3)",
    "INSERT INTO t VALUES ({n}, 'p', 1), ({big}, 'q', 2)",
    "INSERT INTO t SELECT a + 1000, b, c FROM t",
    "INSERT INTO t (b, a) VALUES ('only', {n})",
    "INSERT INTO k VALUES ({n}, 'k')",
    "INSERT INTO k VALUES ({n}, NULL)",
    "INSERT OR REPLACE INTO k VALUES ({n}, 'again')",
    "INSERT INTO e VALUES ('glad', [], 1)",
    "INSERT INTO e VALUES ('ok', [], {n})",
    "UPDATE t SET a = a + {n} WHERE a < 5",
    "UPDATE t SET a = b",
    "UPDATE t SET c = {n} WHERE b = 'x'",
    "UPDATE k SET a = 1",
    "DELETE FROM t WHERE a = {n}",
    "DELETE FROM k WHERE b = {n}",
    "DELETE FROM nowhere",
    # definitions
    "CREATE TABLE d{n} (a INT, b VARCHAR DEFAULT 'd')",
    "CREATE OR REPLACE TABLE d{n} (x DATE)",
    "CREATE TABLE t (a INT)",
    "DROP TABLE d{n}",
    "DROP TABLE IF EXISTS d{n}",
    "ALTER TABLE d{n} ADD COLUMN z INT",
    "ALTER TABLE d{n} RENAME TO r{n}",
    "DROP TABLE IF EXISTS r{n}",
    "ALTER TABLE t ALTER b TYPE INT",
    "CREATE OR REPLACE VIEW v AS SELECT a, b FROM t WHERE a > {n}",
    "CREATE OR REPLACE VIEW v AS SELECT nothing FROM t",
    "CREATE OR REPLACE MACRO m(x) AS x + {n}",
    "CREATE TYPE mood AS ENUM ('a')",
    # queries, many of which raise
    "SELECT b::INT FROM t",
    "SELECT error(b) FROM t",
    "SELECT a + {big} FROM t",
    "SELECT a * 2147483647 FROM t",
    "SELECT (SELECT a FROM t)",
    "SELECT nothing FROM t",
    "SELECT * FROM nowhere",
    "SELECT * FROM v",
    "SELECT m(a) FROM t",
    "SELECT []::mood[] AS l",
    "SELECT l FROM e WHERE len(l) = 0",
    "SELECT 'glad'::mood AS m",
    "SELECT CAST(b AS DATE) FROM t",
    "SELECT nextval('s') AS n",
    "SELECT u.i FROM e",
    "PIVOT t ON b USING sum(a) ORDER BY ALL",
    "PIVOT t ON nothing USING sum(a)",
    "UNPIVOT (SELECT a, c FROM t) ON a, c ORDER BY ALL",
    "SELECT FROM WHERE",
    "SELECT strptime(b, '%Y') FROM t",
    "SELECT '{n}'::UUID",
    "SELECT list_value(a, b) FROM t",
    "SELECT 1::VARIANT::VARCHAR AS v",
    # transactions
    "BEGIN",
    "BEGIN",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
)
ASKED = (
    "SELECT a, b, c FROM t ORDER BY ALL",
    "SELECT sum(a), count(DISTINCT b) FROM t WHERE a >= 1",
    "SELECT * FROM k ORDER BY ALL",
    "SELECT m, l, u FROM e ORDER BY ALL",
    "SELECT table_name FROM information_schema.tables ORDER BY 1",
    "SELECT [a] AS l, {'b': b} AS s, DATE '2024-01-01' AS d FROM t ORDER BY ALL",
    "SELECT now() > TIMESTAMP '2000-01-01' AS n, []::mood[] AS l",
)


def _statements(random: Random, count: int) -> list[str]:
    """Statements, after each of which three of the questions stand, and all at the end."""
    statements = list(SETUP)
    for _ in range(count):
        drawn = random.choice(DRAWN)
        statements.append(drawn.format(n=random.randint(1, 6), big=2**31 + random.randint(0, 9)))
        statements += random.sample(ASKED, 3)
    return [*statements, "ROLLBACK", *ASKED]


@pytest.mark.parametrize("policy", ["sealed", "cryptdb", "sdb"])
def test_no_statement_leaves_a_session_worse(policy: str, tmp_path: Path, key_file: Path) -> None:
    random = generator(f"no worse {policy}")
    for number in range(cases(1)):
        database = tmp_path / f"{number}.duckdb"
        connection = louver.connect(f"duckdb:///{database}", keys=key_file, profile=policy)
        sides = Borrowed(tmp_path / "a", connection), Borrowed(tmp_path / "b", duckdb.connect())
        run = Run(*sides)
        statements = _statements(random, 40)
        result = run.run(script.probe(sql) for sql in statements)
        # In a transaction that has failed DuckDB still looks a statement over; both refuse it.
        differences = [
            difference
            for difference in result
            if "error transaction.aborted" not in str(difference)
        ]
        if differences:
            shown = [str(difference) for difference in differences[:3]]
            pytest.fail("\n".join([*shown, f"number {number}: all statements", *statements]))
        connection.close()
