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
    """One after the other: what both need is there already, and what is left is named."""
    with duckdb.connect(str(home / "plain.duckdb")) as plain:
        plain.execute("CREATE SCHEMA s; CREATE TABLE s.a (x INT); CREATE TABLE s.b (x INT)")
        plain.execute("CREATE INDEX a_x ON s.a (x)")
        plain.execute("CREATE MACRO plus(x) AS x + 1")
        plain.execute("CREATE VIEW va AS SELECT k, plus(1) AS p FROM a")
        plain.execute("CREATE VIEW vva AS SELECT k FROM va")
        plain.execute("CREATE VIEW both_ AS SELECT k, s FROM a, b")
        plain.execute("CREATE VIEW over AS FROM both_")
        plain.execute("CREATE MACRO of_b() AS TABLE SELECT * FROM b")
        plain.execute("COMMENT ON TABLE a IS 'of a'; COMMENT ON COLUMN b.s IS 'of b.s'")
        plain.execute("COMMENT ON VIEW both_ IS 'of both'; COMMENT ON TYPE mood IS 'of mood'")
        # The text of this view says b, which is s.b in the file.
        plain.execute("USE s; CREATE VIEW s.w AS SELECT x FROM b; USE main")
    done = run("encrypt", "plain.duckdb", "--table", "A", folder=home)
    assert "a " in done.stdout
    left = done.stderr.split("are needed: ")[1].splitlines()[0]
    assert set(left.removesuffix(".").split(", ")) == {
        "view v", "view both_", "view over", "view s.w", "macro of_b"
    }  # fmt: skip
    state = answers(run("status", "--json", folder=home))[0]
    assert [(table["name"], table["rows"]) for table in state["tables"]] == [("a", 30000)]
    wrong = run("encrypt", "plain.duckdb", "--table", "c", folder=home, code=1).stderr
    assert "Table c does not exist" in wrong
    done = run("encrypt", "plain.duckdb", "--table", "b", folder=home)
    left = done.stderr.split("are needed: ")[1].splitlines()[0]
    assert set(left.removesuffix(".").split(", ")) == {
        "view both_", "view over", "view s.w", "macro of_b"
    }  # fmt: skip
    rows = "SELECT count(*) AS n, max(p) AS p FROM va; SELECT s FROM v;"
    assert run("--csv", rows, folder=home).stdout.split() == ["n,p", "30000,2", "s", "x"]
    comments = "SELECT comment FROM duckdb_tables() WHERE comment IS NOT NULL"
    assert "of a" in run("--csv", comments, folder=home).stdout
    again = run("encrypt", "plain.duckdb", "--table", "b", folder=home, code=1).stderr
    assert "Table b already exists" in again


def test_an_object_that_is_not_equal_is_an_obstacle(home: Path) -> None:
    changes = {
        "CREATE TYPE mood AS ENUM ('sad')": "The type mood exists",
        "CREATE MACRO plus(x) AS x + 2": "The macro plus exists",
        "CREATE VIEW single AS SELECT 2 AS two": "The view single exists",
        "CREATE SEQUENCE q INCREMENT 3": "The sequence q exists",
        "CREATE SEQUENCE q": "The sequence q exists",
    }
    with duckdb.connect(str(home / "plain.duckdb")) as plain:
        plain.execute("CREATE MACRO plus(x) AS x + 1; CREATE VIEW single AS SELECT 1 AS one")
        plain.execute("CREATE SEQUENCE q; SELECT nextval('q')")
        plain.execute("CREATE TABLE c (i INT DEFAULT nextval('q')); INSERT INTO c DEFAULT VALUES")
        plain.execute("CREATE TABLE d (i INT DEFAULT nextval('q'))")
    for sql, message in changes.items():
        run(sql, folder=home)
        error = run("encrypt", "plain.duckdb", "--table", "c", folder=home, code=1).stderr
        assert message in error, sql
        kind, name = message.split()[1:3]
        run(f"DROP {kind} {name}", folder=home)
    assert answers(run("status", "--json", folder=home))[0]["tables"] == []
    run("encrypt", "plain.duckdb", "--table", "c", folder=home)
    run("INSERT INTO c DEFAULT VALUES", folder=home)
    # The sequence has gone on, and no value comes twice.
    run("encrypt", "plain.duckdb", "--table", "d", folder=home)
    run("INSERT INTO d DEFAULT VALUES", folder=home)
    values = run("--csv", "SELECT i FROM c UNION ALL SELECT i FROM d ORDER BY i", folder=home)
    assert values.stdout.split() == ["i", "2", "3", "4"]


