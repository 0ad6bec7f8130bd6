"""Queries of rows by values of columns, in some order and in part, are read without Python: the
rows are PostgreSQL's, in its order, whatever types the columns have.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

import louver
from louver.trusted.apps.pgproxy import status
from louver.trusted.apps.pgproxy.client import Client
from louver.trusted.client import connect
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import speaking
from louver.trusted.planner.sql.postgres_dialect import DIALECT
from tests import shared
from tests.front_door import door as doors
from tests.front_door.door import Door, opened
from tests.postgres import servers

_ROWS = 700
_TEXTS = ("a", "b", "B", "ä", "Z", "", "a b", "ab", "𝒳", "￿", "a\x01", "it's", "zz top")
#: By name: type, whether it is plain, and values; those that begin a text have NULLs as well.
_COLUMNS: dict[str, tuple[str, bool, Sequence[Any]]] = {
    "i": ("integer", False, (-3, -1, 0, 1, 2, 7, 2**31 - 1, -(2**31))),
    "g": ("bigint", False, (-5, 0, 1, 2**62)),
    "w": ("smallint", True, (-2, 0, 1, 2, 3)),
    "p": ("text", True, _TEXTS),
    "s": ("text", False, _TEXTS),
    "v": ("varchar(12)", False, _TEXTS),
    "c": ("char(6)", False, _TEXTS),
    "n": ("numeric(10,3)", False, tuple(map(Decimal, ("-1.5", "0", "1.5", "1.25", "12", "0.001")))),
    "d": ("date", False, (date(2024, 1, 1), date(1999, 12, 31), date(2024, 2, 29))),
    "t": ("timestamp", False, (datetime(2024, 1, 1, 10), datetime(1969, 7, 20, 20, 17, 40, 5))),
    "z": ("timestamptz", False, (datetime(2024, 1, 1, tzinfo=UTC), datetime(1, 1, 2, tzinfo=UTC))),
    "b": ("boolean", False, (True, False)),
    "u": ("uuid", False, (UUID(int=1), UUID(int=2**127), UUID(int=2**128 - 1))),
    "y": ("bytea", False, (b"", b"\x00", b"\x00\x01", b"\xff")),
}
_SERVED = ("i", "g", "s", "v", "n", "u")
"""Of these columns the server compares codes; of others it answers as many rows."""
_FORMATS = ("%s", "%b", "%t")
Sides = tuple[psycopg.Connection[Any], psycopg.Connection[Any]]


@dataclass(frozen=True)
class _Query:
    """A text, of which columns its values are, how many of limits follow, and whether the order of
    its rows is certain.
    """

    text: str
    columns: tuple[str, ...]
    limits: int
    is_ordered: bool

    def values(self, draw: random.Random) -> list[Any]:
        """Values that are there, mostly."""
        values: list[Any] = [_value(draw, name) for name in self.columns]
        return values + [draw.choice((0, 1, 2, 5, 1000)) for _ in range(self.limits)]


def _value(draw: random.Random, name: str) -> Any:
    values = _COLUMNS[name][2]
    if draw.random() < 0.05:
        return None
    value = draw.choice(values)
    return value + 1 if name in ("i", "g") and value < 100 and draw.random() < 0.1 else value


def _query(draw: random.Random) -> _Query:
    """A query of one to three conditions, at least one of which the server decides."""
    names = [draw.choice(_SERVED), *draw.sample([*_COLUMNS], draw.choice((0, 0, 1, 2)))]
    names = list(dict.fromkeys(names))
    draw.shuffle(names)
    used: list[str] = []
    conditions: list[str] = []
    for name in names:
        count = draw.choice((1, 1, 1, 3))
        marks = [draw.choice(_FORMATS) for _ in range(count)]
        column = name if draw.random() < 0.5 else f"e.{name}"
        if count > 1:
            conditions.append(f"{column} IN ({', '.join(marks)})")
        else:
            conditions.append(draw.choice((f"{column} = {marks[0]}", f"{marks[0]} = {column}")))
        used += [name] * count
    if draw.random() < 0.1:
        conditions.append(draw.choice(("i = 1", "s = 'a'", "n = 12", "w = 1")))
    shown = ", ".join(draw.sample(["id", *_COLUMNS], draw.randint(1, 8)))
    text = f"SELECT {draw.choice((shown, '*'))} FROM e WHERE {' AND '.join(conditions)}"
    order = [_ordered(draw, name) for name in draw.sample([*_COLUMNS], draw.choice((0, 1, 2, 3)))]
    limits, is_ordered = 0, draw.random() < 0.8
    if is_ordered:
        text += f" ORDER BY {', '.join([*order, draw.choice(('id', 'id DESC'))])}"
        for word in ("LIMIT", "OFFSET"):
            form = draw.choice(("", "", "3", "%s"))
            limits += form == "%s"
            text += f" {word} {form}" if form else ""
    return _Query(text, tuple(used), limits, is_ordered)


def _ordered(draw: random.Random, name: str) -> str:
    way = draw.choice(("", " ASC", " DESC"))
    return f"{name}{way}{draw.choice(('', '', ' NULLS FIRST', ' NULLS LAST'))}"


def _row(draw: random.Random, number: int) -> list[Any]:
    values = [None if draw.random() < 0.1 else draw.choice(v) for _, _, v in _COLUMNS.values()]
    return [number, *values]


def _filled(con: psycopg.Connection[Any], enc: str, seed: int) -> None:
    draw = random.Random(seed)
    con.execute("SET TimeZone = 'UTC'")
    con.execute("DROP TABLE IF EXISTS e")
    listed = [f"{name} {type_}{'' if is_plain else enc}"
              for name, (type_, is_plain, _) in _COLUMNS.items()]  # fmt: skip
    con.execute(f"CREATE TABLE e (id bigint{enc} PRIMARY KEY, {', '.join(listed)})")
    with con.cursor().copy("COPY e FROM STDIN") as copy:
        for number in range(_ROWS):
            copy.write_row(_row(draw, number))


@pytest.fixture
def sides(door: Door, request: pytest.FixtureRequest) -> Iterator[Sides]:
    """Plaintext and the door, with the same rows."""
    seed = getattr(request, "param", 0)
    with doors.plain() as first, door.connect() as second:
        _filled(first, "", seed)
        _filled(second, " ENC", seed)
        yield first, second


def _read(
    con: psycopg.Connection[Any], query: _Query, values: list[Any], *, binary: bool
) -> object:
    try:
        cursor = con.cursor(binary=binary).execute(query.text, values, prepare=True)
        rows = [repr(row) for row in cursor.fetchall()]
        types = [(column.name, column.type_code) for column in cursor.description or ()]
        return rows if query.is_ordered else sorted(rows), types, cursor.statusmessage
    except psycopg.Error as error:
        return error.sqlstate


def _changed(draw: random.Random, number: int) -> tuple[str, list[Any]]:
    name = draw.choice([*_COLUMNS])
    value = _value(draw, name)
    marks = ", ".join(["%s"] * (len(_COLUMNS) + 1))
    return draw.choice((
        (f"UPDATE e SET {name} = %s WHERE id = %s", [value, draw.randrange(_ROWS)]),
        (f"UPDATE e SET {name} = %s WHERE i = %s", [value, draw.choice((-3, 1))]),
        ("DELETE FROM e WHERE id = %s", [draw.randrange(_ROWS)]),
        (f"INSERT INTO e VALUES ({marks})", _row(draw, number)),
    ))  # fmt: skip


@pytest.mark.parametrize("sides", range(4), indirect=True)
def test_rows_are_those_of_postgres(sides: Sides, request: pytest.FixtureRequest) -> None:
    """In their order and number, in both formats, while rows change, within transactions too."""
    draw = random.Random(request.node.callspec.params["sides"])
    queries = [_query(draw) for _ in range(14)]
    for turn in range(260):
        choice, values = draw.random(), list[Any]()
        text = ""
        is_open = sides[0].info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        if choice < (0.2 if is_open else 0.03):
            text = draw.choice(("COMMIT", "COMMIT", "ROLLBACK")) if is_open else "BEGIN"
        elif choice > 0.95:
            text, values = _changed(draw, _ROWS + turn)
        if text:
            states = []
            for con in sides:
                try:
                    states.append(con.execute(text, values).statusmessage)
                except psycopg.Error as error:
                    states.append(error.sqlstate)
            assert states[0] == states[1], (text, values)
            continue
        query = draw.choice(queries)
        values, binary = query.values(draw), draw.random() < 0.5
        first, second = (_read(con, query, values, binary=binary) for con in sides)
        assert second == first, (query, values, binary)


_BY_THEMSELVES = (
    ("SELECT id, n, s FROM e WHERE s = %s AND i = %s ORDER BY n DESC, id", ("a", 1)),
    ("SELECT id FROM e WHERE v IN (%s, %s) AND w = %s ORDER BY d, c DESC, id", ("a", "b", 1)),
    ("SELECT s, id FROM e WHERE n = %s ORDER BY t NULLS FIRST, id LIMIT %s", (Decimal(12), 5)),
    ("SELECT z, y, id FROM e WHERE u = %s ORDER BY id OFFSET 2", (UUID(int=1),)),
    ("SELECT id, c FROM e WHERE g = %s AND b = %s AND c = %s ORDER BY u, id", (0, True, "a")),
)
_WITHIN = (
    ("SELECT id, n FROM k WHERE w = %s AND s = %s ORDER BY n DESC, id", (1, "s1")),
    ("SELECT id, n FROM k WHERE n = %s ORDER BY id", (2000,)),
    ("SELECT n FROM k WHERE s = %s ORDER BY n, id LIMIT %s OFFSET 1", ("s2", 3)),
)


def _direct_total(monitor: str) -> int:
    total: int = status.state_of((monitor, None))["direct_total"]
    return total


def test_they_run_without_python(tmp_path: Path) -> None:
    """By themselves, and within transactions that have changed rows of the table, which they
    see.
    """
    monitor = str(tmp_path / "monitor")
    update = "UPDATE k SET n = %s WHERE id = %s"
    with opened("--metrics", monitor) as door, door.connect() as con, doors.plain() as plain:
        sides = plain, con
        for side, enc in ((plain, ""), (con, " ENC")):
            _filled(side, enc, 0)
            side.execute("DROP TABLE IF EXISTS k")
            side.execute(
                f"CREATE TABLE k (id int{enc} PRIMARY KEY, n int{enc}, s text{enc}, w int)"
            )
            side.execute("INSERT INTO k SELECT i, 3 * i, 's' || i % 9, i % 4"
                         " FROM generate_series(1, 900) AS g(i)")  # fmt: skip

        def read(queries: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
            for text, values in queries:
                rows = [side.execute(text, values, prepare=True).fetchall() for side in sides]
                assert rows[0] == rows[1], text

        rounds, before = 8, 0
        for turn in range(3 + rounds):
            before = _direct_total(monitor) if turn == 3 else before
            read(_BY_THEMSELVES)
            for side in sides:
                side.execute("BEGIN")
            read(_WITHIN[turn % 3 :])
            for side in sides:
                side.execute(update, (2000, 9 * turn + 1), prepare=True)
            read(_WITHIN)
            for side in sides:
                side.execute("COMMIT")
            read(_WITHIN)
        ran = _direct_total(monitor) - before
        # Python may take over a transaction, such as for the next numbers of rows.
        assert ran >= (rounds - 2) * (len(_BY_THEMSELVES) + 2 * len(_WITHIN) + 3)


@pytest.mark.parametrize("largest", [True, False])
def test_answers_of_many_rows_are_those_of_python(door: Door, largest: bool) -> None:
    """Beyond the bound, and at it."""
    count = 4_097 if largest else 4_096
    with door.connect() as con:
        con.execute("DROP TABLE IF EXISTS many")
        con.execute("CREATE TABLE many (id int ENC PRIMARY KEY, n int ENC, s text ENC)")
        con.execute(
            f"INSERT INTO many SELECT i, i / {count}, 's' || i FROM generate_series(0, 9000) g(i)"
        )
        for _ in range(5):
            sql = "SELECT id, s FROM many WHERE n = %s ORDER BY id DESC"
            rows = con.execute(sql, (0,), prepare=True).fetchall()
            assert rows == [(i, f"s{i}") for i in reversed(range(count))]
            assert len(con.execute(sql, (1,), prepare=True).fetchall()) == min(count, 9001 - count)


def test_which_queries_are_read_so() -> None:
    """By equality, in an order that is certain; everything else stays Python's."""
    url = servers.database_url("door_equal_rows")
    client = Client(connect.open_session(url, str(shared.key_file()), "cryptdb"), "anna")
    try:
        for sql in (
            "CREATE TABLE e (id bigint ENC PRIMARY KEY, s text ENC, n integer ENC, w integer,"
            " f double precision ENC, j jsonb ENC, m numeric ENC)",
            "INSERT INTO e SELECT i, 's' || i % 30, i % 40, i % 5, i, '[]', i"
            " FROM generate_series(1, 900) AS g(i)",
            "CREATE VIEW seen AS SELECT * FROM e",
        ):
            client.run(client.prepare(sql, []), [], [], [])
        for sql, reads in (
            ("SELECT id FROM e WHERE n = $1", True), ("SELECT * FROM e AS x WHERE x.n = $1", True),
            ("SELECT id AS a, id FROM e WHERE s = $1 ORDER BY a DESC, 2", True),
            ("SELECT j, f FROM e WHERE n IN ($1, 4) AND w = $2 ORDER BY s LIMIT 3", True),
            ("SELECT id FROM e WHERE n = $1 OFFSET $2 LIMIT 5", True),
            ("SELECT id FROM e WHERE id = $1 ORDER BY s", True),
            ("SELECT id FROM e WHERE n = $1 ORDER BY f", False),
            ("SELECT id FROM e WHERE n = $1 ORDER BY m", False),
            ("SELECT id FROM e WHERE n = $1 ORDER BY n + 1", False),
            ("SELECT id FROM e WHERE n = $1 ORDER BY lower(s)", False),
            ('SELECT id FROM e WHERE n = $1 ORDER BY s COLLATE "C"', False),
            ("SELECT DISTINCT id FROM e WHERE n = $1", False),
            ("SELECT id FROM e WHERE n = $1 OR n = $2", False),
            ("SELECT id FROM e WHERE n = $1 AND f = $2", False),
            ("SELECT id FROM e WHERE n = $1 AND s LIKE $2", False),
            ("SELECT id FROM e WHERE n = $1 AND w > $2", False),
            ("SELECT id FROM e WHERE n = $1 AND id IS NOT NULL", False),
            ("SELECT id + 1 FROM e WHERE n = $1", False),
            ("SELECT id FROM e WHERE n = abs($1::int)", False),
            ("SELECT id FROM e WHERE n = $1 ORDER BY id FETCH FIRST 2 ROWS WITH TIES", False),
            ("SELECT id FROM e WHERE n = $1 FOR UPDATE", False),
            ("SELECT id FROM seen WHERE n = $1", False),
            ("SELECT e.id FROM e, e AS x WHERE e.n = $1 AND x.n = 1", False),
            ("SELECT count(*) FROM e WHERE n = $1", False),
            ("SELECT id FROM e WHERE n = (SELECT $1::int)", False),
        ):  # fmt: skip
            prepared = client.prepare(sql, [])
            values = [b"1"] * len(prepared.parameters)
            for _ in range(3):
                client.run(prepared, values, [0] * len(values), [])
                client.after()
            assert (type(client.way(prepared)).__name__ == "Read") == reads, sql
    finally:
        client.close()
        servers.drop_databases()


