"""One query under three ceilings: the printed page is what Louver says today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from louver.trusted.apps.demo import ceilings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def explanations() -> dict[str, str]:
    return ceilings.explained()


def test_a_higher_ceiling_asks_for_less_and_shows_more(explanations: dict[str, str]) -> None:
    lines = explanations["access"].partition("home")[0].splitlines()
    # It is asked which rows are in no tile, and for rows by their numbers, but for no value.
    by_number = ("WHERE row_id IN", "WHERE octet_length(louver_c0) > 0")
    assert all(any(part in line for part in by_number) for line in lines if "WHERE" in line)
    assert "[equality]" not in explanations["access"]
    assert "dept_eq =" in explanations["equality"]
    assert "born_ord" not in explanations["equality"]
    assert "born_ord" in explanations["order"]
    said = "the server can order the rows of staff by born, and tell roughly how close they are"
    assert said in explanations["order"]


def test_the_reference_shows_it_word_for_word(explanations: dict[str, str]) -> None:
    text = (ROOT / "docs/reference/ceilings.md").read_text(encoding="utf-8")
    assert ceilings.QUERY in text
    for level, output in explanations.items():
        assert f"-- MAY REVEAL {level}\n{output}" in text


def test_explain_expects_groups_of_a_query_that_the_server_runs_whole(open_connection: Any) -> None:
    connection = open_connection()
    connection.execute(
        "CREATE TABLE t (a VARCHAR ENC MAY REVEAL equality, b INTEGER ENC WITH (sum = 'masked'))"
    )
    connection.execute("INSERT INTO t SELECT 'v' || (i % 3), i FROM range(900) r(i)")
    grouped = "SELECT a, count(*) FROM t GROUP BY a"
    assert "of about 3 rows" in connection.sql(grouped).explain()
    assert "of about 1 row," in connection.sql("SELECT sum(b) FROM t").explain()
    explanation = json.loads(connection.sql(grouped).explain(format="json"))
    assert explanation["servers"][0]["expected_rows"] == 3
