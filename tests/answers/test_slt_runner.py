"""The sqllogictest runner itself: that it reads DuckDB's format, and sees what is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from louver import errors
from tests.slt import script, suite
from tests.slt.declared import encrypt_columns
from tests.slt.runner import Run
from tests.slt.sides import Side, duck
from tests.twin import same

ALL = """
# a comment
require parquet

test-env FLAVOUR plain

loop i 0 2

foreach type tinyint <signed> !bigint

statement ok
CREATE OR REPLACE TABLE t_${i} (a ${type})

statement ok con1
INSERT INTO t_{i} VALUES (${i}), (NULL), (7)

endloop

query I rowsort first_${i}
SELECT a FROM t_${i}
----
${i}
7
NULL

onlyif i=0
query I valuesort
SELECT 5 WHERE '${FLAVOUR}' = 'plain'
----
5

endloop

reset label first_0

concurrentloop threadid 0 3

query I con_${threadid} rowsort
SELECT count(*) FROM t_0
----
3

endloop

statement error
SELECT nothing FROM t_0
----
not found in FROM

statement error
SELECT nothing FROM t_0
----
<REGEX>:.*Referenced.*nothing.*

statement maybe
CREATE TABLE t_0 (a INT)

query TRI nosort
SELECT '', 1.5::DOUBLE, true ORDER BY ALL
----
(empty)	1.5	1

query I
SELECT range FROM range(10) ORDER BY 1
----
10 values hashing to 9c94c1a4aa51d1ab8b0a7ddf4e8d4b1e

statement ok
COPY (SELECT 1 AS a) TO '__TEST_DIR__/x.parquet'

query I
SELECT a FROM '{TEST_DIR}/x.parquet'
----
<REGEX>:[0-9]

restart

query I
SELECT count(*) FROM t_1
----
3

load __TEST_DIR__/other.db

statement error
SELECT * FROM t_1

mode skip

statement ok
THIS IS NOT SQL

mode unskip

skipif duckdb
statement ok
NEITHER IS THIS

set ignore_error_messages nowhere_to_be_found

statement ok
SELECT * FROM nowhere_to_be_found

require no_such_extension

statement ok
NOR IS THIS
"""


class Ours:
    """Plaintext DuckDB that raises Louver's errors."""

    def __init__(self, path: Path) -> None:
        self._own = duck(path)
        self.close = self._own.close

    def execute(self, sql: str) -> object:
        try:
            return self._own.execute(sql)
        except duckdb.Error as error:
            raise errors.from_duckdb(error) from None


def ran(text: str, folder: Path, opener: Callable[[Path], object] = Ours) -> Run:
    """A file run on two plaintext databases, where the first stands for Louver's."""
    run = Run(Side(folder / "a", opener), Side(folder / "b", duck), declared=str)
    run.run(script.parse(text))
    return run


def test_everything_of_the_format_is_understood(tmp_path: Path) -> None:
    texts = "".join(f"{number}\n" for number in range(10))
    digest = hashlib.md5(texts.encode()).hexdigest()
    run = ran(ALL.replace("9c94c1a4aa51d1ab8b0a7ddf4e8d4b1e", digest), tmp_path)
    kinds = [(d.sort, d.entry.line, str(d)) for d in run.differences]
    assert not kinds
    assert run.skipped == "requires no_such_extension"
    assert run.statements == 36


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("query I\nSELECT 1\n----\n2\n", "file"),
        ("query II\nSELECT 1, 2\n----\n1\n2\n", ""),
        ("query I\nSELECT 1\n----\n1\n1\n", "file"),
        ("query T\nSELECT 'b'\n----\n<REGEX>:a.*\n", "file"),
        ("query T\nSELECT 'b'\n----\n<!REGEX>:a.*\n", ""),
        ("query I\nSELECT 1\n----\n1 values hashing to 00000000000000000000000000000000\n", "file"),
        ("query I nosort x\nSELECT 1\n----\n\nquery I nosort x\nSELECT 2\n----\n", "file"),
        ("query I nosort x\nSELECT 1\n----\n\nreset label x\n\nquery I nosort x\nSELECT 2\n", ""),
        ("statement error\nSELECT 1\n", "file"),
        ("statement error\nSELECT x\n----\nanother message\n", "file"),
        ("statement ok\nSELECT x\n", "file"),
        ("halt\n\nstatement ok\nSELECT x\n", ""),
        ("require-env NO_SUCH_VARIABLE\n\nstatement ok\nSELECT x\n", ""),
        ("onlyif mysql\nstatement ok\nSELECT x\n", ""),
        ("foreach a,b 1,2 3,3\n\nquery I\nSELECT ${a} + ${b} IN (3, 6)\n----\n1\n\nendloop", ""),
        ("loop i 0 4\n\nskipif i<3&&i>0\nstatement ok\nSELECT 3 // ${i}\n\nendloop", ""),
        ("loop i 0 4\n\nskipif i>=1\nstatement ok\nSELECT 'x${i}'[2:]::BOOL\n\nendloop", ""),
    ],
)  # fmt: skip
def test_what_a_file_states_is_checked(text: str, sort: str, tmp_path: Path) -> None:
    sorts = {difference.sort for difference in ran(text, tmp_path).differences}
    assert sorts == ({sort} if sort else set())


