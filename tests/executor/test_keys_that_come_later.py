"""Tags of keys that a schema gets and loses after its rows: given, kept apart, looked up, taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import louver
from louver import errors
from louver.trusted.vault.catalog import Table
from louver.wire.messages import Statement
from tests.inside import context_of
from tests.twin import Twin, outcome_of

TABLE = (
    "CREATE TABLE t (a INT ENC, b TEXT ENC, p INT, v DOUBLE ENC, \"O d\" INT ENC)",
    "INSERT INTO t SELECT range, 'x' || range, range, range / 2, NULL FROM range(300)",
)  # fmt: skip
COMING = {
    "ALTER TABLE t ADD PRIMARY KEY (a)": "(7, 'y', -1, 0, 0)",
    "ALTER TABLE t ADD PRIMARY KEY (b, p)": "(-1, 'x7', 7, 0, 0)",
    "CREATE UNIQUE INDEX i ON t (a)": "(7, 'y', -1, 0, 0)",
    'CREATE UNIQUE INDEX "I i" ON main.t ("B", a)': "(7, 'x7', -1, 0, 0)",
    'CREATE UNIQUE INDEX i ON t ("o D")': "(-7, 'y', -1, 0, 1)",
}  # fmt: skip


def table_of(twin: Twin) -> Table:
    return twin.table("t")


def refuses(twin: Twin, row: str) -> None:
    """Both refuse a row, in the same words."""
    sql = f"INSERT INTO t VALUES {row}"
    expected, actual = outcome_of(twin.plain, sql), outcome_of(twin.louver, sql)
    assert expected.error is not None, sql
    assert str(actual.error).startswith(str(expected.error))


def stored(twin: Twin, names: list[str]) -> list[dict[str, object]]:
    listed = ", ".join(f'"{name}"' for name in names)
    rows = twin.session.context.engine.query(Statement(f"SELECT {listed} FROM t")).to_pylist()
    return [dict(row) for row in rows]


@pytest.mark.in_turn
@pytest.mark.parametrize("profile", ["sealed", "cryptdb", "sdb"])
@pytest.mark.parametrize("sql", COMING)
def test_a_key_that_comes_gets_tags(open_twin: Callable[..., Twin], sql: str, profile: str) -> None:
    twin = open_twin(profile)
    twin.fill(*TABLE)
    before = stored(twin, ["row_id", *table_of(twin).columns[0].stored.values()])
    twin.fill(sql)
    (tag,) = table_of(twin).tags
    names = ["row_id", *table_of(twin).columns[0].stored.values()]
    assert stored(twin, names) == before, "nothing else is sealed anew"
    assert len({str(row[tag]) for row in stored(twin, [tag])}) == 300
    twin.run("INSERT INTO t VALUES (-5, 'z', -5, 0, 1)")
    refuses(twin, COMING[sql])
    for _ in range(2):
        assert "k_" in twin.louver.sql("SELECT v FROM t WHERE a = 9").explain() or "(a)" not in sql
        twin.run("SELECT * FROM t WHERE a = 9")
        twin.run("SELECT v FROM t WHERE b = 'x9' AND p = 9")
        twin.run("UPDATE t SET v = v + 1 WHERE b = 'x8' AND a = 8")
        twin.run("DELETE FROM t WHERE a = 11")
        twin.run("SELECT * FROM t")
        refuses(twin, COMING[sql])
        twin.reopen()
    facts = twin.louver.leakage().arrow().to_pylist()
    assert any(fact["kind"] == "key.rest" for fact in facts)


@pytest.mark.parametrize("sql", [*list(COMING)[:4], "CREATE UNIQUE INDEX i ON t (p)"])
def test_rows_that_have_no_key_are_refused_and_nothing_changes(twin: Twin, sql: str) -> None:
    twin.fill(*TABLE, "INSERT INTO t SELECT a, b, p, v, 1 FROM t WHERE a < 3")
    twin.both(sql)
    assert not table_of(twin).tags
    twin.fill('DELETE FROM t WHERE "O d" = 1', sql)
    refuses(twin, COMING.get(sql, "(-1, 'y', 7, 0, 0)"))


def test_keys_come_and_go_with_an_index(twin: Twin) -> None:
    twin.fill(*TABLE, "CREATE UNIQUE INDEX i ON t (a)", "CREATE UNIQUE INDEX j ON t (a, b)")
    first, second = table_of(twin).tags
    twin.fill("DROP INDEX i")
    assert list(table_of(twin).tags) == [second]
    assert {row[first] for row in stored(twin, [first])} == {None}
    twin.fill("INSERT INTO t VALUES (7, 'y', 0, 0, 0)")
    refuses(twin, "(7, 'x7', 0, 0, 0)")
    twin.fill("DROP INDEX j", "INSERT INTO t VALUES (7, 'x7', 0, 0, 0)")
    assert not table_of(twin).tags
    twin.fill("CREATE UNIQUE INDEX k ON t (lower(b), v, p)")
    assert not table_of(twin).tags
    refuses(twin, "(7, 'X7', 7, 3.5, 0)")
    twin.reopen()
    twin.run("SELECT * FROM t")


def test_an_encrypted_column_gets_a_key(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (k INT, u INT UNIQUE, v INT ENC)")
    twin.fill("INSERT INTO t SELECT range, range, range FROM range(50)")
    plain = list(table_of(twin).tags)
    twin.louver.execute("ALTER TABLE t ALTER COLUMN k SET ENC")
    twin.fill("ALTER TABLE t ADD PRIMARY KEY (k)")
    assert twin.column("t", "k").unique
    tags = table_of(twin).tags
    assert len(tags) == 2
    assert not set(tags) & set(plain), "tags of plain keys would tell these"
    refuses(twin, "(7, 100, 1)")
    refuses(twin, "(100, 7, 1)")
    twin.run("SELECT v FROM t WHERE k = 7")
    twin.louver.execute("ALTER TABLE t ALTER COLUMN k DROP ENC")
    refuses(twin, "(7, 100, 1)")
    twin.run("SELECT * FROM t")


def test_conflicts_with_an_index_are_those_of_duckdb(twin: Twin) -> None:
    twin.fill(*TABLE, "CREATE UNIQUE INDEX i ON t (a)", "CREATE UNIQUE INDEX j ON t (lower(b))")
    twin.fill("ALTER TABLE t ADD COLUMN z INT")
    assert len(table_of(twin).tags) == 1
    for row in ("(7, 'y', 1)", "(1000, 'X7', 2)", "(1001, 'new', 3)", "(NULL, NULL, 4)"):
        for way in (
            "OR IGNORE INTO t (a, b, p)",
            "OR REPLACE INTO t (a, b, p)",
            "INTO t (a, b, p)",
        ):
            twin.either(f"INSERT {way} VALUES {row}")
        for target in ("", " (a)", " (b)"):
            for does in ("NOTHING", "UPDATE SET p = 77"):
                twin.either(f"INSERT INTO t (a, b, p) VALUES {row} ON CONFLICT{target} DO {does}")
        twin.run("SELECT * FROM t")
    twin.either("UPDATE t SET a = 8 WHERE a = 9")
    twin.either("UPDATE t SET a = a + 1")
    twin.run("SELECT * FROM t")


def test_keys_come_and_go_with_a_ceiling(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (k INT ENC PRIMARY KEY, v INT ENC)")
    twin.fill("INSERT INTO t SELECT range, range FROM range(50)")
    (first,) = table_of(twin).tags
    twin.louver.execute("ALTER TABLE t ALTER COLUMN v MAY REVEAL size")
    assert not table_of(twin).tags
    twin.fill("INSERT INTO t VALUES (50, 50)")
    twin.louver.execute("ALTER TABLE t ALTER COLUMN v MAY REVEAL equality")
    (second,) = table_of(twin).tags
    assert first != second
    twin.run("SELECT v FROM t WHERE k IN (50, 3)")
    refuses(twin, "(50, 1)")
    twin.reopen()
    refuses(twin, "(3, 1)")


def test_all_is_one_transaction(twin: Twin) -> None:
    twin.fill(*TABLE, "BEGIN", "CREATE UNIQUE INDEX i ON t (a)")
    twin.run("SELECT * FROM t WHERE a = 7")
    twin.fails("INSERT INTO t VALUES (7, 'y', -1, 0, 0)")
    twin.fill("ROLLBACK")
    assert not table_of(twin).tags
    twin.fill("INSERT INTO t VALUES (7, 'y', -1, 0, 0)", "DELETE FROM t WHERE p = -1")
    twin.fill("BEGIN", "ALTER TABLE t ADD PRIMARY KEY (a)", "COMMIT")
    assert table_of(twin).tags
    twin.run("SELECT * FROM t WHERE a = 7")


def test_only_the_columns_of_the_key_are_read_for_its_tags(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (k INT ENC PRIMARY KEY, v TEXT ENC, w INT ENC MAY REVEAL size)")
    twin.fill("INSERT INTO t SELECT range, 'x', 0 FROM range(50)")
    before = len(twin.tap.sent())
    twin.louver.execute("ALTER TABLE t ALTER COLUMN w MAY REVEAL access")
    text = [m.sql for m in twin.tap.sent()[before:] if isinstance(m, Statement)]
    names = {c.name: c.stored["rnd"] for c in twin.table("t").columns}
    reads = [sql for sql in text if sql.startswith("SELECT t0")]
    assert any(names["k"] in sql for sql in reads)
    assert not any(names["v"] in sql for sql in reads)


def test_another_client_sees_the_key(tmp_path: Path, key_file: Path) -> None:
    url = f"duckdb:///{tmp_path}/x.duckdb"
    first, second = (louver.connect(url, keys=key_file) for _ in range(2))
    first.execute("CREATE TABLE t (a INT ENC, v INT ENC)")
    first.execute("INSERT INTO t SELECT range, range FROM range(30)")
    assert second.execute("SELECT v FROM t WHERE a = 3").fetchall() == [(3,)]
    first.execute("CREATE UNIQUE INDEX i ON t (a)")
    with pytest.raises(errors.IntegrityError):
        second.execute("INSERT INTO t VALUES (3, 3)")
    assert "k_" in second.sql("SELECT v FROM t WHERE a = 3").explain()
    second.execute("DROP INDEX i")
    first.execute("INSERT INTO t VALUES (3, 4)")
    assert not context_of(first).catalog.table("main", "t").tags
    first.close()
    second.close()
