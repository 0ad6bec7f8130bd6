"""INSERT … VALUES of constants beside DuckDB: values that are known without it are what it makes of
them, and what it refuses, rounds or reads in its own way takes the general way.
"""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.executor.change import inserting, known_values
from tests.twin import Twin

_LIMITS = [
    sign * (1 << bits) + more for bits in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64, 127)
    for sign in (1, -1) for more in (-1, 0, 1)
]  # fmt: skip
_TEXTS = [
    "", " ", "1", " 1", "1 ", "+1", "-1", "-0", "01", "1.5", "1.50", "1.505", ".5", "5.", "1e3",
    "1_000", "127", "128", "9223372036854775807", "9223372036854775808", "nan", "inf", "-inf",
    "true", "f", "it's", "a\0b", "é", "\ud800", "\\x00", "2024-02-29", "2023-02-29", "2024-2-9",
    "0001-01-01", "0000-01-01", "9999-12-31", "10000-01-01", "44-01-01 (BC)", "infinity", "epoch",
    "today", " 2024-01-01", "2024-01-01 ", "2024/01/01", "20240101", "2024-01-01 23:59:59",
    "2024-01-01T23:59:59", "2024-01-01 24:00:00", "2024-01-01 23:59:60", "2024-01-01 01:02:03.5",
    "2024-01-01 01:02:03.123456", "2024-01-01 01:02:03.1234567", "2024-01-01 01:02:03+02",
    "23:59:59", "٣", "1٣", "00000000-0000-0000-0000-000000000001",
]  # fmt: skip
_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(_LIMITS),
    st.integers(-(1 << 70), 1 << 70),
    st.integers(-1000, 1000),
    st.floats(),
    st.floats(width=32),
    st.builds(lambda n, s: n / 10**s, st.integers(-(10**9), 10**9), st.integers(0, 6)),
    st.sampled_from([0.0, -0.0, 0.005, 0.015, 1.005, 2.675, 99.994999, 99.995, 1e16, 1e300]),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-1000, max_value=1000),
    st.builds(lambda n, s: Decimal(n).scaleb(s), st.integers(-(10**20), 10**20),
              st.integers(-22, 3)),
    st.sampled_from(["0", "-0", "-0.00", "0.1", "99.99", "100", "1.50", "1E+1"]).map(Decimal),
    st.sampled_from(_TEXTS),
    st.text(max_size=6),
    st.binary(max_size=4),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.sampled_from([date.min, date.max, datetime.min, datetime.max, time.max,
                     datetime(2024, 1, 1, tzinfo=UTC), time(1, tzinfo=UTC), bytearray(b"a")]),
    st.uuids(),
)  # fmt: skip
TYPES = {
    "TINYINT": 20, "SMALLINT": 20, "INTEGER": 20, "BIGINT": 20, "UTINYINT": 20, "UBIGINT": 20,
    "DECIMAL(4,2)": 60, "DECIMAL(12,2)": 60, "DECIMAL(18,0)": 30, "DECIMAL(38,20)": 40,
    "DOUBLE": 40, "FLOAT": 40, "BOOLEAN": 10, "VARCHAR": 20, "BLOB": 20, "UUID": 20, "DATE": 40,
    "TIME": 20, "TIMESTAMP": 40, "HUGEINT": 10, "TIMESTAMP WITH TIME ZONE": 10, "INTERVAL": 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"arrow_lossless_conversion": "true"}) as connection:
        for number, type_ in enumerate(TYPES):
            connection.execute(f"CREATE TABLE t{number} (v {type_})")
        yield connection


