"""pg_cursors and pg_prepared_statements say what a session of Louver's has, and SELECT INTO."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (a int ENC, b text ENC)")
    opened.run("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    yield opened
    opened.close()


_CURSORS = "SELECT name, statement, is_holdable, is_binary, is_scrollable FROM pg_cursors"
_PREPARED = "SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements"


def test_prepared_statements_are_listed(twin: PostgresTwin) -> None:
    for sql in (
        "PREPARE q1 AS SELECT 1 AS a", "CREATE TYPE mood AS ENUM ('sad')",
        "PREPARE \"Q 2\" (text, int, mood) AS SELECT 'it''s', $1, $2, $3",
        "PREPARE bad AS SELECT x",
        "PREPARE q3 AS INSERT INTO t VALUES ($1, $2)", f"{_PREPARED} ORDER BY name",
        "SELECT p.name, parameter_types[1] FROM pg_catalog.pg_prepared_statements AS p, t"
        " WHERE p.name < t.b ORDER BY 1, 2", "SELECT count(*) FROM pg_prepared_statements",
        "SELECT name FROM t JOIN pg_prepared_statements USING (name)",
        "SELECT prepare_time < clock_timestamp() FROM pg_prepared_statements",
        f"PREPARE itself AS {_PREPARED} WHERE name = 'itself'", "EXECUTE itself",
        "DEALLOCATE q1", _PREPARED, "SELECT pg_typeof(parameter_types) FROM pg_prepared_statements",
        "DISCARD ALL", _PREPARED, "PREPARE q1 AS SELECT 'pg_cursors' AS pg_cursors", "EXECUTE q1",
    ):  # fmt: skip
        twin.run(sql)


def test_cursors_are_listed(twin: PostgresTwin) -> None:
    for sql in (
        _CURSORS, "BEGIN", "DECLARE c1 SCROLL CURSOR FOR SELECT * FROM t WHERE a > 1",
        "DECLARE c2 NO SCROLL CURSOR WITH HOLD FOR SELECT * FROM t", "SAVEPOINT s",
        "DECLARE c3 BINARY CURSOR FOR SELECT * FROM t", _CURSORS,
        "DECLARE \"c 4\" CURSOR FOR SELECT a FROM t ORDER BY a", f"{_CURSORS} ORDER BY name",
        f"PREPARE cs AS {_CURSORS}", "EXECUTE cs", "ROLLBACK TO s", "EXECUTE cs",
        "DECLARE c5 CURSOR FOR SELECT * FROM t FOR UPDATE", "EXECUTE cs", "CLOSE c1", _CURSORS,
        "COMMIT", "EXECUTE cs", "CLOSE ALL", "EXECUTE cs",
    ):  # fmt: skip
        twin.run(sql)
    # Whether that can go back depends on PostgreSQL's plan.
    twin.run("BEGIN")
    twin.run("DECLARE c CURSOR FOR SELECT * FROM t WHERE a = 1")
    assert twin.on_louver(_CURSORS).error is not None


def test_select_into_makes_a_table(twin: PostgresTwin) -> None:
    for sql in (
        "SELECT * INTO t2 FROM t", "SELECT a, b AS bb INTO TEMP TABLE t3 FROM t WHERE a > 1",
        "SELECT * FROM t2 ORDER BY a", "SELECT * FROM t3", "SELECT 1 AS x INTO TABLE public.t4",
        "SELECT a INTO t5 FROM t UNION SELECT 7", "SELECT * FROM t5 ORDER BY a",
        "SELECT 'a' INTO t4", "SELECT a FROM t UNION SELECT 7 INTO t6",
        "SELECT nope INTO t7 FROM t",
        "SELECT 1 AS a INTO UNLOGGED t9",
        "SELECT b AS \"into\", 'into' AS c INTO t8 FROM t", "SELECT * FROM t8 ORDER BY 1",
        "SELECT relname, relpersistence FROM pg_class WHERE relname ~ '^t\\d$' ORDER BY 1",
    ):  # fmt: skip
        twin.run(sql)
    table = twin.louver._session.context.catalog.table("public", "t2")
    assert all(column.encrypted for column in table.columns)
