"""The traps that other systems fell into, through the wire: values that a binder types, as drawn
statements on ENC columns against plaintext PostgreSQL.

A value's type is not its text: whole numbers divide as such, `numeric` is not `double precision`,
`char` pads, a time depends on a zone, texts compare as bytes or by a collation, and one parameter
may be stored and compared.
"""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tests.front_door import door as doors
from tests.front_door.door import Door
from tests.generated import SEED, cases

_COLUMNS = {
    "i": "integer", "b": "bigint", "w": "smallint", "m": "numeric(12,2)", "g": "numeric",
    "f": "double precision", "r": "real", "c": "char(5)", "v": "varchar(8)", "s": "text",
    "d": "date", "t": "timestamp", "z": "timestamptz", "o": "boolean",
}  # fmt: skip
_ZONE = timezone(timedelta(hours=5, minutes=30))
_NUMBERS: tuple[object, ...] = (
    0, 1, -1, 2, 3, 7, -7, 10, 32767, 32768, 2**31 - 1, 2**31, 2**53 + 1, Decimal("1.50"),
    Decimal("1.5"), Decimal("-0.01"), Decimal("2.005"), Decimal("7.00"), 0.1, 1.5, -0.0, 7.0,
    0.30000000000000004, float("nan"), float("inf"), "7", " 7 ", "1.5", "1e1", "x", True,
)  # fmt: skip
_TEXTS: tuple[object, ...] = (
    "", " ", "a", "a ", "a  ", "ab", "A", "B", "b", "abcde", "abcde ", "ä", "é", "a'", "a\\", "a%",
    "a_b", "Z", "10", "9", "x" * 300, 7,
)  # fmt: skip
_TIMES: tuple[object, ...] = (
    date(2024, 3, 10), date(2024, 3, 9), datetime(2024, 3, 10, 2, 30), datetime(2024, 3, 10),
    datetime(2024, 11, 3, 1, 30), datetime(2024, 3, 10, 7, 30, tzinfo=UTC),
    datetime(2024, 3, 10, 0, 0, 0, 1), datetime(2024, 3, 10, 8, 0, tzinfo=_ZONE),
    "2024-03-10", "2024-03-10 02:30", "2024-03-10 02:30+05:30", "03/04/2024", "infinity",
    "2024-03-10 02:30 America/New_York",
)  # fmt: skip
_KINDS = {
    **dict.fromkeys("ibwmgfr", _NUMBERS), **dict.fromkeys("cvs", _TEXTS),
    **dict.fromkeys("dtz", _TIMES), "o": (True, False, "t", "no", 1),
}  # fmt: skip
#: Of what Louver does not do, such as NaN in `numeric`.
_REFUSED = ("0A000", "22000")
_MARK = re.compile(r"⟨(\d+)⟩")
_STARS = "i b w m g f r c v s d t z o"


