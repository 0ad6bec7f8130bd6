"""`louver load` with the files that users have: NULL texts, dates, patterns, stdin, bad rows."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from random import Random

import duckdb
import pytest

from tests import generated
from tests.client.harness import answers, run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a database in it."""
    run("CREATE TABLE t (a INT ENC, b INT, d DATE ENC, n TEXT ENC)", folder=tmp_path)
    return tmp_path


def rows(home: Path, table: str = "t") -> list[list[str]]:
    """The rows as CSV prints them."""
    text = run("--csv", f"SELECT * FROM {table} ORDER BY ALL", folder=home).stdout
    return list(csv.reader(io.StringIO(text)))[1:]


def test_null_texts_dates_and_delimiters(home: Path) -> None:
    (home / "a.csv").write_text("a;b;d;n\n1;NA;31.12.2013;x\nNA;-;NA;\n")
    words = ("--null", "NA", "--null", "-", "--date-format", "%d.%m.%Y", "--delimiter", ";")
    run("load", "t", "a.csv", *words, folder=home)
    assert rows(home) == [["1", "", "2013-12-31", "x"], ["", "", "", ""]]
    run("load", "t", "a.csv", folder=home, code=1)


def test_stdin(home: Path) -> None:
    text = "a,b,d,n\n" + "".join(f"{i},{i},2013-01-01,x{i}\n" for i in range(5000))
    run("load", "t", "-", folder=home, process=True, stdin=text)
    assert run("--csv", "SELECT count(*), sum(a) FROM t", folder=home).stdout.split()[1] == (
        "5000,12497500"
    )
    bad = text + "no,1,2013-01-01,x\n"
    message = run("load", "t", "-", folder=home, process=True, stdin=bad, code=1).stderr
    assert "stdin, line 5002" in message
    assert "no" not in message.split("line 5002")[1].split(".")[0].split()
    assert run("--csv", "SELECT count(*) FROM t", folder=home).stdout.split()[1] == "5000"


def test_patterns(home: Path) -> None:
    for number in range(3):
        (home / f"part{number}.csv").write_text(f"a,b,d,n\n{number},1,2013-01-01,x\n")
    run("load", "t", "part*.csv", folder=home)
    assert [row[0] for row in rows(home)] == ["0", "1", "2"]
    (home / "part1.csv").write_text("a,b,d,n\n1,7,2013-01-01,x\n1,bad,2013-01-01,x\n")
    message = run("load", "t", "part*.csv", folder=home, code=1).stderr
    assert "part1.csv, line 3" in message
    (home / "part2.csv").write_text("b,a,d,n\n1,7,2013-01-01,x\n")
    assert "differs" in run("load", "t", "part*.csv", folder=home, code=1).stderr
    assert "no file has such a name" in run("load", "t", "no*.csv", folder=home, code=1).stderr
    assert len(rows(home)) == 3
    with duckdb.connect() as plain:
        for number in range(2):
            plain.execute(
                f"COPY (SELECT {number} AS a, 1 AS b, DATE '2014-01-01' AS d, 'y' AS n)"
                f" TO '{home}/q{number}.parquet'"
            )
    run("load", "t", "q*.parquet", folder=home)
    assert len(rows(home)) == 5


def test_a_bad_value_is_shown_unless_its_column_is_encrypted(home: Path) -> None:
    (home / "plain.csv").write_text("a,b,d,n\n1,not a number,2013-01-01,secret\n")
    message = run("load", "t", "plain.csv", folder=home, code=1).stderr
    assert "plain.csv, line 2" in message
    assert "'not a number' of b" in message
    assert "secret" not in message
    (home / "enc.csv").write_text("a,b,d,n\nnot a number,1,2013-01-01,secret\n")
    message = run("load", "t", "enc.csv", folder=home, code=1).stderr
    assert "enc.csv, line 2" in message
    assert "value of a" in message
    assert "not a number" not in message
    (home / "date.csv").write_text("a,b,d,n\n1,1,4711,secret\n")
    assert "4711" not in run("load", "t", "date.csv", folder=home, code=1).stderr