@pytest.mark.in_turn
@pytest.mark.parametrize("type_", TYPES)
def test_known_values_are_those_of_duckdb(type_: str, plain: duckdb.DuckDBPyConnection) -> None:
    name = f"t{list(TYPES).index(type_)}"
    fields = plain.execute(f"SELECT v FROM {name}").to_arrow_table().schema

    @settings(max_examples=5 * TYPES[type_], deadline=None)
    @given(st.lists(_VALUES, min_size=1, max_size=2))
    def compare(values: list[object]) -> None:
        known = known_values.array(type_, fields.field(0).type, values)
        if known is None:
            return
        plain.execute("BEGIN")
        try:
            listed = ", ".join(f"(${i + 1})" for i in range(len(values)))
            plain.execute(f"INSERT INTO {name} VALUES {listed}", values)
            stored = plain.execute(f"SELECT v FROM {name} ORDER BY rowid").to_arrow_table()
        finally:
            plain.execute("ROLLBACK")
        assert known.type == stored.schema.field(0).type
        assert repr(_bare(known)) == repr(_bare(stored.column(0).combine_chunks())), values

    compare()


def _bare(array: Any) -> list[object]:
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    return list(storage.to_pylist())


def _literal(value: object) -> str:
    match value:
        case None | bool():
            return str(value).replace("None", "NULL").lower()
        case int() | Decimal():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case date() | time() | uuid.UUID():
            return f"'{value}'"
        case str() if "\0" not in value and "\ud800" not in value:
            return "'" + value.replace("'", "''") + "'"
    return "?"


#: Of a row: values that are usual for its columns.
_USUAL = (
    lambda d: d.choice([d.randrange(10**9), str(d.randrange(10**9))]),
    lambda d: d.choice(["a", "", "it's", "é", "x" * 40, None]),
    lambda d: d.choice([1, 1.5, 19.99, Decimal("2.50"), "3.25", Decimal("-0.00"), None]),
    lambda d: d.choice([date(2024, 2, 29), "2024-02-29", None]),
    lambda d: d.choice([0, 0.1, -0.0, Decimal("0.1"), math.inf]),
)


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_rows_of_constants(profile: str, key: str, open_twin: Callable[..., Twin]) -> None:
    twin, dice = open_twin(profile), random.Random(profile + key)
    unusual = [1 << 31, " 5", "x", 1.005, Decimal("1E+1"), b"a", True, "10000-01-01", 1e10]
    twin.fill(
        f"CREATE TABLE t (a INTEGER ENC{key}, b VARCHAR ENC NOT NULL DEFAULT 'z',"
        " c DECIMAL(6,2) ENC, d DATE, e DOUBLE ENC DEFAULT 0.5)"
    )
    for _ in range(30):
        chosen = dice.choice([(0, 1, 2, 3, 4), (0, 1, 2, 3, 4), (4, 2, 0), (0, 3, 1, 2)])
        rows = [[_USUAL[i](dice) for i in chosen] for _ in range(dice.choice([1, 1, 2, 5]))]
        if dice.random() < 0.3:
            dice.choice(rows)[dice.randrange(len(chosen))] = dice.choice(unusual)
        if len(rows) > 1 and dice.random() < 0.1:
            rows[-1][chosen.index(0)] = rows[0][chosen.index(0)]
        if dice.random() < 0.05:
            rows[-1].append(1)
        parameters, texts = list[object](), list[str]()
        for row in rows:
            items = ["?" if dice.random() < 0.5 else _literal(value) for value in row]
            parameters += [v for v, item in zip(row, items, strict=True) if item == "?"]
            texts.append(f"({', '.join(items)})")
        names = "" if len(chosen) == 5 else f" ({', '.join('abcde'[i] for i in chosen)})"
        sql = f"INSERT INTO t{names} VALUES {', '.join(texts)}"
        twin.either(sql, parameters)
    twin.run("SELECT * FROM t")


