"""Users with other rights whose clients use one session after the other: each sees and does what it
may, whichever way its statements take and whoever has run them before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from louver import errors
from louver.trusted.apps.pgproxy import status, visitors
from louver.trusted.apps.pgproxy.client import Client
from louver.trusted.client import connect
from louver.trusted.executor.local.postgres.role_rights import Rights, parsed
from tests import shared
from tests.front_door import door as doors
from tests.front_door.door import Door, opened
from tests.front_door.test_rights import command
from tests.postgres import servers

_ROWS = 400
_TABLES = (
    "CREATE TABLE people (id bigint ENC PRIMARY KEY, title text ENC, ssn text ENC)",
    "CREATE TABLE pub (id bigint PRIMARY KEY, a text, b text)",
    "CREATE VIEW seen AS SELECT id, b FROM pub",
    "INSERT INTO people SELECT i, 'n' || i, 's' || i FROM generate_series(1, 400) AS g(i)",
    "INSERT INTO pub SELECT i, 'a' || i, 'b' || i FROM generate_series(1, 400) AS g(i)",
)
_GRANTS = {
    "clerk": ("SELECT (id, title), UPDATE (title), INSERT ON people", "SELECT (id, a) ON pub"),
    "judge": ("SELECT (id, ssn), DELETE ON people", "SELECT ON seen"),
}
#: Texts with their parameters, of which `k` is a key and `v` a value, and who may run them.
_TEXTS: tuple[tuple[str, str, str], ...] = (
    ("SELECT title FROM people WHERE id = %s", "k", "clerk"),
    ("SELECT ssn FROM people WHERE id = %s", "k", "judge"),
    ("SELECT title, ssn FROM people WHERE id = %s", "k", ""),
    ("SELECT a FROM pub WHERE id = %s", "k", "clerk"),
    ("SELECT b FROM pub WHERE id = %s", "k", ""),
    ("SELECT b FROM seen WHERE id = %s", "k", "judge"),
    ("UPDATE people SET title = %s WHERE id = %s", "vk", "clerk"),
    ("UPDATE people SET ssn = %s WHERE id = %s", "vk", ""),
    ("UPDATE pub SET a = %s WHERE id = %s", "vk", ""),
    ("INSERT INTO people VALUES (%s, %s, %s)", "nvv", "clerk"),
    ("DELETE FROM people WHERE id = %s", "d", "judge"),
)
_DENIED = "42501"
_Client = psycopg.Connection[Any]


class _Twin:
    """The rows as they are to be."""

    def __init__(self) -> None:
        self.rows = {
            "people": {i: [f"n{i}", f"s{i}"] for i in range(1, _ROWS + 1)},
            "pub": {i: [f"a{i}", f"b{i}"] for i in range(1, _ROWS + 1)},
        }
        self._next = _ROWS

    def values(self, draw: random.Random, kinds: str) -> list[object]:
        """Values of the parameters of a text."""
        results = list[object]()
        for kind in kinds:
            if kind == "k":
                results.append(draw.randint(1, 20))
            elif kind == "v":
                results.append(f"w{draw.randrange(10**6)}")
            elif kind == "n":
                self._next += 1
                results.append(self._next)
            else:
                results.append(draw.randint(30, self._next))
        return results

    def ran(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]] | int:
        """The rows of a query, or the number of those that were changed."""
        table = "people" if "people" in sql else "pub"
        rows, names = self.rows[table], ("title", "ssn") if table == "people" else ("a", "b")
        if sql.startswith("SELECT"):
            wanted = sql[len("SELECT ") : sql.index(" FROM")].split(", ")
            return [tuple(rows[values[0]][names.index(name)] for name in wanted)]
        if sql.startswith("INSERT"):
            rows[values[0]] = list(values[1:])
            return 1
        if sql.startswith("DELETE"):
            return int(rows.pop(values[0], None) is not None)
        rows[values[1]][names.index(sql.split(" SET ")[1].split(" ")[0])] = values[0]
        return 1


def _ran(con: _Client, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]] | int | str:
    try:
        cursor = con.execute(sql, values, prepare=True)
    except psycopg.Error as error:
        return error.sqlstate or "?"
    return cursor.fetchall() if cursor.description else cursor.rowcount


def _run(con: _Client, user: str, twin: _Twin, draw: random.Random) -> None:
    """A text a few times, so that it is known, by whoever may run it or not."""
    sql, kinds, who = draw.choice(_TEXTS)
    for _ in range(draw.choice((1, 2, 5))):
        values = twin.values(draw, kinds)
        result = _ran(con, sql, values)
        wanted = twin.ran(sql, values) if user in ("full", who) else _DENIED
        assert result == wanted, (user, sql, values)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """The file of users: one that may everything, and two that may not."""
    path = tmp_path / "users"
    for name in ("full", *_GRANTS):
        command("--users", str(path), "--add-user", name, text="secret\n")
        for text in _GRANTS.get(name, ()):
            command("--users", str(path), "--grant", name, text)
    return path


@pytest.fixture(autouse=True, scope="module")
def _databases() -> Iterator[None]:
    yield
    servers.drop_databases()


def _client(door: Door, name: str) -> _Client:
    dsn = door.dsn.replace(doors.USER, name)
    return psycopg.connect(dsn, password="secret", autocommit=True)


def _declare(door: Door) -> None:
    with _client(door, "full") as con:
        for sql in _TABLES:
            con.execute(sql)


@pytest.mark.parametrize("sessions", [1, 2])
def test_by_transaction(users: Path, tmp_path: Path, sessions: int) -> None:
    draw, twin, monitor = random.Random(sessions), _Twin(), str(tmp_path / "monitor")
    words = ("--pool", "transaction", "--pool-size", str(sessions), "--metrics", monitor)
    with opened("--users", str(users), *words) as door, ExitStack() as stack:
        _declare(door)
        names = ("full", "clerk", "judge", "clerk")
        clients = [(name, stack.enter_context(_client(door, name))) for name in names]
        for _ in range(150):
            name, con = draw.choice(clients)
            _run(con, name, twin, draw)
        full = clients[0][1]
        for table, rows in twin.rows.items():
            wanted = sorted((key, *row) for key, row in rows.items())
            assert full.execute(f"SELECT * FROM {table} ORDER BY id").fetchall() == wanted
        state = status.state_of((monitor, None))
        assert state["direct_total"] > 20, state
        assert state["pool_sessions"] <= sessions


def test_by_session(users: Path, tmp_path: Path) -> None:
    """Sessions are kept for the next client, whoever that is."""
    draw, twin, monitor = random.Random(3), _Twin(), str(tmp_path / "monitor")
    words = ("--pool-size", "1", "--metrics", monitor)
    with opened("--users", str(users), *words) as door:
        _declare(door)
        for _ in range(12):
            name = draw.choice(("full", "clerk", "judge"))
            for _ in range(200):
                if status.state_of((monitor, None))["pool_idle"]:
                    break
            with _client(door, name) as con:
                for _ in range(12):
                    _run(con, name, twin, draw)
                assert status.state_of((monitor, None))["pool_sessions"] <= 2
        assert status.state_of((monitor, None))["direct_total"] > 20


def test_what_is_known_is_one_users() -> None:
    """Ways without Python, and changes in one call, end where a user with other rights comes in;
    whose role cannot be is not let in.
    """
    session = connect.open_session(
        servers.database_url("door_shared_rights"), str(shared.key_file()), "cryptdb"
    )
    client = Client(session, shared=True)

    def enter(user: str, own: Rights | None) -> int:
        client.enter(visitors.of(user, [], own, shared=True))
        return client.after()[4]

    clerk = Rights("clerk", tuple(map(parsed, _GRANTS["clerk"])))
    judge = Rights("judge", tuple(map(parsed, _GRANTS["judge"])))
    try:
        before = enter("full", None)
        for sql in _TABLES:
            client.run(client.prepare(sql, []), [], [], [])
        texts = (
            ("SELECT title FROM people WHERE id = $1", [b"7"]),
            ("UPDATE people SET title = $1 WHERE id = $2", [b"x", b"7"]),
            ("SELECT a FROM pub WHERE id = $1", [b"7"]),
        )
        held = {sql: client.prepare(sql, []) for sql, _ in texts}
        for user, own, may in (
            ("full", None, True), ("clerk", clerk, True), ("judge", judge, False),
            ("full", None, True), ("judge", judge, False), ("clerk", clerk, True),
        ):  # fmt: skip
            generation = enter(user, own)
            assert generation > before
            before = generation
            for sql, values in texts:
                for _ in range(4):
                    if may:
                        client.run(held[sql], values, [0] * len(values), [])
                        continue
                    with pytest.raises(errors.Error) as caught:
                        client.run(held[sql], values, [0] * len(values), [])
                    assert caught.value.sqlstate == _DENIED
                    client.after()
                assert (client.way(held[sql]) is not None) == may, (user, sql)
            before = client.after()[4]
        assert client.reset()
        assert not session.context.state.restricted
        with pytest.raises(errors.Error, match="cannot have rights"):
            enter("louver", Rights("louver", ()))
    finally:
        client.close()
