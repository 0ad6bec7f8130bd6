"""Queries by keys that come again: the same rows as plaintext PostgreSQL's, whatever the values."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from louver import errors
from louver.trusted.executor.answer import OpenedAnswer
from louver.wire.messages import Statement
from tests.local_postgres.test_repeated_inserts import _VALUES
from tests.local_postgres.twin import PostgresTwin, difference

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_COLUMNS = (
    ("smallint", "7"), ("integer", "-5"), ("bigint", "1 << 40"), ("text", "'it''s' || n"),
    ("varchar(9)", "'v' || n"), ("char(3)", "'c'"), ("boolean", "n % 2 = 0"),
    ("bytea", "'\\x00ff'::bytea"), ("uuid", "'00000000-0000-0000-0000-00000000000a'::uuid"),
    ("date", "'2026-02-03'::date + n"), ("timestamp", "'2026-02-03 4:05'::timestamp"),
    ("timestamptz", "'2026-02-03 4:05+2'::timestamptz"), ("real", "0.1"),
    ("double precision", "n / 3.0"), ("numeric", "n / 3.0"), ("numeric(7,2)", "n / 7.0"),
    ("jsonb", "'{\"a\": [1, null]}'::jsonb"), ("integer[]", "ARRAY[n, NULL]"),
    ("interval", "'1 day'::interval"), ("money", "n::money"),
)  # fmt: skip
#: Columns of a key, their values, a condition, parameters that fit it, and whether these are taken
#: as they are.
_KEYS: tuple[tuple[str, str, str, list[Any], bool], ...] = (
    ("k bigint ENC", "n", "k = $1", [3], True),
    ("k integer ENC", "n", "k = $1", [3], True),
    ("k smallint ENC", "n", "k = $1", [3], True),
    ("k text ENC", "'key ' || n", "k = $1", ["key 3"], True),
    ("k varchar(8) ENC", "'key ' || n", "k = $1", ["key 3"], True),
    ("k uuid ENC", "md5(n::text)::uuid", "k = $1", ["eccbc87e4b5ce2fe28308fd9f2a7baf3"], False),
    ("k numeric(6,2) ENC", "n", "k = $1", [3], True),
    ("k boolean ENC", "n = 1", "k = $1", [True], False),
    ("k bigint ENC", "n", "k IN ($1, $2)", [1, 3], True),
    ("k text ENC", "'key ' || n", "k IN ($1, 'key 3')", ["key 1"], False),
    ("k bigint ENC", "n", "k IN ($1, 3)", [1], True),
    ("k bigint ENC", "n", "k = $1 OR k = $2", [1, 2], False),
    ("k bigint ENC, j text ENC", "n, 'j' || n % 2", "k = $1 AND j = $2", [3, "j1"], True),
    ("k bigint ENC, j text ENC", "n, 'j' || n % 2", "j = 'j1' AND k = $1", [3], False),
)
_PLAIN = ("smallint", "integer", "bigint", "text", "boolean", "bytea", "uuid", "date", "real")
_ROWS, _RUNS = 6, 12


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    yield twin
    twin.close()


@pytest.fixture
def pointed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item for each answer that was opened in one call."""
    calls, own = list[int](), OpenedAnswer.__init__

    def counted(*given: Any) -> None:
        calls.append(1)
        own(*given)

    monkeypatch.setattr(OpenedAnswer, "__init__", counted)
    return calls


@pytest.mark.parametrize("number", range(len(_KEYS)))
def test_rows_of_all_types(twin: PostgresTwin, pointed: list[int], number: int) -> None:
    chance = random.Random(f"point reads {number}")
    key, value, where, fitting, direct = _KEYS[number]
    columns = chance.sample(_COLUMNS, chance.randint(1, 5))
    fields = [f"c{i} {t}{chance.choice(_kinds(t))}" for i, (t, _) in enumerate(columns)]
    names = [part.split()[0] for part in key.split(", ")]
    twin.run(f"CREATE TABLE t ({key}, {', '.join(fields)}, PRIMARY KEY ({', '.join(names)}))")
    rows = 1 if "boolean" in key else _ROWS
    twin.run(
        f"INSERT INTO t SELECT {value}, {', '.join(v for _, v in columns)} "
        f"FROM generate_series(1, {rows}) AS g(n)"
    )
    twin.run(f"INSERT INTO t ({', '.join(names)}) SELECT {value} FROM (SELECT 9) AS g(n)")
    for _ in range(3):
        shown = [*names, *[f"c{i}" for i in range(len(columns))]]
        chance.shuffle(shown)
        listed = ", ".join(shown[: chance.randint(1, len(shown))])
        sql = f"SELECT {listed} FROM t WHERE {where}"
        before = len(pointed)
        for _ in range(3):
            assert twin.differs(sql, fitting) == "", sql
        assert (len(pointed) > before) == direct, sql
        _compared(twin, chance, sql, fitting)


def _kinds(type_: str) -> tuple[str, ...]:
    return (" ENC", "") if type_ in _PLAIN else (" ENC",)


def _compared(twin: PostgresTwin, chance: random.Random, sql: str, fitting: list[Any]) -> None:
    """Run a query with many values. Numbers that are none of the key's type match nothing here, as
    with clients that bind them as numerics; the twin's plain side binds the key's own type.
    """
    for _ in range(_RUNS):
        parameters = [chance.choice((v, chance.choice(_VALUES))) for v in fitting]
        if chance.random() < 0.2:
            twin.run("BEGIN")
        plain, own = twin.both(sql, parameters)
        numbers = any(isinstance(value, int | float | Decimal) for value in parameters)
        if not (plain.state.startswith("22") and numbers and not own.error):
            assert difference(plain, own) == "", (sql, parameters)
        for side in (twin.on_plain, twin.on_louver):
            side("ROLLBACK")


