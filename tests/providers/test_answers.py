"""Every kind of private question equals the same query in plaintext DuckDB: random tables, random
secrets, two providers in this process, and three.
"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import louver
from tests.generated import cases
from tests.providers.local import connected

COLUMNS = {
    "a": (pa.int32(), st.integers(-3, 5)),
    "b": (pa.string(), st.sampled_from(["", "x", "xy", "Thai", "ä", "a\nb"])),
    "c": (pa.decimal128(6, 2), st.integers(-999, 999).map(lambda v: Decimal(v) / 100)),
    "d": (pa.date32(), st.integers(0, 40).map(lambda n: dt.date(2020, 2, 20) + dt.timedelta(n))),
    "x": (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-9, 9)),
    "y": (pa.float64(), st.integers(-64, 64).map(lambda v: v / 8)),
    "f": (pa.bool_(), st.booleans()),
}
ROW = st.tuples(*(st.none() | values for _, values in COLUMNS.values()))
TABLES = st.lists(ROW, max_size=25)

AGGREGATES = st.lists(
    st.sampled_from([
        "count(*)", "count(x)", "sum(a)", "sum(c)", "avg(a)", "avg(c)", "min(b)", "max(b)",
        "min(d)", "max(x)", "sum(a * 2 + 1)", "sum(a) FILTER (WHERE f)", "max(c) - min(c)",
        "count(*) + sum(a)", "bool_and(f)", "bit_xor(a)", "stddev(a)", "var_pop(c)", "sum(x)",
        "histogram(a, [-2, 0, 3])", "max(y)",
    ]),
    min_size=1, max_size=3,
)  # fmt: skip
GROUPS = st.sampled_from(["", "f", "b", "a % 2", "f, a % 2"])
PUBLIC = st.sampled_from(["", "f", "x > 0", "b <> 'x' OR a = 1"])
_A, _B = st.integers(-5, 7), st.sampled_from(["", "x", "xy", "Thai", "ä", "none"])
_C = st.integers(-999, 999).map(lambda v: Decimal(v) / 100)
_D = st.integers(-3, 45).map(lambda n: dt.date(2020, 2, 20) + dt.timedelta(n))
CONDITIONS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "a = ?": (_A,),
    "b = ?": (_B,),
    "a = ? AND b = ?": (_A, _B),
    "d = ? AND c = ?": (_D, _C),
    "a + 1 = ?": (_A,),
    "a BETWEEN ? AND ?": (_A, _A),
    "d >= ?": (_D,),
    "d > ? AND d < ?": (_D, _D),
    "b = ? AND c BETWEEN ? AND ?": (_B, _C, _C),
    "a = ? AND d <= ?": (_A, _D),
    "b IN (?, ?, ?)": (_B, _B, _B),
    "b = ? AND (a = ? OR a = ?)": (_B, _A, _A),
    "a BETWEEN ? AND ? OR a BETWEEN ? AND ?": (_A, _A, _A, _A),
    "a <> ?": (_A,),
    "c < ? OR c > ?": (_C, _C),
}


@st.composite
def aggregated(draw: st.DrawFn) -> tuple[str, list[Any]]:
    condition = draw(st.sampled_from(sorted(CONDITIONS)))
    secrets = [draw(st.none() | values if draw(st.booleans()) else values)
               for values in CONDITIONS[condition]]  # fmt: skip
    groups, public = draw(GROUPS), draw(PUBLIC)
    items = ([groups] if groups else []) + draw(AGGREGATES)
    where = f"({condition})" + (f" AND ({public})" if public else "")
    text = f"SELECT {', '.join(items)} FROM t WHERE {where}"
    return text + (f" GROUP BY {groups}" if groups else ""), secrets


@st.composite
def first_rows(draw: st.DrawFn) -> tuple[str, list[Any]]:
    condition = draw(st.sampled_from(sorted(CONDITIONS)))
    secrets = [draw(values) for values in CONDITIONS[condition]]
    order = draw(st.sampled_from(["", "c", "c DESC, a", "b NULLS FIRST, x", "a + 1 DESC"]))
    limit, offset = draw(st.integers(0, 6)), draw(st.integers(0, 2))
    text = f"SELECT a, b, c, d, x FROM t WHERE {condition}"
    text += f" ORDER BY {order}" if order else ""
    return f"{text} LIMIT {limit}" + (f" OFFSET {offset}" if offset else ""), secrets


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    types = [kind for kind, _ in COLUMNS.values()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(arrays, names=list(COLUMNS))


@contextmanager
def both(
    rows: list[tuple[Any, ...]], parties: int = 2, scheme: str = "owf", *, apart: bool = False
) -> Iterator[Any]:
    with TemporaryDirectory() as name, duckdb.connect() as plain:
        path = Path(name) / "t.parquet"
        pq.write_table(table(rows), path)
        plain.execute(f"CREATE TABLE t AS FROM '{path}'")
        with connected([path], Path(name), parties, scheme, apart=apart) as connection:
            yield connection, plain


def close(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float):
        return abs(mine - theirs) <= 1e-9 * max(1.0, abs(theirs)) or mine == theirs
    return bool(mine == theirs)


def equal(mine: list[Any], theirs: list[Any]) -> bool:
    """Two multisets of rows."""
    if len(mine) != len(theirs):
        return False
    left, right = sorted(mine, key=repr), sorted(theirs, key=repr)
    return all(close(a, b) for x, y in zip(left, right, strict=True)
               for a, b in zip(x, y, strict=True))  # fmt: skip


def compared(connection: Any, plain: Any, text: str, secrets: list[Any]) -> None:
    actual = connection.execute(text, secrets)
    expected = plain.execute(text, secrets)
    assert [d[:2] for d in actual.description] == [(d[0], str(d[1])) for d in expected.description]
    mine, theirs = actual.fetchall(), expected.fetchall()
    assert equal(mine, theirs), (text, secrets, mine, theirs)


FEW = settings(max_examples=cases(5), deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(TABLES, st.lists(aggregated(), min_size=8, max_size=12))
def test_aggregates(rows: list[Any], questions: list[tuple[str, list[Any]]]) -> None:
    with both(rows, apart=True) as (connection, plain):
        for text, secrets in questions:
            compared(connection, plain, text, secrets)


@FEW
@given(TABLES, st.lists(first_rows(), min_size=8, max_size=12))
def test_first_rows_come_in_order_and_ties_by_position(
    rows: list[Any], questions: list[tuple[str, list[Any]]]
) -> None:
    with both(rows) as (connection, plain):
        plain.execute("ALTER TABLE t ADD COLUMN place BIGINT")
        plain.execute("UPDATE t SET place = rowid")
        for text, secrets in questions:
            # Where DuckDB leaves ties open, they stand by their place in the table.
            head, _, tail = text.partition(" LIMIT ")
            head += ", place" if " ORDER BY " in head else " ORDER BY place"
            mine = connection.execute(text, secrets).fetchall()
            assert mine == plain.execute(f"{head} LIMIT {tail}", secrets).fetchall(), text


@pytest.mark.parametrize("parties", [3, 4])
@settings(max_examples=cases(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(TABLES, st.lists(aggregated(), min_size=4, max_size=8))
def test_aggregates_at_several_providers(
    parties: int, rows: list[Any], questions: list[tuple[str, list[Any]]]
) -> None:
    with both(rows, parties, apart=True) as (connection, plain):
        for text, secrets in questions:
            try:
                compared(connection, plain, text, secrets)
            except connection.NotSupportedError as error:
                if error.code != "provider.wide":
                    raise


@pytest.mark.parametrize("parties", [2, 3])
def test_alternatives_whose_codes_meet_are_told_apart(parties: int) -> None:
    """A text that is not in the table often has the code of one that is: few bits tell keys."""
    rows = [(None, "x", None, None, n, None, None) for n in range(20)]
    text = (
        "SELECT max(x), count(*) FROM t "
        "WHERE (b = ? AND x BETWEEN ? AND ?) OR (b = ? AND x BETWEEN ? AND ?)"
    )
    with both(rows, parties) as (connection, plain):
        for number in range(60):
            for ends in ([5, 10], [3, 8]), ([3, 8], [5, 10]):
                compared(connection, plain, text, ["x", *ends[0], f"other {number}", *ends[1]])


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize(
    "question",
    [
        "SELECT a, x AS position FROM t WHERE a >= ? ORDER BY a LIMIT 3",
        "SELECT a, x AS position FROM t WHERE a >= ? LIMIT 3",
        "SELECT a, x AS o0, -x AS o1 FROM t WHERE a >= ? ORDER BY d, a LIMIT 3",
        "SELECT a AS c1, x AS c0 FROM t WHERE a >= ? ORDER BY c0 LIMIT 3",
        "SELECT d AS g1, count(*) AS g0 FROM t WHERE a >= ? GROUP BY d ORDER BY d LIMIT 2",
        "SELECT d AS p1, f AS p0, sum(x) AS g0, max(a) AS g1 FROM t WHERE a >= ? "
        "GROUP BY d, f ORDER BY d, f LIMIT 2",
        "SELECT sum(x) AS p1, max(a) AS p0 FROM t WHERE a >= ? HAVING max(a) > 5",
        "SELECT d, sum(x) AS p0 FROM t WHERE a >= ? GROUP BY d HAVING p0 < 100 ORDER BY d",
    ],
)
def test_names_that_louver_uses_itself_are_names_like_others(question: str, parties: int) -> None:
    day = dt.date(2020, 2, 20)
    rows = [
        (n, None, None, day + dt.timedelta(n % 3), 99 - n * n % 7 * 10 - n, None, n % 2 == 0)
        for n in range(10)
    ]
    with both(rows, parties) as (connection, plain):
        mine = connection.execute(question, [1]).fetchall()
        assert mine == plain.execute(question, [1]).fetchall()


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("d = ? + 1", [None]),
        ("last_day(?) = d", [None]),
        ("d > coalesce(?, DATE '2020-02-21')", [None]),
        ("b IN (coalesce(?, 'x'))", [None]),
        ("b = ? || 'x'", [None]),
        ("a = coalesce(?, ?)", [None, 3]),
        ("a < greatest(?, 4)", [None]),
    ],
)
def test_null_within_an_expression_of_secrets(condition: str, values: list[Any]) -> None:
    """NULL takes the type that is wanted, as it does in DuckDB."""
    start = dt.date(2020, 2, 20)
    rows = [(n, "xy"[n % 2], None, start + dt.timedelta(n), n, None, None) for n in range(6)]
    with both(rows) as (connection, plain):
        compared(connection, plain, f"SELECT count(*), sum(x) FROM t WHERE {condition}", values)


_ZONED = """
import sys
from pathlib import Path
import duckdb
import louver
from tests.providers.local import connected

