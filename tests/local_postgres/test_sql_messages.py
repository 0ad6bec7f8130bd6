"""LISTEN, NOTIFY and advisory locks: what clients tell each other through the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import louver
from louver import errors
from louver.trusted.client.dbapi import Connection
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.postgres import pseudonyms
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.postgres import open_url
from louver.wire.messages import Statement
from louver.wire.tap import Tap
from tests import shared
from tests.local_postgres.twin import PostgresTwin
from tests.postgres import servers


@pytest.fixture(scope="module")
def opened() -> Iterator[tuple[PostgresTwin, Any]]:
    twin = PostgresTwin()
    twin.run("CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC)")
    twin.run("INSERT INTO t VALUES (1, 'x')")
    other = louver.connect(twin.url, str(shared.key_file()), "cryptdb", language="postgres")
    yield twin, other
    other.close()
    twin.close()


@pytest.fixture
def both(opened: tuple[PostgresTwin, Any]) -> tuple[PostgresTwin, Any]:
    twin, other = opened
    for own in (twin.louver, other):
        own.execute("ROLLBACK")
        own.execute("UNLISTEN *")
        own.execute("SELECT pg_advisory_unlock_all()")
        own.poll()
    twin.plain.execute("ROLLBACK")
    twin.plain.execute("SELECT pg_advisory_unlock_all()")
    return opened


def received(connection: Any, count: int, timeout_s: float = 10) -> list[tuple[str, str]]:
    """So many messages, and those that come with them."""
    messages = connection.notifies(timeout_s=timeout_s, stop_after=count)
    return [(message.channel, message.payload) for message in messages]


def test_messages_arrive_as_they_were_sent(both: tuple[PostgresTwin, Any]) -> None:
    (twin, other), own = both, both[0].louver
    own.execute("LISTEN jobs")
    own.execute('LISTEN "Other ä"')
    other.execute("NOTIFY jobs, 'it''s here'")
    other.execute("NOTIFY nobody, 'x'")
    other.execute('NOTIFY "Other ä"')
    other.execute("SELECT pg_notify('jobs', $1)", ["Ä" * 2_500])
    expected = [("jobs", "it's here"), ("Other ä", ""), ("jobs", "Ä" * 2_500)]
    assert received(own, 3) == expected
    own.execute("NOTIFY jobs, E'a\\nb'")
    assert received(own, 1) == [("jobs", "a\nb")]
    own.execute("UNLISTEN jobs")
    other.execute("NOTIFY jobs, 'gone'")
    other.execute("NOTIFY \"Other ä\", 'last'")
    assert received(own, 1) == [("Other ä", "last")]
    assert received(own, 1, timeout_s=0) == []
    assert twin.on_louver("SELECT pg_notify('jobs', 'x') AS done").columns == [("done", "void")]


def test_what_no_client_sent_hides_no_other_message(both: tuple[PostgresTwin, Any]) -> None:
    (twin, other), own = both, both[0].louver
    own.execute("LISTEN jobs")
    pseudonym = pseudonyms.channel(own._session.context, "jobs")
    server = open_url(twin.url)
    other.execute("NOTIFY jobs, 'before'")
    for payload in ("forged", ""):
        server.query(Statement("SELECT pg_notify($1, $2) IS NULL", (pseudonym, payload)))
    other.execute("NOTIFY jobs, 'after'")
    outcomes: list[object] = []
    while ("jobs", "after") not in outcomes:
        try:
            outcomes += [(message.channel, message.payload) for message in own.poll()]
        except errors.VerificationError as error:
            outcomes.append(error.code)
        assert len(outcomes) < 5
    assert outcomes == [("jobs", "before"), "reply.format", "result.tampered", ("jobs", "after")]
    server.close()


def test_a_transaction_sends_and_listens_when_it_is_committed(
    both: tuple[PostgresTwin, Any],
) -> None:
    (_, other), own = both, both[0].louver
    own.execute("BEGIN")
    own.execute("LISTEN jobs")
    own.execute("COMMIT")
    own.execute("BEGIN")
    own.execute("UNLISTEN *")
    own.execute("ROLLBACK")
    other.execute("BEGIN")
    for text in ("a", "b", "a"):
        other.execute(f"NOTIFY jobs, '{text}'")
    other.execute("SAVEPOINT s")
    other.execute("NOTIFY jobs, 'undone'")
    other.execute("ROLLBACK TO s")
    other.execute("NOTIFY jobs, 'b'")
    assert received(own, 1, timeout_s=0.1) == []
    other.execute("NOTIFY jobs, 'undone'")
    other.execute("COMMIT")
    assert received(own, 3) == [("jobs", "a"), ("jobs", "b"), ("jobs", "undone")]
    other.execute("BEGIN")
    other.execute("NOTIFY jobs, 'undone'")
    other.execute("ROLLBACK")
    assert received(own, 1, timeout_s=0.1) == []


def test_errors_are_those_of_plaintext(both: tuple[PostgresTwin, Any]) -> None:
    twin, _ = both
    for sql in (
        "NOTIFY", "NOTIFY a.b", "NOTIFY a, 1", "LISTEN", "LISTEN *", "UNLISTEN", "LISTEN a, b",
        "SELECT pg_notify('', 'x')", "SELECT pg_notify(NULL, 'x')", "SELECT pg_notify('a')",
        f"SELECT pg_notify('{'a' * 64}', 'x')", f"NOTIFY a, '{'x' * 8000}'",
        "SELECT pg_advisory_lock('x')", "SELECT pg_advisory_lock(1, 2, 3)",
        "SELECT pg_advisory_lock(1/0)", "SELECT pg_advisory_lock(2147483648, 1)",
    ):  # fmt: skip
        outcome = twin.differs(sql)
        assert not outcome, (sql, outcome)
    assert twin.on_louver(f"NOTIFY a, '{'x' * 5900}'").error is None
    assert twin.on_louver(f"NOTIFY a, '{'x' * 6000}'").state == "22023"
    for sql in (
        "SELECT pg_notify('a', a) FROM t", "SELECT pg_notify('a', (SELECT a FROM t))",
        "SELECT pg_advisory_lock((SELECT max(id) FROM t))", "SELECT pg_advisory_lock(id) FROM t",
        "SELECT 1, pg_advisory_lock(1)", "SELECT pg_advisory_lock(1) + 1",
        "INSERT INTO t SELECT 1 WHERE pg_notify('a', 'b') IS NULL",
    ):  # fmt: skip
        assert twin.on_louver(sql).error is not None, sql


def test_locks_are_those_of_plaintext(both: tuple[PostgresTwin, Any]) -> None:
    twin, _ = both
    for sql in (
        "SELECT pg_advisory_lock(1)", "SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)",
        "SELECT pg_advisory_unlock(1)", "SELECT pg_advisory_unlock(1)",
        "SELECT pg_try_advisory_lock(hashtext('a')::bigint) AS got",
        "SELECT pg_advisory_lock(NULL)",
        "SELECT pg_catalog.pg_try_advisory_lock_shared(1, 2)", "SELECT pg_advisory_unlock(1, 2)",
        "SELECT pg_advisory_unlock_shared(1, 2)", "SELECT pg_advisory_unlock_all()", "BEGIN",
        "SELECT pg_advisory_xact_lock(7)", "SELECT pg_try_advisory_xact_lock_shared(7) got",
        "SELECT count(*) FROM t", "SELECT pg_advisory_unlock(7)", "SAVEPOINT s",
        "SELECT pg_advisory_xact_lock(8)", "ROLLBACK TO s", "COMMIT",
    ):  # fmt: skip
        twin.run(sql)
    for key in (3, None):
        twin.run("SELECT pg_try_advisory_lock($1)", [key])


def test_others_wait_for_locks(both: tuple[PostgresTwin, Any]) -> None:
    (_, other), own = both, both[0].louver
    own.execute("SELECT pg_advisory_lock(5)")
    for sql, met in (
        ("SELECT pg_try_advisory_lock(5)", False), ("SELECT pg_try_advisory_lock(6)", True),
        ("SELECT pg_try_advisory_lock(0, 5)", True),
        ("SELECT pg_try_advisory_lock_shared(5)", False),
    ):  # fmt: skip
        assert other.execute(sql).fetchall() == [(met,)], sql
    own.execute("SELECT pg_advisory_unlock(5)")
    own.execute("BEGIN")
    own.execute("SELECT pg_advisory_xact_lock(5)")
    assert other.execute("SELECT pg_try_advisory_lock(5)").fetchall() == [(False,)]
    own.execute("COMMIT")
    assert other.execute("SELECT pg_try_advisory_lock(5)").fetchall() == [(True,)]


def test_who_waited_sees_what_was_written_under_the_lock(both: tuple[PostgresTwin, Any]) -> None:
    (_, other), own = both, both[0].louver
    own.execute("BEGIN")
    own.execute("SELECT pg_advisory_xact_lock(9)")
    seen: list[Any] = []

    def wait() -> None:
        other.execute("BEGIN")
        other.execute("SELECT pg_advisory_xact_lock(9)")
        seen.extend(other.execute("SELECT a FROM t").fetchall())
        other.execute("COMMIT")

    waiting = threading.Thread(target=wait)
    waiting.start()
    own.execute("UPDATE t SET a = 'seen'")
    waiting.join(0.3)
    assert waiting.is_alive()
    own.execute("COMMIT")
    waiting.join(20)
    assert seen == [("seen",)]
    assert own.execute("SELECT pg_try_advisory_lock(9)").fetchall() == [(True,)]


def test_a_lost_session_is_told_when_it_held_locks(both: tuple[PostgresTwin, Any]) -> None:
    twin, other = both
    own = twin.louver
    own.execute("LISTEN jobs")
    for holds in (True, False):
        if holds:
            own.execute("SELECT pg_advisory_lock(11)")
        _kill(twin)
        if holds:
            with pytest.raises(errors.Error) as caught:
                own.execute("SELECT * FROM t")
            assert caught.value.code == "server.lost"
        assert own.execute("SELECT id FROM t").fetchall() == [(1,)]
    other.execute("NOTIFY jobs, 'again'")
    assert received(own, 1) == [("jobs", "again")]


def _kill(twin: PostgresTwin) -> None:
    name = twin.url.partition("?")[0].rpartition("/")[2]
    twin.plain.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
        " AND pid <> pg_backend_pid()", [name],
    )  # fmt: skip


def test_the_server_reads_nothing_of_it() -> None:
    tap = Tap(servers.new_engine())
    session = Session(tap, KeyRing.open(shared.key_file()), Policy("cryptdb"), language="postgres")
    connection = Connection(session)
    try:
        connection.execute("NOTIFY canary_channel, 'canary_payload'")
        connection.execute("NOTIFY canary_channel, 'canary_payload'")
        connection.execute("SELECT pg_try_advisory_lock(777777777)")
        connection.execute("SELECT pg_try_advisory_lock($1, 2)", [777777777])
        for canary in (b"canary", b"777777777"):
            assert not tap.search(canary)
        sent = [message for message in tap.sent() if isinstance(message, Statement)]
        first, second = (m.constants for m in sent if "pg_notify" in m.sql)
        assert first[0] == second[0]
        assert first[1] != second[1]
        assert len(str(first[1])) == len(str(second[1]))
    finally:
        connection.close()


def test_other_languages_have_none() -> None:
    connection = louver.connect("duckdb:///:memory:", str(shared.key_file()), "cryptdb")
    try:
        with pytest.raises(errors.NotSupportedError):
            connection.poll()
    finally:
        connection.close()
