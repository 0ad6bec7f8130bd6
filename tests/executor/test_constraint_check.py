"""Constraints that no server can check hold all the same, with DuckDB's own words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from louver import errors
from louver.trusted.executor import constraint_check
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.tap import Tap
from tests.local_duckdb import local_duckdb
from tests.twin import Twin, outcome_of


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    KeyRing.create(str(tmp_path / "key"))
    keys = KeyRing.open(str(tmp_path / "key"))
    session = Session(Tap(DuckDBEngine(":memory:")), keys, Policy())
    yield session
    session.close()


def table_of(session: Session, name: str) -> Table:
    table = session.context.catalog.table("main", name)
    assert table is not None
    return table


CASES = {
    "CREATE TABLE t (a INTEGER {} PRIMARY KEY)": "INSERT INTO t VALUES (1)",
    "CREATE TABLE t (a INTEGER {}, b TEXT {}, UNIQUE (b, a))": "INSERT INTO t VALUES (1, 'x')",
    "CREATE TABLE t (a INTEGER {} UNIQUE, b TEXT {})": "INSERT INTO t VALUES (1, 'y')",
    "CREATE TABLE t (a INTEGER {} NOT NULL)": "INSERT INTO t VALUES (NULL)",
    "CREATE TABLE t (a INTEGER {} CHECK (a < 5))": "INSERT INTO t VALUES (5)",
    "CREATE TABLE t (a DATE {} PRIMARY KEY)": "INSERT INTO t VALUES ('2020-01-01')",
    "CREATE TABLE t (\"odd Name\" TEXT {} PRIMARY KEY)": "INSERT INTO t VALUES ('it''s')",
    "CREATE TABLE t (a INTEGER {}, b TEXT {}); CREATE UNIQUE INDEX i ON t (lower(b), a)":
        "INSERT INTO t VALUES (1, 'X')",
    "CREATE TABLE t (a INTEGER {}, b TEXT {}); CREATE UNIQUE INDEX i ON t ((a % 2), (b || 'x'))":
        "INSERT INTO t VALUES (1, 'X')",
    "CREATE TABLE p (i INTEGER {} PRIMARY KEY); CREATE TABLE t (a INTEGER {} REFERENCES p (i))":
        "INSERT INTO t VALUES (1)",
    "CREATE TABLE p (i INTEGER {} PRIMARY KEY); CREATE TABLE t (a INTEGER {} REFERENCES p (i))"
    "; INSERT INTO p VALUES (1); INSERT INTO t VALUES (1)": "DELETE FROM p",
}  # fmt: skip


@pytest.mark.parametrize("tables", CASES)
def test_the_message_is_that_of_duckdb(twin: Twin, tables: str) -> None:
    broken = CASES[tables]
    twin.fill(*tables.replace("{}", "ENC").split("; "))
    if "NOT NULL" not in tables and "CHECK" not in tables and "REFERENCES" not in tables:
        twin.run(broken)
    expected, actual = outcome_of(twin.plain, broken), outcome_of(twin.louver, broken)
    assert isinstance(expected.error, duckdb.ConstraintException)
    assert isinstance(actual.error, errors.IntegrityError)
    assert actual.error.message == str(expected.error)
    assert actual.code == "duckdb.constraint"


@pytest.mark.parametrize(
    "type_",
    ["BOOLEAN", "HUGEINT", "UHUGEINT", "UUID", "BIT", "DECIMAL(38,2)", "DECIMAL(9,2)", "DOUBLE",
     "VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP_NS", "TIMESTAMPTZ", "TINYINT"],
)  # fmt: skip
def test_keys_of_every_type_take_further_rows(session: Session, type_: str) -> None:
    """New keys are joined with those that are there, and DuckDB joins some types otherwise."""
    values = {
        "UUID": [f"'00000000-0000-0000-0000-00000000000{n}'" for n in range(3)],
        "BOOLEAN": ["true", "false", "NULL"],
        "BIT": ["'01'", "'10'", "'11'"],
        "DATE": [f"'2020-01-0{n + 1}'" for n in range(3)],
        "TIME": [f"'01:00:0{n}'" for n in range(3)],
    }
    if "TIMESTAMP" in type_:
        values[type_] = [f"'2020-01-0{n + 1} 00:00:00'" for n in range(3)]
    chosen = values.get(type_, ["'1'", "'2'", "'3'"])
    session.execute(f"CREATE TABLE t (a {type_} ENC UNIQUE, b INTEGER ENC)")
    for value in chosen:
        session.execute(f"INSERT INTO t VALUES ({value}, 1)")
    with pytest.raises(errors.IntegrityError):
        session.execute(f"INSERT INTO t VALUES ({chosen[0]}, 1)")
    answer = session.execute("SELECT count(*) FROM t")
    assert answer.rows is not None
    assert answer.rows.to_pylist()[0] == {answer.rows.column_names[0]: 3}


def test_rules_are_read_from_the_table_at_home(session: Session) -> None:
    session.execute(
        "CREATE TABLE p (i INTEGER ENC PRIMARY KEY, j TEXT ENC UNIQUE);"
        "CREATE TABLE t (a INTEGER ENC DEFAULT 3 CHECK (a > 0), b INTEGER ENC REFERENCES p (i));"
    )
    parent = constraint_check.rules(session.context, table_of(session, "p"))
    assert [(key.primary, key.columns) for key in parent.keys] == [(True, ("i",)), (False, ("j",))]
    assert parent.children == [("main", "t")]
    assert parent.without_foreign == ""
    child = constraint_check.rules(session.context, table_of(session, "t"))
    assert [(key.columns, key.parent, key.parent_columns) for key in child.foreign] == [
        (("b",), ("main", "p"), ("i",))
    ]
    assert child.without_foreign.startswith('CREATE TEMP TABLE "t"(')
    assert "REFERENCES" not in child.without_foreign


def test_rules_follow_the_schema(session: Session) -> None:
    session.execute("CREATE TABLE t (a INTEGER ENC); INSERT INTO t VALUES (1)")
    assert constraint_check.rules(session.context, table_of(session, "t")).keys == []
    session.execute("CREATE UNIQUE INDEX i ON t (a)")
    with pytest.raises(errors.IntegrityError):
        session.execute("INSERT INTO t VALUES (1)")
    session.execute("DROP INDEX i; INSERT INTO t VALUES (1)")


def test_an_insert_without_keys_reads_nothing(session: Session) -> None:
    session.execute("CREATE TABLE t (a INTEGER ENC CHECK (a > 0) DEFAULT 1, b TEXT)")
    before = session.context.engine.traffic.rows_in
    session.execute("INSERT INTO t VALUES (1, 'x')")
    count = session.context.engine.traffic.rows_in - before
    session.execute("INSERT INTO t SELECT range + 1, 'y' FROM range(1000)")
    before = session.context.engine.traffic.rows_in
    session.execute("INSERT INTO t VALUES (1, 'x')")
    assert session.context.engine.traffic.rows_in - before == count


def test_keys_are_read_once_while_nobody_else_writes(session: Session) -> None:
    session.execute("CREATE TABLE t (a INTEGER ENC PRIMARY KEY, b TEXT ENC)")
    session.execute("INSERT INTO t SELECT range, 'y' FROM range(1000)")
    session.execute("INSERT INTO t VALUES (2000, '')")
    before = session.context.engine.traffic.rows_in
    for number in range(2001, 2100):
        session.execute("INSERT INTO t VALUES (?, '')", [number])
    assert session.context.engine.traffic.rows_in - before < 1000
    for number in (5, 2000, 2050):
        with pytest.raises(errors.IntegrityError):
            session.execute("INSERT INTO t VALUES (?, '')", [number])
    session.execute("DELETE FROM t WHERE a = 2050")
    session.execute("INSERT INTO t VALUES (2050, '')")


def test_remembered_keys_do_not_outlive_a_rollback(session: Session) -> None:
    session.execute("CREATE TABLE t (a INTEGER ENC PRIMARY KEY); INSERT INTO t VALUES (1)")
    session.execute("BEGIN; INSERT INTO t VALUES (2); ROLLBACK")
    session.execute("INSERT INTO t VALUES (2)")
    session.execute("BEGIN; DELETE FROM t WHERE a = 1; INSERT INTO t VALUES (3); ROLLBACK")
    session.execute("INSERT INTO t VALUES (3)")
    with pytest.raises(errors.IntegrityError):
        session.execute("INSERT INTO t VALUES (1)")


def test_a_row_that_the_server_withholds_is_found_out(session: Session) -> None:
    session.execute("SET default_counted = on")
    session.execute("CREATE TABLE t (a INTEGER ENC PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    from louver.wire.messages import Statement

    session.context.engine.run(
        Statement("DELETE FROM t WHERE row_id = (SELECT min(row_id) FROM t)", kind="write")
    )
    session.refresh()
    with pytest.raises(errors.VerificationError) as caught:
        session.execute("UPDATE t SET a = a + 10")
    assert caught.value.code == "row.missing"


def test_nothing_stays_behind_at_home(session: Session) -> None:
    session.execute("CREATE TABLE t (a INTEGER ENC PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    session.execute("UPDATE t SET a = a + 10; DELETE FROM t WHERE a = 11")
    with pytest.raises(errors.Error):
        session.execute("UPDATE t SET a = 'x'")
    binder = local_duckdb(session.context.local).binder
    assert binder.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_rows_that_break_a_check_now_are_no_conflict(session: Session) -> None:
    """No other client is to blame, and nothing runs again, where a CHECK depends on a setting."""
    session.execute("SET VARIABLE most = 10")
    session.execute("CREATE TABLE t (a INTEGER ENC, b INTEGER ENC CHECK (b < getvariable('most')))")
    session.execute("INSERT INTO t VALUES (1, 5), (2, 6)")
    session.execute("SET VARIABLE most = 1")
    with pytest.raises(errors.IntegrityError) as caught:
        session.execute("UPDATE t SET a = a + 1")
    assert caught.value.code == "duckdb.constraint"
    rows = session.execute("SELECT max(a) FROM t").rows
    assert rows is not None
    assert rows.column(0).to_pylist() == [2]
