"""Random expressions and conditions of PostgreSQL's language, by type."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

#: Values of a type as SQL; some are at its ends, and some are of another form than the stored one.
VALUES: dict[str, list[str]] = {
    "integer": ["0", "1", "2", "-3", "7", "2147483647", "(-2147483648)", "'5'", "4::smallint"],
    "bigint": ["0", "1", "-5", "9223372036854775807", "9007199254740993", "12::int", "'8'"],
    "smallint": ["0::smallint", "1::smallint", "'-7'", "'32767'"],
    "numeric(10,2)": ["0", "1.5", "-2.25", "2.505", "99999999.99", "7", "1e2", "'3.10'"],
    "numeric": ["0", "1.50", "1.5", "1e20", "-0.000001", "3::int"],
    "text": ["''", "'a'", "'A'", "'ab '", "'b''c'", "'ä'", "'zz'", "E'\\\\x'", "'x'::varchar(5)"],
    "varchar(8)": ["''", "'a'", "'abcdefgh'", "'b '", "'a'::text"],
    "character(4)": ["'a'", "'ab  '", "'abcd'"],
    "boolean": ["true", "false", "'t'", "(1 = 1)"],
    "date": ["date '2020-01-01'", "'2021-06-30'", "'infinity'", "date '1999-12-31' + 1"],
    "timestamp": ["timestamp '2020-01-01 10:00:00'", "'2021-06-30 23:59:59.999999'"],
    "timestamptz": ["timestamptz '2020-01-01 10:00:00+02'", "'2021-06-30 00:00:00Z'"],
    "uuid": [
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
        "'00000000-0000-0000-0000-00000000000f'",
    ],
    "bytea": ["'\\xdeadbeef'::bytea", "'\\x'", "'\\x00ff'"],
    "double precision": [
        "0.0::float8",
        "'-0'::float8",
        "1.5",
        "'NaN'",
        "'infinity'",
        "3",
        "1e-300",
    ],
    "real": ["1.1::real", "'NaN'", "0"],
    "jsonb": ["'{\"a\": 1}'::jsonb", "'[1, 2]'", "'null'", "'\"x\"'::jsonb"],
    "integer[]": ["'{1,2}'::int[]", "'{}'", "ARRAY[3,NULL]"],
    "interval": ["interval '1 day'", "'2 hours'", "interval '1 month 3 days'"],
    "inet": ["'10.0.0.1'::inet", "'192.168.0.0/24'"],
    "int4range": ["'[1,5)'::int4range", "'empty'", "int4range(2, 9)"],
    "text[]": ["'{a,NULL}'::text[]", "'{}'", "'[0:0]={b}'"],
    "time": ["time '24:00'", "'10:00:00.5'"],
    "money": ["'1.50'::money", "'-0.01'"],
}
#: Types that stand in for one another in an expression.
NUMBERS = ("integer", "bigint", "smallint", "numeric(10,2)", "numeric", "double precision", "real")
TEXTS = ("text", "varchar(8)", "character(4)")
MOMENTS = ("date", "timestamp", "timestamptz")
CODED = ("integer", "bigint", "numeric(10,2)", "text", "date", "uuid", "boolean", "timestamp")


@dataclass(frozen=True)
class Name:
    """A column as it is written, and its type."""

    text: str
    type: str


def value(random: Random, type_: str) -> str:
    """A constant, or NULL."""
    return "NULL" if random.random() < 0.08 else random.choice(VALUES[type_])


def expression(random: Random, type_: str, names: list[Name], depth: int = 2) -> str:
    """An expression that a column of the type takes."""
    own = [name for name in names if name.type == type_]
    if depth <= 0 or not names or random.random() < 0.35:
        return random.choice(own).text if own and random.random() < 0.7 else value(random, type_)

    def part(of: str = type_) -> str:
        return expression(random, of, names, depth - 1)

    if random.random() < 0.15:
        test = condition(random, names, depth - 1)
        return f"CASE WHEN {test} THEN {part()} ELSE {part()} END"
    if random.random() < 0.1:
        return f"coalesce({part()}, {part()})"
    if type_ in ("integer", "bigint", "smallint"):
        operator = random.choice(("+", "-", "*", "/", "%"))
        return random.choice((
            f"({part()} {operator} {part()})", f"(- {part()})", f"abs({part()})",
            f"length({part('text')})", f"greatest({part()}, {part()})",
        ))  # fmt: skip
    if type_.startswith("numeric") or type_ in ("double precision", "real"):
        return random.choice((
            f"({part()} + {part('integer')})", f"({part()} * 2)", f"round(({part()})::numeric, 1)",
        ))  # fmt: skip
    if type_ in TEXTS:
        return random.choice((
            f"({part()} || {part('text')})", f"upper({part()})", f"left({part()}, 3)",
            f"({part('integer')})::text", f"substr({part()}, 2)",
            f"concat({part()}, {part('date')})",
        ))  # fmt: skip
    if type_ == "boolean":
        return f"({condition(random, names, depth - 1)})"
    if type_ == "date":
        return random.choice((f"({part()} + 1)", f"({part('timestamp')})::date"))
    if type_ in ("timestamp", "timestamptz"):
        return f"({part()} + interval '1 hour')"
    return part()


def condition(random: Random, names: list[Name], depth: int = 2) -> str:
    """A condition over columns."""
    if depth > 0 and random.random() < 0.35:
        first, second = (condition(random, names, depth - 1) for _ in range(2))
        word = random.choice(("AND", "OR"))
        return random.choice((f"({first} {word} {second})", f"NOT ({first})", first))
    name = random.choice(names)
    type_ = name.type

    def other() -> str:
        return expression(random, type_, names, depth - 1)

    form = random.random()
    if form < 0.1:
        return f"{name.text} IS {random.choice(('NULL', 'NOT NULL'))}"
    if type_ == "jsonb" or form < 0.55:
        return f"{name.text} = {other() if form < 0.4 else value(random, type_)}"
    if form < 0.7 and type_ != "jsonb":
        sign = random.choice(("<", "<=", ">", ">=", "<>"))
        return f"{name.text} {sign} {value(random, type_)}"
    if form < 0.78:
        listed = ", ".join(value(random, type_) for _ in range(random.randint(1, 3)))
        return f"{name.text} {random.choice(('IN', 'NOT IN'))} ({listed})"
    if form < 0.86:
        return f"{name.text} BETWEEN {value(random, type_)} AND {value(random, type_)}"
    if type_ in TEXTS:
        return f"{name.text} {random.choice(('LIKE', 'NOT LIKE', 'ILIKE'))} 'a%'"
    if type_ in NUMBERS:
        return f"{name.text} + 1 > {value(random, 'integer')}"
    return f"{name.text} IS NOT DISTINCT FROM {value(random, type_)}"
