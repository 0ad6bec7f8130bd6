"""con.load into a table that is not there: columns and types of the data, ENC as it is asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import louver
from tests.client.harness import connection
from tests.inside import context_of

ROWS = pa.table(
    {
        "Name": ["Ada", "Grace", None],
        "salary": pa.array([9000, 8500, 1], pa.int64()),
        "born": pa.array([1, 2, 3], pa.date32()),
        "tags": pa.array([["a"], [], None], pa.list_(pa.string())),
        "rate": pa.array([1.5, None, 2.5]),
    }
)


@pytest.fixture
def con() -> Iterator[louver.Connection]:
    with connection() as connected:
        yield connected


FORMS: dict[str, Any] = {
    "arrow": lambda folder: ROWS,
    "batches": lambda folder: ROWS.to_reader(1),
    "pandas": lambda folder: ROWS.to_pandas(),
    "polars": lambda folder: pl.from_arrow(ROWS),
    "parquet": lambda folder: _written(folder, "x.parquet"),
    "csv": lambda folder: _written(folder, "x.csv"),
    "json": lambda folder: _written(folder, "x.json"),
}


def _written(folder: Path, name: str) -> Path:
    plain = duckdb.connect()
    plain.register("given", ROWS)
    plain.execute(f"COPY given TO '{folder / name}'")
    return folder / name


@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_created_as_duckdb_reads_the_data(
    con: louver.Connection, tmp_path: Path, form: str
) -> None:
    data = FORMS[form](tmp_path)
    assert con.load("new", data, encrypt=True) == 3
    plain = duckdb.connect()
    frame = data if not isinstance(data, pa.RecordBatchReader) else ROWS  # noqa: F841
    source = f"'{data}'" if isinstance(data, Path) else "frame"
    theirs = plain.sql(f"FROM {source}")
    mine = con.table("new")
    assert mine.columns == theirs.columns
    assert mine.types == [str(type_) for type_ in theirs.types]
    assert sorted(map(repr, mine.fetchall())) == sorted(map(repr, theirs.fetchall()))
    assert con.load("new", ROWS if form != "csv" else data) == 3
    assert len(con.table("new")) == 6


def test_columns_are_encrypted_as_asked(con: louver.Connection) -> None:
    def schemes(table: str) -> dict[str, bool]:
        entry = context_of(con).catalog.named("", table)
        assert entry is not None
        return {column.name: column.encrypted for column in entry.columns}

    con.load("all_", ROWS, encrypt=True)
    assert all(schemes("all_").values())
    con.load("some", ROWS, encrypt=["name", "salary"])
    assert schemes("some") == {
        "Name": True, "salary": True, "born": False, "tags": False, "rate": False,
    }  # fmt: skip
    con.load(
        "main.by_name", ROWS, encrypt={"NAME": "MAY REVEAL equality", "salary": "", "born": None}
    )
    table = context_of(con).catalog.named("", "by_name")
    assert table is not None
    assert [(c.name, c.ceiling) for c in table.columns if c.encrypted] == [
        ("Name", "equality"), ("salary", "access"),
    ]  # fmt: skip


def test_a_policy_decides_what_is_not_said(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[people]\nname = "enc"\nsalary = "sealed"\n')
    with connection(policy=policy) as con:
        con.load("people", ROWS)
        table = context_of(con).catalog.named("", "people")
        assert table is not None
        assert [c.name for c in table.columns if c.encrypted] == ["Name", "salary"]


def protections(con: louver.Connection, table: str) -> dict[str, str]:
    """Scheme and ceiling of the columns that are encrypted."""
    entry = context_of(con).catalog.named("", table)
    return {c.name: f"{c.scheme} {c.ceiling}" for c in entry.columns if c.encrypted}


def test_a_policy_of_one_load(con: louver.Connection, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[people]\nNAME = { may_reveal = "equality" }\nborn = "plain"\n')
    wanted = {"salary": "sealed access", "tags": "sealed access", "rate": "sealed access"}
    assert con.load("people", ROWS, policy=policy) == 3
    assert protections(con, "people") == {"Name": "sealed equality", **wanted}
    with pytest.raises(louver.ProgrammingError, match="exists already"):
        con.load("people", ROWS, policy=policy)
    con.load("main.other", ROWS, policy=str(policy))
    assert protections(con, "other") == dict.fromkeys(ROWS.column_names, "sealed access")
    con.execute("DROP TABLE people")
    con.load("people", ROWS, policy=policy, encrypt={"born": "MAY REVEAL size"})
    assert protections(con, "people")["born"] == "sealed size", "what the call says goes first"
    con.execute("CREATE TABLE later (name VARCHAR)")
    assert protections(con, "later") == {}, "the policy was that of the load"


def test_a_policy_of_one_load_that_cannot_be_used(con: louver.Connection, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[people]\nsalery = "enc"\n')
    with pytest.raises(louver.Error, match="salery"):
        con.load("people", ROWS, policy=policy)
    with pytest.raises(louver.Error, match=r"missing\.toml"):
        con.load("people", ROWS, policy=tmp_path / "missing.toml")
    with pytest.raises(louver.Error, match="computed from"):
        con.load("people", con.sql("SELECT 1 AS a"), policy=policy)
    assert con.sql("SHOW TABLES").fetchall() == []


def test_the_profile_is_that_of_the_connection(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    with connection(profile="cryptdb") as con:
        policy.write_text("[people]\n")
        con.load("people", ROWS.select(["salary"]), policy=policy)
        policy.write_text('profile = "sealed"\n')
        con.load("other", ROWS.select(["salary"]), policy=policy)
        assert protections(con, "people") == {"salary": "onion order"}
        assert protections(con, "other") == {"salary": "sealed access"}


def test_a_table_without_encryption_is_reported_once(con: louver.Connection) -> None:
    with pytest.warns(louver.LeakageWarning, match="plain text"):
        con.load("open_", ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        con.load("open_2", ROWS)


def test_both_or_neither(con: louver.Connection, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n" + "1,x\n" * 30_000 + "word,x\n")
    with pytest.raises(louver.Error):
        con.load("new", tmp_path / "bad.csv", encrypt=True)
    assert con.sql("SHOW TABLES").fetchall() == []
    con.begin()
    con.load("new", ROWS, encrypt=True)
    con.rollback()
    assert con.sql("SHOW TABLES").fetchall() == []


@pytest.mark.parametrize(
    ("encrypt", "match"),
    [
        (["wage"], "wage not in the data"),
        ({"wage": ""}, "wage not in the data"),
        ("name", "columns are given as a list"),
        ({"Name": "; DROP TABLE x"}, "not one of ENC"),
        ({"Name": "USING nonsense"}, "nonsense"),
    ],
)
def test_errors_are_stated_and_leave_nothing(
    con: louver.Connection, encrypt: Any, match: str
) -> None:
    with pytest.raises(louver.Error, match=match) as caught:
        con.load("new", ROWS, encrypt=encrypt)
    assert len(str(caught.value)) < 1000
    assert con.sql("SHOW TABLES").fetchall() == []
    con.execute("CREATE TABLE there (a INTEGER ENC)")
    with pytest.raises(louver.ProgrammingError, match="exists already"):
        con.load("there", pd.DataFrame({"a": [1]}), encrypt=True)
    with pytest.raises(louver.Error, match="does not exist"):
        con.load("new", "missing.parquet")


def test_relations_are_stored_under_the_flow_rule(con: louver.Connection) -> None:
    con.load("secret", ROWS, encrypt=True)
    con.execute("CREATE TABLE open_ (n VARCHAR)")
    names = con.table("secret").project("name")
    with pytest.raises(louver.LeakageRefused):
        con.load("open_", names)
    assert con.load("copied", names) == 3
    assert con.load("copied", names) == 3
    table = context_of(con).catalog.named("", "copied")
    assert table is not None
    assert table.columns[0].encrypted


def test_the_ledger_is_a_relation(con: louver.Connection, capsys: Any) -> None:
    con.load("secret", ROWS, encrypt=True)
    con.sql("SELECT count(*) FROM secret WHERE salary > 3").fetchall()
    ledger = con.leakage()
    assert {"sequence", "when", "level", "reveals", "kind"} <= set(ledger.columns)
    rows = ledger.arrow().to_pylist()
    assert len(rows) == len(ledger) > 0
    by_level = ledger.aggregate("level, count(*) AS n").order("level")
    assert sum(n for _, n in by_level.fetchall()) == len(rows)
    ledger.filter("table_name = 'secret'").project("level").show()
    assert "level" in capsys.readouterr().out
    assert len(con.leakage()) == len(rows), "looking reveals nothing"
