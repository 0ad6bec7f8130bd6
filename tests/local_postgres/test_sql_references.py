"""Cascades, forms of keys, and what a search path finds, beside plaintext PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin
from tests.local_postgres.worlds import World, both


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    yield opened
    opened.close()


def test_a_cascade_reaches_the_children_of_children(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TABLE one (id integer ENC PRIMARY KEY)",
        "CREATE TABLE two (id integer ENC PRIMARY KEY"
        " REFERENCES one ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE three (id integer ENC PRIMARY KEY"
        " REFERENCES two ON DELETE CASCADE ON UPDATE CASCADE, x integer ENC)",
        "CREATE TABLE four (id integer ENC REFERENCES three ON DELETE SET NULL ON UPDATE CASCADE)",
        "INSERT INTO one VALUES (1), (2), (3)", "INSERT INTO two VALUES (1), (2)",
        "INSERT INTO three VALUES (1, 1), (2, 2)", "INSERT INTO four VALUES (1), (1), (2)",
        "DELETE FROM one WHERE id = 1", "SELECT * FROM three", "SELECT * FROM four ORDER BY id",
        "UPDATE one SET id = 7 WHERE id = 2", "SELECT * FROM three", "SELECT * FROM four",
        "BEGIN", "DELETE FROM one", "SELECT count(*) FROM three", "ROLLBACK", "TABLE three",
    ):  # fmt: skip
        twin.run(sql)


def test_rows_of_one_statement_may_refer_to_each_other(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TABLE tree (id integer ENC PRIMARY KEY, up integer ENC REFERENCES tree)",
        "INSERT INTO tree VALUES (1, 1)", "INSERT INTO tree VALUES (5, 4), (4, 1)",
        "INSERT INTO tree SELECT 6, 6", "INSERT INTO tree VALUES (7, 8)",
        "INSERT INTO tree VALUES (10, 11), (11, 12)", "SELECT * FROM tree ORDER BY id",
    ):  # fmt: skip
        twin.run(sql)


@pytest.mark.parametrize("sql", [
    'CREATE TABLE no (a text COLLATE "C" ENC)', "CREATE TABLE no (a text COLLATE pg_c_utf8)",
    'ALTER TABLE pair ADD COLUMN c text COLLATE "C" ENC',
    'ALTER TABLE pair ALTER COLUMN t TYPE text COLLATE "C"',
    "CREATE TABLE no (a integer ENC, b integer ENC, UNIQUE NULLS NOT DISTINCT (a, b))",
    "CREATE TABLE no (a integer ENC PRIMARY KEY DEFERRABLE)",
    "CREATE TABLE no (a integer ENC, EXCLUDE USING btree (a WITH =))",
    "ALTER TABLE pair ADD EXCLUDE USING btree (a WITH =)",
    "CREATE TABLE no (a int4range ENC, b daterange ENC, UNIQUE (a, b WITHOUT OVERLAPS))",
    "CREATE TABLE no (a integer ENC UNIQUE INITIALLY DEFERRED)",
    "ALTER TABLE pair ADD UNIQUE NULLS NOT DISTINCT (a)",
    "ALTER TABLE pair ADD UNIQUE (b) DEFERRABLE",
    "CREATE TABLE no (a integer ENC, b integer ENC, FOREIGN KEY (a, b) REFERENCES pair MATCH FULL)",
    "CREATE TABLE pg_temp.no (a integer)", "ALTER TABLE pair ADD NOT NULL t NOT VALID",
    "ALTER TABLE pair ADD CHECK (a > 0) NOT ENFORCED",
    "CREATE TABLE no (a integer ENC, CHECK (a > 0) NOT ENFORCED)",
    "CREATE TABLE no (a integer ENC, b integer, FOREIGN KEY (a, b) REFERENCES pair NOT ENFORCED)",
])  # fmt: skip
def test_forms_that_would_not_be_kept_are_refused(twin: PostgresTwin, sql: str) -> None:
    twin.on_louver(
        "CREATE TABLE IF NOT EXISTS pair (a integer ENC, b integer ENC, t text, PRIMARY KEY (a, b))"
    )
    assert getattr(twin.on_louver(sql).error, "code", "") == "sql.unsupported"
    assert twin.on_louver("SELECT * FROM no").state == "42P01"
    assert twin.on_louver("SELECT * FROM pair").rows == []


def test_a_path_of_missing_schemas_finds_nothing(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TABLE here (a integer ENC)", "INSERT INTO here VALUES (1)",
        "SET search_path = nowhere", "INSERT INTO here VALUES (2)", "DELETE FROM here",
        "TRUNCATE here", "UPDATE here SET a = 3", "SELECT * FROM here",
        "SET search_path = nowhere, public", "SELECT * FROM here", "RESET search_path",
        "BEGIN", "SET LOCAL search_path = nowhere", "INSERT INTO here VALUES (4)", "ROLLBACK",
        "SELECT * FROM here",
    ):  # fmt: skip
        twin.run(sql)


def test_a_table_of_a_temporary_path_is_refused(twin: PostgresTwin) -> None:
    twin.on_louver("SET search_path = pg_temp, public")
    assert twin.on_louver("CREATE TABLE lost (a integer)").error is not None
    twin.on_louver("RESET search_path")
    assert twin.on_louver("SELECT * FROM lost").state == "42P01"


def _crossed(world: World, sql: str) -> list[str]:
    world.crossed()
    world.run(sql)
    return [repr(item) for item in world.crossed()]


def test_rows_that_a_ceiling_hides_are_all_written_anew() -> None:
    with both("sealed", "hidden rows") as worlds:
        world = worlds[0]
        world.run("CREATE TABLE h (k integer ENC MAY REVEAL size, v integer ENC MAY REVEAL size)")
        world.run("INSERT INTO h VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
        world.run("UPDATE h SET v = 7 WHERE k = 2")
        texts = [f"UPDATE h SET v = 8 WHERE k {condition}" for condition in ("= 1", "> 2", "= 99")]
        sizes = [sum(map(len, _crossed(world, text))) for text in texts]
        # As many bytes, but for how numbers are printed.
        assert max(sizes) - min(sizes) < 200
        assert world.connections[0].execute("SELECT sum(v) FROM h").fetchone() == (8 + 7 + 8 + 8,)


def test_a_cascade_at_a_table_that_hides_rows_is_refused() -> None:
    with both("sealed", "hidden cascade") as worlds:
        world = worlds[0]
        world.run("CREATE TABLE parent (id integer ENC PRIMARY KEY)")
        world.run(
            "CREATE TABLE child (n integer, p integer ENC MAY REVEAL size"
            " REFERENCES parent ON DELETE CASCADE)"
        )
        world.run("INSERT INTO parent VALUES (1), (2)")
        world.run("INSERT INTO child VALUES (1, 1), (2, 2)")
        assert world.run("DELETE FROM parent WHERE id = 1") == "leak.refused 0A000"
        assert world.run("SELECT * FROM child") == 2