folder = Path(sys.argv[1])
plain = duckdb.connect()
assert plain.execute("SELECT current_setting('TimeZone')").fetchone() == ("America/New_York",)
plain.execute("SET TimeZone = 'UTC'")
plain.execute(
    "CREATE TABLE t AS SELECT i, TIMESTAMPTZ '2020-01-01 00:00:00+00' + INTERVAL (i * 5) HOUR "
    "AS seen FROM range(40) r(i)"
)
plain.execute(f"COPY t TO '{folder}/t.parquet'")
with connected([folder / "t.parquet"], folder) as connection:
    for condition, values in [
        ("day(seen) = ?", [3]),
        ("seen < ?", ["2020-01-03"]),
        ("CAST(seen AS DATE) = CAST(? AS DATE)", ["2020-01-03 01:00:00+00"]),
        ("hour(seen) = hour(CAST(? AS TIMESTAMPTZ))", ["2020-01-03 01:00:00+00"]),
        ("seen >= CAST(? AS DATE)", ["2020-01-04"]),
    ]:
        text = (
            "SELECT date_trunc('day', seen) AS day, count(*), max(i), min(seen::VARCHAR) "
            f"FROM t WHERE {condition} GROUP BY ALL ORDER BY ALL"
        )
        mine = connection.execute(text, values).fetchall()
        assert mine and mine == plain.execute(text, values).fetchall(), (condition, mine)
