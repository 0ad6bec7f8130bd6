"""What the command line says to users who err, in their own words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from louver.trusted.executor.error_position import moved
from tests.client.harness import key_file, run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database in it."""
    folder = tmp_path_factory.mktemp("messages")
    run("CREATE TABLE t (a INT ENC, b INT, n TEXT ENC)", folder=folder)
    return folder


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("selct * from t", "did you mean SELECT?"),
        ("udpate t set a = 1", "did you mean UPDATE?"),
        ("CREATE TABEL u (a INT ENC)", "Correct TABEL (did you mean TABLE?)."),
        ("DROP TABEL t", "Correct TABEL (did you mean TABLE?)."),
        ("ALTER TABEL t ADD COLUMN x INT", "Correct TABEL (did you mean TABLE?)."),
        ("SHOW TABELS", "Correct TABELS (did you mean TABLES?)."),
        ("SHOW leakge", "Correct leakge (did you mean LEAKAGE?)."),
        ("DESCRIBE TABEL t", "Correct TABEL (did you mean TABLE?)."),
        ("select a fron t", "Correct fron (did you mean FROM?)."),
        ("select * form t where a = 'ä'", "Correct form (did you mean FROM?)."),
        ("SELECT * FROM t WHER a = 1", "Correct WHER (did you mean WHERE?)."),
        ("SELECT a FROM t GRUP BY a", "Correct GRUP (did you mean GROUP?)."),
        ("SELECT a FROM t -- äö\nODER BY a", "Correct ODER (did you mean ORDER?)."),
        ("SELECT a FROM t LEFT JION t u USING (a)", "Correct JION (did you mean JOIN?)."),
        ("SELECT * FROM t WHERE a BETWEN 1 AND 2", "Correct BETWEN (did you mean BETWEEN?)."),
        ("EXPLAIN (LEAKAGE) SELECT a FRON t", "Correct FRON (did you mean FROM?)."),
        ("INSERT INTO t VAULES (1, 2, 'x')", "Correct VAULES (did you mean VALUES?)."),
        ("INSERT INOT t VALUES (1, 2, 'x')", "Correct INOT (did you mean INTO?)."),
        ("DELETE FORM t", "Correct FORM (did you mean FROM?)."),
        ("UPDATE t SETT b = 1", "Correct SETT (did you mean SET?)."),
        ("ALTER TABLE t ADD COLUM x INT ENC", "Correct COLUM (did you mean COLUMN?)."),
        ("CREATE INDX i ON t (b)", "Correct INDX (did you mean INDEX?)."),
        ("CREATE TABLE u (a INT ENC, b INT NOT NUL)", "Correct NUL (did you mean NULL?)."),
        ("CREATE TABLE u (a INT EN, b INT)", "Correct EN (did you mean ENC?)."),
        ("CREATE TABLE u (a INT ENC MYA REVEAL order)", "Correct MYA (did you mean MAY?)."),
        ("CREATE TABLE u (a INT ENC USNG sdb)", "Correct USNG (did you mean USING?)."),
        ("CREATE TABLE u (a INT ENCRYPTED)", "Write a INT ENC."),
        ("CREATE TABLE u (a INT MAY REVEAL order NOT NULL)",
         "Write a INT ENC MAY REVEAL order NOT NULL."),
        ("CREATE TABLE u (a BIGINT PRIMARY KEY ENC)", "Write a BIGINT ENC PRIMARY KEY."),
        ("CREATE TABLE u AS SELECT a ENC FROM t", "Write CREATE TABLE u (a ENC) AS ..."),
        ("CREATE TABLE u AS SELECT b, n ENCRYPTED FROM t UNION SELECT 1, '2'",
         "Write CREATE TABLE u (b, n ENC) AS ..., or n AS \"ENCRYPTED\""),
        ("CREATE TABLE u (a INT ENC MAY REVEAL)", "MAY REVEAL is not followed by a level"),
        ("CREATE TABLE u (a INT ENC MAY REVAL order)", "MAY is not followed by REVEAL"),
        ("CREATE TABLE u (a INT ENC USING, b INT)", "Column a: USING is not followed by a scheme"),
        ("ALTER TABLE t ALTER a MAY REVEAL", "Column a: MAY REVEAL is not followed by a level"),
        ("ALTER TABLE t ALTER b SET ENC MAY REVEAL", "Write MAY REVEAL and one of size, access"),
        ("CREATE TABLE u (s STRUCT(x INT) ENC USING sdb)", "does not store"),
        ("CREATE TABLE u (s INT[] ENC USING sdb)", "does not store"),
        ("SELECT * FROM t AT (VERSION => 1)", "SET lake_snapshot"),
        ("INSERT INTO t VALUES ('x', 2, 'y')", "LINE 1: INSERT INTO t VALUES ('x', 2, 'y')"),
        ("DESCRIBE INSERT INTO t VALUES (1)", "LINE 1: DESCRIBE INSERT INTO t VALUES (1)"),
        ("SELECT *\nFROM t\nWHERE nope = 1", "LINE 3: WHERE nope = 1"),
        ("SELECT * FROM t WHERE n = \"x\"", "fix: Check the name: DESCRIBE lists the columns"),
        ("SELECT * FROM tt", "fix: Check the name: SHOW TABLES lists the tables."),
        ("SELECT sum(n) FROM t", "fix: Cast an argument to a type of the list"),
        ("INSERT INTO t VALUES (1)", "fix: Give one value for each column"),
        ("CREATE TABLE t (a INT ENC)", "fix: Choose another name, or write IF NOT EXISTS"),
        ("SELECT (1", "fix: Complete the statement"),
    ],
)  # fmt: skip
def test_statements(home: Path, statement: str, wanted: str) -> None:
    message = run(statement, folder=home, code=1).stderr
    assert wanted in message
    assert "main" not in message
    assert "RETURNING" not in message


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a FROM t WHERE a = = 1",
        "SELECT a FROM t WHERE n = 'fron' fron t",
        "SELECT 1 FROM t ORDER BY",
        "SHOW nothing_like_it",
        "CREATE SECRET s (TYPE s3)",
        "SELECT 'abc",
        "CREATE TABLE u (a INT ENC) AS SELECT 'abc",
    ],
)
def test_no_keyword_is_offered_where_none_helps(home: Path, statement: str) -> None:
    assert "(did you mean" not in run(statement, folder=home, code=1).stderr


