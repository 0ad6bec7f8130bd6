"""The language of private questions: what is read, what is refused, how secrets are rounded."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from louver import errors
from louver.wire.questions import Order, Partial, Protocol
from tests.providers.fake import Fake

FAKE = Fake.of(
    flights=(
        "origin VARCHAR, dest VARCHAR, month INTEGER, price DECIMAL(8,2), delay BIGINT, day DATE, "
        "seen TIMESTAMP, speed DOUBLE, carrier VARCHAR, ok BOOLEAN, tags VARCHAR[], "
        "zoned TIMESTAMP WITH TIME ZONE, kind ENUM('x', 'y'), \"Odd name\" INTEGER",
        [],
    ),
    airlines=("carrier VARCHAR, name VARCHAR", []),
)


def refusal(sql: str, values: Any = (), parties: int = 2) -> errors.Error:
    with pytest.raises(errors.Error) as caught:
        FAKE.plan(sql, values, parties)
    return caught.value


# --------------------------------------------------------------------- classes and protocols


@pytest.mark.parametrize(
    ("where", "values", "condition", "two", "three", "paillier"),
    [
        ("month > 3", [], "single", "select", "buckets", "buckets"),
        ("month = ?", [1], "single", "select", "buckets", "paillier"),
        ("price < ?", [1], "interval", "sum", "dyadic", "paillier"),
        ("month = ? AND price < ?", [1, 1], "interval", "sum", "dyadic", "paillier"),
        ("month IN (?, ?)", [1, 1], "disjoint", "select", "buckets", "paillier"),
        ("price <> ?", [1], "disjoint", "sum", "dyadic", "paillier"),
    ],
)
def test_the_protocol_follows_the_condition(
    where: str, values: list[Any], condition: str, two: str, three: str, paillier: str
) -> None:
    sql = f"SELECT count(*), sum(price) FROM flights WHERE {where}"
    for parties, scheme, protocol in (
        (2, "owf", two),
        (3, "owf", three),
        (3, "paillier", paillier),
    ):
        question = FAKE.plan(sql, values, parties, scheme)
        assert (question.condition, question.shape.protocol) == (condition, protocol)
    question = FAKE.plan(f"SELECT max(price) FROM flights WHERE {where}", values, 3, "paillier")
    assert question.shape.protocol == three


def test_a_disjoint_extreme_may_be_searched() -> None:
    sql = "SELECT arg_max(dest, price) FILTER (WHERE ok) FROM flights WHERE month IN (?, ?)"
    question = FAKE.plan(sql, [1, 2])
    assert question.shape.partials == (
        Partial("max", ("price",), "(dest IS NOT NULL) AND (ok)"),
        Partial("arg_max", ("dest", "price"), "ok"),
    )
    (way,) = question.alternatives
    assert way.shape.protocol is Protocol.SEARCH
    assert way.shape.columns == ("price", "dest")
    assert way.shape.orders == (Order("price", True),)
    assert FAKE.plan(sql, [1, 2], 3).alternatives == ()


def test_public_conditions_filter_first_and_shapes_are_written_in_one_way() -> None:
    plan = FAKE.plan(
        "select Sum(f.PRICE) from Flights as f where f.month > 3 and (f.origin = ? and ok)", ["x"]
    )
    other = FAKE.plan("SELECT SUM(price) FROM flights WHERE month>3 AND ok AND $1 = origin", ["y"])
    assert plan.shape == other.shape
    assert plan.shape.where == "month > 3 AND ok"
    assert plan.shape.source == "flights"


def test_a_shape_holds_no_secret() -> None:
    question = FAKE.plan(
        "SELECT count(*) FROM flights WHERE origin = ? AND price BETWEEN PRIVATE(1234.5) AND ?",
        ["canary", 98765],
    )
    said = repr(question)
    assert not any(secret in said for secret in ("canary", "1234", "98765"))


def test_types_and_values_of_secrets_do_not_change_the_shape() -> None:
    sql = "SELECT count(*) FROM flights WHERE month = ? AND price >= ?"
    shapes = {
        FAKE.plan(sql, values).shape
        for values in ([1, 2], [None, None], [10**20, Decimal("0.001")], ["7", 1e300], [True, "5"])
    }
    assert len(shapes) == 1


def test_joins_are_public() -> None:
    question = FAKE.plan(
        "SELECT a.name, count(*) FROM flights f JOIN airlines a USING (carrier) "
        "WHERE carrier = ? GROUP BY a.name",
        ["x"],
    )
    assert question.shape.source == "flights JOIN airlines USING (carrier)"
    assert question.shape.equal == ("flights.carrier",)
    twice = FAKE.plan(
        "SELECT y.origin FROM flights x LEFT JOIN flights y ON x.dest = y.origin "
        "WHERE x.origin = ? LIMIT 1",
        ["x"],
    )
    assert twice.shape.source == (
        "flights LEFT JOIN flights AS flights_2 ON flights.dest = flights_2.origin"
    )


def test_names_in_quotes() -> None:
    question = FAKE.plan('SELECT max("odd NAME") AS "a ""b" FROM flights WHERE "Odd name" = ?', [1])
    assert question.shape.equal == ('"Odd name"',)
    assert question.names == ('a "b',)


def test_a_public_constant_in_one_alternative_is_hidden_too() -> None:
    question = FAKE.plan(
        "SELECT count(*) FROM flights WHERE (month = ? AND origin = 'JFK') OR "
        "(month = ? AND origin = 'LGA')",
        [1, 2],
    )
    assert question.shape.equal == ("month", "origin")
    assert question.shape.where == ""


def test_a_public_end_of_a_between_is_public() -> None:
    question = FAKE.plan("SELECT count(*) FROM flights WHERE price BETWEEN 5 AND ?", [9])
    assert question.shape.where == "price >= 5"
    assert question.clauses[0].low is None


def test_words_say_what_is_private() -> None:
    question = FAKE.plan("SELECT count(*) FROM flights WHERE month = ? AND ok", [3])
    assert "what month is compared with" in question.private
    assert "WHERE ok" in question.public
    nothing = FAKE.plan("SELECT count(*) FROM flights WHERE ok", [])
    assert nothing.private == ()
    assert any("nothing of this question is private" in line for line in nothing.public)


# --------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT count(*) FROM flights WHERE month = ? OR origin = ?", "different expressions"),
        ("SELECT count(*) FROM flights WHERE price < ? AND delay > ?", "two private intervals"),
        ("SELECT count(*) FROM flights WHERE month = ? OR ok", "public condition ok"),
        ("SELECT count(*) FROM flights WHERE origin LIKE ?", "pattern"),
        ("SELECT count(*) FROM flights WHERE month + ? = 5", "one side"),
        ("SELECT count(*) FROM flights WHERE month = delay + ?", "one side"),
        ("SELECT count(*) FROM flights WHERE ? = ?", "not with a constant"),
        ("SELECT count(*) FROM flights WHERE ?", "condition by itself"),
        ("SELECT count(*) FROM flights WHERE ? IS NULL OR month = ?", "IS with a secret"),
        ("SELECT count(*) FROM flights WHERE month IS DISTINCT FROM ?", "DISTINCT FROM"),
        ("SELECT count(*) FROM flights WHERE (month, origin) = (?, ?)", "rows compared"),
        ("SELECT count(*) FROM flights WHERE month IN ?", "one secret list"),
        ("SELECT count(*) FROM flights WHERE starts_with(origin, ?)", "STARTSWITH"),
        ("SELECT ? + count(*) FROM flights", "select list"),
        ("SELECT origin FROM flights LIMIT ?", "LIMIT"),
        ("SELECT origin, count(*) FROM flights GROUP BY 1 HAVING count(*) > ?", "HAVING"),
        ("SELECT origin FROM flights ORDER BY month = ? LIMIT 5", "ORDER BY"),
        ("SELECT origin FROM flights WHERE month = ?", "without LIMIT"),
        ("SELECT origin FROM flights WHERE month = ? LIMIT 5%", "LIMIT"),
        ("SELECT origin FROM flights WHERE month = ? LIMIT 100000", "rows at once"),
        ("SELECT tags FROM flights WHERE month = ? LIMIT 5", "tags"),
        ("SELECT DISTINCT origin FROM flights WHERE month = ?", "DISTINCT"),
        ("SELECT count(DISTINCT origin) FROM flights WHERE month = ?", "DISTINCT"),
        ("SELECT median(price) FROM flights WHERE month = ?", "MEDIAN"),
        ("SELECT list(price) FROM flights WHERE month = ?", "LIST"),
        ("SELECT string_agg(origin, ',') FROM flights WHERE month = ?", "aggregate"),
        ("SELECT any_value(origin) FROM flights WHERE month = ?", "ANY_VALUE"),
        ("SELECT max(price, 3) FROM flights WHERE month = ?", "several rows"),
        ("SELECT sum(price ORDER BY day) FROM flights WHERE month = ?", "ORDER BY"),
        ("SELECT histogram(price) FROM flights WHERE month = ?", "bounds"),
        ("SELECT stddev(speed) FROM flights WHERE month = ?", "DOUBLE"),
        ("SELECT avg(day) FROM flights WHERE month = ?", "AVG over DATE"),
        ("SELECT count(*) FROM flights WHERE speed < ?", "floating-point"),
        ("SELECT count(*) FROM flights WHERE ok > ?", "interval over BOOLEAN"),
        ("SELECT count(*) FROM flights WHERE origin = CAST(? AS INTEGER)", "type VARCHAR"),
        ("SELECT row_number() OVER () FROM flights WHERE month = ? LIMIT 5", "window"),
        ("SELECT count(*) FROM (SELECT 1) x WHERE 1 = ?", "subquery"),
        ("WITH x AS (SELECT 1) SELECT count(*) FROM flights WHERE month = ?", "WITH"),
        ("SELECT 1 FROM flights UNION SELECT 2 FROM flights", "UNION"),
        ("SELECT count(*) FROM flights f, airlines a WHERE f.carrier = a.carrier || ?", "one side"),
        ("SELECT count(*) FROM flights f JOIN airlines a ON f.carrier = ?", "join on a secret"),
        ("SELECT count(*) FROM flights NATURAL JOIN airlines", "NATURAL"),
        ("SELECT count(*) FROM flights TABLESAMPLE 5", "FROM"),
        ("SELECT count(*) FROM read_csv('x')", "FROM"),
        ("SELECT count(*) FROM flights WHERE random() < 0.5", "random"),
        ("SELECT origin, count(*) FROM flights GROUP BY ROLLUP (origin)", "ROLLUP"),
        ("SELECT count(*) FROM flights WHERE origin COLLATE NOCASE = ?", "COLLATE"),
        ("SELECT 1", "no table"),
        ("DELETE FROM flights", "DELETE"),
    ],
)
def test_what_lies_outside_is_refused_with_what_works_instead(sql: str, said: str) -> None:
    error = refusal(sql, [1] * sql.count("?"))
    assert error.code == "provider.language"
    assert said.lower() in error.message.lower()
    assert len(error.fix) > 10


def test_at_most_64_alternatives() -> None:
    marks = ", ".join("?" for _ in range(65))
    sql = "SELECT count(*) FROM flights WHERE month IN ({})"
    assert refusal(sql.format(marks), [1] * 65).code == "provider.language"
    assert len(FAKE.plan(sql.format(marks[3:]), [1] * 64).clauses) == 64


@pytest.mark.parametrize(
    ("sql", "code", "fix"),
    [
        ("SELECT count(*) FROM flight WHERE month = ?", "table.missing", "flights"),
        ("SELECT count(*) FROM flights WHERE mnth = ?", "column.missing", "month"),
        ("SELECT count(*) FROM flights f WHERE g.month = ?", "table.missing", "f"),
        ("SELECT count(*) FROM flights WHERE louver_parameter_1 = ?", "sql.reserved", "name"),
        ("SELECT f.mont FROM flights f WHERE month = ? LIMIT 1", "column.missing", "month"),
    ],
)
def test_missing_names_come_with_a_suggestion(sql: str, code: str, fix: str) -> None:
    error = refusal(sql, [1])
    assert (error.code, fix in error.fix) == (code, True)


def test_what_duckdb_does_not_bind_is_its_error() -> None:
    assert refusal("SELECT origin, count(*) FROM flights WHERE month = ?", [1]).code.startswith(
        "duckdb."
    )
    assert refusal("SELECT TOP 5 origin FROM flights WHERE month = ?", [1]).code.startswith(
        ("duckdb.", "sql.")
    )


# ------------------------------------------------------------------------ rounding of secrets

NUMBERS: dict[str, list[Any]] = {
    "TINYINT": [-128, -127, -1, 0, 1, 2, 126, 127, None],
    "UTINYINT": [0, 1, 2, 254, 255, None],
    "INTEGER": [-(2**31), -5, 0, 5, 6, 2**31 - 1, None],
    "BIGINT": [-(2**63), -1, 0, 5, 2**53, 2**63 - 1],
    "UBIGINT": [0, 5, 2**63, 2**64 - 1],
    "HUGEINT": [-(2**127), -5, 0, 5, 2**100, 2**127 - 1],
    "UHUGEINT": [0, 5, 2**128 - 1],
    "DECIMAL(3,1)": [Decimal(i).scaleb(-1) for i in (-999, -1, 0, 4, 5, 50, 55, 999)],
    "DECIMAL(4,4)": [Decimal(i).scaleb(-4) for i in (-9999, 0, 1, 9999)],
    "DECIMAL(18,2)": [Decimal(i).scaleb(-2) for i in (-(10**18) + 1, 0, 550, 10**18 - 1)],
    "DECIMAL(38,3)": [Decimal(0), Decimal("5.5"), Decimal(10**34 + 5)],
}
GIVEN: list[Any] = [
    -129, -128, -1, 0, 1, 2, 5, 127, 128, 255, 256, 2**31, 2**64, -(2**63), None, True, "5", "1",
    Decimal("5.5"), Decimal("-0.05"), Decimal("5.05"), Decimal("4.99999"), Decimal("0.00005"),
    0.5, -0.5, 5.5, 5.05, 1e300, -1e300, float("inf"), float("-inf"), float("nan"), 126.5, 254.99,
]  # fmt: skip
MOMENTS: dict[str, list[Any]] = {
    "DATE": [datetime.date(1969, 12, 31), datetime.date(2024, 2, 28), datetime.date(2024, 2, 29)],
    "TIMESTAMP": [
        datetime.datetime(2024, 2, 29), datetime.datetime(2024, 2, 29, 11, 59, 59, 999999),
        datetime.datetime(2024, 2, 29, 12), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    ],
    "TIMESTAMP_S": [datetime.datetime(2024, 2, 29), datetime.datetime(2024, 2, 29, 12)],
    "TIMESTAMP_MS": [datetime.datetime(2024, 2, 29), datetime.datetime(2024, 2, 29, 12)],
    "TIMESTAMP_NS": [datetime.datetime(2024, 2, 29), datetime.datetime(2024, 2, 29, 12)],
    "TIMESTAMP WITH TIME ZONE": [datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)],
}  # fmt: skip
GIVEN_MOMENTS: list[Any] = [
    datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.datetime(2024, 2, 29, 12),
    datetime.datetime(2024, 2, 29, 11, 59, 59, 999999), "2024-02-29",
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 2, 29), None,
]  # fmt: skip
OPERATORS = ("=", "<", "<=", ">", ">=", "<>")


@pytest.mark.in_turn
@pytest.mark.parametrize("type_", [*NUMBERS, *MOMENTS])
def test_secrets_of_other_types_compare_as_in_duckdb(type_: str) -> None:
    values, given = NUMBERS.get(type_, []), GIVEN
    if type_ in MOMENTS:
        values, given = MOMENTS[type_], GIVEN_MOMENTS
    fake = Fake.of(v=(f"x {type_}", [(value,) for value in values]))
    for secret in given:
        for operator in OPERATORS:
            sql = f"SELECT count(*) FROM v WHERE x {operator} ?"
            try:
                wanted: Any = fake.plain(sql, [secret]).fetchall()
            except duckdb.Error:
                # DuckDB cannot compare them: nor need we.
                continue
            try:
                answer: Any = fake.ask(fake.plan(sql, [secret]))
            except duckdb.InvalidInputException as error:
                if not isinstance(secret, float) or "too large" not in str(error):
                    raise
                continue
            assert answer == wanted, (type_, operator, secret)


@pytest.mark.parametrize(
    ("condition", "values"),
    [("kind = ?", ["x"]), ("kind IN (?, ?)", ["y", "zz"]),
     ("zoned > ?", ["2024-01-01 00:00:00+02"]),
     ("day BETWEEN ? AND ?", ["2024-01-01", "2024-03-01"]), ("origin <> ?", ["a"]),
     ("origin > ? AND origin <= ?", ["a", "b"]), ("day >= PRIVATE(DATE '2024-01-01' + 1)", []),
     ("ok = ?", [True]), ("lower(origin) = lower(?)", ["A"])],
)  # fmt: skip
def test_other_types(condition: str, values: list[Any]) -> None:
    zoned = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    day = datetime.date(2024, 1, 2)
    rows: list[Any] = [
        ("a", "b", 1, 5, 5, day, day, 1.0, "c", True, [], zoned, "x", 1),
        ("b", "b", 1, 5, 5, None, day, 1.0, "c", False, [], zoned, "y", 1),
        ("", None, 1, 5, 5, day, day, 1.0, "c", None, [], None, None, 1),
    ]
    FAKE.fill("flights", rows)
    sql = f"SELECT count(*) FROM flights WHERE {condition}"
    assert FAKE.ask(FAKE.plan(sql, values)) == FAKE.plain(sql, values).fetchall()


@pytest.mark.parametrize(
    "condition",
    [
        "month = PRIVATE(77123, 1)",
        "month = nosuch(PRIVATE(77123))",
        "month = ANY([PRIVATE(77123)])",
        "origin = PRIVATE('77123',)x",
        "month = least(PRIVATE(77123) as ?, 2.5)",
    ],
)
def test_no_error_quotes_a_secret(condition: str) -> None:
    """Whoever keeps a log of errors does not keep secrets by that."""
    message = refusal(f"SELECT count(*) FROM flights WHERE {condition}", [5])
    assert "77123" not in str(message)
    assert "louver_parameter" not in str(message)


def test_parameters_by_name_and_number() -> None:
    FAKE.fill("flights", [("a",) + (None,) * 9 + ([], None, None, 1)])
    sql = 'SELECT count(*) FROM flights WHERE origin = $2 AND origin = $2 AND "Odd name" = $1'
    assert FAKE.ask(FAKE.plan(sql, [1, "a"])) == [(1,)]
    named = 'SELECT count(*) FROM flights WHERE origin = :o AND "Odd name" < :n + 1'
    assert FAKE.ask(FAKE.plan(named, {"o": "a", "n": 1})) == [(1,)]


def test_plans_are_kept_by_the_types_of_values_and_hold_the_new_values() -> None:
    FAKE.fill("flights", [("a", "b", 5, 1, 1) + (None,) * 5 + ([], None, None, 1)])
    sql = "SELECT count(*) FROM flights WHERE month < ? AND origin = ?"
    for value in (5, 6, 5.5, "5", None, 2**40, -(2**40), Decimal("5.1"), 6, True, 10**30):
        for origin in ("a", "b"):
            wanted = FAKE.plain(sql, [value, origin]).fetchall()
            assert FAKE.ask(FAKE.plan(sql, [value, origin])) == wanted


def test_brackets_are_kept_where_an_expression_stands_beside_an_operator() -> None:
    rows: list[Any] = [
        ("a", "b", m, 5, 5, None, None, 1.0, "c", m > 1, [], None, None, m) for m in (0, 1, 2, 3)
    ]
    FAKE.fill("flights", rows)
    for sql in (
        "SELECT month = 1 OR ok AS e, e AND ok, count(*) FROM flights WHERE origin = ? "
        "GROUP BY ALL",
        "SELECT max(month) AS m, m - 1 AS n, 5 - n FROM flights WHERE origin IN (?, 'x')",
        "SELECT arg_max(month = 1 OR ok, month | 4) FROM flights WHERE origin = ?",
        "SELECT max(month - 3 | 1) FROM flights WHERE origin IN (?, 'x')",
        "SELECT histogram(month - 1, [0, 1]), histogram(ok OR NULL, [true]) FROM flights "
        "WHERE origin = ?",
        "SELECT count(*) FROM flights WHERE origin = ? AND month | 1 BETWEEN 2 AND PRIVATE(3)",
        "SELECT count(*) FROM flights WHERE (ok OR month = 0) AND (ok = PRIVATE(false)) AND "
        "origin = ?",
    ):
        question = FAKE.plan(sql, ["a"])
        wanted = FAKE.plain(sql, ["a"]).fetchall()
        assert sorted(FAKE.ask(question), key=repr) == sorted(wanted, key=repr), sql
        for index in range(len(question.alternatives)):
            assert FAKE.ask(question, index) == wanted
