"""Upserts of constants, and changes of rows by simple terms, beside DuckDB: what is decided without
the local engine is what it decides, and what it refuses or only it tells takes the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from louver.trusted.executor import constraint_check
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine
from tests.twin import Twin

#: Columns that statements set, by type, with values of theirs and some that are none.
_COLUMNS: dict[str, Sequence[object]] = {
    "TINYINT": (0, 1, -128, 127, 100, 300, None),
    "INTEGER": (0, 7, -7, 2147483647, 2147483648, Decimal("1.5"), None),
    "BIGINT": (0, 9223372036854775807, -9223372036854775808, 5, None),
    "UINTEGER": (0, 1, 4294967295, -1, None),
    "DECIMAL(5,2)": (0, 999, 1000, Decimal("1.50"), Decimal("-0.01"), Decimal("1.505"), 0.25, None),
    "DECIMAL(18,4)": (10**13, Decimal("99999999999999.9999"), Decimal("0.0001"), None),
    "DECIMAL(38,2)": (10**35, Decimal("0.01"), None),
    "DOUBLE": (0.0, -0.0, 1.5, float("nan"), 1, None),
    "VARCHAR": ("", "a", "A", "it's", "ä", None),
    "DATE": ("2020-02-29", "2020-02-30", None),
    "BOOLEAN": (True, False, None),
}
_TABLE = ", ".join(f"c{n} {type_} ENC" for n, type_ in enumerate(_COLUMNS))


class _Local:
    """How often statements needed the local engine's rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for owner, name in ((constraint_check, "rehearsal"), (DuckDBLocalEngine, "finish_over")):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            self.count += 1
            return real(*given)

        return called


def _drawn(chance: Random, excluded: bool) -> tuple[str, list[object]]:
    """What SET says of some columns, and the values of its placeholders."""
    items, values = list[str](), list[object]()
    for n in chance.sample(range(len(_COLUMNS)), chance.randint(1, 3)):
        type_ = list(_COLUMNS)[n]
        parts = [f"c{n}", f"t.c{n}", "?", "?", *([f"excluded.c{n}"] * 3 * excluded)]
        chosen = [chance.choice(parts)]
        if chance.random() < 0.6:
            chosen.append(chance.choice(parts))
        values += [chance.choice(_COLUMNS[type_]) for part in chosen if part == "?"]
        items.append(f"c{n} = {chance.choice([' + ', ' - ']).join(chosen)}")
    return ", ".join(items), values


def _row(chance: Random) -> list[object]:
    return [chance.randint(0, 9), *(chance.choice(values) for values in _COLUMNS.values())]


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
@pytest.mark.parametrize("seed", range(2))
def test_drawn_changes(profile: str, seed: int, open_twin: Callable[..., Twin]) -> None:
    chance, twin = Random(f"{profile} {seed}"), open_twin(profile)
    twin.run(f"CREATE TABLE t (k INTEGER ENC PRIMARY KEY, {_TABLE})")
    marks = ", ".join("?" * (1 + len(_COLUMNS)))
    for _ in range(70):
        way = chance.randrange(7)
        if way < 2:
            items, values = _drawn(chance, excluded=True)
            sql = f"INSERT INTO t VALUES ({marks}) ON CONFLICT (k) DO UPDATE SET {items}"
            twin.either(sql, [*_row(chance), *values])
        elif way < 5:
            into = chance.choice(["INTO", "OR IGNORE INTO", "OR REPLACE INTO", "OR REPLACE INTO"])
            twin.either(f"INSERT {into} t VALUES ({marks})", _row(chance))
        else:
            items, values = _drawn(chance, excluded=False)
            where = chance.choice(["k = ?", "k = ?", "k IN (?, 3, 4)", "k > ?"])
            twin.either(f"UPDATE t SET {items} WHERE {where}", [*values, chance.randint(0, 9)])
        if chance.random() < 0.2:
            twin.run("SELECT * FROM t")
    twin.run("SELECT * FROM t")


