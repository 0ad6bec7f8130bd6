"""Values of ENC columns that a session keeps, in variables and TEMP tables, show nowhere: neither
through prepared statements, nor sequences, nor rules that decide whether a row stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import louver
from louver.trusted.client.dbapi import Connection

SETUP = (
    "CREATE TABLE t (a INT ENC MAY REVEAL size, p INT)",
    "INSERT INTO t VALUES (8317, 1), (5, 2)",
    "CREATE TABLE bare (i INT)",
    "CREATE TABLE checked (i INT CHECK (i < coalesce(getvariable('x'), 9)))",
    "CREATE MACRO bound() AS coalesce(getvariable('x'), 9)",
    "CREATE TABLE through (i INT CHECK (i < bound()))",
    "CREATE SEQUENCE sq START WITH 0 MINVALUE 0",
    "PREPARE put AS INSERT INTO bare VALUES ($1)",
    "PREPARE put_more AS INSERT INTO bare SELECT p + $1 FROM t",
    "PREPARE set_all AS UPDATE bare SET i = $1",
    "PREPARE filter AS DELETE FROM t WHERE p > $1",
    "PREPARE draw AS SELECT nextval('sq') FROM range($1)",
    "PREPARE ask AS SELECT p FROM t WHERE a = $1",
    "EXECUTE put(1 + 1)",
    "EXECUTE put(abs(-3))",
    "INSERT INTO checked VALUES (1)",
    "SET VARIABLE x = (SELECT a FROM t WHERE p = 2)",
    "CREATE TEMP TABLE kept AS SELECT a FROM t",
    "CREATE TEMP TABLE later (i INT)",
    "PREPARE keep AS INSERT INTO later VALUES ($1)",
    "EXECUTE keep(getvariable('x'))",
)
REFUSED = (
    "EXECUTE put(getvariable('x'))",
    "EXECUTE put((getvariable('x') + 1)::INT)",
    "EXECUTE put(abs(getvariable('x')))",
    "EXECUTE put(bound())",
    "EXECUTE put_more(getvariable('x'))",
    "EXECUTE set_all(getvariable('x'))",
    "EXECUTE filter(getvariable('x'))",
    "EXECUTE draw(getvariable('x'))",
    "INSERT INTO bare SELECT i FROM later",
    "SELECT count(nextval('sq')) FROM range(getvariable('x'))",
    "SELECT nextval('sq') FROM bare WHERE i > getvariable('x')",
    "SELECT nextval('sq') FROM bare WHERE i > bound()",
    "SELECT CASE WHEN p < getvariable('x') THEN nextval('sq') END FROM t",
    "SET VARIABLE y = (SELECT count(nextval('sq')) FROM range(getvariable('x')))",
    "EXPLAIN ANALYZE SELECT count(nextval('sq')) FROM range(getvariable('x'))",
    "SELECT count(nextval('sq')) FROM kept, range(kept.a)",
    "SELECT nextval('sq') FROM kept WHERE a > 3",
    "SELECT nextval('sq') FROM bare WHERE i IN (SELECT a FROM kept)",
    "COPY (SELECT nextval('sq') FROM kept, range(a)) TO '{folder}/drawn.csv'",
    "INSERT INTO checked VALUES (1)",
    "INSERT INTO checked SELECT i FROM bare",
    "UPDATE checked SET i = 3",
    "INSERT INTO through VALUES (2)",
    "CREATE UNIQUE INDEX ix ON bare ((i % getvariable('x')))",
    "CREATE UNIQUE INDEX ix ON bare ((i % bound()))",
)
ALLOWED = (
    "EXECUTE put(7)",
    "EXECUTE ask(getvariable('x'))",
    "SELECT nextval('sq')",
    "SELECT nextval('sq') FROM bare",
    "RESET VARIABLE x",
    "INSERT INTO checked VALUES (2)",
)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Iterator[Connection]:
    folder = tmp_path_factory.mktemp("kept")
    with louver.connect(f"duckdb:///{folder}/kept.duckdb", keys=key_file) as database:
        for sql in SETUP:
            database.execute(sql)
        yield database


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(connection: Connection, tmp_path: Path, sql: str) -> None:
    with pytest.raises(louver.Error) as caught:
        connection.execute(sql.format(folder=tmp_path))
    assert caught.value.code in ("leak.flow", "sql.unsupported"), caught.value


def test_allowed(connection: Connection) -> None:
    for sql in ALLOWED:
        connection.execute(sql)


def test_a_files_columns_that_are_computed_where_they_are_read(
    open_connection: Any, tmp_path: Path
) -> None:
    with duckdb.connect(str(tmp_path / "computed.duckdb")) as database:
        database.execute(
            "CREATE TABLE g (k INT, a VARCHAR AS (CAST(getvariable('sec') AS VARCHAR)))"
        )
        database.execute("CREATE TABLE q (k INT, a VARCHAR GENERATED ALWAYS AS (current_query()))")
        database.execute("CREATE TABLE h (k INT); CREATE VIEW v AS FROM g; CREATE VIEW u AS FROM v")
        database.execute(
            "INSERT INTO g VALUES (1); INSERT INTO q VALUES (1); INSERT INTO h VALUES (1)"
        )
    con = open_connection()
    con.execute("CREATE TABLE s (a INT ENC); INSERT INTO s VALUES (7777)")
    con.execute("CREATE TABLE plain (k INT, v VARCHAR)")
    con.execute(f"ATTACH '{tmp_path}/computed.duckdb' AS y")
    con.execute("SET VARIABLE sec = (SELECT max(a) FROM s)")
    for name in "gqvu":
        for sql in ("SELECT * FROM y.{}", "INSERT INTO plain SELECT k, a FROM y.{}",
                    "CREATE TABLE made AS FROM y.{}"):  # fmt: skip
            with pytest.raises(louver.Error) as caught:
                con.execute(sql.format(name))
            assert caught.value.code == "attach.object"
    assert con.execute("FROM y.h").fetchall() == [(1,)]