"""


def test_moments_are_read_in_one_zone_on_both_sides(tmp_path: Path) -> None:
    """A process has the zone of its environment, so another one is started."""
    environment = {**os.environ, "TZ": "America/New_York"}
    command = [sys.executable, "-c", _ZONED, str(tmp_path)]
    root = Path(__file__).resolve().parents[2]
    subprocess.run(command, env=environment, cwd=root, check=True, timeout=600)


@pytest.mark.parametrize(
    "statement",
    [
        "SET TimeZone = 'America/New_York'",
        "SET TIME ZONE 'UTC'",
        "RESET timezone",
        "SET default_null_order = 'nulls_first'",
        "SET integer_division = true",
    ],
)
def test_settings_that_both_sides_must_know_are_refused(statement: str) -> None:
    with both([]) as (connection, _), pytest.raises(louver.errors.Error) as caught:
        connection.execute(statement)
    assert caught.value.code == "provider.language"


@pytest.fixture(scope="module")
def odd_types(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two providers, and DuckDB, of a table with an ENUM and with nested columns."""
    folder = tmp_path_factory.mktemp("odd")
    path = folder / "data.duckdb"
    with duckdb.connect(str(path)) as plain:
        plain.execute(
            "CREATE TABLE t AS SELECT i, {'sad': 1, 'x': i} AS st, [i] AS li, "
            "(['sad', 'o''k', 'happy'])[i % 3 + 1]::ENUM('sad', 'o''k', 'happy') AS m "
            "FROM range(20) r(i)"
        )
    with (
        duckdb.connect(str(path), read_only=True) as plain,
        connected([path], folder) as connection,
    ):
        yield connection, plain


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("SELECT count(*), max(i) FROM t WHERE m = ?", ["o'k"]),
        ("SELECT i, m FROM t WHERE m IN (?, 'nope', ?) ORDER BY i LIMIT 3", ["sad", "happy"]),
        ("SELECT m, count(*) FROM t WHERE i < ? GROUP BY m ORDER BY m", [17]),
        ("SELECT max(i) FROM t WHERE i < ? AND m = 'o''k'", [17]),
        ("SELECT * EXCLUDE (st, li) FROM t WHERE i = ? LIMIT 1", [4]),
    ],
)
def test_columns_of_choices(odd_types: Any, question: str, values: list[Any]) -> None:
    connection, plain = odd_types
    compared(connection, plain, question, values)


