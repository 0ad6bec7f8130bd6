"""Queries on codes of every type, against plaintext DuckDB: filters, joins, groups, sums, orders.

Every column is an onion of its own join group, the link is slow (so that whatever may be pushed is
pushed), and the values are those at which encodings break: ends of types, -0.0, NaN, infinities,
empty and long texts, NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engines.table import BACKENDS
from tests.generated import cases
from tests.twin import Twin

TYPES = {
    "i": "INTEGER", "b": "BIGINT", "u": "UBIGINT", "h": "HUGEINT", "d": "DECIMAL(10,2)",
    "e": "DECIMAL(25,3)", "f": "DOUBLE", "g": "FLOAT", "t": "VARCHAR", "da": "DATE",
    "ts": "TIMESTAMP", "bo": "BOOLEAN", "ti": "TIME", "uu": "UUID", "bl": "BLOB",
}  # fmt: skip
VALUES: dict[str, list[str | None]] = {
    "i": ["0", "1", "-1", "5", "2147483647", "-2147483648", None, "7"],
    "b": ["0", "9223372036854775807", "-9223372036854775808", "5", None, "7", "-3"],
    "u": ["0", "18446744073709551615", "5", None, "9223372036854775808"],
    "h": ["0", "-5", "170141183460469231731687303715884105727", None, "12"],
    "d": ["0", "1.50", "-99999999.99", "99999999.99", None, "5", "-0.01"],
    "e": ["0", "1.5", None, "-12345678901234567890.123"],
    "f": ["0.0", "-0.0", "nan", "inf", "-inf", "1.5", "-2.25", None, "5e-324", "1e308"],
    "g": ["0.0", "nan", "1.5", "0.1", None, "-3.5"],
    "t": ["", "a", "abc", "abcdefghijk", "abcdefghZ", "ABC", "é", "z" * 40, None, " "],
    "da": ["1970-01-01", "2020-02-29", "1969-12-31", None, "9999-12-31", "infinity", "0001-01-01"],
    "ts": ["1970-01-01 00:00:00", "2020-02-29 12:30:00.123456", None, "infinity"],
    "bo": ["true", "false", None],
    "ti": ["00:00:00", "23:59:59.999999", None, "12:00:00"],
    "uu": ["00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff", None],
    "bl": ["\\x00", "", "abc", None],
}
COMPARED = ("=", "<>", "<", "<=", ">", ">=")
ODD = ("5.5", "0.005", "-3", "2147483648", "'5'", "1.50", "99999999999999999999", "NULL")
PATTERNS = ("%abc%", "abc%", "%", "a%", "%zzz%", "_bc%", "abc")


def stored(name: str, rng: Random) -> str:
    """A value as SQL of its own type."""
    value = rng.choice(VALUES[name])
    return "NULL" if value is None else f"'{value}'::{TYPES[name]}"


def constant(name: str, rng: Random) -> str:
    """What a column may be compared with."""
    chance = rng.random()
    if name in ("i", "b", "d") and chance < 0.3:
        return rng.choice(ODD)
    if name == "da" and chance < 0.3:
        unit = rng.choice(("HOUR", "DAY", "MONTH"))
        return f"DATE '2020-02-29' + INTERVAL {rng.choice((0, 1, 36))} {unit}"
    value = rng.choice(VALUES[name])
    if chance < 0.6 and value is not None and name in ("da", "ts", "t", "ti", "uu"):
        return f"'{value}'"
    return stored(name, rng)


def atom(rng: Random, table: str) -> str:
    """One condition."""
    name = rng.choice(list(TYPES))
    column, never = f"{table}{name}", rng.choice(("", "NOT "))
    first, second = constant(name, rng), constant(name, rng)
    return rng.choice((
        f"{column} {rng.choice(COMPARED)} {first}",
        f"{column} {rng.choice(COMPARED)} {first}",
        f"{first} {rng.choice(COMPARED)} {column}",
        f"{column} {never}IN ({first}, {second})",
        f"{column} {never}BETWEEN {first} AND {second}",
        f"{column} IS {never}NULL",
        f"{table}t {never}LIKE '{rng.choice(PATTERNS)}'",
        f"{column} = {column}",
    ))  # fmt: skip


def condition(rng: Random, table: str = "", depth: int = 0) -> str:
    """A condition of AND, OR and NOT."""
    chance = rng.random()
    if depth == 2 or chance > 0.6:
        return atom(rng, table)
    left, right = condition(rng, table, depth + 1), condition(rng, table, depth + 1)
    return f"({left} AND {right})" if chance < 0.25 else (
        f"({left} OR {right})" if chance < 0.5 else f"NOT ({left})"
    )  # fmt: skip


def query(rng: Random) -> str:
    """A query of one of the shapes that are pushed in their own ways."""
    a, b = rng.choice(list(TYPES)), rng.choice(list(TYPES))
    number, never = rng.choice("ibde"), rng.choice(("", "NOT "))
    where = condition(rng)
    return rng.choice((
        f"SELECT n, {a} FROM r WHERE {where}",
        f"SELECT count(*), count({a}), count(DISTINCT {b}), sum({number}), avg({number}) FROM r"
        f" WHERE {where}",
        f"SELECT {a}, count(*), sum({number}) FROM r WHERE {where} GROUP BY {a}",
        f"SELECT min({a}), max({a}) FROM r WHERE {where}",
        f"SELECT r.n, s.n FROM r LEFT JOIN s ON r.{a} = s.{a} WHERE {condition(rng, 'r.')}",
        f"SELECT r.n, s.n FROM r JOIN s ON r.{a} = s.{a} WHERE {condition(rng, 's.')}",
        f"SELECT count(*), sum(r.i) FROM r JOIN s ON r.{a} = s.{a} AND {condition(rng, 's.')}",
        f"SELECT n FROM r WHERE {never}EXISTS"
        f" (SELECT 1 FROM s WHERE r.{a} = s.{a} AND {condition(rng, 's.')})",
        f"SELECT n FROM r WHERE {a} {never}IN (SELECT {a} FROM s WHERE {where})",
        f"SELECT DISTINCT {a}, {b} FROM r WHERE {where}",
        f"SELECT n FROM r WHERE {where} ORDER BY {a}, n LIMIT 5",
        f"WITH q AS (SELECT {a}, count(*) AS c FROM r WHERE {where} GROUP BY {a})"
        f" SELECT s.n, q.c FROM s JOIN q ON s.{a} = q.{a} WHERE {condition(rng, 's.')}",
    ))  # fmt: skip


@pytest.fixture(params=BACKENDS)
def twin(request, open_connection, tmp_path) -> Iterator[Twin]:
    policy = tmp_path / "policy.toml"
    groups = "\n".join(f'{name} = {{scheme = "onion", join = "{name}"}}' for name in TYPES)
    policy.write_text(f'["*"]\n{groups}\n')
    twin = Twin.beside(open_connection("cryptdb", request.param, policy=policy), own_errors=True)
    rng = Random(4)
    for table in ("r", "s"):
        columns = ", ".join(f"{name} {type_} ENC" for name, type_ in TYPES.items())
        rows = [f"({n}, {', '.join(stored(name, rng) for name in TYPES)})" for n in range(40)]
        twin.fill(
            f"CREATE TABLE {table} (n INTEGER, {columns})",
            f"INSERT INTO {table} VALUES {', '.join(rows)}",
        )
    twin.louver.execute("SET link_bandwidth = '10B/s'")
    yield twin
    twin.plain.close()


@pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
def test_answers_equal(twin: Twin) -> None:
    @settings(max_examples=cases(60), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**48))
    def check(seed: int) -> None:
        sql = query(Random(seed))
        twin.either(sql, ordered="LIMIT" in sql)

    check()
    shown = {row[1] for row in twin.rows("SHOW LEAKAGE") if row[2] == "order"}
    assert len(shown) > 5
