"""Queries by keys that come again are read without Python: the same rows, the same ledger, whatever
other clients do meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest

import louver
from louver.trusted.apps.pgproxy.client import Client
from louver.trusted.client import connect
from tests import shared
from tests.front_door import door as doors
from tests.front_door.door import Door, opened
from tests.postgres import servers

_COLUMNS = (
    ("id", "bigint"), ("n", "integer"), ("s", "text"), ("d", "date"), ("f", "double precision"),
    ("m", "numeric(12,2)"), ("t", "timestamptz"), ("u", "uuid"), ("j", "jsonb"), ("b", "boolean"),
)  # fmt: skip
_QUERIES = (
    ("SELECT * FROM k WHERE id = %s", "n"), ("SELECT s, n FROM k WHERE s = %s", "s"),
    ("SELECT n, s AS n2, id FROM k WHERE n = %s", "n"),
    ("SELECT f, m FROM k WHERE id IN (%s, %s)", "nn"),
    ("SELECT d, t, u FROM k WHERE id = %s AND s = %s", "ns"),
    ("SELECT j, b FROM k WHERE id = 3 AND n = %s", "n"),
)  # fmt: skip
_NUMBERS = (*range(1, 9), 100, 100, 101, 599, 0, -1, None, 2**31, 2**31 - 1, 2**62)
_TEXTS = ("s100", "s101", "a", "b", "", "ä'", "missing", None, "x" * 300)


@pytest.fixture
def sides(door: Door) -> Iterator[tuple[psycopg.Connection[Any], ...]]:
    """Plaintext, the door, and another client of each."""
    with (
        doors.plain() as first, door.connect() as second, door.connect() as third,
        psycopg.connect(first.info.dsn, autocommit=True) as other,
    ):  # fmt: skip
        for con, enc in ((first, ""), (second, " ENC")):
            con.execute("DROP TABLE IF EXISTS k")
            con.execute("SET TimeZone = 'UTC'")
            listed = ", ".join(f"{name} {type_}{enc}" for name, type_ in _COLUMNS)
            con.execute(f"CREATE TABLE k ({listed}, PRIMARY KEY (id), UNIQUE (s))")
            # Of few rows all are read.
            con.execute(
                "INSERT INTO k (id, n, s)"
                " SELECT i, i, 's' || i FROM generate_series(100, 599) AS g(i)"
            )
        third.execute("SET TimeZone = 'UTC'")
        other.execute("SET TimeZone = 'UTC'")
        yield first, second, third, other


def _change(draw: random.Random) -> str:
    number, text = draw.randint(1, 9), draw.choice(("a", "b", "ä''", "c"))
    return draw.choice((
        f"INSERT INTO k (id, n, s, d, f, m, t, u, j, b) VALUES ({number}, {number}, '{text}',"
        f" '2024-02-0{number}', {number} / 7.0, {number}.5, '2024-01-0{number} 10:00+00',"
        f" '00000000-0000-0000-0000-00000000000{number}', '[{number}]', true)"
        " ON CONFLICT DO NOTHING",
        f"UPDATE k SET n = n + 1, f = NULL WHERE id = {number}",
        f"DELETE FROM k WHERE id = {number}",
        f"UPDATE k SET id = {number + 20} WHERE id = {number}",
        "ALTER TABLE k ADD COLUMN more text DEFAULT 'x'",
        "ALTER TABLE k DROP COLUMN IF EXISTS more",
        "ALTER TABLE k RENAME TO other; ALTER TABLE other RENAME TO k",
        "DELETE FROM k WHERE id < 50",
    ))  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_plaintext(sides: tuple[psycopg.Connection[Any], ...], seed: int) -> None:
    """Prepared queries in both formats, while this client and another one change rows and columns,
    and settings of texts change.
    """
    first, second, third, other = sides
    draw = random.Random(seed)
    for _ in range(120):
        if draw.random() < 0.3:
            sql, writers = _change(draw), draw.choice(((first, second), (other, third)))
            states = []
            for writer in writers:
                try:
                    writer.execute(sql)
                    states.append("")
                except psycopg.Error as error:
                    states.append(error.sqlstate or "")
            assert states[1] == states[0], sql
        if draw.random() < 0.05:
            style = draw.choice(("ISO, MDY", "German"))
            for con in (first, second):
                con.execute(f"SET DateStyle = '{style}'")
        sql, kinds = draw.choice(_QUERIES)
        values = [draw.choice(_NUMBERS if kind == "n" else _TEXTS) for kind in kinds]
        binary = draw.random() < 0.5
        results: list[tuple[object, list[int]]] = []
        for con in (first, second):
            try:
                cursor = con.cursor(binary=binary).execute(sql, values, prepare=True)
                rows = sorted(map(repr, cursor.fetchall()))
                results.append((rows, [c.type_code for c in cursor.description or ()]))
            except psycopg.Error as error:
                results.append((error.sqlstate or "", []))
        assert results[1] == results[0], (sql, values, binary)


_KEYS: dict[str, tuple[str, tuple[object, ...]]] = {
    "numeric(8,2)": ("i * 0.25", (
        1, 25, "1.25", "25.00", "2.5", "1.250", "1.255", "NaN", "1e1", " 5", "x", None, 10**7,
        Decimal("2.50"), Decimal("12.5"), Decimal("1E+1"), Decimal("3.005"), -1, 2**40, "0x19",
    )),
    "uuid": ("('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid", (
        *(UUID(f"00000000-0000-0000-0000-{n:012}") for n in (1, 25, 100, 501)), "x", None, "",
        "00000000-0000-0000-0000-000000000025", "{00000000-0000-0000-0000-000000000025}",
        "00000000000000000000000000000025", "00000000-0000-0000-0000-00000000000A", 25,
    )),
}  # fmt: skip
_BY_KEY = (
    "SELECT v, id FROM q WHERE id = %{}", "SELECT v FROM q WHERE id IN (%{}, %{})",
    "UPDATE q SET v = v + 1 WHERE id = %{}", "UPDATE q SET id = %{} WHERE id = %{}",
    "DELETE FROM q WHERE id = %{}", "INSERT INTO q VALUES (%{}, 7)",
    "SELECT v FROM q WHERE id > %{} ORDER BY v",
)  # fmt: skip


@pytest.mark.parametrize("enc", ["", " ENC"])
@pytest.mark.parametrize("type_", [*_KEYS])
def test_keys_of_other_types(door: Door, type_: str, enc: str) -> None:
    """Values in both formats, also such that are the same ones written otherwise, or none."""
    draw, (first_rows, known) = random.Random(type_ + enc), _KEYS[type_]
    with doors.plain() as first, door.connect() as second:
        for con, word in ((first, ""), (second, enc)):
            con.execute("DROP TABLE IF EXISTS q")
            con.execute(f"CREATE TABLE q (id {type_}{word} PRIMARY KEY, v integer{word})")
            con.execute(f"INSERT INTO q SELECT {first_rows}, i FROM generate_series(1, 500) i")
        for _ in range(120):
            text = draw.choice(_BY_KEY)
            # A column of numbers with a scale takes no NaN here.
            stored = [v for v in known if text.startswith("SELECT") or v != "NaN"]
            values = [draw.choice(stored) for _ in range(text.count("{}"))]
            text = text.format(*(draw.choice("sbt" if type(v) is not str else "s") for v in values))
            for _ in range(draw.choice((1, 1, 4))):
                results: list[object] = []
                for con in (first, second):
                    try:
                        cursor = con.execute(text, values, prepare=True)
                        rows = cursor.fetchall() if cursor.description else ()
                        results.append((cursor.statusmessage, sorted(map(repr, rows))))
                    except psycopg.Error as error:
                        results.append(error.sqlstate)
                assert results[1] == results[0], (text, values)


def test_transactions_see_their_own_rows(sides: tuple[psycopg.Connection[Any], ...]) -> None:
    _, second, third, _ = sides
    second.execute("INSERT INTO k (id, s) VALUES (1, 'a')")
    sql = "SELECT s FROM k WHERE id = %s"

    def read(con: psycopg.Connection[Any]) -> Any:
        return con.execute(sql, (1,), prepare=True).fetchall()

    for _ in range(5):
        assert read(second) == read(third) == [("a",)]
    with second.transaction(force_rollback=True):
        second.execute("UPDATE k SET s = 'b' WHERE id = 1")
        assert read(second) == [("b",)]
        assert read(third) == [("a",)]
    assert read(second) == [("a",)]


def test_every_condition_is_in_the_ledger() -> None:
    """Which rows are read is counted ahead, never behind."""
    with opened() as door, door.connect() as con:
        con.execute("CREATE TABLE c (id bigint ENC PRIMARY KEY, s text ENC)")
        con.execute("INSERT INTO c SELECT i, 'x' FROM generate_series(1, 300) AS s(i)")
        for number in range(1, 301):
            row = con.execute("SELECT s FROM c WHERE id = %s", (number,), prepare=True).fetchone()
            assert row == ("x",)
            if number in (40, 300):
                with louver.connect(door.url, keys=str(shared.key_file())) as own:
                    counts = own.leakage().arrow().column("conditions").to_pylist()
                assert max(count for count in counts if count is not None) >= number


def test_what_is_altered_at_the_server_is_noticed() -> None:
    """The general way says so, as of any query."""
    with opened() as door, door.connect() as con, doors.at_server(door) as server:
        con.execute("CREATE TABLE c (id bigint ENC PRIMARY KEY, s text ENC)")
        con.execute("INSERT INTO c VALUES (1, 'one'), (2, 'two')")
        sql = "SELECT s FROM c WHERE id = %s"
        for _ in range(5):
            assert con.execute(sql, (1,), prepare=True).fetchone() == ("one",)
        (names,) = zip(*server.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'public.c'::regclass AND attnum > 0"
            " AND attname ~ '^e_' ORDER BY attnum").fetchall(), strict=True)  # fmt: skip
        listed = ", ".join(f"{name} = other.{name}" for name in names)
        server.execute(
            f"UPDATE public.c SET {listed} FROM public.c AS other WHERE c.ctid <> other.ctid"
        )
        with pytest.raises(psycopg.Error) as caught:
            con.execute(sql, (1,), prepare=True)
        assert "value.tampered" in str(caught.value.diag.message_hint)


def test_which_queries_are_read_so() -> None:
    """By keys, or values of columns, as they are; everything else stays Python's."""
    url = servers.database_url("door_reading")
    client = Client(connect.open_session(url, str(shared.key_file()), "cryptdb"), "anna")
    try:
        for sql in (
            "CREATE TABLE k (id bigint ENC PRIMARY KEY, s text ENC UNIQUE, n integer ENC)",
            # Of few rows all are read.
            "INSERT INTO k SELECT i, 's' || i, i FROM generate_series(1, 500) AS g(i)",
            "CREATE TABLE q (a numeric(9,2) ENC, b text ENC, v integer, PRIMARY KEY (a, b))",
            "INSERT INTO q SELECT i, 's', i FROM generate_series(1, 500) AS g(i)",
            "CREATE TABLE u (id uuid ENC PRIMARY KEY, v integer ENC)",
            "INSERT INTO u SELECT ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, i"
            " FROM generate_series(1, 500) AS g(i)",
        ):
            client.run(client.prepare(sql, []), [], [], [])
        for sql, reads in (
            ("SELECT * FROM k WHERE id = $1", True), ("SELECT n FROM k WHERE s = $1", True),
            ("SELECT n FROM k WHERE id = $1 AND n > 1", False),
            ("SELECT n FROM k WHERE n = $1", True), ("SELECT n + 1 FROM k WHERE id = $1", False),
            ("SELECT count(*) FROM k WHERE id = $1", False),
            ("SELECT n FROM k WHERE id = $1 FOR UPDATE", False), ("SELECT $1::int", False),
            ("SELECT v FROM q WHERE b = $1 AND a = $2", True),
            ("SELECT v FROM q WHERE a = $1", True), ("SELECT * FROM u WHERE id = $1", True),
            ("SELECT v FROM u WHERE id IN ($1, $2)", True),
        ):  # fmt: skip
            prepared = client.prepare(sql, [])
            of_uuid = 2950
            values = [
                b"00000000-0000-0000-0000-000000000001" if type_ == of_uuid else b"1"
                for type_ in prepared.parameters
            ]
            for _ in range(3):
                client.run(prepared, values, [0] * len(values), [])
                client.after()
            assert (type(client.way(prepared)).__name__ == "Read") == reads, sql
        before = client.after()[4]
        assert client.after()[4] == before
        client.run(client.prepare("CREATE TABLE other (a int)", []), [], [], [])
        assert client.after()[4] > before
    finally:
        client.close()
        servers.drop_databases()
