"""Data of the user's process in statements: by variables, by names, as files. It stays local."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import louver
from louver.trusted.client.dbapi import Connection
from tests import shared
from tests.client.harness import connection
from tests.recorded import RecordedSession

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")

SETUP = """
CREATE TABLE staff (name VARCHAR ENC MAY REVEAL equality, salary BIGINT ENC MAY REVEAL order,
    age INTEGER);
INSERT INTO staff VALUES ('Ada', 9000, 36), ('Grace', 8500, 45), ('Edsger', 700, 50), (NULL, 1, 2)
"""
ROWS = {"name": ["Ada", "Grace", "Kurt"], "floor": [1, 2, 3]}


@pytest.fixture
def con() -> Iterator[louver.Connection]:
    with connection(profile="cryptdb") as connected:
        connected.execute(SETUP)
        yield connected


def kinds(folder: Path) -> dict[str, Any]:
    """One table in every form that a variable can have."""
    table = pa.table(ROWS)
    ds.write_dataset(table, folder / "data", format="parquet")
    return {
        "arrow": table,
        "batch": table.to_batches()[0],
        "dataset": ds.dataset(folder / "data"),
        "pandas": pd.DataFrame(ROWS),
        "polars": pl.DataFrame(ROWS),
        "lazy": pl.LazyFrame(ROWS),
        "duckdb": duckdb.sql("SELECT * FROM table_", connection=_plain(table)),
    }


def _plain(table: pa.Table) -> duckdb.DuckDBPyConnection:
    plain = duckdb.connect()
    plain.register("table_", table)
    return plain


JOIN = "SELECT name, salary, floor FROM staff JOIN frame USING (name) ORDER BY name"
EXPECTED = [("Ada", 9000, 1), ("Grace", 8500, 2)]


@pytest.mark.parametrize(
    "kind", ["arrow", "batch", "dataset", "pandas", "polars", "lazy", "duckdb", "reader"]
)
def test_variables_are_tables(con: louver.Connection, tmp_path: Path, kind: str) -> None:
    def read() -> Any:
        if kind == "reader":
            return pa.table(ROWS).to_reader()
        return kinds(tmp_path / kind)[kind]

    (tmp_path / kind).mkdir()
    frame = read()
    relation = con.sql(JOIN)
    assert relation.columns == ["name", "salary", "floor"]
    del frame  # the relation has taken it
    assert relation.fetchall() == EXPECTED
    assert relation.filter("floor > 1").fetchall() == EXPECTED[1:]
    with pytest.raises(louver.ProgrammingError, match="frame does not exist"):
        con.sql(JOIN)
    frame = pa.table(ROWS) if kind == "reader" else kinds(tmp_path / f"{kind}2")[kind]
    assert con.execute(JOIN).fetchall() == EXPECTED
    frame = None  # noqa: F841


def test_numpy_relations_and_globals(con: louver.Connection) -> None:
    numbers = np.array([36, 50])  # noqa: F841
    joined = con.sql("SELECT name FROM staff JOIN numbers ON age = column0 ORDER BY age")
    assert joined.fetchall() == [("Ada",), ("Edsger",)]
    grown = con.sql("SELECT * FROM staff WHERE age > ?", params=[40])  # noqa: F841
    paid = con.table("staff").filter("salary > 8000")  # noqa: F841
    both = con.sql("SELECT name FROM grown JOIN paid USING (name) WHERE grown.age < ?", params=[99])
    assert both.fetchall() == [("Grace",)]
    assert len(con.sql("WITH paid AS (FROM grown) SELECT * FROM paid")) == 2
    assert con.sql("SELECT count(*) FROM GLOBAL_TABLE").fetchall() == [(3,)]
    assert con.sql("FROM (PIVOT GLOBAL_TABLE ON name USING sum(floor))").fetchall() == [(1, 2, 3)]
    with connection() as other, pytest.raises(louver.ProgrammingError, match="another connection"):
        other.sql("FROM grown")


GLOBAL_TABLE = pa.table(ROWS)


def test_the_databases_names_come_first(con: louver.Connection) -> None:
    staff = pa.table({"name": ["nobody"]})  # noqa: F841
    assert len(con.sql("FROM staff")) == 4
    frame = pa.table({"name": ["Ada"]})  # noqa: F841
    assert con.sql("WITH frame AS (SELECT 1) FROM frame").fetchall() == [(1,)]
    text = "Ada"  # noqa: F841
    with pytest.raises(louver.ProgrammingError, match="text does not exist"):
        con.sql("FROM text")


def test_registered_data_stays_until_it_is_unregistered(con: louver.Connection) -> None:
    con.register("frame", pd.DataFrame(ROWS))
    con.execute("CREATE TABLE more (a INTEGER ENC)")  # the schema is rebuilt for it
    assert con.sql(JOIN).fetchall() == EXPECTED
    assert con.view("frame").join(con.table("staff"), "name").count().fetchall() == [(2,)]
    con.register("frame", pa.table({"name": ["Ada"], "floor": ["up"]}))
    assert con.sql(JOIN).fetchall() == [("Ada", 9000, "up")]
    assert con.sql(JOIN).types == ["VARCHAR", "BIGINT", "VARCHAR"]
    with pytest.raises(louver.ProgrammingError) as taken:
        con.register("staff", pa.table(ROWS))
    assert taken.value.code == "table.temporary"
    with pytest.raises(louver.NotSupportedError, match="local data"):
        con.execute("CREATE TABLE frame (a INTEGER)")
    con.unregister("frame")
    con.unregister("frame")
    with pytest.raises(louver.ProgrammingError, match="frame does not exist"):
        con.sql(JOIN)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW v AS SELECT * FROM frame",
        "CREATE MACRO m() AS TABLE SELECT * FROM frame",
        "INSERT INTO frame VALUES ('a', 1)",
        "DELETE FROM frame",
        "UPDATE frame SET floor = 1",
        "DROP VIEW frame",
        "COPY frame FROM 'x.csv'",
    ],
)
def test_local_data_is_only_read(con: louver.Connection, sql: str) -> None:
    con.register("frame", pa.table(ROWS))
    with pytest.raises(louver.Error):
        con.execute(sql)
    assert con.sql("FROM frame ORDER BY floor").fetchall() == list(zip(*ROWS.values(), strict=True))
    con.unregister("frame")


def test_local_data_is_stored_by_statements_that_say_so(
    con: louver.Connection, tmp_path: Path
) -> None:
    frame = pl.DataFrame(ROWS)  # noqa: F841
    con.execute("CREATE TABLE stored AS SELECT * FROM frame")
    con.execute("INSERT INTO staff SELECT name, floor, NULL FROM frame WHERE floor = 3")
    assert con.sql("SELECT salary FROM staff WHERE name = 'Kurt'").fetchall() == [(3,)]
    elder = con.table("staff").filter("age > 40")  # noqa: F841
    con.execute("CREATE TABLE grown AS SELECT * FROM elder")
    assert len(con.table("grown")) == 2
    assert len(con.sql("SUMMARIZE elder")) == 3
    assert "FROM" in con.sql("EXPLAIN SELECT * FROM elder").fetchall()[0][1]
    con.execute(f"COPY (SELECT name FROM elder) TO '{tmp_path}/elder.csv'")
    assert len(con.read_csv(tmp_path / "elder.csv")) == 2
    con.execute("CREATE VIEW v AS SELECT * FROM elder")
    assert len(con.view("v")) == 2
    with pytest.raises(louver.LeakageRefused):
        con.execute("CREATE TABLE open_ (name VARCHAR); INSERT INTO open_ SELECT name FROM elder")


def test_relations_of_frames_and_files(con: louver.Connection, tmp_path: Path) -> None:
    staff = con.table("staff")
    for data in (pd.DataFrame(ROWS), pl.DataFrame(ROWS)):
        assert con.from_df(data).join(staff, "name").project("floor").sum("floor").fetchall() == [
            (3,)
        ]
    first, second = con.from_arrow(pa.table(ROWS)), con.from_arrow(pa.table({"name": ["Ada"]}))
    with pytest.raises(louver.ProgrammingError, match="for different local data"):
        first.set_alias("f").join(second, "name")
    (tmp_path / "a.json").write_text('[{"name": "Ada", "n": 1}]')
    joined = con.read_json(tmp_path / "a.json").set_alias("j").join(staff, "name")
    assert joined.project("n, salary").fetchall() == [(1, 9000)]
    with pytest.raises(louver.ProgrammingError, match="path of a file"):
        con.read_csv(3)  # type: ignore[arg-type]


QUESTIONS = (
    JOIN,
    "SELECT name FROM staff SEMI JOIN frame USING (name)",
    "SELECT name FROM staff ANTI JOIN frame USING (name)",
    "SELECT name FROM staff WHERE name IN (SELECT name FROM frame)",
    "SELECT name FROM staff WHERE salary > (SELECT max(floor) FROM frame)",
    "SELECT age FROM staff, frame WHERE salary BETWEEN floor AND floor + 9000",
    "SELECT name FROM staff WHERE EXISTS (FROM frame WHERE frame.name = staff.name)",
    "SELECT name FROM staff UNION ALL SELECT name FROM frame",
    "SELECT sum(salary) FROM staff JOIN frame USING (name)",
    "SELECT name FROM staff ORDER BY (SELECT min(floor) FROM frame), salary LIMIT 1",
    "WITH f AS (SELECT DISTINCT name FROM frame) SELECT age FROM f JOIN staff USING (name)",
    "SELECT name, salary FROM staff WHERE age > 3 AND name = (SELECT any_value(name) FROM frame)",
)
SECRETS = ("a-wombat-that-nobody-knows", 7_318_264_055_913)


@pytest.mark.parametrize("profile", ["sealed", "cryptdb", "sdb"])
def test_the_server_cannot_tell_what_is_in_local_data(tmp_path: Path, profile: str) -> None:
    """Two worlds that differ in the local data alone look alike, message by message."""
    recorded = RecordedSession(tmp_path / "db", shared.key_file(), profile, modulus_bits=512)
    worlds = (
        pa.table({"name": ["Ada", "Grace"], "floor": pa.array([1, 2], pa.int64())}),
        pa.table({"name": [SECRETS[0]] * 50, "floor": pa.array([SECRETS[1]] * 50, pa.int64())}),
    )
    with Connection(recorded.session) as con:
        con.execute(SETUP)
        for frame in worlds:  # noqa: B007
            for sql in QUESTIONS:
                con.execute(sql)
        sent = []
        for frame in worlds:
            recorded.tap.records.clear()
            for sql in QUESTIONS:
                con.execute(sql).fetchall()
                con.sql(sql).filter("true").fetchall()
            con.register("registered", frame)
            con.sql("FROM staff JOIN registered USING (name)").fetchall()
            con.unregister("registered")
            con.from_arrow(frame).join(con.table("staff"), "name").fetchall()
            sent.append(list(map(repr, recorded.tap.sent())))
        assert len(sent[0]) > len(QUESTIONS)
        assert sent[0] == sent[1]
        needles = (SECRETS[0].encode(), str(SECRETS[1]).encode(), SECRETS[1].to_bytes(8, "little"))
        assert recorded.holds(*needles) == []
