"""Numbers of identity columns beside foreign keys, and of sequences whose restart is undone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE par (id int PRIMARY KEY)")
    opened.run("INSERT INTO par VALUES (1)")
    yield opened
    opened.close()


@pytest.mark.parametrize("kind", ["ALWAYS", "BY DEFAULT"])
def test_identities_beside_a_foreign_key_go_on(twin: PostgresTwin, kind: str) -> None:
    twin.run(
        f"""CREATE TABLE "c'h" (n smallint GENERATED {kind} AS IDENTITY (START 5) PRIMARY KEY,"""
        " p int ENC REFERENCES par ON DELETE CASCADE, v int ENC)"
    )
    for sql in (
        "INSERT INTO t (p) VALUES (1), (NULL)", "INSERT INTO t (p) VALUES (1) RETURNING n",
        "INSERT INTO t (p) SELECT 1 RETURNING n", "INSERT INTO t DEFAULT VALUES RETURNING n",
        "INSERT INTO t VALUES (90, 1)", "INSERT INTO t VALUES (DEFAULT, 1) RETURNING n",
        "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (91, 1) RETURNING n",
        "INSERT INTO t (n, p) SELECT 92, 1", "INSERT INTO t (n) VALUES (NULL)",
        "INSERT INTO t (p, v) VALUES (1, 2) ON CONFLICT (n) DO NOTHING RETURNING n",
        "UPDATE t SET n = 93 WHERE n = 5", "UPDATE t SET n = DEFAULT, p = 1 WHERE n = 6",
        "SELECT n FROM t", "TRUNCATE par CASCADE", "INSERT INTO t (v) VALUES (3) RETURNING n",
        "PREPARE i AS INSERT INTO t (v) VALUES ($1) RETURNING n", "EXECUTE i (1)", "EXECUTE i (2)",
    ):  # fmt: skip
        twin.run(sql.replace(" t ", """ "c'h" """))


def test_copied_rows_have_numbers_of_their_own(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE c (n int GENERATED ALWAYS AS IDENTITY, p int ENC REFERENCES par)")
    for _ in range(2):
        with twin.louver.cursor().copy("COPY c (p) FROM STDIN") as copy:
            copy.write("1\n1\n")
    assert twin.louver.execute("SELECT n FROM c ORDER BY n").fetchall() == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize("end", ["ROLLBACK", "ROLLBACK TO a", "COMMIT"])
@pytest.mark.parametrize("change", [
    "ALTER SEQUENCE s RESTART", "ALTER SEQUENCE s RESTART WITH 90",
    "ALTER TABLE g ALTER COLUMN n RESTART WITH 1", "TRUNCATE g RESTART IDENTITY",
])  # fmt: skip
def test_a_restart_that_is_undone_repeats_no_number(
    twin: PostgresTwin, change: str, end: str
) -> None:
    twin.run("CREATE SEQUENCE s")
    twin.run("CREATE TABLE g (n int GENERATED ALWAYS AS IDENTITY, v int ENC)")
    draws = ("SELECT nextval('s')", "INSERT INTO g (v) VALUES (1) RETURNING n")
    for sql in (*draws, *draws, "BEGIN", "SAVEPOINT a", change, end, *draws, "COMMIT", *draws):
        twin.run(sql)