def test_conditions_beside_those_on_columns_of_a_key_are_sent() -> None:
    """Each of a key's columns is taken to have few values."""
    url = servers.database_url("door_beside_keys")
    session = connect.open_session(url, str(shared.key_file()), "cryptdb")
    client = Client(session, "anna")
    try:
        for sql in (
            "CREATE TABLE e (w int ENC, d int ENC, c int ENC, s text ENC, PRIMARY KEY (w, d, c))",
            "INSERT INTO e SELECT 1, i % 10, i, 's' || i FROM generate_series(1, 900) AS g(i)",
        ):
            client.run(client.prepare(sql, []), [], [], [])
        context = session.context
        with speaking(DIALECT):
            (text,) = lexer.split("SELECT c FROM e WHERE w = $1 AND d = $2 AND s = $3")
            plan, _ = context.planner.plan(text, [1, 2, "s2"], context.catalog)
        assert [len(remote.where) for remote in plan.remotes] == [3]
    finally:
        client.close()
        servers.drop_databases()


def test_every_condition_is_in_the_ledger() -> None:
    """Which rows are read is counted ahead, never behind."""
    with opened() as door, door.connect() as con:
        con.execute("CREATE TABLE c (id bigint ENC PRIMARY KEY, n int ENC, s text ENC)")
        con.execute("INSERT INTO c SELECT i, i % 300, 'x' FROM generate_series(1, 900) AS s(i)")
        for number in range(300):
            sql = "SELECT s FROM c WHERE n = %s ORDER BY id"
            assert len(con.execute(sql, (number,), prepare=True).fetchall()) == 3
            if number in (40, 299):
                with louver.connect(door.url, keys=str(shared.key_file())) as own:
                    counts = own.leakage().arrow().column("conditions").to_pylist()
                assert max(count for count in counts if count is not None) >= number


