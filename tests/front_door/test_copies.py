"""COPY through the door beside plain PostgreSQL: the same data in, the same rows, errors and data.

Values are of all types that the compiled module reads, and of some that it leaves to PostgreSQL;
most are written as PostgreSQL prints them, and some in other ways.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest

from tests.front_door import door as doors
from tests.front_door.door import Door
from tests.generated import cases, generator

Pair = tuple[psycopg.Connection[Any], psycopg.Connection[Any]]
#: By type: values as PostgreSQL prints them, and others that it reads, or refuses.
_VALUES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "boolean": (("t", "f"), ("true", "YES", "0", "maybe", " t")),
    "smallint": (("0", "-32768", "32767"), ("32768", "+1", "", "1.0", " 7", "0x1F", "1_000")),
    "integer": (("0", "-7", "2147483647"), ("2147483648", "-0", "007", "x", "1e3")),
    "bigint": (
        ("1", "-9223372036854775808", "9223372036854775807", "999999999999999999"),
        ("9223372036854775808", "-9223372036854775809", "12345678901234567890"),
    ),
    "real": (("1.5", "-0.25", "1e+10"), ("NaN", "Infinity", "1e-50", "-0", ".5", "5.", "1e")),
    "double precision": (
        ("0.1", "1e+100", "-2.5"), ("1e400", "-0", "1e-320", "inf", "1.", "+3", "1 ", "0x10"),
    ),
    "numeric": (
        ("0", "-1.50", "12345678901234567890.0001"), ("007", "1e3", "-0.00", "NaN", ".5", "1_0"),
    ),
    "numeric(6,2)": (("1.50", "-9999.99", "7"), ("10000", "1.005", "9999.995", "0001", "NaN")),
    "text": (
        ("x", "tab", "ä€😀", "a'b", 'a"b', "a,b", "back\\slash", "\\", "\\N", "\x01", "NULL"), (),
    ),
    "varchar(4)": (("", "abcd", "äöüß"), ("abcde", "abcd  ", "     ")),
    "char(3)": (("abc", "x  "), ("", "abcd", "a", "abc ", "ä")),
    "date": (("2024-02-29", "0001-01-01"), ("2023-02-29", "infinity", "1/2/2003", "0044-03-15 BC")),
    "timestamp": (
        ("2024-02-29 12:34:56", "1999-12-31 23:59:59.123456"),
        ("2024-02-29 24:00:00", "2024-02-29", "now", "2024-02-29 12:34:56.1234567"),
    ),
    "timestamptz": (
        ("2024-02-29 12:34:56+00", "1970-01-01 00:00:00.5-08"),
        ("2024-02-29 12:34:56", "2024-02-29 12:34:56+05:30", "2024-02-29 12:34:56 UTC"),
    ),
    "uuid": (("00112233-4455-6677-8899-aabbccddeeff",), ("00112233445566778899AABBCCDDEEFF", "x")),
    "bytea": (("\\x00ff", "\\x"), ("\\x0", "abc", "\\\\x00")),
    "jsonb": (('{"a": 1}', "[]"), ("{", "1")),
}  # fmt: skip
_OPTIONS = (
    "", "(FORMAT csv)", "CSV HEADER", "(FORMAT text, HEADER true)", "(FORMAT binary)",
    "WITH (DELIMITER '|', NULL 'none')", "(FORMAT csv, HEADER, FORCE_QUOTE *)", "BINARY",
)  # fmt: skip
_numbers = itertools.count()


@pytest.fixture(scope="module")
def pair(door: Door) -> Iterator[Pair]:
    """Plain PostgreSQL and the door."""
    with doors.plain() as plain, door.connect() as own:
        for con in (plain, own):
            con.execute("SET TimeZone = 'UTC'")
        yield plain, own


def new_table(pair: Pair, random: Random, types: list[str]) -> str:
    """A new table with a number, which may be a key, and columns of these types."""
    table = f"copied_{next(_numbers)}"
    key = random.choice((" PRIMARY KEY", " NOT NULL", ""))
    rules = [random.choice(("", "", " NOT NULL", " UNIQUE")) for _ in types]
    enc = [random.choice(("", " ENC")) for _ in (0, *types)]
    for con, words in zip(pair, (("",) * len(enc), enc), strict=True):
        columns = [f"n integer{words[0]}{key}"]
        columns += [f"c{at} {type_}{words[at + 1]}{rules[at]}" for at, type_ in enumerate(types)]
        con.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    return table


def text_of(value: str | None) -> str:
    """A value as the text format has it."""
    if value is None:
        return "\\N"
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def csv_of(random: Random, value: str | None) -> str:
    """A value as csv has it."""
    if value is None:
        return ""
    if value == "" or random.random() < 0.2 or any(c in value for c in ',"\n\r'):
        return '"' + value.replace('"', '""') + '"'
    return value


def data_of(random: Random, types: list[str], *, csv: bool, wrong: float) -> str:
    """Some lines, a share of the values in which are written in other ways."""
    lines = []
    for number in range(random.randint(0, 8)):
        values: list[str | None] = [str(number if random.random() > wrong / 4 else 0)]
        for type_ in types:
            usual, unusual = _VALUES[type_]
            drawn = random.random()
            if drawn < 0.1:
                values.append(None)
            else:
                values.append(random.choice(unusual if drawn > 1 - wrong and unusual else usual))
        if random.random() < wrong / 4:
            values.append("more")
        if csv:
            lines.append(",".join(csv_of(random, value) for value in values))
        else:
            lines.append("\t".join(map(text_of, values)))
    end = random.choice(("\n", "\n", "\n", "")) if lines else ""
    if not csv and random.random() < wrong / 4:
        end = "\n\\.\n"
    return random.choice(("\n", "\n", "\r\n") if wrong else ("\n",)).join(lines) + end


def copied_in(con: psycopg.Connection[Any], sql: str, data: bytes, size: int) -> tuple[str, ...]:
    """What comes of it: the number of rows, or the error with its context."""
    cursor = con.cursor()
    try:
        with cursor.copy(sql) as copy:
            for at in range(0, len(data), size):
                copy.write(data[at : at + size])
    except psycopg.Error as error:
        diag = error.diag
        return error.sqlstate or "", diag.message_primary or "", diag.context or ""
    return (str(cursor.rowcount),)


def copied_out(con: psycopg.Connection[Any], sql: str) -> list[bytes]:
    with con.cursor().copy(sql) as copy:
        return [bytes(piece) for piece in copy]


@pytest.mark.parametrize("number", range(cases(60)))
def test_what_comes_in_is_what_postgresql_takes(pair: Pair, number: int) -> None:
    random = generator(f"copies {number}")
    types = random.sample(list(_VALUES), random.randint(1, 4))
    if number % 4:
        types = [type_ for type_ in types if type_ != "jsonb"] or ["text"]
    table, csv = new_table(pair, random, types), number % 2 == 1
    data = data_of(random, types, csv=csv, wrong=random.choice((0, 0, 0.05, 0.2))).encode()
    sql = f"COPY {table} FROM STDIN{' (FORMAT csv)' if csv else ''}"
    size = random.randint(1, 40)
    results = [copied_in(con, sql, data, size) for con in pair]
    assert results[0] == results[1], data
    query = f"SELECT * FROM {table} ORDER BY n"
    # Python's NaN is not equal to itself.
    rows = [list(map(repr, con.execute(query))) for con in pair]
    assert rows[0] == rows[1], data
    for options in random.sample(_OPTIONS, 2):
        pieces = [copied_out(con, f"COPY {table} TO STDOUT {options}") for con in pair]
        assert pieces[0] == pieces[1]
    out = copied_out(pair[0], f"COPY {table} TO STDOUT (FORMAT binary)")
    for con in pair:
        con.execute(f"DELETE FROM {table}")
        copied_in(con, f"COPY {table} FROM STDIN (FORMAT binary)", b"".join(out), size)
    again = [list(map(repr, con.execute(query))) for con in pair]
    assert again[0] == again[1] == rows[0]


@pytest.mark.parametrize(("columns", "data"), [
    ("", "1\ta\n2\tb\n1\tc\n"), ("", "1\ta\nx\tb\n"), ("", "1\ta\n2\n"), ("", "1\n"),
    ("", "\\N\ta\n"),
    (" (n)", "1\n2\n"), (" (s)", "a\n"), (" (s, n)", "a\t1\n"), (" (n, n)", "1\t1\n"),
    (' (n, "S")', "1\ta\n"), (" (n, s)", "1\ta\\\nb\n2\t\\x41\\101\n"), ("", "1\ta\\"),
    ("", "7\ta\n\\.\nwhatever\n"), ("", "1\ta\r\n2\tb\n"), ("", "1\t\xff\n"), ("", "1\t\\.\n"),
])  # fmt: skip
def test_lines_are_read_and_refused_alike(pair: Pair, columns: str, data: str) -> None:
    for con in pair:
        enc = "" if con is pair[0] else " ENC"
        con.execute("DROP TABLE IF EXISTS lines")
        con.execute(f"CREATE TABLE lines (n integer{enc} PRIMARY KEY, s text{enc})")
    sql = f"COPY lines{columns} FROM STDIN"
    results = [copied_in(con, sql, data.encode("latin-1"), 3) for con in pair]
    assert results[0] == results[1]
    rows = [con.execute("SELECT * FROM lines ORDER BY n").fetchall() for con in pair]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "rule", ["CHECK (n < 5)", "DEFAULT 7", "GENERATED ALWAYS AS IDENTITY", "NOT NULL"]
)
def test_rules_of_a_table_hold(pair: Pair, rule: str) -> None:
    results = []
    for con in pair:
        con.execute("DROP TABLE IF EXISTS ruled")
        con.execute(f"CREATE TABLE ruled (n integer {rule}, s text)")
        said = [copied_in(con, "COPY ruled FROM STDIN", b"1\ta\n2\tb\n", 100)]
        said.append(copied_in(con, "COPY ruled FROM STDIN", b"8\ta\n9\tb\n", 100))
        said.append(copied_in(con, "COPY ruled FROM STDIN", b"\\N\ta\n\\N\tb\n", 100))
        said.append(copied_in(con, "COPY ruled (s) FROM STDIN", b"a\n", 100))
        results.append((said, con.execute("SELECT n, s FROM ruled ORDER BY n, s").fetchall()))
    assert results[0] == results[1]


def test_many_rows_go_out_as_they_come(pair: Pair, door: Door) -> None:
    """Of many parts, which the server has in an order of its own."""
    for con in pair:
        enc = "" if con is pair[0] else " ENC"
        con.execute(f"CREATE TABLE many (n integer{enc} PRIMARY KEY, s text{enc}, d date)")
    lines = (f"{n}\t{'NULL' if n % 7 else chr(92) + 'N'}\t2024-01-{n % 28 + 1:02}\n"
             for n in range(70_000))  # fmt: skip
    data = "".join(lines).encode()
    for con in pair:
        assert copied_in(con, "COPY many FROM STDIN", data, 1 << 16) == ("70000",)
    for options in _OPTIONS:
        results = [copied_out(con, f"COPY many TO STDOUT {options}") for con in pair]
        assert len(results[0]) == len(results[1])
        assert sorted(results[0]) == sorted(results[1])
    leaving = door.connect()
    with leaving.cursor().copy("COPY many TO STDOUT") as copy:
        next(iter(copy))
        leaving.close()
    assert pair[1].execute("SELECT count(*) FROM many").fetchone() == (70_000,)
