"""What crosses to the server behind a door does not depend on what is encrypted, whichever way a
statement takes.
"""

from __future__ import annotations

import secrets
from random import Random

import pytest

from tests.front_door import wire_worlds
from tests.front_door.wire_worlds import ROWS, TYPES, Act
from tests.generated import SEED, SOAK

LENGTH = 160 * SOAK
_HOT = 24
_COLUMNS = ", ".join(TYPES)
_MARKS = ", ".join(["%s"] * (len(TYPES) + 1))
#: With the kinds of their values: of columns, and P for a plain one.
_STATEMENTS = (
    ("SELECT * FROM t WHERE id = %s", "id"),
    ("SELECT s, n, p FROM t WHERE id = %s", "id"),
    ("SELECT id, f FROM t WHERE s = %s", "s"),
    ("SELECT d, j FROM t WHERE id IN (%s, %s)", "id id"),
    (f"INSERT INTO t VALUES ({_MARKS})", " ".join([*TYPES, "P"])),
    ("UPDATE t SET n = %s WHERE id = %s", "n id"),
    ("UPDATE t SET n = n + 1, p = %s WHERE id = %s", "P id"),
    ("UPDATE t SET m = %s, d = %s, u = %s WHERE id = %s", "m d u id"),
    ("UPDATE t SET p = p + 1 WHERE id = %s", "id"),
    ("DELETE FROM t WHERE id = %s", "id"),
    ("SELECT a, b FROM plain WHERE id = %s", "P"),
    ("SELECT count(*) FROM plain WHERE a > %s", "P"),
    ("INSERT INTO plain VALUES (%s, %s, 'b')", "Q P"),
    ("UPDATE plain SET a = %s WHERE id = %s", "P P"),
)
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
        """Two tables, of which one has no secrets."""
        columns = ", ".join(f"{name} {type_} ENC" for name, type_ in TYPES.items())
        rows = tuple(
            value
            for row in range(_HOT // 2, ROWS)
            for value in (*((name, row) for name in TYPES), row % 7)
        )
        return [
            Act(f"CREATE TABLE t ({columns}, p integer, PRIMARY KEY (id))", how="once"),
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
        if how not in ("simple",) and draw.random() < 0.3:
            text = text.replace("%s", "%t") if draw.random() < 0.5 else text
        return Act(text, values, how, draw.random() < 0.5)

    def acts(self) -> list[Act]:
        """One statement, the same one several times, or a transaction."""
        draw, client = self._draw, self._draw.randrange(2)
        drawn = draw.random()
        if drawn < 0.6:
            acts = [self._act(_STATEMENTS)]
        elif drawn < 0.8:
            acts = [self._act(_RARE)]
        else:
            acts = [self._act(_STATEMENTS) for _ in range(3)]
            if draw.random() < 0.3:
                acts.insert(1, Act("SAVEPOINT a", how="once"))
                acts.append(Act("ROLLBACK TO a", how="once"))
            acts = [Act("BEGIN", how="once"), *acts,
                    Act(draw.choice(("COMMIT", "ROLLBACK")), how="once")]  # fmt: skip
        return [Act(a.text, a.values, a.how, a.binary, client) for a in acts]


@pytest.mark.parametrize(("pool", "profile"), [("session", "cryptdb"), ("transaction", "sealed")])
def test_worlds_look_the_same(pool: str, profile: str) -> None:
    seed = SEED or secrets.randbelow(10**9)
    drawn = _Drawn(Random(seed))
    with wire_worlds.both(("--pool", pool), profile, seed) as worlds:
        acts = drawn.schema()
        while len(acts) < LENGTH:
            acts += drawn.acts()
        failed = 0
        for number, act in enumerate(acts):
            outcomes = [world.run(act) for world in worlds]
            assert outcomes[0] == outcomes[1], (seed, number, act)
            failed += isinstance(outcomes[0], str) and outcomes[0] != "copied"
        for world in worlds:
            for client in world.clients:
                client.close()
            world.door.stop()
        assert failed < LENGTH // 3
        assert not [world.leaked() for world in worlds if world.leaked()], seed
        differing = wire_worlds.differences(worlds)
        assert not differing, "\n".join([f"seed {seed}", *differing])
