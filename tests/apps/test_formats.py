"""Tables in every form; CSV is compared with DuckDB's own COPY for values of all types."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from tests import generated
from tests.client.harness import answers, connection, run
from tests.grammar import types

ODD = "SELECT 1 AS a, 'x|y' || chr(10) || 'z' AS \"the name\", NULL AS c, -1.50 AS d"


def test_each_form(tmp_path: Path) -> None:
    forms = {
        "csv": 'a,the name,c,d\n1,"x|y\nz",,-1.50\n',
        "md": "| a | the name | c | d |\n|---:|---|---:|---:|\n| 1 | x\\|y<br>z |  | -1.50 |\n",
        "line": "       a = 1\nthe name = x|y\\nz\n       c = NULL\n       d = -1.50\n",
        "table": (
            "+---+----------+------+-------+\n| a | the name |  c   |   d   |\n"
            "+---+----------+------+-------+\n| 1 | x|y\\nz   | NULL | -1.50 |\n"
            "+---+----------+------+-------+\n"
        ),
        "box": (
            "┌───┬──────────┬──────┬───────┐\n│ a │ the name │  c   │   d   │\n"
            "├───┼──────────┼──────┼───────┤\n│ 1 │ x|y\\nz   │ NULL │ -1.50 │\n"
            "└───┴──────────┴──────┴───────┘\n"
        ),
    }  # fmt: skip
    for form, expected in forms.items():
        assert run(ODD, f"--{form}", folder=tmp_path).stdout == expected
        assert run(f"--{form}", "sql", ODD, folder=tmp_path).stdout == expected
    output = answers(run(ODD, "--json", folder=tmp_path))[0]
    assert output["rows"] == [[1, "x|y\nz", None, "-1.50"]]


def test_whole_tables_are_not_cut(tmp_path: Path) -> None:
    sql = "SELECT repeat('x', 300) AS a FROM range(100)"
    for form in ("md", "box", "table", "line"):
        assert run(sql, f"--{form}", folder=tmp_path).stdout.count("x" * 300) == 100


def test_forms_exclude_each_other_and_need_a_table(tmp_path: Path) -> None:
    assert "exclude" in run("SELECT 1", "--csv", "--json", folder=tmp_path, code=2).stdout
    assert "print tables" in run("status", "--csv", folder=tmp_path, code=2).stderr


def drawn(dice: Random) -> str:
    """A query of some columns of all types, NULLs among them, under names that repeat."""
    count, rows = dice.randint(1, 6), dice.randint(0, 5)
    columns = [types.drawn_type(dice) for _ in range(count)]
    names = [dice.choice(("a", "A", "b c", 'q"q', "x,y", "ä")) for _ in columns]
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    lines = [
        ", ".join(
            f"{types.literal(dice, type_)}::{types.cast(type_)} AS {name}"
            for type_, name in zip(columns, quoted, strict=True)
        )
        for _ in range(max(rows, 1))
    ]
    body = " UNION ALL ".join(f"SELECT {line}" for line in lines)
    return body if rows else f"SELECT * FROM ({body}) LIMIT 0"


def test_csv_is_that_of_duckdb(tmp_path: Path) -> None:
    dice = generated.generator("csv")
    plain = duckdb.connect()
    for con in (mine := connection(), plain):
        con.execute(f"CREATE TYPE mood AS ENUM {types.MOODS}")
    file = tmp_path / "expected.csv"
    checked = 0
    for _ in range(generated.cases(150)):
        sql = drawn(dice)
        if ":= NULL)" in sql:
            continue  # Arrow does not distinguish the NULL of a member from the NULL of a union
        try:
            plain.execute(f"COPY ({sql}) TO '{file}' (FORMAT csv, HEADER)")
        except duckdb.Error:
            continue
        parts: list[bytes] = []
        mine.sql(sql).csv(parts.append)
        assert b"".join(parts) == file.read_bytes(), sql
        checked += 1
    assert checked > 100


def test_many_rows_take_about_the_time_that_duckdb_takes(tmp_path: Path) -> None:
    """300,000 rows of encrypted columns: what is left of the time is not the text."""
    con = connection()
    con.execute("CREATE TABLE t (a BIGINT ENC, b TEXT ENC, d DATE)")
    con.execute("INSERT INTO t SELECT range, 'x' || range, DATE '2000-01-01' FROM range(300000)")
    relation = con.sql("SELECT * FROM t ORDER BY a").execute()
    start = time.process_time()
    size = 0

    def count(data: bytes) -> None:
        nonlocal size
        size += len(data)

    relation.csv(count)
    assert size > 6_000_000
    assert time.process_time() - start < 2


def test_a_receiver_that_fails_ends_the_copy() -> None:
    def refuse(_: bytes) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        connection().sql("SELECT * FROM range(1000000)").csv(refuse)


def test_csv_reads_back(tmp_path: Path) -> None:
    sql = "SELECT 'a,b' AS x, 'say \"so\"' AS y, '' AS z, NULL AS n"
    output = run(sql, "--csv", folder=tmp_path, process=True).stdout
    assert list(csv.reader(io.StringIO(output)))[1] == ["a,b", 'say "so"', "", ""]
    expected: Any = json.loads(run(sql, "--json", folder=tmp_path).stdout)["rows"][0]
    assert expected == ["a,b", 'say "so"', "", None]