@pytest.mark.parametrize("year", [1, 49, 99, 999, 1000, 9999])
def test_years_of_fewer_digits(twin: PostgresTwin, year: int) -> None:
    day, moment = date(year, 2, 3), datetime(year, 2, 3, 4, 5)
    twin.run("CREATE TABLE t (k date ENC, m timestamp ENC)")
    twin.run("INSERT INTO t VALUES ($1, $2), ('2001-02-03', '2001-02-03 4:05')", [day, moment])
    for condition in ("k = $1", "k >= $1", "k IN ($1, '2020-01-01')", "k BETWEEN $1 AND $1"):
        for _ in range(2):
            twin.run(f"SELECT k FROM t WHERE {condition}", [day])
            twin.run(f"SELECT k FROM t WHERE {condition.replace('k', 'm')}", [moment])
    twin.run("DELETE FROM t WHERE k = $1", [day])
    twin.run("SELECT * FROM t")


@pytest.mark.parametrize("condition", [
    "(a, c) = ($1, $2)", "(c, a) IN (($2, $1))", "(a, b, c) = ($1, 3, $2)",
    "a = $1 AND (c, c) = (2, $2)", "a = b AND b = $1 AND c = $2", "a = $1 AND b = 3 AND c = $2",
    "(a = $1) = (c = $2)",
])  # fmt: skip
def test_a_condition_of_which_a_key_is_a_part(twin: PostgresTwin, condition: str) -> None:
    twin.run("CREATE TABLE t (a bigint ENC UNIQUE, b bigint ENC UNIQUE, c bigint ENC)")
    twin.run("INSERT INTO t VALUES (3, 3, 1), (4, 4, 2), (5, 6, 2)")
    for parameters in ([3, 2], [4, 2], [3, 2], [3, 1]):
        twin.run(f"SELECT a, c FROM t WHERE {condition}", parameters)
        twin.run(f"UPDATE t SET c = c WHERE {condition}", parameters)
        twin.run(f"DELETE FROM t WHERE {condition}", parameters)
        twin.run("SELECT * FROM t")


def test_every_face_of_such_an_answer(twin: PostgresTwin, pointed: list[int]) -> None:
    twin.run("CREATE TABLE t (k bigint ENC PRIMARY KEY, s text ENC, at timestamptz ENC)")
    twin.run("INSERT INTO t VALUES (1, 'a', '2026-02-03 4:05+2'), (2, NULL, NULL)")
    sql = "SELECT s, k FROM t WHERE k = $1"
    faces = []
    for _ in range(3):
        cursor = twin.louver.execute(sql, [1])
        faces.append((
            cursor.rowcount, [item[:2] for item in cursor.description], cursor.fetchone(),
            cursor.fetchone(), cursor.arrow().to_pylist(), cursor.df().to_dict("list"),
        ))  # fmt: skip
    assert len(pointed) >= 1
    assert faces[0] == faces[1] == faces[2]
    assert faces[0][2:4] == (("a", 1), None)
    assert twin.louver.execute(sql, [2]).fetchall() == [(None, 2)]
    assert twin.louver.execute(sql, [3]).fetchall() == []
    for _ in range(3):
        assert twin.differs("SELECT at, s FROM t WHERE k = $1", [1]) == ""


def test_an_altered_value_is_named(twin: PostgresTwin, pointed: list[int]) -> None:
    twin.run("CREATE TABLE t (k bigint ENC PRIMARY KEY, s text ENC)")
    twin.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    sql = "SELECT s FROM t WHERE k = $1"
    for _ in range(3):
        assert twin.differs(sql, [1]) == ""
    assert pointed
    context = twin.louver._context
    table = context.catalog.table("public", "t")
    stored = table.column("s").stored["rnd"]
    change = f"{stored} = set_byte({stored}, 20, 255 - get_byte({stored}, 20))"
    target = context.backend.table(table)
    context.engine.run(Statement(f"UPDATE {target} SET {change}", kind="write"))
    for begin in ("", "BEGIN"):
        if begin:
            twin.louver.execute(begin)
        with pytest.raises(errors.VerificationError, match="row"):
            twin.louver.execute(sql, [1])


def test_a_definition_between_two_runs(twin: PostgresTwin, pointed: list[int]) -> None:
    twin.run("CREATE TABLE t (k bigint ENC PRIMARY KEY, s text ENC, n integer ENC)")
    twin.run("INSERT INTO t VALUES (1, '7', 5), (2, '8', 6)")
    sql = "SELECT s, n FROM t WHERE k = $1"
    for change in (
        "ALTER TABLE t ALTER s TYPE bigint USING s::bigint",
        "ALTER TABLE t DROP COLUMN n",
        "ALTER TABLE t ADD COLUMN n text ENC DEFAULT 'x'",
        "UPDATE t SET k = k + 1",
        "ALTER TABLE t RENAME COLUMN n TO m",
        "DROP TABLE t",
    ):
        before = len(pointed)
        for value in (1, 2, 3, 2, 0):
            assert twin.differs(sql, [value]) == ""
            assert twin.differs("SELECT k, s FROM t WHERE k = $1", [value]) == ""
        assert len(pointed) > before
        twin.run(change)
    assert twin.differs(sql, [1]) == ""