def test_which_take_the_short_way(
    open_twin: Callable[..., Twin], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The local engine rehearses no row whose values are known, and every other one."""
    twin, rehearsed = open_twin("cryptdb"), list[bool]()
    real = inserting._rehearsed

    def noted(context: Any, job: Any) -> Any:
        rehearsed.append(True)
        return real(context, job)

    monkeypatch.setattr(inserting, "_rehearsed", noted)
    twin.fill(
        "CREATE TABLE t (a INT ENC PRIMARY KEY, b TEXT ENC, c DECIMAL(6,2) ENC, d DATE)",
        "CREATE TABLE c (a INT ENC CHECK (a > 0))",
        "CREATE SEQUENCE s",
        "CREATE TABLE q (a INT ENC DEFAULT nextval('s'), b INT ENC)",
        "CREATE TABLE g (a INT ENC, b INT ENC GENERATED ALWAYS AS (a + 1))",
        "CREATE TABLE p (a INT PRIMARY KEY)",
        "CREATE TABLE f (a INT REFERENCES p (a))",
    )
    for sql, values, short in (
        ("INSERT INTO t VALUES (1, 'a', 1.5, '2024-01-01')", [], True),
        ("INSERT INTO t VALUES (?, ?, ?, ?)", [2, "b", 19.99, date(2024, 1, 1)], True),
        ("INSERT INTO t (d, a) VALUES (NULL, 3), ('2024-01-01', -4)", [], True),
        ("INSERT INTO main.t (\"A\", B) VALUES ('5', ?)", ["b"], True),
        ("INSERT INTO t VALUES (1, 'a', 1.5, '2024-01-01')", [], True),
        ("INSERT INTO p VALUES (1)", [], True),
        ("INSERT INTO f VALUES (1)", [], True),
        ("INSERT INTO f VALUES (2)", [], True),
        ("INSERT INTO t VALUES (6, 'a', 1.5, '2024-01-01'), (6, 'a', 1, NULL)", [], False),
        ("INSERT INTO t VALUES (7, 'a' || 'b', 1.5, '2024-01-01')", [], False),
        ("INSERT INTO t VALUES (8, 'a', 1.505, '2024-01-01')", [], False),
        ("INSERT INTO t VALUES (9, 'a', 1.5, 'today')", [], False),
        ("INSERT INTO t VALUES (10, 'a', 1.5)", [], False),
        ("INSERT INTO t VALUES (NULL, 'a', 1.5, NULL)", [], False),
        ("INSERT INTO t VALUES (11, DEFAULT, 1.5, NULL)", [], True),
        ("INSERT INTO t VALUES (12, 'a', 1.5, NULL) RETURNING a", [], False),
        ("INSERT INTO c VALUES (1)", [], False),
        ("INSERT INTO q (b) VALUES (1)", [], False),
        ("INSERT INTO q VALUES (1, 1)", [], True),
        ("INSERT INTO g (a) VALUES (1)", [], False),
    ):
        rehearsed.clear()
        twin.either(sql, values)
        assert rehearsed == [True] * (not short), sql
    for name in "tcqgpf":
        twin.run(f"SELECT * FROM {name}")


def test_rows_of_parameters_at_once(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin("cryptdb")
    twin.fill("CREATE TABLE t (a INT ENC PRIMARY KEY, b TEXT ENC, c DECIMAL(6,2) ENC, d DATE)")
    sql = "INSERT INTO t VALUES (?, ?, ?, ?)"
    for rows in (
        [[i, f"n{i}", i / 4, "2024-01-01"] for i in range(300)],
        [[300, None, "1.5", date(2024, 1, 1)], ["301", "x", Decimal(1), None]],
        [[302, "a", 1, None], [302, "a", 1, None]],
        [[303, "a", 1, None], [1, "a", 1, None]],
        [[304, "a", 1, None], [1 << 31, "a", 1, None]],
        [[305, "a", 1.005, " 2024-01-01"], [306, "a", 1, None]],
    ):
        done = []
        for connection in (twin.louver, twin.plain):
            try:
                connection.execute("BEGIN")
                connection.executemany(sql, rows)
                connection.execute("COMMIT")
                done.append("")
            except (duckdb.Error, errors.Error) as error:
                connection.execute("ROLLBACK")
                done.append(type(error).__name__)
        assert bool(done[0]) == bool(done[1]), (rows, done)
        twin.run("SELECT * FROM t")
