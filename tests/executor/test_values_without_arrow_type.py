"""Values that Arrow does not hold are refused, never changed; all others come back as they were."""

from __future__ import annotations

import pytest

from louver import errors
from tests.generated import cases, generator
from tests.twin import PROFILES, Twin

#: Hours of which Arrow's nanoseconds hold the first and not the second.
LAST, BEYOND = 2_562_047, 2_562_048
REFUSED = (
    "to_hours({beyond})",
    "to_hours(-{beyond})",
    "to_years(300) + to_hours({beyond})",
    "to_hours(2147483647)",
)


@pytest.fixture(params=PROFILES)
def twin(request, open_connection) -> Twin:
    return Twin.beside(open_connection(request.param), own_errors=True)


def _intervals(count: int) -> list[str]:
    random = generator("intervals")
    values = ["NULL", f"to_hours({LAST})", f"-to_hours({LAST})", "INTERVAL 0 day"]
    for _ in range(count):
        parts = (
            f"to_years({random.randint(-9999, 9999)})",
            f"to_days({random.randint(-(10**6), 10**6)})",
            f"to_hours({random.randint(-LAST + 1, LAST - 1)})",
            f"to_microseconds({random.randint(-(10**6), 10**6)})",
        )
        values.append(" + ".join(random.sample(parts, random.randint(1, 4))))
    return values


def test_intervals_are_held_or_refused(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (n INTEGER ENC, i INTERVAL ENC, p INTERVAL, l INTERVAL[] ENC)")
    for number, value in enumerate(_intervals(cases(12))):
        twin.fill(f"INSERT INTO t VALUES ({number}, {value}, {value}, [{value}])")
    query = "SELECT n, i::VARCHAR, p::VARCHAR, l::VARCHAR, i = p FROM t"
    twin.either(query)
    twin.either("SELECT i, p, n FROM t WHERE n < 9")
    for value in REFUSED:
        text = value.format(beyond=BEYOND)
        for sql in (
            f"INSERT INTO t VALUES (0, {text}, NULL, NULL)",
            f"INSERT INTO t VALUES (0, NULL, {text}, NULL)",
            f"INSERT INTO t VALUES (0, NULL, NULL, [NULL, {text}])",
            f"INSERT INTO t SELECT n, {text}, p, l FROM t",
            f"UPDATE t SET i = {text} WHERE n = 3",
            f"CREATE TABLE made AS SELECT n, {text} AS i FROM t",
            f"SELECT n, i + {text} FROM t WHERE n = 0 UNION ALL SELECT 1, {text}",
        ):
            with pytest.raises(errors.Error) as caught:
                twin.louver.execute(sql)
            assert caught.value.code == "value.form", sql
    twin.either(query)


def test_a_union_keeps_its_tag_or_is_refused(twin: Twin) -> None:
    kind = "UNION(a INTEGER, b VARCHAR)"
    twin.fill(f"CREATE TABLE t (n INTEGER ENC, u {kind} ENC, p {kind}, s STRUCT(u {kind}) ENC)")
    held = ("union_value(a := 5)", "union_value(b := '')", "NULL", "'text'")
    for number, value in enumerate(held):
        twin.fill(f"INSERT INTO t VALUES ({number}, {value}, {value}, {{'u': {value}}})")
    query = "SELECT n, union_tag(u), u, union_tag(p), p, s FROM t"
    twin.either(query)
    lost = "union_value(a := NULL::INTEGER)"
    for sql in (
        f"INSERT INTO t VALUES (9, {lost}, NULL, NULL)",
        f"INSERT INTO t VALUES (9, NULL, {lost}, NULL)",
        f"INSERT INTO t VALUES (9, NULL, NULL, {{'u': {lost}::{kind}}})",
        f"UPDATE t SET u = {lost} WHERE n = 0",
        f"CREATE TABLE made AS SELECT n, {lost}::{kind} AS u FROM t",
        f"CREATE TABLE made AS SELECT [{{'u': {lost}::{kind}}}] AS u",
    ):
        with pytest.raises(errors.Error) as caught:
            twin.louver.execute(sql)
        assert caught.value.code == "value.form", sql
    twin.either(query)
    # A UNION that is NULL itself is kept.
    twin.fill("CREATE TABLE made AS SELECT n, u AS v, s FROM t")
    twin.run("SELECT n, v IS NULL, union_tag(v), union_tag(s.u) FROM made")
