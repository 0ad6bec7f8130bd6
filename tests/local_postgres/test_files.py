"""Files, frames and Arrow in PostgreSQL's language: what is loaded, and how rows are shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import louver
from louver import errors
from tests.client.harness import answers, run
from tests.local_postgres.twin import PostgresTwin

TABLE = """CREATE TABLE w (id integer PRIMARY KEY, s text ENC, n numeric(5,2) ENC, wide numeric ENC,
    j jsonb ENC, b bytea ENC, a integer[] ENC, v varchar(3) ENC, yes boolean ENC, d date ENC,
    tz timestamptz ENC)"""
CSV = (
    "id,s,n,wide,j,b,a,v,yes,d,tz\n"
    '1,5,1.25,1.500,"{""a"": 1}",\\x4142,"{1,2}",abc,t,2026-01-05,2026-01-05 10:00:00+02\n'
    "2,,,,,,,,,,\n"
)


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    yield twin
    twin.close()


def test_csv_is_read_as_postgresql_reads_it(twin: PostgresTwin, tmp_path: Path) -> None:
    twin.run(TABLE)
    path = tmp_path / "w.csv"
    path.write_text(CSV, encoding="utf-8")
    assert twin.louver.load("w", str(path)) == 2
    twin.plain.execute(
        "INSERT INTO w VALUES (1, '5', 1.25, 1.500, '{\"a\": 1}', '\\x4142', '{1,2}', 'abc', true,"
        " '2026-01-05', '2026-01-05 10:00:00+02')"
    )
    twin.plain.execute("INSERT INTO w VALUES (2)")
    twin.run("SELECT *, wide::text FROM w ORDER BY id")


@pytest.mark.parametrize("row", ["v\n3,abcd", 'a\n3,"{1"', "n\n3,1234.5", "j\n3,{", "d\n3,never"])
def test_a_field_that_does_not_fit_loads_nothing(
    twin: PostgresTwin, tmp_path: Path, row: str
) -> None:
    column = row.partition("\n")[0]
    types = {"v": "varchar(3)", "a": "integer[]", "n": "numeric(5,2)", "j": "jsonb", "d": "date"}
    twin.run(f"CREATE TABLE x (id integer ENC, {column} {types[column]} ENC)")
    path = tmp_path / "x.csv"
    path.write_text(f"id,{column}\n1,\n{row.partition(chr(10))[2]}\n", encoding="utf-8")
    with pytest.raises(errors.Error) as caught:
        twin.louver.load("x", str(path))
    assert caught.value.code in ("load.row", "csv.row")
    twin.run("SELECT * FROM x")


def test_tables_are_created_for_what_is_loaded(twin: PostgresTwin, tmp_path: Path) -> None:
    con: Any = twin.louver
    rows = pa.table({"id": [1, 2], "s": ["x", None], "f": [0.5, None]})
    assert con.load("arrow", rows, encrypt=True) == 2
    assert con.load("frame", rows.to_pandas(), encrypt=["s"]) == 2
    duckdb.from_arrow(rows).write_parquet(str(tmp_path / "p.parquet"))
    assert con.load("parquet", str(tmp_path / "p.parquet"), encrypt=True) == 2
    path = tmp_path / "p.json"
    path.write_text("\n".join(map(json.dumps, rows.to_pylist())), encoding="utf-8")
    assert con.load("jsons", str(path), encrypt=True) == 2
    for table in ("arrow", "frame", "parquet", "jsons"):
        loaded = con.execute(f"SELECT id, s, f FROM {table} ORDER BY id").fetchall()
        assert loaded == [(1, "x", 0.5), (2, None, None)], table


def test_rows_are_shown_as_postgresql_writes_them(twin: PostgresTwin) -> None:
    con: Any = twin.louver
    sql = (
        "SELECT * FROM (VALUES (1::numeric, '{\"a\": 1}'::jsonb, '{1,NULL}'::integer[],"
        " interval '1 day', true, 1e20::float8, '\\x41'::bytea), (2.50, NULL, NULL, NULL, NULL,"
        " NULL, NULL)) AS t(n, j, a, i, yes, f, b)"
    )
    shown = con.sql(sql).text()
    for text in ('{"a": 1}', "{1,NULL}", "1 day", "true", "1e+20", "\\x41", "2.50"):
        assert text in shown, text
    frame = con.sql(sql).df()
    assert frame["n"].tolist() == [1.0, 2.5]
    assert frame["j"].tolist()[0] == {"a": 1}
    assert con.sql(sql).fetchall()[0][0] == Decimal(1)


def test_the_ledger_is_a_relation(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE w (id integer, s text ENC)")
    twin.run("INSERT INTO w VALUES (1, 'x')")
    assert any("w" in row for row in twin.louver.leakage().fetchall())
    with pytest.raises(louver.Error) as caught:
        twin.louver.executemany("INSERT INTO w VALUES (?, ?)", [(1, "x")])
    assert "$1" in str(caught.value)


def test_the_shell_lists_and_describes(twin: PostgresTwin, tmp_path: Path) -> None:
    twin.run("CREATE TABLE \"it's\" (id integer PRIMARY KEY, s text ENC DEFAULT 'x')")
    twin.run('CREATE VIEW few AS SELECT s FROM "it\'s"')
    url = ("-u", twin.url, "sql")
    listed = run(*url, stdin="\\d\n", folder=tmp_path).stdout
    assert all(word in listed for word in ("it's", "few", "view", "public"))
    described = run(*url, stdin='\\d "it\'s"\n', folder=tmp_path).stdout
    assert all(word in described for word in ("id", "integer", "'x'::text"))
    (body,) = answers(run("-u", twin.url, "export", "f.duckdb", "--json", folder=tmp_path, code=2))
    assert body["code"] == "usage"