def test_names_that_are_meant_are_names(home: Path) -> None:
    items = 'a AS enc, b AS "ENC2", n "ENCRYPTED", encrypt: b'
    run(f"CREATE TABLE named AS SELECT {items} FROM t", folder=home)
    text = run("--csv", "SELECT * FROM named", folder=home).stdout
    assert text.startswith("enc,ENC2,ENCRYPTED,encrypt")
    run("CREATE TABLE listed AS SELECT enc, abs(enc) FROM named WHERE enc > 1", folder=home)


def test_explain_counts_shares_where_there_are_some(home: Path) -> None:
    run("CREATE TABLE shared (s BIGINT ENC USING sdb, b INT, n TEXT ENC)", folder=home)
    text = run("EXPLAIN SELECT sum(s), min(b) FROM shared", folder=home).stdout
    assert "open     1 column (1 share) of about 1 row," in text
    text = run("EXPLAIN SELECT n, s FROM shared", folder=home).stdout
    assert "open     2 columns of about" in text
    assert "share)" not in text


def test_names_like_keywords_are_columns(home: Path) -> None:
    run('CREATE TABLE words (encrypted INT, "may" INT ENC, reveal INT)', folder=home)
    run("CREATE TABLE others (a INT DEFAULT 3, encrypted TEXT ENC)", folder=home)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("commit",), "is an SQL statement"),
        (("rollback",), "a connection of its own"),
        (("select",), "louver sql select"),
        (("lod",), "did you mean load"),
        (("comit",), "did you mean commit"),
    ],
)
def test_words_that_are_not_commands(home: Path, words: tuple[str, ...], wanted: str) -> None:
    message = run(*words, folder=home, code=2).stderr
    assert wanted in message
    assert "invalid choice" not in message


def test_files_to_encrypt(home: Path) -> None:
    (home / "bad.csv").write_text("a,b\n1,x\n")
    missing = run("encrypt", "nofile.duckdb", folder=home, code=1).stderr
    assert "the file does not exist" in missing
    assert "Name a DuckDB database" in missing
    wrong = run("encrypt", "bad.csv", folder=home, code=1).stderr
    assert "it is not a DuckDB database" in wrong
    assert "in-memory" not in wrong
    with duckdb.connect(str(home / "plain.duckdb")) as plain:
        plain.execute("CREATE TABLE fine (a INT)")
    assert "fine" in run("encrypt", "plain.duckdb", folder=home).stdout


