"""What clients are told beside rows: notices, positions of errors, what an error does not say."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.front_door import door as doors
from tests.front_door.door import USER, Door, opened
from tests.front_door.raw import Raw, query
from tests.postgres import servers

Told = list[tuple[str, str, str]]


@pytest.fixture(scope="module")
def pair(door: Door) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """Plain PostgreSQL and the door."""
    with doors.plain() as plain, door.connect() as own:
        for con in (plain, own):
            con.execute("CREATE TABLE there (id bigint PRIMARY KEY, s text)")
            con.execute("CREATE VIEW seen AS SELECT id FROM there")
            con.execute("CREATE SEQUENCE counted")
        yield plain, own


def _told(con: psycopg.Connection[Any], sql: str) -> Told:
    results: Told = []

    def handle(said: psycopg.errors.Diagnostic) -> None:
        text = f"{said.message_primary} {said.message_detail or ''}"
        results.append((said.severity_nonlocalized or "", said.sqlstate or "", text))

    con.add_notice_handler(handle)
    try:
        con.execute(sql)
    except psycopg.Error as error:
        results.append(("ERROR", error.sqlstate or "", str(error.diag.statement_position)))
    finally:
        con.remove_notice_handler(handle)
    return results


_STATEMENTS = (
    "COMMIT", "ROLLBACK", "END", "BEGIN; BEGIN; COMMIT", "BEGIN", "START TRANSACTION", "ABORT",
    "SET LOCAL DateStyle = ISO", "SET TRANSACTION READ ONLY", "SET CONSTRAINTS ALL DEFERRED",
    "CREATE TABLE IF NOT EXISTS there (id bigint)",
    "CREATE TABLE IF NOT EXISTS public.there (id bigint)",
    "CREATE TABLE IF NOT EXISTS new_one (id bigint)", "DROP TABLE IF EXISTS new_one",
    "DROP TABLE IF EXISTS missing", "DROP TABLE IF EXISTS missing, other",
    "DROP VIEW IF EXISTS missing", "DROP SEQUENCE IF EXISTS missing CASCADE",
    "CREATE SCHEMA IF NOT EXISTS public", "CREATE SEQUENCE IF NOT EXISTS counted",
    "DROP INDEX IF EXISTS missing", "DROP TYPE IF EXISTS missing", "DROP SCHEMA IF EXISTS missing",
    "ALTER TABLE IF EXISTS missing ADD COLUMN a int",
    "ALTER TABLE there ADD COLUMN IF NOT EXISTS s text",
    "ALTER TABLE there DROP COLUMN IF EXISTS missing",
    "CREATE INDEX IF NOT EXISTS there_pkey ON there (s)",
    "CREATE TABLE p (id bigint); CREATE VIEW pv AS SELECT id FROM p; DROP TABLE p CASCADE",
    "SET client_min_messages = warning", "DROP TABLE IF EXISTS missing", "COMMIT",
    "SET client_min_messages = error", "COMMIT", "RESET client_min_messages", "COMMIT",
    # Positions count from the begin of the whole text.
    "SELECT 1; SELECT missing", "SELECT 'ä'; SELECT 1;  SELECT missing FROM there",
    "SELECT 1; SELECT 1 +; SELECT 2", "  SELECT wrong", "SELECT 1; SELECT 1 / 0",
    "SELECT 1 AS a;\n-- remark;\nSELECT /* x; */ nothing",
    "SELECT 1; INSERT INTO there (x) VALUES (1)",
)  # fmt: skip


def test_notices_and_positions_are_postgresqls(
    pair: tuple[psycopg.Connection[Any], psycopg.Connection[Any]],
) -> None:
    plain, own = pair
    for sql in _STATEMENTS:
        assert _told(own, sql) == _told(plain, sql), sql


def test_a_notice_precedes_the_end_of_its_statement(door: Door) -> None:
    con = Raw.opened(door.port, USER, door.database)
    con.send(query("COMMIT; SELECT 1"))
    letters: list[str] = []
    while not letters or letters[-1] != "Z":
        letters.append(con.next()[0])
    assert letters == ["N", "C", "T", "D", "C", "Z"]
    con.close()


@pytest.mark.parametrize(
    "options", ["(FORMAT bogus)", "(DELIMITER 'ab')", "(FORMAT csv, QUOTE 'ab')", "(nothing 1)"]
)
@pytest.mark.parametrize("way", ["FROM STDIN", "TO STDOUT"])
def test_wrong_options_of_copy_are_said_at_once(
    pair: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], options: str, way: str
) -> None:
    states = []
    for con in pair:
        with (
            pytest.raises(psycopg.Error) as caught,
            con.cursor().copy(f"COPY there {way} {options}"),
        ):
            raise AssertionError("it has begun")
        states.append(caught.value.sqlstate)
    assert states[0] == states[1]


def test_reset_goes_back_to_what_the_client_began_with(door: Door) -> None:
    options = "-c DateStyle=German -c statement_timeout=54321 -c default_transaction_read_only=on"
    with doors.plain() as plain:
        dsn = plain.info.dsn
    with (
        door.connect(options=options, application_name="it") as own,
        psycopg.connect(dsn, autocommit=True, options=options, application_name="it") as other,
    ):
        for sql in (
            "SHOW DateStyle", "SET DateStyle = ISO", "SHOW DateStyle", "RESET DateStyle",
            "SHOW DateStyle", "SET DateStyle = SQL", "SET application_name = 'other'",
            "SET default_transaction_read_only = off", "SET statement_timeout = 1000", "RESET ALL",
            "SHOW DateStyle", "SHOW application_name", "SHOW default_transaction_read_only",
            "SHOW statement_timeout", "BEGIN", "SET DateStyle = ISO", "ROLLBACK", "SHOW DateStyle",
            "BEGIN", "SET LOCAL DateStyle = ISO", "SHOW DateStyle", "COMMIT", "SHOW DateStyle",
            "SET DateStyle TO DEFAULT", "SHOW DateStyle", "DISCARD ALL", "SHOW DateStyle",
            "SET default_transaction_read_only = off", "RESET default_transaction_read_only",
            "SHOW transaction_read_only", "SET TimeZone = UTC", "RESET TimeZone",
        ):  # fmt: skip
            answers = [con.execute(sql) for con in (own, other)]
            results = [a.fetchall() if a.description else a.statusmessage for a in answers]
            assert results[0] == results[1], sql


def test_the_address_behind_is_not_told() -> None:
    wheel = servers.binaries()["wheel"]
    errors: list[psycopg.Error] = []
    with servers.started(wheel) as server, opened(url=server.url("postgres")) as door:
        con = door.connect()
        con.execute("CREATE TABLE t (id bigint ENC PRIMARY KEY)")
        con.execute("SELECT 1 FROM t")
        server.process.send_signal(signal.SIGINT)
        server.process.wait(30)
        for sql in ("INSERT INTO t VALUES (1)", "SELECT count(*) FROM t"):
            with pytest.raises(psycopg.Error) as caught:
                con.execute(sql)
            errors.append(caught.value)
        with pytest.raises(psycopg.OperationalError) as refused:
            door.connect()
        errors.append(refused.value)
    for error in errors:
        said = f"{error} {error.diag.message_hint}"
        assert str(server.folder) not in said
        assert ".s.PGSQL" not in said
        assert "postgresql:" not in said
        assert "upstream" in said


def test_users_that_are_added_at_once_are_all_there(tmp_path: Path) -> None:
    users = tmp_path / "users"
    command = [
        sys.executable,
        "-m",
        "louver.trusted.apps.cli",
        "serve",
        "pg",
        "--users",
        str(users),
    ]
    names = [f"user{number}" for number in range(8)]
    processes = [
        subprocess.Popen([*command, "--add-user", name], stdin=subprocess.PIPE, text=True)
        for name in names
    ]
    for process in processes:
        process.communicate("secret\n", timeout=60)
        assert process.returncode == 0
    lines = users.read_text().splitlines()
    assert sorted(line.split(" ")[0] for line in lines) == names
