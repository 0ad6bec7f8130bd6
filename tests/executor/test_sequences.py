"""Sequences against plaintext DuckDB: generated ones, through errors, ROLLBACK and reconnects."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

from tests.twin import Twin

_DRAWS = (
    "SELECT nextval('q')",
    "SELECT list(nextval('q')) FROM range(4)",
    "SELECT * FROM drawn",
    "SELECT draw()",
    "INSERT INTO t (a) VALUES (1), (2), (3)",
    "INSERT INTO t (a) SELECT 5 FROM range(2)",
    "INSERT INTO t (a, n) SELECT 7, nextval('q') FROM range(2)",
    "INSERT INTO t (a) VALUES (-1)",
    "SELECT nextval('q'), error('no')",
    "CREATE OR REPLACE TABLE u AS SELECT nextval('q') AS n FROM range(3)",
)


def _sequence(drawn: random.Random) -> str:
    """A definition; DuckDB refuses some of them."""
    step = drawn.choice([1, 1, 2, 3, 5, -1, -2, -3])
    low = drawn.randrange(-20, 20)
    high = low + drawn.choice([1, 2, 7, 30])
    parts = drawn.sample(
        [
            f"INCREMENT BY {step}", f"MINVALUE {low}", f"MAXVALUE {high}",
            f"START {drawn.randrange(low, high + 1)}", drawn.choice(["CYCLE", "CYCLE", "NO CYCLE"]),
        ],
        drawn.randrange(6),
    )  # fmt: skip
    return " ".join(["CREATE SEQUENCE q", *parts])


def _reopen(twin: Twin, path: Path) -> None:
    twin.reopen()
    twin.plain.close()
    twin.plain = duckdb.connect(path)


def _both(twin: Twin, sql: str) -> None:
    twin.both(sql, ordered=True)


@pytest.mark.parametrize("seed", range(3))
def test_generated(twin: Twin, tmp_path: Path, seed: int) -> None:
    drawn, path = random.Random(seed), tmp_path / "plain.duckdb"
    twin.plain.close()
    twin.plain = duckdb.connect(path)
    for _ in range(3):
        definition = _sequence(drawn)
        while twin.duckdb_fails(definition):
            definition = _sequence(drawn)
        twin.session.execute(definition)
        twin.both(
            "CREATE TABLE t (a INT ENC CHECK (a > 0), n BIGINT DEFAULT nextval('q'))",
            "CREATE VIEW drawn AS SELECT nextval('q') AS n", "CREATE MACRO draw() AS nextval('q')",
        )  # fmt: skip
        open_ = False
        for _ in range(14):
            step = drawn.randrange(10)
            if step == 0 and not open_:
                _reopen(twin, path)
            elif step < 3:
                words = drawn.choice(["COMMIT", "ROLLBACK", "ROLLBACK"]) if open_ else "BEGIN"
                _both(twin, words)
                open_ = not open_
            else:
                _both(twin, drawn.choice(_DRAWS))
        twin.both("ROLLBACK" if open_ else "SELECT 1")
        twin.run("FROM t")
        twin.both(
            "DROP VIEW drawn", "DROP MACRO draw", "DROP TABLE t", "DROP TABLE IF EXISTS u",
            "DROP SEQUENCE q",
        )  # fmt: skip


def test_a_transaction_that_makes_sequences(twin: Twin) -> None:
    twin.both("CREATE SEQUENCE q", "CREATE SEQUENCE other MAXVALUE 3 CYCLE")
    for sql in (
        "BEGIN", "SELECT nextval('q')", "SELECT nextval('other')", "CREATE TABLE t (a INT)",
        "CREATE SEQUENCE mine", "SELECT nextval('mine')", "DROP SEQUENCE mine", "ROLLBACK",
        "SELECT nextval('mine')", "SELECT nextval('other')", "SELECT nextval('q')",
    ):  # fmt: skip
        _both(twin, sql)
    twin.session.execute("BEGIN; SELECT nextval('q')")
    twin.plain.execute("SELECT nextval('q')")
    twin.reopen()
    _both(twin, "SELECT nextval('q')")
