"""`louver demo` on a small part of its data shows every step."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.trusted.apps.demo import flights
from tests.client.harness import answers, run

ROWS = "2000"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run("demo", "--rows", ROWS, folder=tmp_path_factory.mktemp("demo"), process=True).stdout


def test_it_shows_every_step(output: str) -> None:
    for query in flights.QUERIES:
        for line in query.sql.splitlines():
            assert line.strip() in output
    for wanted in ("you write", "the server got", "and learns", "the answer", "time",
                   "sdb_compare_", "sdb_sum(", "WHERE", "bytes", "What the server stores",
                   "The ledger", "plaintext", "Where to go next", "docs/start.md",
                   "louver demo postgres"):  # fmt: skip
        assert wanted in output, wanted
    for step in ("parse", "analyse", "rewrite", "server", "open", "finish"):
        assert f"{step} " in output
    assert output.count("equal to plaintext DuckDB's answer") == len(flights.QUERIES)


def test_ceilings_and_onions_come_before_secret_sharing(output: str) -> None:
    parts = ("opens the equality layer", "opens the order layer", "local_processing is off",
             "USING sdb", "sdb_compare_")  # fmt: skip
    positions = [output.index(part) for part in parts]
    assert positions == sorted(positions)


def test_what_is_severe_has_a_sign_without_colour(output: str) -> None:
    """A fact of order or plaintext begins with !, where it is learned and in the ledger."""
    assert "\x1b" not in output
    learned = [line for line in output.splitlines() if line.startswith("  ! ")]
    ledger = [line for line in output.splitlines() if line.startswith("! ")]
    assert any("order the rows of flights by dep_delay" in line for line in learned)
    assert {line.split()[1] for line in ledger} == {"order", "plaintext"}
    assert not [line for line in output.splitlines() if line.startswith(("  plaintext", "  order"))]


def test_it_fits_the_terminal(output: str) -> None:
    assert max(len(line) for line in output.splitlines()) <= 101


def test_what_the_server_holds_is_no_plaintext(output: str) -> None:
    start = output.index("What the server stores")
    held = output[start : output.index("── 1.")]
    assert "e_" in held
    assert "dep_delay" not in held
    assert "tailnum" not in held


def test_it_may_be_kept_and_told_in_json(tmp_path: Path) -> None:
    done = run("demo", "--rows", "1200", "--keep", "kept", "--json", folder=tmp_path)
    (answer,) = answers(done)
    assert all(query["equal_to_plaintext"] for query in answer["queries"])
    assert {fact["level"] for fact in answer["facts"]} >= {"size", "access", "plaintext"}
    assert answer["queries"][0]["times_ms"]["server"] > 0
    common = ["-u", "duckdb:///kept/cloud.duckdb", "-k", "kept/demo.louverkey"]
    attack = ("--json", "attack", "--seconds", "600")
    (attacked,) = answers(run(*common, *attack, folder=tmp_path))
    (table,) = attacked["tables"]
    columns = {column["column"]: column for column in table["columns"]}
    assert set(columns) == {"dep_delay", "arr_delay", "distance"}
    for column in columns.values():
        assert column["recovered"] > table["rows"] * 0.8
        assert column["wrong"] == 0
    run("demo", "--keep", "kept", folder=tmp_path, code=1)


def test_the_data_is_all_there() -> None:
    data = flights.data(0)
    assert data["flights"].num_rows == 336_776
    assert data["winter"].num_rows == 27_004