def test_what_is_altered_at_the_server_is_noticed() -> None:
    """The general way says so, as of any query; rows that are not of the condition are left out."""
    with opened() as door, door.connect() as con, doors.at_server(door) as server:
        con.execute("CREATE TABLE c (id bigint ENC PRIMARY KEY, n int ENC, s text ENC)")
        con.execute("INSERT INTO c SELECT i, i / 2, 's' || i FROM generate_series(1, 600) g(i)")
        sql = "SELECT s FROM c WHERE n = %s ORDER BY id"
        for _ in range(5):
            assert con.execute(sql, (7,), prepare=True).fetchall() == [("s14",), ("s15",)]
        (names,) = zip(*server.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'public.c'::regclass AND attnum > 0"
            " AND attname ~ '^e_' ORDER BY attnum").fetchall(), strict=True)  # fmt: skip
        (codes,) = zip(*server.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'public.c'::regclass AND attnum > 0"
            " AND attname ~ '^q_' AND atttypid = 'bigint'::regtype").fetchall(),
            strict=True)  # fmt: skip
        for name in codes:
            server.execute(
                f"UPDATE public.c SET {name} = (SELECT o.{name} FROM public.c AS o"
                " ORDER BY o.row_id OFFSET 13 LIMIT 1)"
            )
        assert con.execute(sql, (7,), prepare=True).fetchall() == [("s14",), ("s15",)]
        listed = ", ".join(f"{name} = other.{name}" for name in names)
        server.execute(
            f"UPDATE public.c SET {listed} FROM public.c AS other"
            " WHERE c.row_id <> other.row_id AND other.row_id % 7 = 3"
        )
        with pytest.raises(psycopg.Error) as caught:
            con.execute(sql, (7,), prepare=True)
        assert "value.tampered" in str(caught.value.diag.message_hint)
