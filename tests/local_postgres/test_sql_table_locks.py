"""LOCK TABLE: what plaintext PostgreSQL says, what others have to wait for, and what is seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import louver
from louver import errors
from tests import shared
from tests.local_postgres.twin import PostgresTwin

#: Longer than eight attempts at a lock take.
_LIMIT_S = 15
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_MODES = (
    "ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE",
    "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE",
)  # fmt: skip
#: Modes that others hold, by mode, which a mode waits for: PostgreSQL's own table.
_CONFLICTS = {
    "ACCESS SHARE": _MODES[7:], "ROW SHARE": _MODES[6:], "ROW EXCLUSIVE": _MODES[4:],
    "SHARE UPDATE EXCLUSIVE": _MODES[3:], "SHARE": (*_MODES[2:4], *_MODES[5:]),
    "SHARE ROW EXCLUSIVE": _MODES[2:], "EXCLUSIVE": _MODES[1:], "ACCESS EXCLUSIVE": _MODES,
}  # fmt: skip


@pytest.fixture(scope="module")
def opened() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.run("CREATE TABLE t (id serial PRIMARY KEY, a integer ENC)")
    twin.run("CREATE TABLE u (a integer)")
    twin.run("CREATE VIEW v AS SELECT t.a FROM t, u")
    twin.run('CREATE TABLE "nowait" (a integer)')
    yield twin
    twin.close()


@pytest.fixture
def twin(opened: PostgresTwin) -> PostgresTwin:
    for execute in (opened.louver.execute, opened.plain.execute):
        execute("ROLLBACK")
        execute("DELETE FROM t")
    return opened


@pytest.fixture
def other(twin: PostgresTwin) -> Iterator[Any]:
    """Another session of Louver's with the same database."""
    session = louver.connect(twin.url, str(shared.key_file()), "cryptdb", language="postgres")
    # Who writes for the first time amends the catalog, which ends transactions that cannot be done
    # again, as those that hold locks.
    session.execute("INSERT INTO u VALUES (1)")
    session.execute("DELETE FROM u")
    yield session
    session.close()


@pytest.mark.parametrize("sql", [
    *(f"LOCK TABLE t IN {mode} MODE" for mode in _MODES), "LOCK t", "LOCK TABLE ONLY t, u * NOWAIT",
    "LOCK v IN SHARE MODE NOWAIT", "LOCK nowait", "LOCK u, nowait NOWAIT", "LOCK public.t",
    "LOCK missing", "LOCK TABLE t IN NO MODE", "LOCK", "LOCK t_id_seq", "LOCK t_pkey", "LOCK t, t",
    "LOCK pg_class IN ACCESS SHARE MODE",
])  # fmt: skip
def test_answers_are_those_of_plaintext(twin: PostgresTwin, sql: str) -> None:
    twin.run(sql)
    for begin in ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
        twin.run(begin)
        twin.run(sql)
        twin.run("SELECT count(*) FROM t")
        twin.run("ROLLBACK")


def test_several_locks_before_changes(twin: PostgresTwin) -> None:
    for sql in (
        "BEGIN", "LOCK t IN SHARE ROW EXCLUSIVE MODE", "LOCK u IN ACCESS SHARE MODE", "LOCK v",
        "INSERT INTO t (a) VALUES (1), (2) RETURNING a", "SAVEPOINT one",
        "UPDATE t SET a = a + 1", "ROLLBACK TO one", "SELECT a FROM t ORDER BY a", "COMMIT",
        "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM t", "LOCK t",
        "DELETE FROM t WHERE a = 1", "LOCK u", "COMMIT", "SELECT a FROM t",
    ):  # fmt: skip
        twin.run(sql)


