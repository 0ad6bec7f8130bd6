"""What crosses to the server behind a door does not depend on what is encrypted, whichever way a
statement takes.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from random import Random

import pytest

from louver.trusted.apps.pgproxy.client import Client
from louver.trusted.apps.pgproxy.failures import Failed
from louver.trusted.client import connect
from tests import shared
from tests.front_door import wire_worlds
from tests.front_door.wire_worlds import ROWS, TYPES, Act, Pair
from tests.generated import SEED, SOAK
from tests.postgres import servers

LENGTH = 160 * SOAK
_HOT = 24
_TEXTS = {"d": "2024-05-05", "u": "f47ac10b-58cc-4372-a567-0e02b2c3d479", "j": "[1]"}
_ATTEMPTS = 3
_LOOKS_AGAIN_S = 0.7
_COLUMNS = ", ".join(TYPES)
_MARKS = ", ".join(["%s"] * (len(TYPES) + 1))
#: With the kinds of their values (of columns; P and Q for plain ones, of which Q are new), and
#: what runs them once they are known.
_WAYS = (
    ("SELECT * FROM t WHERE id = %s", "id", "Read"),
    ("SELECT s, n, p FROM t WHERE id = %s", "id", "Read"),
    ("SELECT id, f FROM t WHERE s = %s", "s", "Read"),
    ("SELECT id, m FROM t WHERE s = %s AND n = %s ORDER BY d DESC, id", "s n", "Read"),
    ("SELECT d, j FROM t WHERE id IN (%s, %s)", "id id", "Read"),
    (f"INSERT INTO t VALUES ({_MARKS})", " ".join([*TYPES, "P"]), ""),
    ("UPDATE t SET n = %s WHERE id = %s", "n id", "Write"),
    ("UPDATE t SET n = n + 1, p = %s WHERE id = %s", "P id", "Write"),
    ("UPDATE t SET m = %s, d = %s, u = %s WHERE id = %s", "m d u id", "Write"),
    ("UPDATE t SET p = p + 1 WHERE id = %s", "id", "Write"),
    ("UPDATE t SET id = %s WHERE id = %s", "id id", "Write"),
    ("DELETE FROM t WHERE id = %s", "id", "Write"),
    ("INSERT INTO k VALUES (%s, %s, %s)", "id n s", "Write"),
    ("DELETE FROM k WHERE id = %s", "id", "Write"),
    ("UPDATE k SET s = %s WHERE id = %s", "s id", "Write"),
    ("SELECT a, b FROM plain WHERE id = %s", "P", "Pass"),
    ("SELECT count(*) FROM plain WHERE a > %s", "P", "Pass"),
    ("INSERT INTO plain VALUES (%s, %s, 'b')", "Q P", "Write"),
    ("UPDATE plain SET a = %s WHERE id = %s", "P P", "PassedChange"),
    ("UPDATE plain SET a = a + 1 WHERE id = %s RETURNING a - 1, b", "P", "PassedChange"),
    ("DELETE FROM plain WHERE a > %s AND id = %s RETURNING *", "P P", "PassedChange"),
    ("SELECT a FROM plain WHERE a > %s ORDER BY a LIMIT 1 FOR UPDATE", "P", "Pass"),
    ("SELECT x.a FROM plain AS x JOIN plain AS y ON x.id = y.a WHERE y.id = %s", "P", "Pass"),
)
_STATEMENTS = tuple((text, kinds) for text, kinds, _ in _WAYS)
#: Of these fewer: they read much, or come once.
_RARE = (
    ("SELECT count(*), sum(n), max(m) FROM t WHERE d >= %s", "d"),
    ("SELECT s FROM t WHERE n > %s ORDER BY n LIMIT 5", "n"),
    ("SELECT p, count(*) FROM t GROUP BY p", ""),
    ("INSERT INTO t (id, n) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET n = excluded.n", "id n"),
    ("UPDATE t SET s = %s WHERE p = %s", "s P"),
    ("UPDATE t SET n = %s WHERE id = %s RETURNING s, n", "n id"),
    ("SELECT x.p FROM t AS x JOIN t AS y USING (id) WHERE y.s = %s", "s"),
    (f"COPY t ({_COLUMNS}, p) FROM STDIN", "copy"),
    ("COPY t (id, s) TO STDOUT", ""),
    ("SELECT 1 / (n - n) FROM t WHERE id = %s", "id"),
    ("INSERT INTO t (id) VALUES (%s), (%s)", "id id"),
    ("SELECT u FROM t WHERE u = %s", "u"),
)


class _Drawn:
    """Draws what both worlds run."""

    def __init__(self, draw: Random) -> None:
        self._draw, self._fresh, self._within = draw, 100_000, 0

    def schema(self) -> list[Act]:
        """Three tables, of which one has no secrets."""
        columns = ", ".join(f"{name} {type_} ENC" for name, type_ in TYPES.items())
        rows = tuple(
            value
            for row in range(_HOT // 2, ROWS)
            for value in (*((name, row) for name in TYPES), row % 7)
        )
        return [
            Act(f"CREATE TABLE t ({columns}, p integer, PRIMARY KEY (id))", how="once"),
            Act("CREATE TABLE k (id bigint ENC PRIMARY KEY, n bigint ENC, s text ENC)", how="once"),
            Act("CREATE TABLE plain (id bigint PRIMARY KEY, a integer, b text)", how="once"),
            Act(f"COPY t ({_COLUMNS}, p) FROM STDIN", rows),
            Act("INSERT INTO plain SELECT g, g, 'b' || g FROM generate_series(0, 99) AS g",
                how="once"),
        ]  # fmt: skip

    def _value(self, kind: str) -> object:
        if kind == "P":
            return self._draw.randrange(7)
        if kind == "Q":
            self._fresh += 1
            return self._fresh
        if kind != "id" and self._draw.random() < 0.05:
            return None
        return kind, self._draw.randrange(_HOT)

    def _act(self, listed: tuple[tuple[str, str], ...]) -> Act:
        draw = self._draw
        text, kinds = draw.choice(listed)
        if kinds == "copy":
            row = draw.randrange(_HOT)
            return Act(text, (*((name, row) for name in TYPES), 3))
        values = tuple(map(self._value, kinds.split()))
        how = draw.choice(("prepared", "prepared", "prepared", "once", "simple", "pipelined"))
        if how != "simple" and draw.random() < 0.3:
            text = text.replace("%s", "%t") if draw.random() < 0.5 else text
        return Act(text, values, how, draw.random() < 0.5)

    def acts(self) -> list[Act]:
        """A statement, one several times, so that it is known, or a transaction."""
        draw, client = self._draw, self._draw.randrange(2)
        drawn = draw.random()
        if drawn < 0.25:
            acts = [self._act(_STATEMENTS)]
        elif drawn < 0.4:
            acts = [self._act(_RARE)]
        elif drawn < 0.85:
            text, kinds = draw.choice(_STATEMENTS)
            acts = [
                Act(text, tuple(map(self._value, kinds.split())), binary=draw.random() < 0.5)
                for _ in range(5)
            ]
        else:
            acts = [self._act(_STATEMENTS) for _ in range(3)]
            if draw.random() < 0.3:
                acts.insert(1, Act("SAVEPOINT a", how="once"))
                acts.append(Act("ROLLBACK TO a", how="once"))
            acts = [Act("BEGIN", how="once"), *acts,
                    Act(draw.choice(("COMMIT", "ROLLBACK")), how="once")]  # fmt: skip
        return [Act(a.text, a.values, a.how, a.binary, client) for a in acts]


def _played(pair: Pair, seed: int) -> None:
    drawn = _Drawn(Random(seed))
    acts, failed = drawn.schema(), 0
    while len(acts) < LENGTH:
        acts += drawn.acts()
    for number, act in enumerate(acts):
        first, second = pair.run(act)
        assert first == second, (seed, number, act)
        failed += isinstance(first, str) and first != "copied"
    assert failed < LENGTH // 3


@pytest.mark.parametrize(("pool", "profile"), [("session", "cryptdb"), ("transaction", "sealed")])
def test_worlds_look_the_same(pool: str, profile: str) -> None:
    """Every run draws other secrets and statements."""
    seed = SEED or secrets.randbelow(10**9)
    for _ in range(_ATTEMPTS):
        with wire_worlds.both(("--pool", pool), profile, seed) as pair:
            _played(pair, seed)
            for world in pair:
                world.end()
            assert [world.leaked() for world in pair] == [[], []], seed
            differing = wire_worlds.differences(pair)
            # Within a second, the catalog's version is not looked at again.
            by_clock = max(world.pause_s for world in pair) > _LOOKS_AGAIN_S
        if not differing or not by_clock:
            break
    assert not differing, "\n".join([f"seed {seed}", *differing])


def test_a_plain_column_would_be_seen() -> None:
    """By its values alone, of whichever type; where lengths are the same, and where only they are
    compared.
    """
    with wire_worlds.both((), "cryptdb", secrets.randbelow(10**9)) as pair:
        pair.run(Act("CREATE TABLE e (id bigint ENC PRIMARY KEY, s text ENC)", how="once"))
        pair.run(Act("INSERT INTO e VALUES (%s, %s)", (("id", 0), ("s", 0))))
        assert not wire_worlds.differences(pair)
        # Of a date, only the comparison finds the four bytes.
        for number, name in enumerate(sorted(TYPES)):
            type_ = TYPES[name]
            pair.run(Act(f"CREATE TABLE p{number} (id bigint ENC, v {type_})", how="once"))
            how = ("prepared", "simple")[number % 2]
            pair.run(Act(f"INSERT INTO p{number} VALUES (%s, %s)", (("id", 1), (name, 1)), how))
            if not number:
                assert wire_worlds.differences(pair)
        for world in pair:
            world.end()
            leaked = {line.partition(":")[0] for line in world.leaked()}
            assert leaked == set(TYPES) - {"d"}


def test_short_ways_are_taken() -> None:
    """Statements that come several times in a session run without Python, each in its way."""
    url = servers.database_url("door_ways")
    client = Client(connect.open_session(url, str(shared.key_file()), "cryptdb"), "anna")

    def run(sql: str, *values: str) -> str:
        prepared = client.prepare(sql, [])
        with suppress(Failed):
            client.run(prepared, [value.encode() for value in values], [0] * len(values), [])
        client.after()
        return type(client.way(prepared)).__name__

    try:
        for act in _Drawn(Random(0)).schema():
            if not act.text.startswith("COPY"):
                run(act.text)
        run("INSERT INTO t (id, n, s) SELECT i, i, 's' || i FROM generate_series(1, 300) AS g(i)")
        run("INSERT INTO k SELECT i, i FROM generate_series(1, 300) AS g(i)")
        for text, kinds, way in _WAYS:
            sql = _numbered(text)
            for turn in range(5):
                number = str(turn + 5 + 1000 * text.startswith("INSERT"))
                taken = run(sql, *(_TEXTS.get(kind, number) for kind in kinds.split()))
            assert taken == (way or "NoneType"), text
    finally:
        client.close()
        servers.drop_databases()


def _numbered(text: str) -> str:
    for number in range(1, text.count("%s") + 1):
        text = text.replace("%s", f"${number}", 1)
    return text