class _Drawn:
    """A statement with its values."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self._drawn = draw, list[object]()
        text = draw.choice((self._query, self._query, self._query, self._change))()
        #: Of what was drawn, the text has some, in its own order.
        self.values = [self._drawn[int(number)] for number in _MARK.findall(text)]
        self.text = _MARK.sub("", text)

    def _one(self, *items: str) -> str:
        return self._draw.choice(items)

    def _value(self, column: str) -> str:
        draw = self._draw
        kind = _KINDS[column]
        if draw.random() < 0.07:
            kind = _KINDS[draw.choice("ibmfcsdz")]
        value = None if draw.random() < 0.06 else draw.choice(kind)
        if draw.random() < 0.25 and isinstance(value, str | int | Decimal):
            literal = "'" + str(value).replace("'", "''") + "'"
            return literal.replace("%", "%%") if isinstance(value, str) else str(value)
        self._drawn.append(value)
        cast = ""
        if draw.random() < 0.3:
            others = {"c": "cvs", "v": "vs", "s": "cvs", "d": "dtz", "t": "dtz", "z": "dtz"}
            of = others.get(column, "ibmgfr" if column in "ibwmgfr" else column)
            cast = f"::{_COLUMNS[draw.choice(of)]}"
        return f"{self._one('%s', '%s', '%t', '%b')}⟨{len(self._drawn) - 1}⟩{cast}"

    def _column(self, kinds: str = "ibwmgfrcvsdtzo") -> str:
        return self._draw.choice(kinds)

    def _term(self) -> str:
        x, y = self._column("ibwmgfr"), self._column("ibwmgfr")
        c = self._column("cvs")
        z = self._column("dtz")
        return self._one(
            f"{x} / {self._value(x)}", f"{x} %% {self._value('i')}", f"{x} * {self._value(y)}",
            f"{x} / {y}", f"{x} + {y}", f"{c} || {self._value(c)}", f"length({c})", f"{c} || '|'",
            f"{z}::date", f"{z}::timestamp", f"{z}::timestamptz", f"{z} - {self._value(z)}",
            f"coalesce({x}, {self._value(x)})", f"{x}::text", f"{x}::integer",
            f"round({x}::numeric)",
            f"greatest({x}, {self._value(y)})", f"nullif({c}, {self._value(c)})",
            f"{z} AT TIME ZONE 'UTC'",
            f"CASE WHEN {self._condition()} THEN {x} ELSE {self._value(x)} END",
            f"extract(hour FROM {self._column('tz')})", f"{c}::char(3)",
            f"{c} COLLATE \"C\" < {self._value('s')}",
        )  # fmt: skip

    def _condition(self) -> str:
        column = self._column()
        sign = self._one("=", "=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
        other = self._column("ibwmgfr")
        like = self._column("cvs")
        return self._one(
            f"{column} {sign} {self._value(column)}", f"{column} {sign} {self._value(column)}",
            f"{column} IN ({self._value(column)}, {self._value(column)})",
            f"{column} BETWEEN {self._value(column)} AND {self._value(column)}",
            f"{other} {sign} {self._column('ibwmgfr')}", f"{other} {sign} {self._value('f')}",
            f"{like} {sign} {self._column('cs' if like == 'c' else 'vs')}",
            f"{like} LIKE {self._value(like)}",
            f"{self._value(column)} {sign} {column}", f"{column} IS NULL",
            f"{self._column('dtz')} {sign} {self._column('dtz')}",
            f"{column} = ANY(ARRAY[{self._value(column)}, {self._value(column)}])",
            f"(i, s) = ({self._value('i')}, {self._value('s')})",
        )  # fmt: skip

    def _where(self) -> str:
        items = [self._condition() for _ in range(self._draw.choice((0, 1, 1, 2)))]
        return f" WHERE {self._one(' AND ', ' OR ').join(items)}" if items else ""

    def _query(self) -> str:
        draw = self._draw.random()
        if draw < 0.25:
            return f"SELECT {_STARS.replace(' ', ', ')} FROM v WHERE id = {self._value('i')}"
        if draw < 0.4:
            key = self._column()
            return f"SELECT {key}, count(*) FROM v{self._where()} GROUP BY {key}"
        if draw < 0.5:
            x, c = self._column("ibwmgf"), self._column()
            return (
                f"SELECT sum({x}), count(DISTINCT {c}), min({c}), max({x}) FROM v{self._where()}"
            ).replace(f"min({c})", f"min({'i' if c == 'o' else c})")
        if draw < 0.6:
            column = self._column()
            return f"SELECT id, {column} FROM v ORDER BY {column}, id LIMIT {self._value('i')}"
        if draw < 0.7:
            return f"SELECT DISTINCT {self._column()}, {self._column()} FROM v{self._where()}"
        return f"SELECT {self._term()}, {self._term()}, id FROM v{self._where()}"

    def _change(self) -> str:
        a, b = self._column(), self._column()
        draw, key = self._draw.random(), self._draw.randint(1, 30)
        if draw < 0.4:
            items = f"{a} = {self._value(a)}"
            items += f", {b} = {self._value(b)}" if a != b else ""
            return f"UPDATE v SET {items} WHERE id = {key}"
        if draw < 0.6:
            return f"UPDATE v SET {a} = {self._term()} WHERE id = {key} RETURNING {a}"
        if draw < 0.7:
            new, old = self._value(a), self._value(a)
            return f"UPDATE v SET {a} = {new} WHERE {a} = {old} AND id < 20"
        columns = sorted({a, b})
        listed = ", ".join(self._value(column) for column in columns)
        text = f"INSERT INTO v (id, {', '.join(columns)}) VALUES ({key}, {listed})"
        return f"{text} ON CONFLICT (id) DO UPDATE SET {a} = excluded.{a} RETURNING {a}"


@pytest.fixture
def sides(door: Door) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """Plaintext and the door."""
    with doors.plain() as first, door.connect() as second:
        for con, enc in ((first, ""), (second, " ENC")):
            listed = ", ".join(f"{name} {type_}{enc}" for name, type_ in _COLUMNS.items())
            con.execute("DROP TABLE IF EXISTS v; SET TimeZone = 'America/New_York'")
            con.execute(f"CREATE TABLE v (id integer{enc} PRIMARY KEY, {listed})")
            con.execute(
                "INSERT INTO v SELECT n, n % 8, n % 5, n % 3, n / 4.0, n / 3.0, n / 8.0, n / 10.0,"
                " chr(96 + n % 6), chr(96 + n % 5) || ' ', chr(64 + n), date '2024-03-08' + n,"
                " timestamp '2024-03-09 23:30' + n * interval '1 hour',"
                " timestamptz '2024-03-09 23:30+00' + n * interval '1 hour', n % 2 = 0"
                " FROM generate_series(1, 25) AS g(n)"
            )
        yield first, second


def _equal(value: Any) -> Any:
    if isinstance(value, Decimal) and value.is_finite():
        return value.normalize() + 0
    return value + 0 if isinstance(value, float) else value


def _ran(con: psycopg.Connection[Any], drawn: _Drawn, prepare: bool, binary: bool) -> object:
    try:
        cursor = con.execute(drawn.text.encode(), drawn.values, prepare=prepare, binary=binary)
        rows = cursor.fetchall() if cursor.description else []
        types = [(c.name, c.type_code) for c in cursor.description or ()]
        if "DISTINCT" in drawn.text or "GROUP BY" in drawn.text:
            # Which one of equal values stands for them all is up to PostgreSQL: 1.5 or 1.50.
            rows = [tuple(map(_equal, row)) for row in rows]
        return sorted(map(repr, rows)), cursor.rowcount, types
    except psycopg.Error as error:
        return error.sqlstate


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, c = v FROM v", "SELECT id FROM v WHERE c >= v", "SELECT v = c FROM v",
        "SELECT c IS NOT DISTINCT FROM v FROM v", "SELECT NULLIF(c, v) FROM v",
        "SELECT v = ANY (ARRAY['a'::char(5)]) FROM v", "SELECT v IN (c, c) FROM v",
        "SELECT count(*) FROM v AS x JOIN v AS y ON x.c = y.v",
    ],
)  # fmt: skip
def test_varchar_beside_char_needs_a_cast(
    sides: tuple[psycopg.Connection[Any], ...], sql: str
) -> None:
    """A column of varchar is of text in the workspace, where blanks at the end count."""
    sides[0].execute(sql)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="varchar"):
        sides[1].execute(sql)


def test_char_beside_text_is_that_of_postgres(sides: tuple[psycopg.Connection[Any], ...]) -> None:
    """With a cast, and of two of one type."""
    sql = "SELECT id, c = v::text, c = c, v = v, c = 'a', c = 'a '::char(3) FROM v ORDER BY id"
    first, second = (con.execute(sql).fetchall() for con in sides)
    assert second == first


@pytest.mark.parametrize("part", range(2))
def test_values_are_typed_as_postgresql_types_them(
    sides: tuple[psycopg.Connection[Any], ...], part: int
) -> None:
    """Every run draws others."""
    seed = f"{SEED or secrets.randbelow(10**9)} {part}"
    draw = random.Random(seed)
    ran = refused = 0
    for _ in range(cases(150)):
        drawn = _Drawn(draw)
        forms = draw.random() < 0.7, draw.random() < 0.5
        if draw.random() < 0.03:
            zone = draw.choice(("UTC", "Asia/Kolkata", "America/New_York"))
            for con in sides:
                con.execute(f"SET TimeZone = '{zone}'")
        for _ in range(draw.choice((1, 1, 3))):
            second = _ran(sides[1], drawn, *forms)
            if second in _REFUSED:
                refused += 1
                continue
            first = _ran(sides[0], drawn, *forms)
            ran += isinstance(first, tuple)
            assert second == first, (seed, drawn.text, drawn.values, forms)
    assert ran > max(cases(100), 10 * refused)
