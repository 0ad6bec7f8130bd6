"""Types of PostgreSQL with values that are easily lost, and statements over columns of them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

#: Of each type texts of values; of PostgreSQL's own types, which a server stores as they are.
OWN = {
    "timestamptz": ("infinity", "-infinity", "2026-01-02 03:04:05.678901+02", "0044-03-15 BC",
                    "9999-12-31 23:59:59.999999+00", "2026-03-29 02:30 Europe/Vienna"),
    "timestamptz(3)": ("2026-01-02 03:04:05.6789+02", "infinity"),
    "timestamp": ("infinity", "-infinity", "2026-01-02 03:04:05.678901", "0044-03-15 BC"),
    "timestamp(0)": ("2026-01-02 03:04:05.5", "infinity"),
    "date": ("infinity", "-infinity", "0044-03-15 BC", "2024-02-29", "5874897-12-31"),
    "time": ("00:00", "24:00", "23:59:59.999999"),
    "time(2)": ("23:59:59.999", "00:00:00.015"),
    "timetz": ("24:00+00", "12:00+05:30", "12:00-11", "06:30-00:00:30"),
    "interval": ("0", "1 mon", "30 days", "720 hours", "-1 mon 2 days -3:04:05.678901",
                 "178000000 years", "infinity"),
    "interval day to second(3)": ("3 days 04:05:06.7891", "-0.001 s"),
    "interval year to month": ("14 mons", "-1 year"),
    "numeric": ("0", "0.00", "1.0", "1.000", "-0.0", "NaN", "Infinity", "-Infinity", "1e-16383",
                "123456789012345678901234567890123456789012345678901.5"),
    "numeric(6,2)": ("0", "-1.5", "9999.99"),
    "numeric(50,3)": ("1.5", "NaN", "-99999999999999999999999999999999999999999999999.999"),
    "numeric(3,-2)": ("12345", "-99900", "NaN"),
    "numeric(3,5)": ("0.00123", "-0.00999"),
    "smallint": ("-32768", "32767"), "integer": ("-2147483648", "0"),
    "bigint": ("-9223372036854775808", "9223372036854775807"),
    "real": ("-0.0", "0.0", "NaN", "Infinity", "1e-45", "3.4028235e38"),
    "double precision": ("-0.0", "0.0", "NaN", "-Infinity", "5e-324", "0.1", "1e308"),
    "money": ("0", "12.34", "-92233720368547758.08"),
    "oid": ("0", "4294967295", "16384"),
    "boolean": ("true", "false"), "uuid": ("00000000-0000-0000-0000-00000000000a",),
    "bytea": (r"\x", r"\x00ff", r"\x5c"),
    "text": ("", " ", "a", "B", "ä", "\\x", "a\nb", "NULL", "'\"{},"),
    "varchar(3)": ("", "a  ", "äöü"), "char(3)": ("", "a", "abc", "ä"), "char": ("x",),
    '"char"': ("", "x"), "name": ("", "abc", "ä" * 31), "bpchar": ("", "a ", "abc"),
    "json": ('{"b": 1, "a":  2, "a": 3}', "null", "[]", '"\\u00e4"', " 1.50 "),
    "jsonb": ('{"b": 1, "a": 2, "a": 3}', "null", "1.50", '{"a": [1, {"b": null}]}', '""'),
    "jsonpath": ("$.a[*] ? (@ > 1)", "$"),
    "inet": ("10.0.0.1", "10.0.0.1/8", "::1", "::ffff:1.2.3.4/128"), "cidr": ("10.0.0.0/8", "::/0"),
    "macaddr": ("08:00:2b:01:02:03",), "macaddr8": ("08:00:2b:01:02:03:04:05",),
    "bit(3)": ("101", "000"), "varbit": ("", "1", "000000001"), "bit varying(5)": ("", "10101"),
    "int4range": ("empty", "[1,5)", "(,)", "(1,5]"), "int8range": ("[1,)",),
    "numrange": ("[1.0,1.00]", "empty", "(,2.50)"), "daterange": ("[2026-01-01,infinity]",),
    "tstzrange": ("[2026-01-01 00:00+02,)",), "tsrange": ("(,2026-01-01)", "empty"),
    "int4multirange": ("{}", "{[1,3),[5,8)}"), "nummultirange": ("{[1.0,2.0]}",),
    "datemultirange": ("{(,2026-01-01),[2027-01-01,)}",),
    "point": ("(-0,0.1)", "(Infinity,NaN)"), "line": ("{1,-1,0}",), "lseg": ("[(0,0),(1,1)]",),
    "box": ("(1,1),(0,0)",), "path": ("[(0,0),(1,1)]", "((0,0),(1,1))"),
    "polygon": ("((0,0),(1,1),(2,0))",), "circle": ("<(0,0),1.5>",),
    "tsvector": ("", "a:1A b:2,3 'x y'"), "tsquery": ("a & !b | c <-> d:*",),
    "pg_lsn": ("16/B374D848", "0/0"), "xid8": ("18446744073709551615",), "xid": ("4294967295",),
    "int4[]": ("{}", "{1,NULL,3}", "[0:1]={1,2}", "{{1,2},{3,4}}"),
    "text[]": ("{}", '{"",NULL,"NULL","a,b","\\""}', "[2:2]={x}"),
    "float8[]": ("{-0,NaN,Infinity,5e-324}",), "numeric[]": ("{1.0,1.00,NaN}",),
    "numeric(4,1)[]": ("{1.25,2}",), "varchar(2)[]": ("{ab,a}",), "char(2)[]": ("{a,ab}",),
    "jsonb[]": ('{"{\\"a\\": 1}",NULL}',), "timestamptz[]": ("{infinity,2026-01-01 00:00+01}",),
    "interval[]": ("{1 mon,30 days}",), "bytea[]": ('{"\\\\x00"}',), "uuid[]": ("{}",),
    "inet[]": ("{10.0.0.1/8}",), "bool[]": ("{t,f,NULL}",), "date[]": ("{infinity}",),
    "int4range[]": ('{"[1,5)",empty}',), "point[]": ('{"(1,2)"}',), "time[]": ("{24:00}",),
    "name[]": ("{a,b}",), "money[]": ('{"1.50"}',), "oid[]": ("{4294967295}",),
}  # fmt: skip
#: Types that a server may not have.
USERS = {
    "mood": ("sad", "ok", "Ä'\"", ""), "pair": ("(1,sad,\"a b\")", "(,,)", '(2,"Ä\'\\"",)'),
    "positive": ("1", "2147483647"), "moody": ("ok", "sad"), "document": ('{"a": 1}', "null"),
    "code": ("ab", "a"), "span": ("[1,2.5)", "empty", "(,)"),
    "mood[]": ("{}", "{sad,NULL,ok}", "[3:3]={ok}"), "pair[]": ('{"(1,ok,x)"}',),
    "positive[]": ("{1,2}",), "document[]": ('{"{}",NULL}',), "span[]": ('{"[1,2]"}',),
    "spans": ("{[1,2],[3,4]}", "{}"), "zoned": ("infinity", "2026-01-01 00:00+01"),
    "amount": ("1.0", "1.00", "NaN"),
}  # fmt: skip
DEFINITIONS = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'Ä''\"', '')",
    "CREATE TYPE pair AS (a int, b mood, c text)",
    "CREATE TYPE span AS RANGE (subtype = float8, multirange_type_name = spans)",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN moody AS mood DEFAULT 'ok'",
    "CREATE DOMAIN document AS jsonb",
    "CREATE DOMAIN code AS char(2)",
    "CREATE DOMAIN zoned AS timestamptz",
    "CREATE DOMAIN amount AS numeric",
)
ALL = {**OWN, **USERS}
#: Types without a comparison, so without keys and groups.
UNCOMPARED = frozenset((
    "json", "jsonpath", "point", "line", "lseg", "box", "path", "polygon", "circle",
    "point[]", "xid", "moody",
))  # fmt: skip


def literal(type_: str, value: str | None) -> str:
    """A value as a constant of its type."""
    if value is None:
        return f"NULL::{type_}"
    text = value.replace("'", "''")
    return f"'{text}'::{type_}"


class PlainTypes:
    """Draws tables whose columns are of all types, some of them ENC, and statements over these."""

    def __init__(self, random: Random, types: list[str], name: str = "t") -> None:
        self.random, self.name = random, name
        self.types = {f"c{position}": type_ for position, type_ in enumerate(types)}
        self.encrypted = [random.random() < 0.25 for _ in types]
        self.last = 0

    def create(self) -> str:
        """CREATE TABLE; the plaintext side drops ENC."""
        listed = ", ".join(
            f"{name} {type_}{' ENC' * encrypted}"
            for (name, type_), encrypted in zip(self.types.items(), self.encrypted, strict=True)
        )
        return f"CREATE TABLE {self.name} (k int ENC PRIMARY KEY, {listed})"

    def value(self, type_: str) -> str:
        """A constant of a type, now and then NULL."""
        return literal(type_, self.random.choice((*ALL[type_], None)))

    def rows(self, count: int) -> str:
        """INSERT of new rows."""
        rows = []
        for _ in range(count):
            self.last += 1
            values = ", ".join(map(self.value, self.types.values()))
            rows.append(f"({self.last}, {values})")
        return f"INSERT INTO {self.name} VALUES {', '.join(rows)}"

    def query(self) -> str:
        """All rows as texts, which say all of a value."""
        listed = ", ".join(f"{name}::text" for name in self.types)
        return f"SELECT k, {listed} FROM {self.name} ORDER BY k"

    def statements(self, count: int) -> Iterator[str]:
        """Queries and changes that name one column, or two."""
        for _ in range(count):
            name, type_ = self.random.choice(list(self.types.items()))
            yield self._statement(name, type_)

    def _statement(self, name: str, type_: str) -> str:
        random, table, value = self.random, self.name, self.value(type_)
        key = random.randint(1, max(self.last, 1))
        forms = [
            f"UPDATE {table} SET {name} = {value} WHERE k = {key}",
            f"UPDATE {table} SET {name} = {value} WHERE k > {key} RETURNING k, {name}::text",
            f"UPDATE {table} SET {name} = {name} WHERE {name} IS NOT NULL",
            f"SELECT k FROM {table} WHERE {name} IS NULL ORDER BY k",
            f"SELECT count({name}), count(*) FROM {table} WHERE {name} IS NOT NULL",
            f"SELECT k, {name}::text FROM {table} WHERE k = {key}",
            f"INSERT INTO {table} (k, {name}) VALUES ({key}, {value}) ON CONFLICT (k)"
            f" DO UPDATE SET {name} = EXCLUDED.{name}",
            f"MERGE INTO {table} AS a USING (SELECT {key} AS k, {value} AS v) AS b ON a.k = b.k"
            f" WHEN MATCHED THEN UPDATE SET {name} = b.v",
            f"DELETE FROM {table} WHERE k = {key} RETURNING {name}::text",
            self.rows(1),
            self.rows(3),
        ]
        if type_ not in UNCOMPARED:
            forms += [
                f"SELECT k FROM {table} WHERE {name} = {value} ORDER BY k",
                f"SELECT k FROM {table} WHERE {name} > {value} ORDER BY k",
                f"SELECT k FROM {table} WHERE {name} IN ({value}, {self.value(type_)}) ORDER BY k",
                f"SELECT count(*) FROM {table} GROUP BY {name} ORDER BY 1",
                f"SELECT count(DISTINCT {name}) FROM {table}",
                f"SELECT k FROM {table} ORDER BY {name}, k LIMIT 2",
                f"SELECT a.k, b.k FROM {table} AS a JOIN {table} AS b ON a.{name} = b.{name}"
                " ORDER BY 1, 2",
                f"UPDATE {table} SET {name} = {value} WHERE {name} = {self.value(type_)}",
                f"DELETE FROM {table} WHERE {name} = {value}",
                f"SELECT k FROM {table} WHERE {name} = (SELECT {name} FROM {table} WHERE k = {key})"
                " ORDER BY k",
            ]
        return random.choice(forms)
