"""A scheme in one file of the tests: what it takes to add one, and that nothing else changes."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import louver
from louver import errors
from louver.trusted.vault import scheme, schemes
from tests.sources import ROOT
from tests.toy import scheme as toy

TABLE = "CREATE TABLE staff (id INT, name TEXT ENC USING toy MAY REVEAL equality, pay BIGINT ENC)"
ROWS = "INSERT INTO staff VALUES (1, 'ann', 10), (2, 'bob', 20), (3, 'ann', 30), (4, NULL, 40)"


@pytest.fixture
def registered() -> Iterator[None]:
    schemes.register(toy)
    yield
    schemes.unregister(toy)


@pytest.fixture
def parameters(registered: None, tmp_path: Path, key_file: Path) -> dict[str, Any]:
    return {"url": f"duckdb:///{tmp_path}/toy.duckdb", "keys": key_file}


def test_a_toy_scheme_stores_answers_and_leaks_what_its_row_says(
    parameters: dict[str, Any],
) -> None:
    con = louver.connect(**parameters)
    con.execute(TABLE)
    con.execute(ROWS)
    relation = con.sql("SELECT id, pay FROM staff WHERE name = 'ann' ORDER BY id")
    (remote,) = relation.remote_sql()
    assert "WHERE t0.y_" in remote
    assert " = $1::BIGINT" in remote
    explanation = relation.explain(leakage=True)
    assert "which tags of name in staff were asked for [equality]" in explanation
    assert relation.fetchall() == [(1, 10), (3, 30)]
    assert con.sql("SELECT id FROM staff WHERE name IN ('bob', 'eve')").fetchall() == [(2,)]
    assert con.sql("SELECT id FROM staff WHERE name <> 'ann'").fetchall() == [(2,)]
    assert con.sql("SELECT id FROM staff WHERE name IS NULL").fetchall() == [(4,)]
    con.close()
    con = louver.connect(**parameters)
    con.execute("INSERT INTO staff VALUES (5, 'ann', 50)")
    con.execute("UPDATE staff SET name = 'bob' WHERE name = 'ann' AND id < 4")
    counted = con.execute("SELECT name, count(*) FROM staff GROUP BY name ORDER BY name")
    assert counted.fetchall() == [("ann", 1), ("bob", 3), (None, 1)]
    leakage = con.execute("SHOW LEAKAGE FOR staff").fetchall()
    for leak in toy.SCHEME.leaks():
        sentence = leak.text.format(table="staff", column="name")
        said = [row for row in leakage if row[3].startswith(sentence)]
        assert [row[1:3] for row in said] == [("name", leak.level)]
    con.close()


def test_values_that_share_a_tag_are_told_apart_locally(
    parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy, "_tag", lambda *_: 7)
    con = louver.connect(**parameters)
    con.execute(TABLE)
    con.execute(ROWS)
    assert con.execute("SELECT id FROM staff WHERE name = 'bob'").fetchall() == [(2,)]
    con.close()


def test_its_ceiling_is_obeyed(parameters: dict[str, Any], tmp_path: Path) -> None:
    con = louver.connect(**parameters)
    with pytest.raises(errors.LeakageRefused) as refused:
        con.execute("CREATE TABLE t (a TEXT ENC USING toy MAY REVEAL access)")
    assert refused.value.code == "enc.ceiling"
    con.execute(TABLE)
    con.execute(ROWS)
    con.execute("ALTER TABLE staff ALTER COLUMN name MAY REVEAL access")
    relation = con.sql("SELECT id FROM staff WHERE name = 'ann' ORDER BY id")
    assert "WHERE" not in relation.remote_sql()[0]
    assert relation.fetchall() == [(1,), (3,)]
    con.close()


def test_policies_and_types_know_it(parameters: dict[str, Any], tmp_path: Path) -> None:
    rules = tmp_path / "policy.toml"
    rules.write_text('[t]\na = { scheme = "toy", may_reveal = "equality" }\nb = "toy"\n')
    con = louver.connect(**parameters, policy=rules)
    con.execute("CREATE TABLE t (a INT, b DOUBLE)")
    con.execute("INSERT INTO t VALUES (1, 1.5), (2, 2.5)")
    (remote,) = con.sql("SELECT a FROM t WHERE a = 2").remote_sql()
    assert ".y_" in remote
    # It takes no floating point numbers, which are sealed.
    assert ".y_" not in con.sql("SELECT a FROM t WHERE b = 2.5").remote_sql()[0]
    con.execute("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    assert ".y_" in con.sql("SELECT b FROM t WHERE a = 2").remote_sql()[0]
    con.close()


def test_the_page_of_schemes_has_it(registered: None) -> None:
    page = runpy.run_path(str(ROOT / "docs/generate.py"))["schemes_page"]()
    assert "## toy\n" in page
    assert "| toy | A = u, A IN (…) | `equality` |" in page


def test_without_it_nothing_is_left() -> None:
    schemes.register(toy)
    schemes.unregister(toy)
    assert "toy" not in scheme.using_words()
    with pytest.raises(KeyError):
        scheme.leak("toy.rest")


def test_no_file_of_the_product_names_it() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert "toy" not in path.read_text(encoding="utf-8").split(), path
