"""The ledger knows columns and not names, counts what divides rows anew, and says it in one way."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import louver
from louver.trusted.executor.ledger import Fact
from louver.trusted.vault import scheme
from louver.trusted.vault.facts import decoded
from tests.inside import context_of

TRUSTED = Path(louver.__file__).parent / "trusted"
FILTER = "SELECT count(*) FROM staff WHERE name = 'Ann'"

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


def revealed(con: Any, sql: str) -> tuple[list[str], list[str]]:
    """What EXPLAIN calls new, and what it calls known."""
    explanation = con.sql(sql).explain(leakage=True).splitlines()
    lines = [line.strip() for line in explanation]
    return (
        [line[2:] for line in lines if line.startswith("+ ")],
        [line[2:] for line in lines if line.startswith("= ")],
    )


@pytest.fixture
def con(open_connection: Any) -> Any:
    connection = open_connection("cryptdb")
    connection.execute("SET link_bandwidth = '10B/s'")
    connection.execute("CREATE TABLE staff (id INT, name TEXT ENC USING onion, pay INT ENC)")
    connection.execute("INSERT INTO staff SELECT range, 'name' || range % 7, range FROM range(50)")
    return connection


def test_a_table_made_again_starts_with_nothing_shown(con: Any) -> None:
    same = "the server can tell which rows of staff have the same name"
    con.execute(FILTER)
    assert any(same in text for text in revealed(con, FILTER)[1])
    assert context_of(con).ledger.level("staff", "name") == "equality"
    con.execute("DROP TABLE staff")
    con.execute("CREATE TABLE staff (id INT, name TEXT ENC USING onion, pay INT ENC)")
    con.execute("INSERT INTO staff VALUES (1, 'Ann', 2), (2, 'Bob', 3)")
    new, known = revealed(con, FILTER)
    assert any(same in text for text in new)
    assert not any(same in text for text in known)
    assert context_of(con).ledger.level("staff", "name") == "size"
    before = len(con.leakage())
    facts = [row[3] for row in con.execute("SHOW LEAKAGE FOR staff").fetchall()]
    assert f"{same} (of a table that was dropped)" in facts
    assert same not in facts
    con.execute(FILTER)
    assert len(con.leakage()) > before
    assert same in [row[3] for row in con.execute("SHOW LEAKAGE FOR staff").fetchall()]


def test_a_renamed_table_keeps_what_it_has_shown(con: Any) -> None:
    con.execute(FILTER)
    length = context_of(con).ledger.length
    con.execute("ALTER TABLE staff RENAME TO people")
    con.execute("ALTER TABLE people RENAME COLUMN name TO called")
    # Nothing was shown by that, so nothing is written.
    assert context_of(con).ledger.length == length
    assert context_of(con).ledger.level("people", "called") == "equality"
    facts_of_people = [row[3] for row in con.execute("SHOW LEAKAGE FOR people").fetchall()]
    assert any(text.startswith("the server can tell which rows of people have the same called")
               for text in facts_of_people)  # fmt: skip
    facts = con.leakage().arrow().to_pylist()
    assert all(fact["table_name"] == "people" for fact in facts)
    assert not any("staff" in fact["reveals"] for fact in facts)
    new, known = revealed(con, "SELECT count(*) FROM people WHERE called = 'Ann'")
    assert not any("the same called" in text for text in new)
    assert any("the same called" in text for text in known)


def test_what_an_older_release_recorded_goes_along_with_a_name(con: Any) -> None:
    text = "the server can order the rows of staff by pay"
    context_of(con).ledger.record([Fact("staff", ("pay",), "order", "ord.open", text)], "SELECT")
    con.execute("ALTER TABLE staff RENAME TO people")
    con.execute("ALTER TABLE people RENAME COLUMN pay TO wage")
    assert context_of(con).ledger.level("people", "wage") == "order"
    facts = [row[3] for row in con.execute("SHOW LEAKAGE FOR people").fetchall()]
    assert f"{text} (staff is called people now) (pay is called wage now)" in facts


def test_rows_that_are_stored_anew_have_shown_what_they_have_shown(con: Any) -> None:
    con.execute(FILTER)
    for number in (1, 2, 3):
        con.execute(f"SELECT name FROM staff WHERE id = {number}")
    number = context_of(con).catalog.table("main", "staff").id
    facts = {row[3] for row in con.execute("SHOW LEAKAGE FOR staff").fetchall()}
    assert any("a query read (name), " in text and "conditions" in text for text in facts)
    con.execute("ALTER TABLE staff ALTER id TYPE BIGINT")
    assert context_of(con).catalog.table("main", "staff").id != number
    assert context_of(con).ledger.level("staff", "name") == "equality"
    assert facts <= {row[3] for row in con.execute("SHOW LEAKAGE FOR staff").fetchall()}


def test_another_condition_is_not_nothing_new(con: Any) -> None:
    def conditions(kind: str) -> int:
        return sum(
            f["conditions"] or 0 for f in con.leakage().arrow().to_pylist() if f["kind"] == kind
        )

    for number, pattern in enumerate(("%ame1%", "%ame2%", "%ame1%", "%ame3%"), 1):
        sql = f"SELECT id FROM staff WHERE name LIKE '{pattern}'"
        new, known = revealed(con, sql)
        if number == 3:
            assert not new
            assert any("2 conditions so far" in text for text in known)
        else:
            assert any("a word or piece in name" in text for text in new)
        con.execute(sql)
    assert conditions("text.match") == 3
    # A set of rows that was not read before, chosen by what is public.
    reads = conditions("rows")
    for number in (3, 4, 3):
        con.execute(f"SELECT pay FROM staff WHERE id = {number}")
    assert conditions("rows") == reads + 2
    # The same condition over other rows divides them anew, where the client knows of them.
    con.execute("INSERT INTO staff VALUES (99, 'name1', 1)")
    assert not revealed(con, "SELECT pay FROM staff WHERE id = 3")[0]
    con.execute("SET default_counted = on; CREATE TABLE counted (a INT ENC, b INT)")
    con.execute("INSERT INTO counted VALUES (1, 1); SELECT a FROM counted WHERE b = 3")
    assert not revealed(con, "SELECT a FROM counted WHERE b = 3")[0]
    con.execute("INSERT INTO counted VALUES (1, 2)")
    assert revealed(con, "SELECT a FROM counted WHERE b = 3")[0]


def test_every_sentence_of_leakage_stands_in_a_schemes_row() -> None:
    marks = ("the server can ", "the server knows", "shows the server")
    for path in TRUSTED.rglob("*.py"):
        if path.parent.name == "schemes" or path.name in ("scheme.py", "scheme_row.py"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = (ast.Module, ast.ClassDef, ast.FunctionDef)
        said = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, nodes) and node.body and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                marked = id(node) not in said and any(mark in node.value for mark in marks)
                assert not marked, f"{path}:{node.lineno}"


def test_a_sentence_has_one_name_and_is_what_people_read(con: Any) -> None:
    for row in scheme.rows():
        for leak in row.leaks():
            assert scheme.leak(leak.name) == leak
            assert leak.text.startswith(("the server ", "a change ", "values "))
    assert "roughly how close" in scheme.leak("ord.open").text
    con.execute("SELECT count(*) FROM staff WHERE pay > 7")
    reasons = [
        fact["reveals"] for fact in con.leakage().arrow().to_pylist() if fact["kind"] == "ord.open"
    ]
    said = scheme.leak("ord.open").text
    assert reasons == [said.format(table="staff", column="pay", nulls="")]


def test_kinds_of_earlier_releases_are_read_by_their_names_of_today() -> None:
    old = ["staff", ["name"], "size", "sealed.lengths", "the server knows the length"]
    assert decoded(old).kind == "rnd.lengths"
    assert decoded([*old, [[1, 2, 0]], "the server knows", False, ""]).kind == "rnd.lengths"
    assert decoded([*old[:3], "eq.open", "the server can tell"]).kind == "eq.open"