def test_a_parent_is_needed(home: Path) -> None:
    with duckdb.connect(str(home / "plain.duckdb")) as plain:
        plain.execute("CREATE TABLE child (k INT REFERENCES a (k)); INSERT INTO child VALUES (7)")
    error = run("encrypt", "plain.duckdb", "--table", "child", folder=home, code=1).stderr
    assert "--table child --table a" in error
    run("encrypt", "plain.duckdb", "--table", "child", "--table", "a", folder=home)
    bad = run("INSERT INTO child VALUES (-1)", folder=home, code=1).stderr
    assert "foreign key" in bad


def test_a_collation_stays_and_is_reported(home: Path) -> None:
    with duckdb.connect(str(home / "plain.duckdb")) as plain:
        plain.execute("CREATE TABLE c (x TEXT COLLATE NOCASE, y INT, z TEXT COLLATE DE, p TEXT)")
        plain.execute(
            "INSERT INTO c VALUES ('Ada Lovelace', 1, 'ä', 'Q'), ('ada lovelace', 2, 'z', 'q')"
        )
    done = run("encrypt", "plain.duckdb", folder=home)
    said = [line for line in done.stderr.splitlines() if "COLLATE" in line]
    assert [line.split(":")[1].strip() for line in said] == ["c.x", "c.z"]
    assert "COLLATE nocase stays" in said[0].replace("NOCASE", "nocase")
    for sql in (
        "SELECT y FROM c WHERE x = 'ADA LOVELACE' ORDER BY y", "SELECT y FROM c ORDER BY z",
        "SELECT y FROM c WHERE p = 'q'", "SELECT max(y) AS y FROM c GROUP BY x",
    ):  # fmt: skip
        with duckdb.connect(str(home / "plain.duckdb")) as plain:
            expected = [str(row[0]) for row in plain.execute(sql).fetchall()]
        assert run("--csv", sql, folder=home).stdout.split()[1:] == expected, sql
    server = (home / "cloud.duckdb").read_bytes()
    assert b"Ada Lovelace" not in server
    assert b"nocase" not in server.lower()


def test_a_collation_that_cannot_stay(home: Path) -> None:
    """Nothing happens before the user agrees to each of them by an option."""
    with duckdb.connect(str(home / "plain.duckdb")) as plain:
        plain.execute("CREATE TABLE c (x TEXT COLLATE NOCASE, n INT CHECK (n > 0), g INT AS (n))")
        plain.execute("CREATE TABLE e (x TEXT COLLATE DE NOT NULL, y TEXT COLLATE NFC)")
        plain.execute(
            "INSERT INTO c VALUES ('Ada', 1); INSERT INTO e VALUES ('Z', 'a'), ('a', 'b')"
        )
    (home / "p.toml").write_text("[a]\nk = { may_reveal = 'size' }\n")
    options = ("encrypt", "plain.duckdb", "--policy", "p.toml")
    error = run(*options, folder=home, code=1).stderr
    assert "cannot be stored: c.x, e.x." in error
    assert "--drop-collations" in error
    assert answers(run("status", "--json", folder=home))[0]["tables"] == []
    done = run(*options, "--drop-collations", "--json", folder=home)
    notices = answers(done)[0]["notices"]
    notices = [item for item in notices if not item.startswith("The policy encrypts no")]
    kinds = [notice.split(".")[0] + notice.split(":")[1][:7] for notice in notices]
    assert sorted(kinds) == ["c stored", "e COLLAT", "e stored"]
    assert run("--csv", "SELECT x FROM e ORDER BY x", folder=home).stdout.split() == ["x", "Z", "a"]
    assert run("--csv", "SELECT g FROM c WHERE x = 'ADA'", folder=home).stdout.split() == ["g"]
    refused = run("INSERT INTO c (x, n) VALUES ('b', 0)", folder=home, code=1).stderr
    assert "CHECK" in refused


def test_a_misspelled_policy_stores_nothing(home: Path) -> None:
    with duckdb.connect(str(home / "plain.duckdb")) as plain:
        plain.execute("CREATE TABLE shops (city TEXT); INSERT INTO shops VALUES ('a private city')")
    for text in ('[shops]\ncitty = "enc"\n', '[shpos]\ncity = "enc"\n'):
        (home / "policy.toml").write_text(text)
        words = ("encrypt", "plain.duckdb", "--policy", "policy.toml")
        assert "is similar to shops" in run(*words, folder=home, code=1).stderr
        assert "is similar to shops" in run(*words, "--dry-run", folder=home, code=1).stderr
        assert b"a private city" not in (home / "cloud.duckdb").read_bytes()
    assert answers(run("status", "--json", folder=home))[0]["tables"] == []


def test_tables_that_a_policy_leaves_plain_are_named(home: Path) -> None:
    (home / "policy.toml").write_text('[b]\ns = "enc"\n')
    done = run("encrypt", "plain.duckdb", "--policy", "policy.toml", folder=home)
    assert "The policy encrypts no column of a:" in done.stderr
    assert "no column of b" not in done.stderr
