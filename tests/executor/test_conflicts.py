"""ON CONFLICT DO NOTHING over several keys: the first of two new rows stays, whatever they hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import louver
from louver.trusted.executor.change import conflicts

SECRETS = range(5)
HEAD = "INSERT INTO t (p, id, s) "
ROWS = [("a(", 1, 0), ("b", 2, 0), ("c", 2, 1), ("d,", 3, None), ("e", 3, 2), ("f", 4, None)]
STAY = ["a(", "c", "d,", "f"]


@pytest.fixture
def con(tmp_path: Path, key_file: Path) -> Iterator[Any]:
    url = f"duckdb:///{tmp_path}/t.duckdb"
    with louver.connect(url, keys=key_file) as connection:
        connection.execute(
            "CREATE TABLE t (p VARCHAR, id INT UNIQUE, s BIGINT ENC UNIQUE, d INT DEFAULT 7)"
        )
        connection.execute("CREATE TABLE given (p VARCHAR, id INT, s BIGINT ENC)")
        yield connection


def rows_of(secret: int) -> list[tuple[str, int, int | None]]:
    """The rows with other values in the encrypted key, which are alike in the same places."""
    return [(p, id_, None if s is None else 1000 * secret + 17 * s) for p, id_, s in ROWS]


@pytest.mark.parametrize("way", ["literals", "parameters", "query", "with", "ignore", "default"])
def test_the_first_row_stays(con: Any, way: str) -> None:
    for secret in SECRETS:
        rows = rows_of(secret)
        con.execute("DELETE FROM t; DELETE FROM given")
        listed = ", ".join(f"('{p}', {i}, {'NULL' if s is None else s})" for p, i, s in rows)
        con.execute(f"INSERT INTO given VALUES {listed}")
        sql, values = f"{HEAD} VALUES {listed} ON CONFLICT DO NOTHING", None
        if way == "parameters":
            sql = f"{HEAD} VALUES {', '.join(['(?, ?, ?)'] * len(rows))} ON CONFLICT DO NOTHING"
            values = [value for row in rows for value in row]
        elif way == "query":
            sql = f"{HEAD} SELECT * FROM given WHERE id < 100 ON CONFLICT DO NOTHING"
        elif way == "with":
            sql = f"WITH g AS (FROM given) {HEAD} FROM g ON CONFLICT DO NOTHING"
        elif way == "ignore":
            sql = f"INSERT OR IGNORE INTO t (p, id, s) VALUES {listed}"
        elif way == "default":
            listed = listed.replace("), ", ", DEFAULT), ").removesuffix(")") + ", DEFAULT)"
            sql = f"INSERT INTO t VALUES {listed} ON CONFLICT DO NOTHING"
        assert con.execute(f"{sql} RETURNING p", values).fetchall() == [(p,) for p in STAY]
        assert con.execute("SELECT p, d FROM t ORDER BY id").fetchall() == [(p, 7) for p in STAY]
        assert con.execute(sql, values).rowcount == 0


def test_no_row_at_all(con: Any) -> None:
    sql = f"{HEAD} SELECT * FROM given ON CONFLICT DO NOTHING RETURNING p, s + 1 AS more"
    done = con.execute(sql)
    assert [column[0] for column in done.description] == ["p", "more"]
    assert done.fetchall() == []


def test_rows_that_do_not_conflict_with_each_other_go_at_once(con: Any, monkeypatch: Any) -> None:
    ran: list[Any] = []
    executed = conflicts.executed

    def noted(*run: Any) -> Any:
        ran.append(run)
        return executed(*run)

    monkeypatch.setattr(conflicts, "executed", noted)
    con.execute("INSERT INTO t VALUES ('old', 1, 10, 7)")
    con.execute(
        "INSERT INTO given VALUES ('a', 2, 10), ('b', 1, 11), ('c', 4, 13), ('d', NULL, NULL)"
    )
    sql = f"{HEAD} SELECT * FROM given ON CONFLICT DO NOTHING RETURNING p"
    assert sorted(con.execute(sql).fetchall()) == [("c",), ("d",)]
    assert len(ran) == 1
    con.execute("INSERT INTO given VALUES ('x', 10, 20), ('y', 11, 20), ('e', NULL, NULL)")
    ran.clear()
    assert con.execute(sql).fetchall() == [("d",), ("x",), ("e",)]
    assert len(ran) == 7, "two of them are alike"