@pytest.mark.parametrize("projection", ["*", "t.*", "* EXCLUDE (st)", "count(li)", "i, li AS x"])
def test_columns_of_nested_types_are_never_left_out_in_silence(
    odd_types: Any, projection: str
) -> None:
    connection, _ = odd_types
    shown = [row[0] for row in connection.execute("DESCRIBE t").fetchall()]
    assert shown == ["i", "m"]
    with pytest.raises(louver.errors.Error, match="EXCLUDE") as caught:
        connection.execute(f"SELECT {projection} FROM t WHERE i = ? LIMIT 1", [4])
    assert caught.value.code == "provider.language"


def test_sums_under_paillier() -> None:
    rows = [(n % 4, "xy"[: n % 3], Decimal(n), dt.date(2020, 2, n % 28 + 1), n, 0.0, n % 2 == 0)
            for n in range(60)]  # fmt: skip
    with both(rows, 3, "paillier") as (connection, plain):
        for text, secrets in (
            ("SELECT count(*), sum(c), avg(x) FROM t WHERE a = ?", [2]),
            ("SELECT f, sum(x) FROM t WHERE d BETWEEN ? AND ? GROUP BY f",
             ["2020-02-03", "2020-02-20"]),
            ("SELECT sum(x) FROM t WHERE a IN (?, ?, ?)", [1, 3, 1]),
        ):  # fmt: skip
            compared(connection, plain, text, secrets)