@pytest.mark.parametrize("mode", _MODES)
def test_modes_keep_each_other_out(twin: PostgresTwin, other: Any, mode: str) -> None:
    """Also through a view: it locks the tables that it reads."""
    twin.louver.execute("BEGIN")
    twin.louver.execute(f"LOCK TABLE v IN {mode} MODE")
    # Who does not wait does not come to this limit.
    other.execute(f"SET lock_timeout = '{_LIMIT_S}s'")
    begun_s = time.monotonic()
    for wanted in _MODES:
        other.execute("BEGIN")
        state = ""
        try:
            other.execute(f"LOCK TABLE t IN {wanted} MODE NOWAIT")
        except errors.Error as error:
            state = str(error.sqlstate)
        other.execute("ROLLBACK")
        assert state == ("55P03" if wanted in _CONFLICTS[mode] else ""), wanted
    assert time.monotonic() - begun_s < _LIMIT_S
    twin.louver.execute("ROLLBACK")


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
def test_who_waits_sees_what_was_committed(twin: PostgresTwin, other: Any, level: str) -> None:
    """Rows, and a catalog of later date: values beyond the bounds that were known, a new table."""
    seen, failures = list[Any](), list[BaseException]()

    def wait() -> None:
        try:
            other.execute(f"BEGIN ISOLATION LEVEL {level}")
            other.execute("LOCK TABLE u")
            other.execute("LOCK TABLE t IN EXCLUSIVE MODE")
            seen.extend(other.execute("SELECT a FROM t").fetchall())
            other.execute("INSERT INTO t (a) SELECT max(a) + 1 FROM t")
            other.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 - it is of another thread
            failures.append(error)

    other.execute("SELECT a FROM t")
    twin.louver.execute("BEGIN")
    twin.louver.execute("LOCK TABLE u")
    twin.louver.execute("LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE")
    waiting = threading.Thread(target=wait)
    waiting.start()
    twin.louver.execute("INSERT INTO t (a) VALUES (1000000)")
    twin.louver.execute("CREATE TABLE IF NOT EXISTS later (a integer ENC)")
    waiting.join(0.3)
    assert waiting.is_alive()
    twin.louver.execute("COMMIT")
    waiting.join(20)
    assert not failures, failures
    assert seen == [(1_000_000,)]
    rows = twin.louver.execute("SELECT a FROM t ORDER BY a").fetchall()
    assert rows == [(1_000_000,), (1_000_001,)]


def test_a_lock_is_held_while_other_statements_run(twin: PostgresTwin, other: Any) -> None:
    """Nothing that the transaction does gives it back for a moment."""
    twin.louver.execute("BEGIN")
    twin.louver.execute("LOCK TABLE t IN EXCLUSIVE MODE")
    for sql in ("SELECT count(*) FROM t", "INSERT INTO t (a) VALUES (1)", "SAVEPOINT s",
                "UPDATE t SET a = 2", "ROLLBACK TO s", "SELECT a FROM t"):  # fmt: skip
        twin.louver.execute(sql)
        other.execute("BEGIN")
        with pytest.raises(errors.Error) as caught:
            other.execute("LOCK TABLE t IN ROW SHARE MODE NOWAIT")
        assert caught.value.sqlstate == "55P03"
        other.execute("ROLLBACK")
    twin.louver.execute("COMMIT")
    other.execute("BEGIN")
    other.execute("LOCK TABLE t NOWAIT")
    other.execute("ROLLBACK")


@pytest.mark.parametrize("first", ["INSERT INTO u VALUES (1)", "SAVEPOINT s"])
def test_a_lock_that_would_come_too_late_is_refused(twin: PostgresTwin, first: str) -> None:
    """What the transaction sees is fixed, and PostgreSQL would show what others did meanwhile."""
    for sql in ("BEGIN", "LOCK TABLE pg_class"):
        outcome = twin.on_louver(sql)
    assert isinstance(outcome.error, errors.NotSupportedError)
    twin.louver.execute("ROLLBACK")
    twin.louver.execute("BEGIN")
    twin.louver.execute(first)
    outcome = twin.on_louver("LOCK TABLE t")
    assert isinstance(outcome.error, errors.Error)
    assert outcome.error.code == "postgres.refused"
    twin.louver.execute("ROLLBACK")
