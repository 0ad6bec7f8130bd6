"""A scheme in one file of the tests: what it takes to add one, and that nothing else changes."""

from __future__ import annotations

import random
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import louver
from louver import errors
from louver.trusted.vault import scheme, schemes
from louver.wire.messages import Statement
from tests.inside import context_of
from tests.sources import ROOT
from tests.toy import reading, summing
from tests.toy import scheme as toy
from tests.twin import Twin

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
    names = {"toy", "toysum", "toyread"}
    for path in (ROOT / "src").rglob("*.py"):
        assert not names & set(re.findall(r"\w+", path.read_text(encoding="utf-8"))), path


PAY = "CREATE TABLE pay (dept TEXT{text}, n INT, v INT{number}, w SMALLINT{number} NOT NULL)"
SUMS = (
    "SELECT sum(v), avg(v), count(v), sum(w), avg(w), count(w), count(*) FROM pay",
    "SELECT dept, sum(v), avg(v), count(v), avg(w) FROM pay GROUP BY dept ORDER BY dept",
    "SELECT sum(v), count(v), avg(w) FROM pay WHERE n > 40",
    "SELECT sum(v), avg(v), count(v), sum(w) FROM pay WHERE n > 1000",
    "SELECT p.dept, sum(p.v), avg(q.w) FROM pay p JOIN pay q ON p.n = q.n + 1 GROUP BY p.dept"
    " ORDER BY p.dept",
    "SELECT dept, sum(v) + 1 FROM pay GROUP BY dept HAVING avg(v) > 0 ORDER BY dept",
)


@pytest.fixture
def added(tmp_path: Path, key_file: Path) -> Iterator[dict[str, Any]]:
    """A database whose numbers are under the toy summing scheme, and its plaintext twin."""
    schemes.register(summing)
    numbers = random.Random(7)
    rows = [
        (
            numbers.choice(("a", "b", "c")),
            n,
            None if n % 7 == 0 else numbers.randint(-(10**9), 10**9),
            numbers.randint(-300, 300),
        )
        for n in range(80)
    ]
    plain, con = (
        duckdb.connect(),
        louver.connect(f"duckdb:///{tmp_path}/sums.duckdb", keys=key_file),
    )
    con.execute("SET default_counted = on")
    plain.execute(PAY.format(text="", number=""))
    con.execute(PAY.format(text="", number=" ENC USING toysum"))
    for connection in (plain, con):
        connection.executemany("INSERT INTO pay VALUES (?, ?, ?, ?)", rows)
    yield {"con": con, "plain": plain}
    con.close()
    plain.close()
    schemes.unregister(summing)


@pytest.mark.parametrize("sql", SUMS)
def test_a_second_summing_scheme_is_one_file(added: dict[str, Any], sql: str) -> None:
    answer = added["con"].sql(sql)
    (remote,) = answer.remote_sql()
    assert "sum(t0.y_" in remote
    assert "e_" not in re.findall(r"\bt\d\.([a-z]_)", remote)
    assert answer.fetchall() == added["plain"].execute(sql).fetchall()


def test_sums_show_the_rows_that_they_are_of(added: dict[str, Any]) -> None:
    con = added["con"]
    con.execute("SELECT sum(v) FROM pay WHERE n > 40")
    leakage = con.execute("SHOW LEAKAGE FOR pay").fetchall()
    shown = [row[2] for row in leakage if row[1] == "v" and "which rows of pay" in row[3]]
    assert shown == ["access"]


def test_a_sum_that_is_not_of_the_column_stops_its_sums(added: dict[str, Any]) -> None:
    con, sql = added["con"], "SELECT sum(v) FROM pay"
    (table,) = context_of(con).catalog.tables.values()
    stored = table.column("v").stored["toysum"]
    context_of(con).engine.query(
        Statement(f"UPDATE {context_of(con).backend.table(table)} SET {stored} = 0")
    )
    with pytest.raises(errors.Error) as refused:
        con.execute(sql)
    assert refused.value.code == "result.sum"
    assert "sum(t0.y_" not in con.sql(sql).remote_sql()[0]
    assert con.sql(sql).fetchall() == added["plain"].execute(sql).fetchall()


NOTES = "CREATE TABLE notes (id INT PRIMARY KEY, a TEXT{0}, n BIGINT{0}, d DOUBLE{0})".format(
    " ENC USING toyread MAY REVEAL size"
)
CHANGES = (
    "INSERT INTO notes VALUES (1000, NULL, NULL, 1.5), (1001, 'ünï', -5, NULL)",
    "UPDATE notes SET a = a || '!', n = n + 1 WHERE id > 40",
    "DELETE FROM notes WHERE id % 5 = 0",
    "ALTER TABLE notes ALTER COLUMN n TYPE INTEGER",
    "ALTER TABLE notes ADD COLUMN m BIGINT",
    "INSERT INTO notes VALUES (2000, 'new', 7, 0.5, 3)",
)
QUESTIONS = (
    "SELECT * FROM notes ORDER BY id",
    "SELECT a, count(*), sum(n), max(d) FROM notes GROUP BY a ORDER BY a",
    "SELECT p.id, q.n FROM notes p JOIN notes q ON p.n = q.n + 1 ORDER BY ALL",
    "SELECT DISTINCT a FROM notes WHERE n IS NULL OR n < 3 ORDER BY a",
    "SELECT id, a FROM notes WHERE id > 30 ORDER BY id LIMIT 7",
)


@pytest.fixture
def copies(open_twin: Callable[..., Twin]) -> Iterator[Twin]:
    """Columns whose copy for reading is the toy's, beside plaintext DuckDB."""
    schemes.register(reading)
    twin, numbers = open_twin(), random.Random(11)
    words = ("NULL", "'ann'", "'bob'")
    rows = [f"({n}, {numbers.choice(words)}, {numbers.randint(-9, 9)}, {n / 4})" for n in range(80)]
    twin.fill(NOTES, f"INSERT INTO notes VALUES {', '.join(rows)}")
    yield twin
    schemes.unregister(reading)


def test_a_second_copy_for_reading_is_one_file(copies: Twin) -> None:
    """It is what is read, checked and changed; the sealed copy is there for other columns only."""
    for name in ("a", "n"):
        assert set(copies.column("notes", name).stored) == {"toyread"}
    # It takes no floating point numbers, which are sealed.
    assert "rnd" in copies.column("notes", "d").stored
    for sql in QUESTIONS:
        copies.run(sql)
    copies.fill(*CHANGES)
    copies.reopen()
    for sql in QUESTIONS:
        copies.run(sql)
    (remote,) = copies.louver.sql("SELECT a, n FROM notes").remote_sql()
    assert set(re.findall(r"\bt0\.([a-z]_)", remote)) == {"y_"}
    leakage = copies.rows("SHOW LEAKAGE FOR notes")
    shown = {row[3] for row in leakage if row[1] == "a"}
    assert any("how many padded values a of notes has" in text for text in shown)
    assert any("how many bytes each value of a in notes takes" in text for text in shown)


def test_its_values_are_bound_to_their_rows(copies: Twin) -> None:
    table = copies.table("notes")
    stored = copies.column("notes", "n").stored["toyread"]
    name = copies.session.context.backend.table(table)
    copies.session.context.engine.query(
        Statement(f"UPDATE {name} SET {stored} = (SELECT min({stored}) FROM {name})")
    )
    with pytest.raises(errors.VerificationError) as refused:
        copies.louver.execute("SELECT n FROM notes").fetchall()
    assert refused.value.code == "value.tampered"
    assert re.search(r"row \d", str(refused.value))
