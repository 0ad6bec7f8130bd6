"""What is finished at home equals the same question in plain DuckDB."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from louver.wire.questions import Protocol
from tests.generated import cases
from tests.providers.fake import Fake

COLUMNS = (
    "k VARCHAR, a INTEGER, n SMALLINT, b BIGINT, d DECIMAL(6,2), s DECIMAL(3,1), day DATE, "
    "x DOUBLE, ok BOOLEAN"
)
FAKE = Fake.of(t=(COLUMNS, []))

DAY = datetime.date(2024, 2, 28)


def nullable(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


ROW = st.tuples(
    nullable(st.sampled_from(["", "a", "b", "é", "a'b"])),
    nullable(st.integers(-3, 3)),
    nullable(st.integers(-300, 300)),
    nullable(st.one_of(st.integers(-5, 5), st.integers(-(2**62), 2**62))),
    nullable(st.integers(-500, 500).map(lambda i: Decimal(i) / 100)),
    nullable(st.integers(-20, 20).map(lambda i: Decimal(i) / 10)),
    nullable(st.integers(0, 5).map(lambda i: DAY + datetime.timedelta(i))),
    nullable(st.integers(-4, 4).map(float)),
    nullable(st.booleans()),
)
ROWS = st.one_of(st.lists(ROW, max_size=3), st.lists(ROW, max_size=25))
#: Conditions with the secrets that they take.
SMALL = st.integers(-4, 4)
PRICE = st.one_of(
    st.integers(-5, 5),
    st.floats(-6, 6, allow_nan=False).map(lambda f: round(f, 3)),
    st.integers(-5000, 5000).map(lambda i: Decimal(i) / 1000),
)
TEXT = nullable(st.sampled_from(["", "a", "b", "é", "a'b", "zz"]))
DAYS = nullable(st.integers(-1, 6).map(lambda i: DAY + datetime.timedelta(i)))
CONDITIONS: list[tuple[str, tuple[st.SearchStrategy[Any], ...]]] = [
    ("true", ()),
    ("a > 0", ()),
    ("k = ?", (TEXT,)),
    ("k = ? AND a = ? AND ok", (TEXT, nullable(SMALL))),
    ("? = a AND n < 100", (PRICE,)),
    ("k IN (?, ?, 'b')", (TEXT, TEXT)),
    ("(k = ? AND a = ?) OR (k = ? AND a = 1)", (TEXT, SMALL, TEXT)),
    ("k = ? AND (a = ? OR a = ?)", (TEXT, SMALL, SMALL)),
    ("(k = ? AND a = 1) OR (k = ? AND a = 2) OR (a = ? AND k = 'a')", (TEXT, TEXT, SMALL)),
    ("d BETWEEN ? AND ?", (PRICE, PRICE)),
    ("d > ? AND ? >= d", (PRICE, PRICE)),
    ("d >= ? AND d >= ? AND d <= 3", (PRICE, PRICE)),
    ("a < ?", (PRICE,)),
    ("a <= ? AND k = ?", (PRICE, TEXT)),
    ("n > ?", (st.integers(-40_000, 40_000),)),
    ("b >= ?", (st.one_of(st.integers(-5, 5), st.integers(-(2**70), 2**70)),)),
    ("NOT (d <= ?)", (PRICE,)),
    ("d NOT BETWEEN ? AND ?", (PRICE, PRICE)),
    ("a <> ?", (nullable(SMALL),)),
    ("NOT (a = ? AND a = ?)", (SMALL, SMALL)),
    ("a NOT IN (?, ?)", (SMALL, SMALL)),
    ("k = ? AND (a < ? OR a = ?)", (TEXT, SMALL, SMALL)),
    ("day >= ? AND day < ?", (DAYS, DAYS)),
    ("day > ?", (DAYS.map(lambda d: d and datetime.datetime(d.year, d.month, d.day, 12)),)),
    ("k >= ? AND k < ?", (TEXT, TEXT)),
    ("ok = ? AND a + n BETWEEN ? - 1 AND ? + 1", (st.booleans(), SMALL, SMALL)),
    ("month(day) = ? AND d < PRIVATE(2.5)", (st.sampled_from([2, 3]),)),
]
#: Select lists; the second element is what is compared approximately.
AGGREGATES = [
    "count(*), count(), count(d), sum(d), sum(a) + 1, avg(a)",
    "avg(n), avg(b), avg(d), avg(s), avg(x), mean(a)",
    "sum(b), sum(ok), min(k), max(day), min(x), count_if(a > 0)",
    "stddev(d), stddev_pop(n), variance(a), var_samp(d), var_pop(s), stdev(a)",
    "max(d) - min(d) AS spread, product(a), bool_and(a > 0), bool_or(ok), bit_and(a), bit_or(n)",
    "bit_xor(a), histogram(a, [0, 2, -1, 2]), histogram(d, [1.5, 2]), histogram(k, ['a', 'b'])",
    "sum(d) FILTER (WHERE ok), count(*) FILTER (a > 0), max(k) FILTER (WHERE n > 0) AS m",
    "histogram(day, [DATE '2024-03-01']) FILTER (WHERE ok), sum(x), 5 AS five, round(avg(d), 1)",
    "CASE WHEN count(*) > 2 THEN max(a) ELSE min(a) END, upper(max(k)) || 'x'",
]
GROUPED = [
    "SELECT k, count(*), sum(d), avg(a) FROM t WHERE {} GROUP BY k",
    "SELECT a + 1 AS j, k, max(d) AS m, min(b) FROM t WHERE {} GROUP BY ALL HAVING m > 0",
    "SELECT count(*) AS c FROM t WHERE {} GROUP BY a ORDER BY c DESC, a NULLS FIRST LIMIT 2",
    "SELECT k FROM t WHERE {} GROUP BY 1 ORDER BY 1 DESC",
    "SELECT a % 2, sum(n) FROM t WHERE {} GROUP BY a % 2 HAVING sum(n) > -50 OR count(n) = 0",
    "SELECT upper(k), day, count(d) FROM t WHERE {} GROUP BY k, day ORDER BY ALL OFFSET 1",
]


def same(left: object, other: object) -> bool:
    if isinstance(left, float) and isinstance(other, float):
        return math.isclose(left, other, rel_tol=1e-9, abs_tol=1e-9)
    return left == other


def as_multiset(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: tuple(repr(_rounded(value)) for value in row))


def _rounded(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


def require_same(actual: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> None:
    assert len(actual) == len(wanted), (actual, wanted)
    for left, other in zip(actual, wanted, strict=True):
        assert all(same(a, b) for a, b in zip(left, other, strict=True)), (actual, wanted)


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, list[Any]]:
    text, secrets = draw(st.sampled_from(CONDITIONS))
    return text, [draw(secret) for secret in secrets]


PARTIES = st.sampled_from([(2, "owf"), (3, "owf"), (3, "paillier")])
PROFILE = settings(
    max_examples=cases(80), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@given(ROWS, conditions(), st.sampled_from(AGGREGATES), PARTIES)
@PROFILE
def test_one_row_of_aggregates(
    rows: list[Any], condition: tuple[str, list[Any]], items: str, parties: tuple[int, str]
) -> None:
    FAKE.fill("t", rows)
    text, values = condition
    sql = f"SELECT {items} FROM t WHERE {text}"
    wanted = FAKE.plain(sql, values).fetchall()
    question = FAKE.plan(sql, values, *parties)
    require_same(FAKE.ask(question), wanted)
    for index in range(len(question.alternatives)):
        require_same(FAKE.ask(question, index), wanted)


@given(ROWS, conditions(), st.sampled_from(GROUPED), PARTIES)
@PROFILE
def test_groups(
    rows: list[Any], condition: tuple[str, list[Any]], template: str, parties: tuple[int, str]
) -> None:
    FAKE.fill("t", rows)
    text, values = condition
    sql = template.format(text)
    wanted = FAKE.plain(sql, values).fetchall()
    actual = FAKE.ask(FAKE.plan(sql, values, *parties))
    if "ORDER BY" not in sql:
        actual, wanted = as_multiset(actual), as_multiset(wanted)
    require_same(actual, wanted)


ORDERS = [
    ("", "*"),
    ("d DESC NULLS FIRST", "k, a + 1 AS d, 7, d"),
    ("a + 1, k DESC", "t.*, upper(k) AS u"),
    ("1, x", "day, x"),
    ("ALL DESC", "b, n, 'x'"),
]


@given(ROWS, conditions(), PARTIES, st.sampled_from(ORDERS), st.integers(0, 4), st.integers(0, 2))
@PROFILE
def test_rows(
    rows: list[Any],
    condition: tuple[str, list[Any]],
    parties: tuple[int, str],
    sorting: tuple[str, str],
    limit: int,
    offset: int,
) -> None:
    FAKE.fill("t", rows)
    text, values = condition
    order, items = sorting
    ends = f"LIMIT {limit} OFFSET {offset}"
    by = f" ORDER BY {order}" if order else ""
    plain = order.replace("ALL DESC", "b DESC, n DESC") + ", " if order else ""
    wanted = FAKE.plain(
        f"SELECT {items} FROM t WHERE {text} ORDER BY {plain}t.rowid {ends}", values
    ).fetchall()
    question = FAKE.plan(f"SELECT {items} FROM t WHERE {text}{by} {ends}", values, *parties)
    assert FAKE.ask(question) == wanted
    for index in range(len(question.alternatives)):
        assert FAKE.ask(question, index) == wanted


@given(ROWS, conditions(), st.sampled_from(["max", "min"]), PARTIES)
@PROFILE
def test_an_argument_of_an_extreme_is_one_of_those_that_tie(
    rows: list[Any], condition: tuple[str, list[Any]], extreme: str, parties: tuple[int, str]
) -> None:
    FAKE.fill("t", rows)
    text, values = condition
    question = FAKE.plan(f"SELECT arg_{extreme}(k, d) FROM t WHERE {text}", values, *parties)
    known = FAKE.plain(
        f"SELECT {extreme}(d) FROM t WHERE ({text}) AND k IS NOT NULL", values
    ).fetchone()
    assert known is not None
    tied = {
        row[0]
        for row in FAKE.connection.execute(
            "SELECT k FROM t WHERE d = ? AND k IS NOT NULL", [known[0]]
        ).fetchall()
    }
    for index in (None, *range(len(question.alternatives))):
        ((group,),) = FAKE.ask(question, index)
        assert (group in tied) if known[0] is not None else group is None


@pytest.mark.parametrize("values", [[], [None], [1], [3], [1, 3, None], [-9, 0, 2, 3]])
@pytest.mark.parametrize("items", AGGREGATES)
def test_no_value_one_value_and_values_beyond_the_bounds(items: str, values: list[Any]) -> None:
    blank: tuple[Any, ...] = (None,) * 7
    FAKE.fill("t", [("k", value, *blank) for value in values])
    sql = f"SELECT {items} FROM t WHERE k = ?"
    require_same(FAKE.ask(FAKE.plan(sql, ["k"])), FAKE.plain(sql, ["k"]).fetchall())


@pytest.mark.parametrize("protocol", ["sum", "nodes"])
def test_the_protocol_of_an_interval_follows_the_aggregates(protocol: str) -> None:
    items = "sum(d), avg(a)" if protocol == "sum" else "sum(d), max(a)"
    question = FAKE.plan(f"SELECT {items} FROM t WHERE d < ?", [1])
    assert question.shape.protocol is Protocol(protocol)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=12), st.data())
@settings(max_examples=cases(50), deadline=None)
def test_averages_are_those_of_duckdb_to_the_last_bit(
    values: list[int], data: st.DataObject
) -> None:
    type_, low = data.draw(
        st.sampled_from(
            [("SMALLINT", 15), ("INTEGER", 31), ("BIGINT", 63), ("DECIMAL(4,1)", 12),
             ("DECIMAL(9,3)", 29), ("DECIMAL(18,5)", 50), ("UBIGINT", 0), ("DECIMAL(38,10)", 62)]
        )
    )  # fmt: skip
    fake = Fake.of(v=(f"x {type_}, k INTEGER", []))
    numbers = [abs(v) if not low else v % (1 << low) - (1 << low - 1) for v in values]
    scale = int(type_.partition(",")[2][:-1] or 0)
    if type_ == "DECIMAL(4,1)":
        numbers = [n % 10_000 for n in numbers]
    assume(all(abs(n) < 1 << 63 for n in numbers))
    fake.fill("v", [(Decimal(n).scaleb(-scale) if scale else n, 1) for n in numbers])
    sql = "SELECT avg(x) FROM v WHERE k = ?"
    assert fake.ask(fake.plan(sql, [1])) == fake.plain(sql, [1]).fetchall()
