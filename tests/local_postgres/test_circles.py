"""Tables that refer to each other are declared anew when a session begins."""

from __future__ import annotations

import pytest

from louver.trusted.executor.local.postgres import circles
from louver.trusted.planner.sql.dialect import speaking
from louver.trusted.planner.sql.postgres_dialect import DIALECT
from tests.local_postgres.twin import PostgresTwin

ODD = '"FOREIGN KEY (a)"'
SPLIT = {
    "CREATE TABLE a.b (x integer)": ("CREATE TABLE a.b (x integer)", []),
    f"CREATE TABLE a.b (x numeric(3,2) DEFAULT f('),(', 1), {ODD} text, CONSTRAINT {ODD} CHECK"
    f" (({ODD} <> ', CONSTRAINT y FOREIGN KEY ('::text)), CONSTRAINT y FOREIGN KEY (x, {ODD})"
    " REFERENCES c.d(p, q) ON DELETE SET NULL (x), CONSTRAINT z FOREIGN KEY (x) REFERENCES e(f))": (
        f"CREATE TABLE a.b (x numeric(3,2) DEFAULT f('),(', 1), {ODD} text, CONSTRAINT {ODD} CHECK"
        f" (({ODD} <> ', CONSTRAINT y FOREIGN KEY ('::text)))",
        [
            f"ALTER TABLE a.b ADD CONSTRAINT y FOREIGN KEY (x, {ODD}) REFERENCES c.d(p, q)"
            " ON DELETE SET NULL (x)",
            "ALTER TABLE a.b ADD CONSTRAINT z FOREIGN KEY (x) REFERENCES e(f)",
        ],
    ),
}


@pytest.mark.parametrize("sql", SPLIT)
def test_foreign_keys_are_parted_from_a_table(sql: str) -> None:
    with speaking(DIALECT):
        assert circles.parted(sql) == SPLIT[sql]


def test_a_circle_of_tables_is_there_again() -> None:
    twin = PostgresTwin()
    try:
        for sql in (
            "CREATE TABLE egg (id integer PRIMARY KEY, hen integer ENC)",
            "CREATE TABLE hen (id integer PRIMARY KEY, egg integer ENC REFERENCES egg)",
            "ALTER TABLE egg ADD CONSTRAINT laid FOREIGN KEY (hen) REFERENCES hen"
            " ON DELETE SET NULL",
            "CREATE VIEW both_of AS SELECT e.id FROM egg e JOIN hen h ON h.egg = e.id",
            "INSERT INTO egg VALUES (1, NULL)", "INSERT INTO hen VALUES (2, 1)",
            "UPDATE egg SET hen = 2",
        ):  # fmt: skip
            twin.run(sql)
        twin.reopen()
        for sql in (
            "SELECT * FROM both_of", "INSERT INTO egg VALUES (5, 77)", "DELETE FROM egg",
            "INSERT INTO hen VALUES (5, 77)", "DELETE FROM hen", "SELECT * FROM egg",
            "DELETE FROM egg", "ALTER TABLE egg DROP CONSTRAINT laid",
        ):  # fmt: skip
            twin.run(sql)
    finally:
        twin.close()
