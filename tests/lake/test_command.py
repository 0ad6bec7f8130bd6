"""`louver lake`, `inspect`, `status` and `demo lake`, as a user types them."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from louver.trusted.apps import cli
from tests.lake.tables import known_key

ORDERS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("d", pa.date32())])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in a folder with a key and gives its exit code and its JSON."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUVER_URL", "lake:///warehouse")
    monkeypatch.setenv("LOUVER_KEYS", "k.louverkey")

    def command(*words: str) -> tuple[int, dict[str, Any]]:
        code = cli.main([*words, "--json"])
        return code, json.loads(capsys.readouterr().out.strip().splitlines()[-1])

    assert command("key", "new", "k.louverkey")[0] == 0
    known_key(tmp_path / "k.louverkey")
    return command


@pytest.fixture
def metadata(tmp_path: Path) -> str:
    """A plaintext Iceberg table of five files of a hundred rows."""
    catalog = SqlCatalog("p", uri=f"sqlite:///{tmp_path}/p.db", warehouse=f"{tmp_path}/plain")
    catalog.create_namespace("n")
    table = catalog.create_table("n.orders", schema=ORDERS)
    for day in range(5):
        rows = {
            "id": list(range(day * 100, day * 100 + 100)),
            "name": [f"{number:03} customer" for number in range(100)],
            "d": [datetime.date(2020, 1, 1 + day)] * 100,
        }
        table.append(pa.table(rows, schema=table.schema().as_arrow()))
    return table.metadata_location


def test_a_plaintext_table_is_encrypted_and_looked_after(run: Any, metadata: str) -> None:
    assert run("lake", "encrypt", metadata, "orders") == (0, {"ok": True, "rows": 500})
    assert run("lake", "encrypt", metadata, "orders") == (0, {"ok": True, "rows": 500})
    totals = run("sql", "SELECT count(*) AS n, max(id) AS m FROM orders WHERE d = '2020-01-03'")[1]
    assert totals["rows"] == [[100, 299]]
    tables = run("lake", "files", "FROM orders WHERE id BETWEEN 250 AND 260")[1]["tables"]
    assert [(table["kept"], table["total"]) for table in tables] == [(1, 5)]
    assert run("lake", "compact", "orders", "--rows", "50", "--order-by", "name")[1]["files"] == 10
    count = run("lake", "files", "FROM orders WHERE name = '005 customer'")[1]["tables"][0]["kept"]
    assert 1 <= count <= 2
    assert len(run("lake", "history", "orders")[1]["snapshots"]) == 2
    assert run("lake", "expire", "orders")[1]["expired"] == 1
    assert run("lake", "clean", "orders", "--grace", "0")[1]["deleted"] == []
    assert run("lake", "reindex", "orders")[1]["files"] == 10
    assert run("status")[1]["tables"][0]["rows"] == 500
    (seen,) = run("inspect")[1]["tables"]
    assert (seen["rows"], seen["files"], seen["columns"]) == (500, 10, ["c1", "c2", "c3"])
    assert len(seen["indexes"]) == 3
    assert "customer" not in json.dumps(seen)


def test_bad_input_is_told_of(run: Any, metadata: str) -> None:
    run("lake", "encrypt", metadata, "orders")
    for words, code in (
        (("lake", "history", "nothing"), "table.missing"),
        (("lake", "compact", "orders", "--order-by", "nothing"), "column.missing"),
        (("lake", "expire", "orders", "--keep", "0"), "setting.value"),
        (("lake", "encrypt", "/dev/null", "x"), "lake.source"),
        (("lake", "encrypt", metadata + "x", "x"), "lake.source"),
        (("lake", "history", "orders", "-u", "duckdb:///d.duckdb"), "lake.only"),
        (("inspect", "-u", "lake:///nowhere"), "database.io"),
        (("lake",), "usage"),
    ):
        exit_code, answer = run(*words)
        assert exit_code != 0
        assert answer["code"] == code, words


def test_numbers_of_rows_are_those_of_now(run: Any) -> None:
    definition = (
        "CREATE TABLE s (name TEXT ENC, age INT); INSERT INTO s VALUES ('ada', 3), ('bob', 4)"
    )
    assert run("sql", definition)[0] == 0
    code, answer = run("export", "out.duckdb")
    assert (code, answer["tables"]) == (0, {"s": 2})
    for value in ("SET lake_snapshot = '²'", "SET lake_snapshot = '0001-01-01'",
                  "SET lake_filter = 'split-block ²'", "SET lake_rows_per_file = '²'"):  # fmt: skip
        code, answer = run("sql", value)
        assert code == 1
        assert answer["code"] in ("setting.value", "lake.setting"), (value, answer)


def test_demo_of_a_lake(run: Any) -> None:
    code, answer = run("demo", "lake", "--rows", "20000")
    assert code == 0
    first = answer["queries"][0]
    assert 0 < first["files_kept"] < first["files_total"]
    assert all(query["equal_to_plaintext"] for query in answer["queries"])
    assert "c1" in answer["stranger"]["columns"]
    assert answer["opened"]["day"] > 0.06