def test_create(home: Path) -> None:
    (home / "new.csv").write_text("Name,born,size\nCleo,31.12.2013,1.5\nBob,NA,2\n")
    words = ("--create", "--null", "NA", "--date-format", "%d.%m.%Y")
    run("load", "fresh", "new.csv", *words, folder=home)
    assert rows(home, "fresh") == [["Bob", "", "2.0"], ["Cleo", "2013-12-31", "1.5"]]
    assert "table fresh: 2 rows; Name sealed" in run("status", folder=home).stdout
    run("load", "fresh", "new.csv", *words, folder=home, code=1)
    assert len(rows(home, "fresh")) == 2
    run("load", "other", "-", "--create", folder=home, code=2)
    (home / "policy.toml").write_text('[ruled]\nborn = "plain"\n')
    run("load", "ruled", "new.csv", *words, "--policy", "policy.toml", folder=home)
    status = run("status", folder=home).stdout
    assert "table ruled: 2 rows; Name sealed, may reveal access, born plain, size" in status


def text_of(dice: Random) -> str:
    """A field: often special to CSV."""
    return "".join(dice.choice('ab ,;"\n|ä') for _ in range(dice.randint(1, 6)))


def test_what_csv_writes_load_reads(home: Path) -> None:
    """Generated rows, written by Python's csv under each delimiter, read as DuckDB reads them."""
    dice = generated.generator("load")
    run("CREATE TABLE w (a INT ENC, n TEXT ENC)", folder=home)
    for _ in range(generated.cases(8)):
        delimiter = dice.choice(",;|\t")
        expected = [[str(number), text_of(dice)] for number in range(dice.randint(1, 20))]
        with (home / "w.csv").open("w", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
            writer.writerows([["a", "n"], *([int(a), n] for a, n in expected)])
        run("load", "w", "w.csv", "--delimiter", delimiter, folder=home)
        assert sorted(rows(home, "w"), key=lambda row: int(row[0])) == expected
        run("DELETE FROM w", folder=home)


def test_a_table_is_created_only_on_request(home: Path) -> None:
    """A misspelt name stores nothing, least of all in plain text."""
    (home / "a.csv").write_text("a,b,d,n\n1,2,2013-12-31,a private text\n")
    before = run("status", folder=home).stdout
    (home / "policy.toml").write_text('[tt]\nn = "enc"\n')
    for words in ((), ("--policy", "policy.toml")):
        message = run("load", "tt", "a.csv", *words, folder=home, code=1).stderr
        assert "Table tt does not exist. Nothing was loaded." in message
        assert "--create" in message
    assert run("status", folder=home).stdout == before
    assert b"a private text" not in (home / "cloud.duckdb").read_bytes()


def test_a_table_that_a_policy_leaves_plain_is_noticed(home: Path) -> None:
    (home / "a.csv").write_text("a\n1\n")
    (home / "policy.toml").write_text('[open]\n"*" = "plain"\n')
    words = ("load", "--create", "--policy", "policy.toml")
    assert "every value of open in plain text" in run(*words, "open", "a.csv", folder=home).stderr
    (home / "policy.toml").write_text('["*"]\n"*" = "plain"\n')
    answer = answers(run(*words, "--json", "other", "a.csv", folder=home))[0]
    assert "every value of other in plain text" in answer["notices"][0]
    assert "note" not in run("load", "t", "a.csv", folder=home, code=1).stderr


def test_the_line_of_a_bad_row_is_that_of_the_file(home: Path) -> None:
    """Fields of several lines and empty lines count as an editor counts them."""
    good = 'a;b;d;n\r\n1;1;2013-01-01;"x;\r\n""y\n\nz"\r\n1;1;2013-01-01;5" wide\r\n'
    for bad in ("no;1;2013-01-01;x", "1;1"):
        with (home / "a.csv").open("w", newline="") as file:
            file.write(f"{good}{bad}\r\n")
        line = good.count("\n") + 1
        assert f"a.csv, line {line}:" in run("load", "t", "a.csv", folder=home, code=1).stderr
        (home / "a.csv.gz").write_bytes(gzip.compress((home / "a.csv").read_bytes()))
        assert f"line {line}:" in run("load", "t", "a.csv.gz", folder=home, code=1).stderr
