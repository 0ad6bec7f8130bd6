"""Values of every Python type, bound beside columns of every type: PostgreSQL reads a bound value
as the type of what it is compared with, so that a moment beside a date is its day, and 1.5 beside a
whole number an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_STORED = {
    "smallint": ("-3", "0", "7"), "integer": ("-3", "0", "7"), "bigint": ("0", "7", "1e10::bigint"),
    "numeric(12,2)": ("-1.50", "0", "7", "7.01"), "numeric": ("0.1", "7", "7.10"),
    "double precision": ("0.1", "7", "-0.0", "'NaN'"), "real": ("0.1", "7"),
    "date": ("'2024-01-02'", "'1999-12-31'", "'infinity'"),
    "timestamp": ("'2024-01-02'", "'2024-01-02 03:04:05.000006'", "'1999-12-31'"),
    "timestamptz": ("'2024-01-02 00:00Z'", "'2024-01-02 03:04:05.000006Z'"),
    "time": ("'03:04:05'", "'00:00'"), "interval": ("'1 day'", "'24 hours'"),
    "text": ("'7'", "''", "'2024-01-02'", "'t'"),
    "boolean": ("true", "false"), "uuid": ("'00000000-0000-0000-0000-000000000007'",),
    "bytea": ("'7'", "'\\x00ff'"),
}  # fmt: skip
_BOUND: tuple[Any, ...] = (
    0, 7, -3, 40_000, 1 << 40, 1 << 70, True, False, None, 0.1, 7.0, 1.5, float("nan"),
    float("inf"), Decimal(7), Decimal("7.10"), Decimal("1.5"), Decimal("-1.50"), Decimal("0.1"),
    date(2024, 1, 2), date(1999, 12, 31), datetime(2024, 1, 2), datetime(2024, 1, 2, 3, 4, 5, 6),
    datetime(2024, 1, 2, 3, tzinfo=UTC), time(3, 4, 5), timedelta(days=1), UUID(int=7), b"7",
    b"\0\xff", "7", " 7", "7.0", "", "t", "2024-01-02", "2024-01-02 03:04:05.000006", "infinity",
)  # fmt: skip
_SIGNS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")
_FORMS = (
    "SELECT k FROM {t} WHERE c {sign} $1",
    "SELECT k FROM {t} WHERE $1 {sign} c",
    "SELECT count(*) FROM {t} WHERE c {sign} $1",
    "SELECT k FROM {t} WHERE c IN ($1,$2)",
    "SELECT k FROM {t} WHERE c BETWEEN $1 AND $2",
    "SELECT k FROM {t} WHERE c NOT IN ($1, $2) OR k = 1",
    "UPDATE {t} SET n = n + 1 WHERE c {sign} $1",
    "SELECT a.k, b.k FROM {t} AS a, {u} AS b WHERE a.c {sign} $1 AND b.c = $1",
    "SELECT a.k, b.k FROM {t} AS a, {u} AS b WHERE (a.c, b.c) = ($1, $2) OR b.c {sign} $1",
    "SELECT k, $1 AS v FROM {t} WHERE c {sign} $1",
    "UPDATE {t} SET n = 0 WHERE c {sign} $1 OR EXISTS (SELECT 1 FROM {u} AS u WHERE u.c = $1)",
    "SELECT k FROM {t} WHERE c IN ($1, 7, 1.5)",
    "SELECT k FROM {t} WHERE c NOT IN (timestamp '2024-01-02', $1)",
    "SELECT k FROM {t} WHERE c {sign} '7.014' OR c {sign} (($1))",
    "SELECT k, n FROM {t} WHERE (c, k) = ($1, 1)",
)
_DRAWN = cases(12)


@pytest.fixture(scope="module", params=["cryptdb", "sealed"])
def twin(request: pytest.FixtureRequest) -> Iterator[PostgresTwin]:
    opened = PostgresTwin(request.param)
    for number, (type_, values) in enumerate(_STORED.items()):
        opened.run(f"CREATE TABLE t{number} (k int PRIMARY KEY, c {type_} ENC, n int DEFAULT 0)")
        rows = ", ".join(f"({k}, {value})" for k, value in enumerate(("NULL", *values)))
        opened.run(f"INSERT INTO t{number} VALUES {rows}")
    yield opened
    opened.close()


@pytest.mark.parametrize("number", range(len(_STORED)), ids=list(_STORED))
def test_a_bound_value_has_the_type_of_its_column(twin: PostgresTwin, number: int) -> None:
    dice, differences = generator(f"bound {number}"), []
    for _ in range(_DRAWN):
        sign, form = dice.choice(_SIGNS), dice.choice(_FORMS)
        sql = form.format(t=f"t{number}", u=f"t{dice.randrange(len(_STORED))}", sign=sign)
        values = dice.choices(_BOUND, k=2 if "$2" in sql else 1)
        for again in range(2):  # the second time by what was remembered of the first
            if how := twin.differs(sql, values):
                differences.append(f"{again} {sql} {values!r}: {how}")
    assert not differences, "\n".join(differences)
