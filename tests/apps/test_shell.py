"""The shell as its users meet it, in a pseudo-terminal; its history; its completion."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from louver.trusted.apps.shell.completion import Names
from louver.trusted.apps.shell.history import masked
from louver.trusted.apps.shell.shell import complete, ends, within_quotes
from louver.trusted.vault.catalog import Catalog
from tests import generated
from tests.apps.terminal_user import User
from tests.client.harness import connection, run
from tests.inside import context_of

TABLES = (
    "CREATE TABLE staff (name TEXT ENC, salary BIGINT ENC USING sdb, age INT);"
    "CREATE TABLE towns (town TEXT, people INT);"
    "INSERT INTO staff VALUES ('Cleo', 4000, 40), ('Bob', 5000, 20);"
    "INSERT INTO towns VALUES ('Bern', 140000)"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database in it."""
    folder = tmp_path_factory.mktemp("shell")
    run(TABLES, folder=folder)
    return folder


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The same tables in memory."""
    con = connection()
    con.execute(TABLES)
    con.execute("CREATE VIEW paid AS SELECT salary AS people FROM staff")
    catalog: Catalog = context_of(con).catalog
    return catalog


def test_statements_over_several_lines_and_commands(home: Path) -> None:
    with User(home) as user:
        user.keys("SELECT name\rFROM staff\r")
        user.keys("WHERE age < 30;\r")
        user.see("│ Bob")
        user.wait()
        user.run("\\dt", "towns")
        user.run("\\d staff", "salary")
        user.run("\\x", "expanded output is on")
        user.run("SELECT 40 + 2 AS answer;", "answer = 42")
        user.run("\\timing", "times are on")
        user.run("SELECT 1;", "milliseconds: ")
        user.run("\\e SELECT sum(salary) FROM staff", "reveals")
        user.run("\\nonsense", "is not a shell command")
        user.run("SELECT nope;", '"nope"')
        user.keys("\\q\r")
        assert user.leave() == 0


def test_a_forgotten_semicolon_does_not_lock_the_user_in(home: Path) -> None:
    with User(home) as user:
        user.keys("SELECT 1\rquit\r")
        user.see("end it with ;")
        user.wait()
        user.keys("help\r")
        user.see("\\r to discard")
        user.wait()
        user.keys("\\r\r")
        user.wait()
        user.run("SELECT 'still ' || 'here';", "still here")
        user.keys("SELECT 2\r\\q\r")
        assert user.leave() == 0
    for word in ("exit", "quit", "quit;", "EXIT", ".quit", "\\q"):
        with User(home) as user:
            user.keys(word + "\r")
            assert user.leave() == 0
    with User(home) as user:
        user.run("help", "describe one")


def test_ctrl_c_cancels_the_statement_and_not_the_shell(home: Path) -> None:
    slow = "SELECT sum(a.i * b.i) FROM range(1000000) a(i), range(1000000) b(i);"
    with User(home) as user:
        user.keys(slow + "\r")
        time.sleep(2)
        user.keys("\x03")
        user.see("interrupted; the statement was rolled back")
        user.wait()
        user.keys("SELECT 1 AS dropped")
        user.keys("\x03")
        user.wait()
        user.run("SELECT 'alive ' || 'still';", "alive still")
        user.keys("\x04")
        assert user.leave() == 0


def test_an_open_transaction_is_not_dropped_in_silence(home: Path) -> None:
    with User(home) as user:
        user.run("BEGIN;", "BEGIN;")
        user.run("INSERT INTO towns VALUES ('Basel', 1);", "1 row")
        user.keys("\\q\r")
        user.see("[c/r/S]")
        user.keys("s\r")
        user.wait()
        user.run("SELECT count(*) AS n FROM towns;", "2")
        user.keys("\x04")
        user.see("[c/r/S]")
        user.keys("r\r")
        assert user.leave() == 0
    assert run("--csv", "SELECT count(*) FROM towns", folder=home).stdout.split()[1] == "1"
    with User(home) as user:
        user.run("BEGIN;", "BEGIN;")
        user.run("INSERT INTO towns VALUES ('Basel', 1);", "1 row")
        user.keys("exit\r")
        user.see("[c/r/S]")
        user.keys("c\r")
        assert user.leave() == 0
    run("DELETE FROM towns WHERE town = 'Basel'", folder=home)


def test_without_a_terminal_an_open_transaction_is_an_error(home: Path) -> None:
    change = "BEGIN; INSERT INTO towns VALUES ('Basel', 1)"
    for words in ((change,), ("-c", change), ("-c", change, "-c", "\\dt")):
        done = run(*words, folder=home, code=1)
        assert "rolled back" in done.stderr
    done = run("sql", folder=home, code=1, process=True, stdin=f"{change};\n\\dt\n")
    assert "rolled back" in done.stderr
    assert "towns" in done.stdout
    assert run("--csv", "SELECT count(*) FROM towns", folder=home).stdout.split()[1] == "1"
    run("-c", "BEGIN", "-c", "INSERT INTO towns VALUES ('Basel', 1)", "-c", "ROLLBACK", folder=home)


def test_commands_in_texts_and_files(home: Path) -> None:
    (home / "more.sql").write_text("SELECT 7 AS seven;\n\\x on\nSELECT 'a\n\\q\n;' AS text")
    done = run("-c", "\\i more.sql", "-c", "SELECT 8 AS eight", folder=home)
    assert "seven" in done.stdout
    assert "text = a\\n\\q\\n;" in done.stdout
    assert "eight = 8" in done.stdout
    done = run("-c", "\\o out.txt", "-c", "SELECT 9 AS nine", "-c", "\\o", "-c", "SELECT 1",
               folder=home)  # fmt: skip
    assert "nine" not in done.stdout
    assert "nine" in (home / "out.txt").read_text()
    assert stat.S_IMODE((home / "out.txt").stat().st_mode) == 0o600
    run("\\copy (SELECT age FROM staff ORDER BY age) TO 'ages.csv'", folder=home)
    assert (home / "ages.csv").read_text() == "age\n20\n40\n"
    run("-c", "CREATE TABLE ages (age INT ENC)", "-c", "\\copy ages FROM 'ages.csv'", folder=home)
    assert "60" in run("-c", "\\set format csv", "-c", "SELECT sum(age) FROM ages",
                       folder=home).stdout  # fmt: skip
    assert "\\set takes" in run("\\set nothing", folder=home, code=2).stderr
    assert "cannot be read" in run("\\i nowhere.sql", folder=home, code=2).stderr
    assert "one statement" in run("\\d staff; DROP TABLE staff", folder=home, code=1).stderr
    run("DROP TABLE ages", folder=home)


def test_a_tall_answer_goes_through_the_pager(home: Path, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\necho paged-out\n")
    pager.chmod(0o700)
    with User(home, lines=20, PAGER=str(pager)) as user:
        user.run("SELECT 'short' AS answer;", "│ short")
        assert not (tmp_path / "paged").exists()
        user.run("SELECT range AS tall FROM range(30);", "paged-out")
        assert "29" in (tmp_path / "paged").read_text()
        user.run("\\set pager off", "louver>")
        user.run("SELECT range AS tall FROM range(30);", "30 rows")


def test_completion_shows_what_a_column_may_reveal(home: Path) -> None:
    with User(home) as user:
        user.keys("SELECT sal\t")
        time.sleep(1)
        user.keys(" FROM staff;\r")
        user.see("4000")
        user.wait()
        user.keys("SELECT age FROM staff WHERE n\t")
        user.see("staff: VARCHAR ENC USING sealed, may reveal access")


def completions(catalog: Catalog, text: str) -> dict[str, str]:
    names = Names(lambda: catalog).get_completions(Document(text), CompleteEvent(False, True))
    return {item.text: item.display_meta_text for item in names}


def test_completions(catalog: Catalog) -> None:
    tables = completions(catalog, "SELECT * FROM ")
    assert tables["staff"] == "2 rows, 2 of 3 columns encrypted"
    columns = completions(catalog, "SELECT sa")
    assert columns["salary"] == "staff: BIGINT ENC USING sdb, may reveal plaintext"
    assert set(completions(catalog, "SELECT * FROM staff s WHERE s.")) == {
        "s.name", "s.salary", "s.age"
    }  # fmt: skip
    assert completions(catalog, "SELECT * FROM towns WHERE p")["people"] == "towns: INTEGER, plain"
    assert "salary" not in completions(catalog, "SELECT * FROM towns WHERE ")
    assert list(completions(catalog, "ALTER TABLE staff ALTER name MAY REVEAL ")) == [
        "size", "access", "equality", "order", "plaintext"
    ]  # fmt: skip
    assert "\\copy" in completions(catalog, "\\c")


SECRETS = ("4711", "'4711'", "47.11", "0x4711", "4_711", "$$4711$$", "DATE '4711-01-01'", "E'4711'",
           '"4711"', "-4711", "4711e1", "'a' '4711'", "[4711]", "'x''4711'")  # fmt: skip
#: Statements that need the literal of a protected column, or might.
ABOUT = (
    "SELECT * FROM staff WHERE salary = {}", "SELECT * FROM staff WHERE age < 30 AND salary > {}",
    "INSERT INTO staff VALUES ('x', {}, 3)", "UPDATE staff SET salary = {} WHERE age = 3",
    "SELECT * FROM paid WHERE people = {}",
    "SELECT age FROM (SELECT salary AS age FROM staff) WHERE age = {}",
    "SELECT * FROM staff WHERE salary + age = {}", "SELECT * FROM staff WHERE age = {} - salary",
    "SELECT * FROM staff WHERE name IN ({})", "SELECT * FROM unknown WHERE people = {}",
    "WITH staff AS (SELECT 1) SELECT {} FROM towns", "CREATE TABLE x (a INT ENC DEFAULT {})",
    "SELECT * FROM staff -- {}\n WHERE age = 3", "SELECT {}", "SET VARIABLE v = {}",
    "MERGE INTO staff USING towns ON salary = {}", "\\e SELECT * FROM staff WHERE salary = {}",
    "SELECT salary age FROM staff WHERE age = {}", "\\copy staff FROM {}",
    "SELECT * FROM towns WHERE people = 3; SELECT * FROM staff WHERE salary = {}",
    "SELECT * FROM staff WHERE age = 3 HAVING salary BETWEEN {} AND 3",
)  # fmt: skip


def test_no_literal_of_a_protected_column_reaches_the_history(catalog: Catalog) -> None:
    dice = generated.generator("history")
    for about in ABOUT:
        for secret in SECRETS:
            statement = about.format(secret) + dice.choice((";", " ;", ""))
            stored = masked(statement, catalog)
            assert "711" not in stored, (statement, stored)
    for quoteless in ("SELECT * FROM staff WHERE name = Cleopatra", "SELECT 'Cleopatra",
                      "INSERT INTO staff VALUES (Cleopatra, 1, 2)",
                      "SELECT * FROM staff WHERE name IN (Bob, Cleopatra)"):  # fmt: skip
        assert "Cleopatra" not in masked(quoteless, catalog), quoteless


def test_what_is_plain_for_certain_is_stored_as_typed(catalog: Catalog) -> None:
    for statement in (
        "SELECT * FROM towns WHERE people > 4711;", "SELECT name FROM staff WHERE age < 30;",
        "SELECT name FROM staff WHERE staff.age = 30 AND age <> 31 ORDER BY name LIMIT 5;",
        "INSERT INTO towns VALUES ('Basel', 4711);", "SELECT count(*) FROM staff;", "\\d staff",
        "\\i file.sql", "CREATE TABLE x (a INT ENC);",
    ):  # fmt: skip
        assert masked(statement, catalog) == statement


@pytest.mark.parametrize("command", ["\\e", "\\copy", "\\E", "\\x", "\\q", "\\set"])
@pytest.mark.parametrize("blank", [" ", "\t", "\n", "; ", "  "])
def test_commands_of_the_shell_are_masked(command: str, blank: str, catalog: Catalog) -> None:
    """Whatever stands between a command and a statement, and also where none belongs."""
    line = f" {command}{blank}SELECT * FROM staff WHERE name = 'Cleopatra'"
    assert "Cleopatra" not in masked(line, catalog)
    assert masked("\\i 'my file.sql'", catalog) == "\\i 'my file.sql'"


def test_the_history_file(tmp_path: Path) -> None:
    run(TABLES, folder=tmp_path)
    file = tmp_path / "state" / "history"
    with User(tmp_path) as user:
        user.run("SELECT 'a' || name FROM staff WHERE salary = 4000;", "aCleo")
        user.run("SELECT town FROM towns WHERE people = 140000;", "Bern")
        # This session remembers all of it.
        user.keys("\x1b[A\x1b[A\r")
        user.see("aCleo")
        user.wait()
        user.run("\\set history full", "louver>")
        user.run("SELECT 4711 AS wanted;", "4711")
        user.run("\\set history off", "louver>")
        user.run("SELECT 815 AS hidden;", "815")
        user.keys("\\q\r")
        assert user.leave() == 0
    text = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "= 4000" not in text
    assert "= 140000" in text
    assert "4711" in text
    assert "815" not in text
    os.chmod(file, 0o644)
    with User(tmp_path) as user:
        user.keys("\x1b[A")
        user.see("\\set history off")
        user.keys("\x03")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_where_a_statement_ends() -> None:
    assert complete("SELECT 1;")
    assert complete("")
    assert not complete("SELECT 1")
    assert not complete("SELECT ';")
    assert not complete("SELECT 1 -- ;")
    assert complete("SELECT 1 -- ;\n;")
    assert within_quotes("SELECT 'a")
    assert within_quotes("SELECT 1 /* a")
    assert not within_quotes("SELECT 'a'")
    assert not ends("SELECT 'a\n\\q")
    assert ends("SELECT 1\n\\q")
    assert ends("SELECT 1\nquit")
    assert not ends("SELECT 1\nFROM t")
