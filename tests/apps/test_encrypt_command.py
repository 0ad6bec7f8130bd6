"""`louver encrypt`: single tables, estimates, and what stands in the way."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.client.harness import answers, run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a plain database."""
    with duckdb.connect(str(tmp_path / "plain.duckdb")) as plain:
        plain.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        plain.execute("CREATE TABLE a (k INT PRIMARY KEY, m mood)")
        plain.execute("INSERT INTO a SELECT range, 'ok' FROM range(30000)")
        plain.execute("CREATE INDEX a_k ON a (k)")
        plain.execute("CREATE TABLE b (s TEXT); INSERT INTO b VALUES ('x')")
        plain.execute("CREATE VIEW v AS SELECT s FROM b")
    return tmp_path


def test_a_dry_run_estimates_and_stores_nothing(home: Path) -> None:
    done = run("encrypt", "plain.duckdb", "--dry-run", "--json", folder=home)
    estimates = {item["table"]: item for item in answers(done)[0]["estimates"]}
    assert {name: item["rows"] for name, item in estimates.items()} == {"a": 30000, "b": 1}
    assert estimates["a"]["bytes"] > 30000 * 20 > estimates["b"]["bytes"]
    assert estimates["a"]["seconds"] > 0
    assert not (home / "cloud.duckdb").exists()
    text = run("encrypt", "plain.duckdb", "--dry-run", "--csv", folder=home).stdout
    assert text.startswith("table,rows,bytes sent,seconds\n")


def test_single_tables(home: Path) -> None:
    assert "a " in run("encrypt", "plain.duckdb", "--table", "A", folder=home).stdout
    state = answers(run("status", "--json", folder=home))[0]
    assert [(table["name"], table["rows"]) for table in state["tables"]] == [("a", 30000)]
    wrong = run("encrypt", "plain.duckdb", "--table", "c", folder=home, code=1).stderr
    assert "Table c does not exist" in wrong
    taken = run("encrypt", "plain.duckdb", "--table", "b", folder=home, code=1).stderr
    assert "The type mood already exists" in taken
    assert "table" not in taken.splitlines()[0]


def test_every_column_with_a_collation_is_named(home: Path) -> None:
    with duckdb.connect(str(home / "plain.duckdb")) as plain:
        plain.execute("CREATE TABLE c (x TEXT COLLATE NOCASE, y INT, z TEXT COLLATE NFC)")
    message = run("encrypt", "plain.duckdb", folder=home, code=1).stderr
    assert "c.x, c.z" in message
    run("encrypt", "plain.duckdb", "--table", "a", "--table", "b", folder=home)
    assert "1" in run("--csv", "SELECT count(*) FROM b", folder=home).stdout
