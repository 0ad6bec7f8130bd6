"""COPY with what DuckDB's own tests ask of it: names that stand twice, files and statistics
that come back, rejected lines; and lists of an ENUM in every form.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import louver
from louver import errors
from louver.trusted.executor.local import arrow_values


@pytest.fixture(scope="module")
def connection(key_file: Path, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("copies")
    connection = louver.connect(f"duckdb:///{folder}/x.duckdb", keys=key_file)
    connection.execute("CREATE TABLE t (a INT ENC, b VARCHAR ENC)")
    connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    yield connection
    connection.close()


@pytest.mark.parametrize("query", ["(SELECT 1 a, 2 a)", "(SELECT a, a, b AS A FROM t)"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_names_may_stand_twice(connection, query: str, kind: str, tmp_path: Path) -> None:
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t (a INT, b VARCHAR)")
    duck.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    for run, name in ((connection, "louver"), (duck, "duckdb")):
        run.execute(f"COPY {query} TO '{tmp_path}/{name}.{kind}'")
    read = [duck.sql(f"FROM '{tmp_path}/{name}.{kind}'") for name in ("louver", "duckdb")]
    assert read[0].columns == read[1].columns
    assert read[0].fetchall() == read[1].fetchall()


def test_what_was_written_is_returned(connection, tmp_path: Path) -> None:
    cursor = connection.execute(f"COPY t TO '{tmp_path}/t.csv' (RETURN_FILES)")
    assert [item[:2] for item in cursor.description] == [
        ("Count", "BIGINT"), ("Files", "VARCHAR[]"),
    ]  # fmt: skip
    assert cursor.fetchall() == [(2, [f"{tmp_path}/t.csv"])]
    cursor = connection.execute(f"COPY t TO '{tmp_path}/t.parquet' (RETURN_STATS)")
    assert cursor.fetchone()[:2] == (f"{tmp_path}/t.parquet", 2)
    assert connection.execute(f"COPY t TO '{tmp_path}/u.csv'").rowcount == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{0}', store_rejects = true)",
        "CREATE TABLE r AS SELECT * FROM read_csv('{0}', rejects_table = 'r')",
        "COPY t FROM '{0}' (STORE_REJECTS)",
    ],
)
def test_tables_of_rejected_lines_are_refused(connection, sql: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,x\n")
    with pytest.raises(errors.NotSupportedError, match="rejected lines"):
        connection.execute(sql.format(path))
    assert connection.execute(f"SELECT a FROM read_csv('{path}')").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "value",
    [
        "[]::mood[]", "NULL::mood[]", "[[]]::mood[][]", "{'a': []::mood[]}",
        "[{'a': []::mood[]}]", "MAP {'a'::mood: 1}", "MAP {'q': []::mood[]}", "'b'::mood",
        "CASE WHEN i IN (0, 5000) THEN ['b']::mood[] WHEN i % 3 = 0 THEN [] END",
        "CASE WHEN i = 5000 THEN [['b'], []]::mood[][] WHEN i % 3 = 0 THEN [[]] END",
    ],
)  # fmt: skip
def test_lists_of_labels_come_back_as_they_were(value: str) -> None:
    duck = duckdb.connect(config={"arrow_lossless_conversion": "true"})
    duck.execute("CREATE TYPE mood AS ENUM ('a', 'b')")
    sql = f"SELECT {value} AS v FROM range(6000) r(i)"
    expected = duck.execute(sql).fetchall()
    rows: pa.Table = duck.execute(sql).to_arrow_table()
    arrow_values.register(duck, "given", rows)
    assert duck.execute("FROM given").fetchall() == expected