class Wrong:
    """Another answer than DuckDB's, of one sort."""

    def __init__(self, sort: str) -> None:
        self._sort = sort
        self._own = duckdb.connect()

    def execute(self, sql: str) -> object:
        if self._sort == "raw":
            raise KeyError("a mistake")
        changed = {"answer": "SELECT 2::INT AS a", "columns": "SELECT 1::BIGINT AS a"}
        return self._own.execute(changed.get(self._sort, sql))

    def close(self) -> None:
        """Nothing to do."""


@pytest.mark.parametrize("sort", ["answer", "columns", "raw", ""])
def test_a_wrong_answer_is_seen(sort: str, tmp_path: Path) -> None:
    run = ran("query I\nSELECT 1 AS a\n", tmp_path, lambda _: Wrong(sort))
    assert [difference.sort for difference in run.differences] == ([sort] if sort else [])


def test_a_wrong_order_is_seen() -> None:
    assert not same([(1,)], [(2,)], ordered=False)
    assert not same([(1,), (2,)], [(2,), (1,)], ordered=True)
    assert not same("error binder", [(1,)], ordered=False)
    assert same([(1,), (2,)], [(2,), (1,)], ordered=False)


@pytest.mark.parametrize("text", ["loop i 0 1\n\nstatement ok\nSELECT 1\n", "endloop\n"])
def test_loops_end(text: str) -> None:
    with pytest.raises(ValueError, match="endloop"):
        script.parse(text)


@pytest.mark.parametrize(
    ("sql", "declared"),
    [
        ("CREATE TABLE t (a INT, b DECIMAL(4, 1) NOT NULL, PRIMARY KEY (a, b))",
         "CREATE TABLE t (a INT ENC WITH (sum = 'masked') , b DECIMAL(4, 1) ENC  NOT NULL,"
         " PRIMARY KEY (a, b))"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t(s STRUCT(a INT, b INT)[])",
         "CREATE OR REPLACE TABLE IF NOT EXISTS t(s STRUCT(a INT, b INT)[]"
         " ENC WITH (sum = 'masked') )"),
        ("CREATE TABLE t AS SELECT 1", "CREATE TABLE t AS SELECT 1"),
        ("ALTER TABLE t ADD b INT DEFAULT 3", "ALTER TABLE t ADD b INT ENC DEFAULT 3"),
        ("CREATE VIEW v AS SELECT 1", "CREATE VIEW v AS SELECT 1"),
        ("SELECT '", "SELECT '"),
    ],
)  # fmt: skip
def test_declared_columns_become_enc(sql: str, declared: str) -> None:
    assert encrypt_columns(sql) == declared


def test_the_program_prints_differences_and_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOUVER_STATE_DIR", str(tmp_path))
    path = tmp_path / "one.test"
    path.write_text(
        "statement ok\nCREATE TABLE t (a INT)\n\nstatement ok\nINSERT INTO t VALUES (1), (2)\n\n"
        "query I\nSELECT sum(a) FROM t\n----\n3\n\nrestart\n\nquery I con2\nSELECT a FROM t\n\n"
        "statement ok\nCREATE TABLE g (a GEOMETRY)\n\nstatement ok\nDROP TABLE g\n"
    )
    assert suite.main([str(tmp_path), "--policy", "sealed"]) == 0
    printed = capsys.readouterr().out
    assert "line 17 (refused): CREATE TABLE g" in printed
    assert "one.test: 6 statements, 1 after a refusal, 1 refused" in printed