_ALONE: list[tuple[str, Sequence[object]]] = [
    ("INSERT INTO t VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (1, "x", 5)),
    ("INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (k) DO NOTHING", (50, "x", 5)),
    ("INSERT OR IGNORE INTO t VALUES (2, 'x', 6), (51, 'x', 7)", ()),
    ("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", (3, "y", None)),
    ("INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (k) DO UPDATE SET n = excluded.n", (4, "z", 1.5)),
    (
        "INSERT INTO t VALUES (5, 'a', 1), (52, 'b', 2) ON CONFLICT (k) DO UPDATE SET n = t.n - 1",
        (),
    ),
    ("INSERT INTO t (n, k) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET s = ?", (1, 6, "q")),
    ("INSERT INTO t VALUES (7, 's7', 7) ON CONFLICT (K) DO UPDATE SET N = EXCLUDED.N + n", ()),
    ("UPDATE t SET n = n + ? WHERE k = ?", (Decimal("0.5"), 8)),
    ("UPDATE t SET n = 1 - n, s = 'r' WHERE k IN (9, 10)", ()),
    ("UPDATE t AS x SET s = ?, n = x.n WHERE x.k = 11", ("",)),
    ("UPDATE t SET s = s WHERE k = 12", ()),
    ("DELETE FROM t WHERE k = ?", (13,)),
]
_NOT_ALONE: list[tuple[str, Sequence[object]]] = [
    ("INSERT INTO t VALUES (1, 'x', 5), (1, 'y', 6) ON CONFLICT DO NOTHING", ()),
    ("INSERT INTO t VALUES (2, 'x', 5) ON CONFLICT (k) DO UPDATE SET n = 3 WHERE t.n > 1", ()),
    ("INSERT INTO t VALUES (3, 'x', 5) ON CONFLICT (k) DO UPDATE SET s = upper(excluded.s)", ()),
    ("INSERT INTO t VALUES (4, 'x', 5) ON CONFLICT (k) DO NOTHING RETURNING k", ()),
    ("INSERT OR REPLACE INTO t (k, s) VALUES (5, 'x')", ()),
    ("INSERT INTO t VALUES (6, 'x', 5) ON CONFLICT (s) DO NOTHING", ()),
    ("INSERT INTO t VALUES (7, 'x', 5) ON CONFLICT (k) DO UPDATE SET k = 60", ()),
    ("INSERT INTO t VALUES (8, 'x', 5) ON CONFLICT (k) DO UPDATE SET n = n + '1'", ()),
    ("INSERT OR IGNORE INTO t VALUES (NULL, 'x', 5)", ()),
    ("INSERT INTO t VALUES (9, 'x', 5) ON CONFLICT (k) DO UPDATE SET s = n", ()),
    ("UPDATE t SET n = n + 99999999 WHERE k = 10", ()),
    ("UPDATE t SET n = n * 2 WHERE k = 11", ()),
    ("UPDATE t SET n = ? WHERE k = 12 AND s <> 'x'", (1,)),
]


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_it_takes_the_server_alone(
    profile: str, open_twin: Callable[..., Twin], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which statements need no rows in the local engine."""
    twin = open_twin(profile)
    twin.fill(
        "CREATE TABLE t (k INTEGER ENC PRIMARY KEY, s VARCHAR ENC, n DECIMAL(9,2) ENC)",
        "INSERT INTO t SELECT i, 's' || i, i * 1.25 FROM range(20) r(i)",
    )
    local = _Local(monkeypatch)
    for statements, alone in ((_ALONE, True), (_NOT_ALONE, False)):
        for sql, values in statements:
            local.count = 0
            twin.either(sql, values)
            assert (local.count == 0) is alone, sql
            twin.run("SELECT * FROM t")


def test_statements_that_a_change_sends(open_twin: Callable[..., Twin]) -> None:
    """Of a change by key the server gets: token, rows, and one statement for the row that goes, or
    is another; beside these BEGIN and COMMIT. A query asks for the version of the catalog.
    """
    twin = open_twin("cryptdb")
    twin.fill(
        "CREATE TABLE t (k INTEGER ENC PRIMARY KEY, n INTEGER ENC)",
        "INSERT INTO t SELECT i, i FROM range(20) r(i)",
    )
    traffic: Any = twin.session.context.engine.traffic
    upsert = "INSERT INTO t VALUES (?, 1) ON CONFLICT (k) DO UPDATE SET n = excluded.n"
    for sql, value, sent in (
        (upsert, 5, 3),
        (upsert, 50, 3),
        ("INSERT OR IGNORE INTO t VALUES (?, 1)", 6, 2),
        ("UPDATE t SET n = n + 1 WHERE k = ?", 7, 3),
        ("DELETE FROM t WHERE k = ?", 8, 3),
        ("SELECT n FROM t WHERE k = ?", 9, 1),
    ):
        twin.run(sql, [value])
        before = traffic.statements
        twin.run(sql, [value + 1])
        assert traffic.statements - before == sent, sql


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t AS excluded VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = excluded.b + 1",
        "INSERT INTO t AS x VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = x.b + 1",
        "INSERT INTO t AS x VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = t.b + 1",
        "INSERT INTO t VALUES (1, 5), (1, 6) ON CONFLICT (a) DO UPDATE SET b = excluded.b",
        "INSERT INTO t VALUES (7, 5), (7, 6) ON CONFLICT (a) DO NOTHING",
        "INSERT INTO t VALUES (8, 5), (8, 6) ON CONFLICT (a) DO UPDATE SET b = excluded.b",
        "INSERT INTO excluded VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = excluded.b + 1",
        "INSERT INTO excluded VALUES (1, 5) ON CONFLICT (a) DO UPDATE SET b = b + 1",
        "INSERT OR REPLACE INTO excluded VALUES (1, 5)",
    ],
)
def test_names_and_keys_that_come_twice(twin: Twin, sql: str) -> None:
    for name in ("t", "excluded"):
        twin.fill(f"CREATE TABLE {name} (a INT ENC PRIMARY KEY, b INT ENC)")
        twin.fill(f"INSERT INTO {name} VALUES (1, 2)")
    twin.either(sql)
    twin.run("SELECT * FROM t UNION ALL SELECT * FROM excluded")
