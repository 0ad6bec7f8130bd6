"""The command line as users meet it: transcripts, exit codes, JSON, and its reference page."""

from __future__ import annotations

import argparse
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from louver.trusted.apps import cli, reference
from louver.trusted.apps.commands import NAMES
from louver.trusted.apps.shell import shell
from tests.client.harness import answers, key_file, run
from tests.sources import ROOT

CREATE = "CREATE TABLE t (a INT ENC USING sdb, b TEXT ENC, c INT)"
INSERT = "INSERT INTO t VALUES (1, 'x', 3), (-2, 'y', 4), (NULL, NULL, 5)"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database in it; tests add to it and do not change table t."""
    folder = tmp_path_factory.mktemp("cli")
    run(f"{CREATE}; {INSERT}", folder=folder)
    return folder


def test_a_statement_needs_no_command(home: Path) -> None:
    assert run("SELECT b, a FROM t ORDER BY c", folder=home, process=True).stdout == (
        "┌─────────┬───────┐\n"
        "│    b    │   a   │\n"
        "│ varchar │ int32 │\n"
        "├─────────┼───────┤\n"
        "│ x       │     1 │\n"
        "│ y       │    -2 │\n"
        "│ NULL    │  NULL │\n"
        "└─────────┴───────┘\n"
        "3 rows\n"
    )


def test_json(home: Path) -> None:
    odd = "1.5::DECIMAL(3,2) AS d, DATE '2013-01-01' AS day, 'nan'::DOUBLE AS f, 'ab'::BLOB AS b"
    done = run("--json", f"SELECT a, b FROM t ORDER BY c; SELECT {odd}", folder=home)
    first, second = answers(done)
    assert first == {
        "ok": True,
        "columns": [{"name": "a", "type": "INTEGER"}, {"name": "b", "type": "VARCHAR"}],
        "rows": [[1, "x"], [-2, "y"], [None, None]],
    }
    assert second["rows"] == [["1.50", "2013-01-01", "NaN", "YWI="]]
    done = run("sql", "CREATE TABLE made (a INT ENC)", "--json", folder=home)
    assert answers(done) == [{"ok": True, "affected": 0}]
    done = run("sql", "CREATE TABLE open (a INT)", folder=home, process=True)
    assert "note: The server stores every value of open in plain text" in done.stderr


def test_stdin_files_and_csv(home: Path) -> None:
    done = run("sql", "--csv", folder=home, process=True, stdin="SELECT a, b FROM t ORDER BY c;")
    assert done.stdout == "a,b\n1,x\n-2,y\n,\n"
    (home / "q.sql").write_text("SELECT 1 AS one;\n-- no more; really\nSELECT ';' AS two")
    done = run("--json", "sql", "-f", "q.sql", folder=home)
    assert [answer["rows"] for answer in answers(done)] == [[[1]], [[";"]]]
    assert run("sql", "-f", "nowhere.sql", folder=home, code=2).stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["SELECT nope FROM t"], 1, "duckdb.binder"),
        (["CREATE TABLE bad (a INT ENC USING sdb MAY REVEAL equality)"], 3, "enc.ceiling"),
        (["SET local_processing = off; SELECT rank() OVER (ORDER BY b) FROM t"], 3, None),
        (["lod"], 2, "usage"),
        (["load"], 2, "usage"),
        (["sql", "--no-such-option"], 2, "usage"),
        (["sql", "SELECT 1", "-f", "x.sql"], 2, "usage"),
        (["-k", "nowhere.louverkey", "SELECT 1"], 1, "key.missing"),
        (["-u", "mysql://x", "SELECT 1"], 1, "url.scheme"),
        (["-u", "spark://x", "SELECT 1"], 1, "url.unsupported"),
        (["leakage", "nobody"], 1, "table.missing"),
        (["inspect", "nobody"], 1, "table.missing"),
        (["-u", "duckdb:///nowhere.duckdb", "inspect"], 1, "database.io"),
        (["attack", "--modulus", "xyz"], 2, "usage"),
        (["load", "t", "nowhere.csv"], 1, "load.file"),
        (["key", "show", "nowhere.louverkey"], 1, "key.missing"),
        (["demo", "--keep", "."], 1, "file.exists"),
    ],
)
def test_errors_have_one_shape(
    home: Path, arguments: list[str], code: int, error: str | None
) -> None:
    done = run("--json", *arguments, folder=home, code=code)
    assert done.stderr == ""
    answer = answers(done)[-1]
    assert set(answer) == {"ok", "code", "error", "fix"}
    assert answer["ok"] is False
    assert error in (None, answer["code"])
    done = run(*arguments, folder=home, code=code)
    assert "louver: " in done.stderr
    assert answer["error"].splitlines()[0] in done.stderr


def test_options_may_stand_before_or_after(home: Path) -> None:
    url = f"duckdb:///{home}/cloud.duckdb"
    for words in (["-u", url, "sql", "SELECT 1"], ["sql", "SELECT 1", "-u", url]):
        run(*words, folder=home, LOUVER_URL="")
    run("SELECT 1", folder=home, code=2, LOUVER_URL="")
    run("SELECT 1", folder=home, code=1, LOUVER_KEYS="")


def test_keys(tmp_path: Path) -> None:
    done = run("key", "new", "my.louverkey", "--comment", "mine", folder=tmp_path, process=True)
    key_id = done.stdout.strip()
    assert len(key_id) == 16
    path = tmp_path / "my.louverkey"
    assert path.stat().st_mode & 0o777 == 0o600
    assert run("key", "show", "my.louverkey", folder=tmp_path).stdout.strip() == key_id
    key = answers(run("key", "show", "my.louverkey", "--json", folder=tmp_path))
    assert key[0]["key_id"] == key_id
    secret = max(path.read_text().splitlines(), key=len)
    assert secret not in done.stdout + done.stderr
    run("key", "new", "my.louverkey", folder=tmp_path, code=1)
    path.chmod(0o644)
    assert "chmod 600" in run("key", "show", "my.louverkey", folder=tmp_path, code=1).stderr


def test_load_is_all_or_nothing(home: Path) -> None:
    run("CREATE TABLE loaded (a INT ENC, b TEXT)", folder=home)
    (home / "good.csv").write_text("a,b\n1,x\n2,y\n")
    (home / "bad.csv").write_text("a,b\n3,x\nno,y\n")
    assert answers(run("load", "loaded", "good.csv", "--json", folder=home))[0]["rows"] == 2
    assert "line 3" in run("load", "loaded", "bad.csv", folder=home, code=1).stderr
    rows = answers(run("--json", "SELECT a FROM loaded ORDER BY a", folder=home))
    assert rows[0]["rows"] == [[1], [2]]


def test_explain_runs_nothing(home: Path) -> None:
    run("CREATE TABLE kept (a INT ENC); INSERT INTO kept VALUES (1)", folder=home)
    changes = ("INSERT INTO kept VALUES (2)", "DELETE FROM kept", "DROP TABLE kept",
               "WITH w AS (SELECT 5 AS n) INSERT INTO kept SELECT n FROM w",
               "CREATE TABLE other (a INT ENC)", "UPDATE kept SET a = 7")  # fmt: skip
    for sql in changes:
        assert "your machine" in run("explain", sql, folder=home).stdout
    two = run("explain", "DELETE FROM kept; SELECT 1", folder=home, code=1)
    assert "one statement" in two.stderr
    explanation = answers(run("--json", "SELECT count(*), sum(a) FROM kept", folder=home))[0]
    assert explanation["rows"] == [[1, 1]]
    run("DROP TABLE kept", folder=home)


def test_the_shells_words_run_nothing(
    open_connection: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = iter(("CREATE TABLE said (a INT ENC);", "INSERT INTO said VALUES (77);", "\\s", "\\s",
                  "\\e DROP TABLE said", "\\e SELECT 1; DROP TABLE said",
                  "\\d said; DROP TABLE said", "\\e INSERT INTO said VALUES (2)", "\\d said",
                  "SELECT sum(a) + 700 FROM said;", "\\s", "\\q"))  # fmt: skip
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    options = argparse.Namespace(json=False, form=None, rows=None)
    assert shell.Shell(open_connection(), options).run() == 0
    output = capsys.readouterr()
    assert "777" in output.out
    assert 'FROM "main"."said"' in output.out
    assert output.err.count("one statement") == 2


def test_explain_leakage_and_status(home: Path) -> None:
    query = "SELECT sum(a) FROM t"
    text = run("explain", query, folder=home).stdout
    assert "+ the server can compute all ratios of values of a in t" in text
    as_json = answers(run("explain", query, "--json", folder=home))[0]
    assert as_json["servers"]
    assert as_json["reveals"]["new"]
    assert run("explain", "--format", "mermaid", query, folder=home).stdout.startswith("flow")
    assert "reveals" not in run("explain", "--no-leakage", query, folder=home).stdout
    assert "all ratios" not in run("leakage", folder=home).stdout
    run(query, folder=home)
    assert "plaintext the server can compute all ratios" in run("leakage", "t", folder=home).stdout
    facts = answers(run("leakage", "--json", folder=home))[0]["facts"]
    assert {fact["level"] for fact in facts} >= {"size", "plaintext"}
    status = answers(run("status", "--json", folder=home))[0]
    assert status["pinned_version"] == status["catalog_version"]
    assert status["tables"][0]["rows"] == 3
    assert "ledger hash" in run("status", folder=home).stdout


def test_a_restored_backup_is_accepted_when_told(tmp_path: Path) -> None:
    run("CREATE TABLE t (a INT ENC)", folder=tmp_path)
    file = tmp_path / "cloud.duckdb"
    backup = file.read_bytes()
    run("INSERT INTO t VALUES (1)", folder=tmp_path)
    file.write_bytes(backup)
    done = run("SELECT 1", folder=tmp_path, code=1)
    assert "louver status --accept" in done.stderr
    run("status", "--accept", folder=tmp_path)
    run("SELECT 1", folder=tmp_path)


def test_inspect_needs_no_key_and_shows_no_plaintext(tmp_path: Path) -> None:
    run("CREATE TABLE t (secret_name TEXT ENC, open_name INT)", folder=tmp_path)
    run("INSERT INTO t VALUES ('a canary in the mine', 42)", folder=tmp_path)
    text = run("inspect", "t", folder=tmp_path, LOUVER_KEYS="").stdout
    assert "open_name" in text
    assert "42" in text
    assert "secret_name" not in text
    assert "canary" not in text
    as_json = answers(run("inspect", "--json", folder=tmp_path, LOUVER_KEYS=""))[0]
    table = next(table for table in as_json["tables"] if table["table"] == "t")
    sealed = next(v for v in table["rows"][0].values() if isinstance(v, str))
    assert b"canary" not in bytes.fromhex(sealed)


def test_a_database_comes_over_and_back(tmp_path: Path) -> None:
    plain = duckdb.connect(str(tmp_path / "plain.duckdb"))
    plain.execute("CREATE TABLE t (a INT, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL)")
    plain.execute("CREATE VIEW v AS SELECT b FROM t")
    plain.close()
    assert "2 rows" in run("encrypt", "plain.duckdb", folder=tmp_path).stdout
    assert "sealed" in run("status", folder=tmp_path).stdout
    run("export", "back.duckdb", folder=tmp_path)
    back = duckdb.connect(str(tmp_path / "back.duckdb"), read_only=True)
    assert back.execute("FROM t ORDER BY a").fetchall() == [(1, "x"), (2, None)]
    assert len(back.execute("FROM v").fetchall()) == 2
    run("export", "back.duckdb", folder=tmp_path, code=1)


def test_a_reader_that_leaves_is_no_error(home: Path) -> None:
    environment = {**os.environ, "LOUVER_URL": f"duckdb:///{home}/cloud.duckdb",
                   "LOUVER_KEYS": key_file(), "LOUVER_STATE_DIR": str(home / "state")}  # fmt: skip
    many = ";".join(["SELECT * FROM range(2000)"] * 40)
    writer = subprocess.Popen(
        [sys.executable, "-m", "louver.trusted.apps.cli", "sql", many, "--rows", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    reader = subprocess.Popen(["head", "-n", "1"], stdin=writer.stdout, stdout=subprocess.DEVNULL)
    assert writer.stdout is not None
    writer.stdout.close()
    reader.wait(timeout=600)
    _, talk = writer.communicate(timeout=600)
    assert talk == b""


def test_ctrl_c_is_one_line(home: Path) -> None:
    environment = {**os.environ, "LOUVER_URL": f"duckdb:///{home}/cloud.duckdb",
                   "LOUVER_KEYS": key_file(), "LOUVER_STATE_DIR": str(home / "state")}  # fmt: skip
    slow = "SELECT sum(a.i * b.i) FROM range(1000000) a(i), range(1000000) b(i)"
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "louver.trusted.apps.cli", f"SELECT 'begun'; {slow}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert process.stdout is not None
    assert any("begun" in line for line in process.stdout)
    # Mostly the second statement has come as far as DuckDB then.
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=600)
    assert process.returncode == 130
    assert talk.strip() == "louver: interrupted"


def test_the_shell(home: Path) -> None:
    """A conversation over a terminal of its own."""
    master, slave = pty.openpty()
    environment = {**os.environ, "LOUVER_URL": f"duckdb:///{home}/cloud.duckdb",
                   "LOUVER_KEYS": key_file(), "LOUVER_STATE_DIR": str(home / "state"),
                   "TERM": "dumb"}  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "louver.trusted.apps.cli"],
        stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
    )  # fmt: skip
    os.close(slave)
    said = "\\?\n\\d\n\\d t\n\\t\nSELECT b\nFROM t WHERE c = 3;\n\\e SELECT b FROM t\n\\s\n\\l t\n"
    os.write(master, f"{said}SELECT nope;\n\\nonsense\nSELECT ';' AS x;\n\\q\n".encode())
    out, _ = process.communicate(timeout=600)
    os.close(master)
    text = out.decode()
    assert process.returncode == 0
    for wanted in (
        "louver> ", "\\d [TABLE]", "column_name", "│ x       │", "milliseconds: ", "│ ;       │",
        'FROM "main"."t"', "reveals", "\\nonsense is not a shell command", '"nope"',
    ):  # fmt: skip
        assert wanted in text, wanted


def test_statements_end_at_a_semicolon_outside_of_strings() -> None:
    assert shell.complete("SELECT 1;")
    assert shell.complete("")
    assert not shell.complete("SELECT 1")
    assert not shell.complete("SELECT ';")
    assert not shell.complete("SELECT 1 -- ;")
    assert shell.complete("SELECT 1 -- ;\n;")


def test_debug_shows_the_traceback(home: Path) -> None:
    command = [sys.executable, "-m", "louver.trusted.apps.cli", "SELECT 1"]
    environment = {**os.environ, "LOUVER_DEBUG": "1", "LOUVER_URL": "nothing"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=600, check=False
    )
    assert "Traceback" in done.stderr


def test_colours_only_on_a_terminal_and_not_against_the_users_will(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from louver.trusted.apps import terminal

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[31m" in terminal.styled("x", "red", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.styled("x", "red", Terminal()) == "x"


def test_help_is_quick_and_names_every_command() -> None:
    script = (
        "import sys\nfrom louver.trusted.apps import cli\n"
        "code = 0\ntry:\n    cli.main(['--help'])\nexcept SystemExit as end:\n    code = end.code\n"
        "assert not {'duckdb', 'pyarrow', 'sqlglot'} & set(sys.modules), 'too much is loaded'\n"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        assert f"    {name} " in done.stdout


def test_the_reference_page_is_that_of_the_parser() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert page.endswith(reference.page()), "run `make docs`"
    for name in NAMES:
        assert f"## louver {name}\n" in page


def test_every_command_is_in_the_guide() -> None:
    guide = (ROOT / "docs/guides/shell.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"louver {name}" in guide
    assert json.dumps(cli.EPILOG)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["select 1"], ["sql", "select 1"]),
        (["-u", "x", "--json", "select 1"], ["-u", "x", "--json", "sql", "select 1"]),
        (["sql", "select 1"], ["sql", "select 1"]),
        (["load", "a b", "c"], ["load", "a b", "c"]),
        (["--url=x", "from t"], ["--url=x", "sql", "from t"]),
        (["lod"], ["lod"]),
        ([], []),
    ],
)
def test_a_statement_in_the_place_of_a_command(given: list[str], expected: list[str]) -> None:
    assert cli.arguments_of(given) == expected
