"""PREPARE and EXECUTE in PostgreSQL's language while tables change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.local_postgres.twin import PostgresTwin


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    yield opened
    opened.close()


def test_columns_stay_those_that_were_prepared(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TABLE t (a int ENC, b text ENC, c int)",
        "INSERT INTO t VALUES (1, 'x', 2), (2, 'y', 3)",
        "PREPARE every AS SELECT * FROM t ORDER BY 1",
        "PREPARE some_(int) AS SELECT * FROM t WHERE a = $1",
        "PREPARE given(bigint) AS SELECT $1, b, a + $1 FROM t WHERE a = $1",
        "PREPARE of_b AS SELECT b FROM t ORDER BY 1",
        "PREPARE adds AS INSERT INTO t (a, b) VALUES (5, 'z')",
        "PREPARE removes AS DELETE FROM t WHERE a = 5 RETURNING *",
    ):
        twin.run(sql)
    executed = ("every", "some_(1)", "given(1)", "of_b", "adds", "removes")
    changes = (
        "CREATE TABLE u (a int ENC)", "ALTER TABLE t ADD d int ENC", "ALTER TABLE t DROP d",
        "ALTER TABLE t RENAME b TO other", "ALTER TABLE t RENAME other TO b",
        "ALTER TABLE t RENAME c TO other", "ALTER TABLE t RENAME other TO c",
        "ALTER TABLE t ALTER b TYPE varchar(10)", "ALTER TABLE t ALTER b TYPE text",
        "ALTER TABLE t ALTER a TYPE bigint", "DROP TABLE t",
    )  # fmt: skip
    states = []
    for change in changes:
        twin.run(change)
        for name in executed:
            states.append(twin.on_louver(f"EXPLAIN EXECUTE {name}").state)
            # One that fails may be executed again.
            for _ in range(2):
                twin.run(f"EXECUTE {name}")
    assert {"", "0A000", "42P01"} <= set(states)


def test_types_are_the_same_under_another_search_path(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TYPE mood AS ENUM ('low', 'high')", "CREATE TABLE t (m mood ENC)",
        "INSERT INTO t VALUES ('high')", "PREPARE p AS SELECT * FROM public.t",
        "SET search_path = pg_catalog", "CREATE TABLE public.other (a int)",
    ):  # fmt: skip
        twin.run(sql)
    assert twin.on_louver("EXECUTE p").rows == [("high",)]


@pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
def test_tables_of_prepared_queries(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TABLE t (a int ENC, b text ENC)", "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
        "PREPARE q AS SELECT a, b AS execute FROM t WHERE a = 2 -- of rows",
        "PREPARE every AS TABLE t", "PREPARE two AS VALUES (1, 'EXECUTE q'), (2, 'AS')",
        "CREATE TABLE one AS EXECUTE q", "SELECT * FROM one", "CREATE TABLE one AS EXECUTE q",
        "CREATE TABLE IF NOT EXISTS one AS EXECUTE q", "CREATE TABLE more (c) AS EXECUTE every"
        "  WITH  DATA", "SELECT c, b FROM more ORDER BY c", "CREATE TEMP TABLE own AS EXECUTE two",
        "SELECT * FROM own ORDER BY 1",
        "CREATE TABLE names (execute int ENC)", "CREATE TABLE last AS SELECT execute FROM names",
        "ALTER TABLE t ADD c int ENC", "CREATE TABLE changed AS EXECUTE every",
    ):  # fmt: skip
        twin.run(sql)
    # What they hold is kept as well as what it is of.
    tables = twin.louver._session.context.catalog.tables.values()
    (table,) = [other for other in tables if other.name == "one"]
    assert all(column.encrypted for column in table.columns)


@pytest.mark.parametrize("sql", [
    "CREATE TABLE t AS EXECUTE missing", "CREATE TABLE t AS EXECUTE given(1)",
    "CREATE TABLE t AS EXECUTE adds", "CREATE TABLE t AS EXECUTE q WITH NO DATA",
])  # fmt: skip
def test_other_tables_of_prepared_statements_are_refused(twin: PostgresTwin, sql: str) -> None:
    for first in (
        "CREATE TABLE u (a int ENC)", "PREPARE given(int) AS SELECT $1 AS a",
        "PREPARE adds AS INSERT INTO u VALUES (1) RETURNING a", "PREPARE q AS TABLE u",
    ):  # fmt: skip
        twin.run(first)
    outcome = twin.on_louver(sql)
    assert isinstance(outcome.error, errors.Error)
    assert outcome.error.code == "postgres.refused"
