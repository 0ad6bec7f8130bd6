"""Tables that are made anew under statements that ran before, within transactions too."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

from tests.front_door import door as doors
from tests.front_door.door import Door

_TYPES = {
    "integer": "7", "text": "'a'", "date": "'2024-02-03'", "integer[]": "'{1,2}'",
    "numeric(6,2)": "2.5",
}  # fmt: skip
_QUERIES = (
    "SELECT * FROM again", "SELECT again.a FROM again WHERE again.a IS NOT NULL",
    "SELECT count(*) FROM again", "SELECT max(a::text) FROM again",
)  # fmt: skip


def _outcome(con: psycopg.Connection[Any], sql: str) -> object:
    try:
        cursor = con.execute(sql, prepare=False)
    except psycopg.Error as error:
        return error.sqlstate
    return cursor.fetchall() if cursor.description else cursor.statusmessage


def _statements(draw: random.Random) -> list[tuple[int, str, str]]:
    """What a client runs at the door, and what in plaintext."""
    listed, inside = [], False
    for _ in range(14):
        client = 0 if inside else draw.randrange(2)
        kind = draw.choice(("anew", "alter", "block", "block", "insert"))
        texts: list[str] = []
        if kind == "block":
            texts.append(draw.choice(("COMMIT", "ROLLBACK")) if inside else "BEGIN")
            client, inside = 0, not inside
        elif kind == "insert":
            texts.append("INSERT INTO again SELECT NULL")
        else:
            type_, value = draw.choice(list(_TYPES.items()))
            if kind == "anew":
                protection = draw.choice(("", " ENC"))
                texts += ["DROP TABLE again", f"CREATE TABLE again (a {type_}{protection})"]
                texts.append(f"INSERT INTO again VALUES ({value})")
            else:
                texts.append(f"ALTER TABLE again ALTER a TYPE {type_} USING NULL")
        texts += _QUERIES
        listed += [(client, text, text.replace(" ENC)", ")")) for text in texts]
    return listed


@pytest.mark.parametrize("seed", range(4))
def test_statements_see_the_table_that_is_there(door: Door, seed: int) -> None:
    draw = random.Random(seed)
    with (
        door.connect() as first, door.connect() as second, doors.plain() as plain,
        psycopg.connect(plain.info.dsn, autocommit=True) as other,
    ):  # fmt: skip
        for con in (first, plain):
            con.execute("DROP TABLE IF EXISTS again")
            con.execute("CREATE TABLE again (a integer)")
        for client, text, plain_text in _statements(draw):
            wanted = _outcome((plain, other)[client], plain_text)
            assert _outcome((first, second)[client], text) == wanted, text


def test_types_keep_their_numbers_over_rollback_to_a_savepoint(door: Door) -> None:
    """Drivers know types by numbers; only what is undone after the savepoint is made anew."""
    with door.connect() as con, con.transaction():
        con.execute("CREATE TYPE spans AS RANGE (subtype = text)")
        (number,) = con.execute("SELECT 'spans'::regtype::oid::int8").fetchone() or (0,)
        for _ in range(2):
            with con.transaction(force_rollback=True):
                con.execute("SELECT 1")
            described = con.execute("SELECT '[a,z]'::spans").description or []
            assert [column.type_code for column in described] == [number]
        with con.transaction(force_rollback=True):
            con.execute("CREATE TABLE of_spans (s spans)")
        assert con.execute("SELECT to_regclass('of_spans')").fetchone() == (None,)
        assert con.execute("SELECT '[a,z]'::spans").fetchone() == ("[a,z]",)


@pytest.mark.parametrize(
    "sql",
    [
        "RENAME a TO b",
        "ALTER v TYPE varchar(9)",
        "ADD w integer",
        "ALTER v SET NOT NULL",
        "ALTER v TYPE text",
        "ALTER m TYPE numeric(9,3)",
    ],
)
@pytest.mark.parametrize("protection", ["", " ENC"])
def test_a_prepared_statement_keeps_its_columns(door: Door, sql: str, protection: str) -> None:
    """Of other names, types or lengths it is an error, until it is prepared again."""
    outcomes = []
    for connect, words in ((doors.plain, ""), (door.connect, protection)):
        with connect() as con, psycopg.connect(con.info.dsn, autocommit=True) as other:
            columns = f"a integer{words}, v varchar(5){words}, m numeric(8,2){words}"
            con.execute("DROP TABLE IF EXISTS kept")
            con.execute(f"CREATE TABLE kept ({columns})")
            con.execute("INSERT INTO kept VALUES (1, 'x', 2)")
            own = []
            for change in ("", f"ALTER TABLE kept {sql}", "DEALLOCATE ALL"):
                if change:
                    (other if change.startswith("ALTER") else con).execute(change)
                for _ in range(5):
                    try:
                        own.append(con.execute("SELECT * FROM kept", prepare=True).fetchall())
                    except psycopg.Error as error:
                        own.append([(error.sqlstate,)])
            outcomes.append(own)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("away", "back"),
    [
        ("DROP TABLE gone", "CREATE TABLE gone (id integer PRIMARY KEY, a integer)"),
        ("ALTER TABLE gone RENAME TO other", "ALTER TABLE other RENAME TO gone"),
        ("ALTER TABLE gone RENAME a TO b", "ALTER TABLE gone RENAME b TO a"),
    ],
)
def test_what_was_gone_is_seen_when_it_is_back(door: Door, away: str, back: str) -> None:
    with door.connect() as first, door.connect() as second:
        first.execute("DROP TABLE IF EXISTS gone, other")
        first.execute("CREATE TABLE gone (id integer PRIMARY KEY, a integer)")
        for _ in range(6):
            second.execute("SELECT a FROM gone WHERE id = %s", (1,), prepare=True)
        first.execute(away)
        for _ in range(2):
            with pytest.raises(psycopg.errors.ProgrammingError):
                second.execute("SELECT a FROM gone WHERE id = %s", (1,), prepare=True)
        first.execute(back)
        first.execute("INSERT INTO gone VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET a = 5")
        rows = second.execute("SELECT a FROM gone WHERE id = %s", (1,), prepare=True).fetchall()
        assert rows == [(5,)]


_ENDS = (
    ("BEGIN", "SET default_transaction_read_only = on", "ROLLBACK", "U"),
    ("BEGIN", "U", "SET default_transaction_read_only = on", "U", "ROLLBACK", "U", "BEGIN", "U"),
    ("SET default_transaction_read_only = on", "BEGIN",
     "SET default_transaction_read_only = off", "COMMIT", "U"),
    ("BEGIN", "SET LOCAL default_transaction_read_only = on", "U", "COMMIT", "U", "BEGIN", "U"),
    ("SET default_transaction_read_only = on", "BEGIN", "SET default_transaction_read_only = off",
     "U", "ROLLBACK", "U", "SET default_transaction_read_only = off", "U"),
    ("SET LOCAL default_transaction_read_only = on", "U"),
)  # fmt: skip


@pytest.mark.parametrize("texts", _ENDS)
@pytest.mark.parametrize("times", [0, 6])
def test_what_transactions_are_is_undone_with_one(
    door: Door, texts: tuple[str, ...], times: int
) -> None:
    """As any setting; whatever is known of the statements."""
    update, outcomes = "UPDATE ro SET a = a + 1 WHERE id = %s", []
    with doors.plain() as first, door.connect() as second:
        for con in (first, second):
            con.execute("DROP TABLE IF EXISTS ro")
            con.execute("CREATE TABLE ro (id integer PRIMARY KEY, a integer)")
            con.execute("INSERT INTO ro VALUES (1, 1)")
            own: list[object] = []
            for text in (*["U"] * times, *texts, "SHOW default_transaction_read_only"):
                given = (1,) if text == "U" else ()
                try:
                    cursor = con.execute(update if text == "U" else text, given, prepare=True)
                    own.append(cursor.fetchall() if cursor.description else cursor.statusmessage)
                except psycopg.Error as error:
                    own.append(error.sqlstate)
            outcomes.append(own)
            con.rollback()
            con.execute("SET default_transaction_read_only = off")
    assert outcomes[0] == outcomes[1]