def test_a_database_is_not_a_key_file(home: Path) -> None:
    for file in ("other.duckdb", "some.csv"):
        (home / file).write_bytes(b"\x00\x01DUCK" if file.endswith("duckdb") else b"a,b\n")
        (home / file).chmod(0o644)
        message = run("-k", file, "SELECT 1", folder=home, code=1).stderr
        assert "is not a Louver key file" in message
        assert "chmod" not in message


def test_the_ledger_names_values_of_a_lake(tmp_path: Path) -> None:
    url = f"lake:///{tmp_path}/lake"
    columns = "d DATE ENC MAY REVEAL access, n BIGINT ENC MAY REVEAL access"
    rows = "INSERT INTO f VALUES (DATE '2013-07-04', -5)"
    run(f"CREATE TABLE f ({columns}); {rows}", folder=tmp_path, LOUVER_URL=url)
    days = "d BETWEEN DATE '2013-07-03' AND DATE '2013-07-05'"
    run(f"SELECT count(*) FROM f WHERE {days}", folder=tmp_path, LOUVER_URL=url)
    run("SELECT count(*) FROM f WHERE n = -5", folder=tmp_path, LOUVER_URL=url)
    text = run("leakage", folder=tmp_path, LOUVER_URL=url).stdout
    assert "2013-07-03 to 2013-07-05" in text
    assert "(value -5)" in text
    head, row = run("lake", "history", "f", folder=tmp_path, LOUVER_URL=url).stdout.splitlines()
    assert head.split() == ["snapshot", "time", "(UTC)", "files", "rows", "bytes"]
    assert row.split()[0].isdecimal()


def test_the_only_useful_column_of_the_ledger_is_not_cut(home: Path) -> None:
    run("INSERT INTO t SELECT range, range, 'x' FROM range(3)", folder=home)
    text = run("SHOW LEAKAGE", folder=home, COLUMNS="60").stdout
    assert "…" not in text
    rows = [line.split("│")[4].strip() for line in text.splitlines() if line.count("│") == 5]
    assert "the server" in " ".join(rows)
    assert all(len(line) <= 60 for line in text.splitlines())


def test_ctrl_c_in_a_load_says_that_nothing_was_loaded(tmp_path: Path) -> None:
    run("CREATE TABLE big (a BIGINT ENC, b TEXT ENC)", folder=tmp_path)
    with duckdb.connect() as plain:
        plain.execute(
            "COPY (SELECT range AS a, 'x' || range AS b FROM range(4000000))"
            f" TO '{tmp_path}/big.parquet'"
        )
    environment = {
        **os.environ, "LOUVER_URL": f"duckdb:///{tmp_path}/cloud.duckdb",
        "LOUVER_KEYS": key_file(), "LOUVER_STATE_DIR": str(tmp_path / "state"),
    }  # fmt: skip
    command = [sys.executable, "-m", "louver.trusted.apps.cli", "load", "big", "big.parquet"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=environment,
    )  # fmt: skip
    # Rows that are appended reach the file before they are committed.
    file = tmp_path / "cloud.duckdb"
    size = file.stat().st_size
    while file.stat().st_size < size + 1_000_000 and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "nothing was loaded into big" in message
    assert run("--csv", "SELECT count(*) FROM big", folder=tmp_path).stdout.split()[1] == "0"


def test_positions_are_moved_only_where_that_is_certain() -> None:
    shown = '{}\n\nLINE 1: INSERT INTO "main"."t" VALUES (x, x)\n{}^\nmore'
    text = "INSERT INTO t\nVALUES (x, x)"
    message = shown.format("Error", " " * (8 + 31))
    assert moved(message, text) == "Error\n\nLINE 2: VALUES (x, x)\n                ^\nmore"
    assert moved(shown.format("Error", " " * 8), "SELECT 1") == "Error\nmore"
    own = "Error\n\nLINE 1: SELECT x\n               ^"
    assert moved(own, "SELECT x") == own
    assert moved("Error", "SELECT x") == "Error"


def test_a_database_is_opened_to_read_only(home: Path) -> None:
    run("SELECT * FROM t", folder=home)
    assert "count_star" in run("SELECT count(*) FROM t", "--read-only", folder=home).stdout
    message = run("--read-only", "INSERT INTO t VALUES (1, 2, 'x')", folder=home, code=1).stderr
    assert "only" in message


def test_texts_of_statements_are_not_cut(home: Path) -> None:
    text = run("SHOW CREATE TABLE t", folder=home).stdout
    assert "MAY REVEAL access" in " ".join(text.replace("│", " ").split())
    assert "…" not in text
