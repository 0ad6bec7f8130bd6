"""All types, each with the family of expressions that it belongs to and with values of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

_LONG = "x" * 300
_INTEGERS = {
    "TINYINT": (-(2**7), 2**7 - 1), "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1), "BIGINT": (-(2**63), 2**63 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1), "UTINYINT": (0, 2**8 - 1), "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1), "UBIGINT": (0, 2**64 - 1), "UHUGEINT": (0, 2**128 - 1),
}  # fmt: skip
_TEXTS = ("", "a", "b", "B", "Ä", "ß", "日本", "🦆", "it''s", "%", "a_c", " ", "12", "-3.5", "true",
          "2020-02-29", "[1, 2]", "NULL", "a,b,c", "10:00:00", "é", "e\u0301",
          "\t", _LONG)  # fmt: skip
MOODS = ("sad", "ok", "happy", "", "Ü")

#: Texts of values by type; each becomes 'text'::type.
VALUES: dict[str, tuple[str, ...]] = {
    **{
        name: tuple(map(str, sorted({low, high, high - 1, 0, 1, 2, 3, 7, 100 % (high + 1)})))
        for name, (low, high) in _INTEGERS.items()
    },
    "BIGNUM": ("0", "1", "-2", "123456789012345678901234567890123456789012",
        "-99999999999999999999"),
    "FLOAT": ("0", "1.5", "-2.25", "0.1", "nan", "inf", "-inf", "3.4e38", "1e-45", "16777217"),
    "DOUBLE": ("0", "-0.0", "1.5", "-2.25", "0.1", "nan", "inf", "-inf", "1.7e308", "5e-324",
        "1e16"),
    "DECIMAL(4,1)": ("0", "999.9", "-999.9", "1.5", "2.5", "-0.1"),
    "DECIMAL(9,0)": ("0", "999999999", "-1", "7"),
    "DECIMAL(18,3)": ("0", "999999999999999.999", "-1.005", "2.5", "100"),
    "DECIMAL(38,10)": ("0", "9999999999999999999999999999.9999999999", "-0.0000000001", "1.5"),
    "VARCHAR": _TEXTS,
    "BLOB": ("", "a", "\\x00\\xFF", "abc", "\\xC3\\x28"),
    "BIT": ("0", "1", "101", "0101", "1111111111111111"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("2020-02-29", "1970-01-01", "infinity", "-infinity", "0044-03-15 (BC)", "9999-12-31",
             "2024-12-31", "1582-10-15"),
    "TIME": ("00:00:00", "24:00:00", "12:34:56.789012", "23:59:59.999999"),
    "TIMETZ": ("00:00:00+00", "12:34:56.789+05:30", "23:59:59-15:59:59", "01:00:00+01"),
    "TIME_NS": ("00:00:00", "12:34:56.789012345", "23:59:59.999999999"),
    "TIMESTAMP": ("2020-02-29 12:34:56.789012", "1970-01-01", "infinity", "-infinity",
                  "0044-03-15 (BC) 01:00:00", "9999-12-31 23:59:59.999999",
                  "1969-12-31 23:59:59.5"),
    "TIMESTAMP_S": ("2020-02-29 12:34:56", "1970-01-01", "infinity", "1900-01-01"),
    "TIMESTAMP_MS": ("2020-02-29 12:34:56.789", "1970-01-01", "-infinity", "1900-01-01"),
    "TIMESTAMP_NS": ("2020-02-29 12:34:56.789012345", "1970-01-01 00:00:00.000000001", "infinity",
                     "1900-01-01"),
    "TIMESTAMPTZ": ("2020-02-29 12:34:56.789012+02", "1970-01-01 00:00:00+00", "infinity",
                    "2024-07-01 00:00:00+00", "0044-03-15 (BC) 01:00:00+00"),
    "INTERVAL": ("0 days", "1 day", "-1 month", "1 year 2 months 3 days 04:05:06.789", "25 hours",
                 "1000 years", "1 microsecond"),
    "UUID": ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
             "12345678-9abc-4def-8123-456789abcdef"),
    "mood": MOODS,
    "ENUM('x', 'y', 'ö')": ("x", "y", "ö"),
    # No two of them are equal under the collation.
    "NOCASE": ("", "a", "B", "Ä", "ß", "12"),
    "JSON": ("1", "null", '"a"', '{"a": 1, "b": [true, null]}', "[1, 2.5, \"x\"]", "{}"),
}  # fmt: skip
#: Expressions of nested values by type.
NESTED: dict[str, tuple[str, ...]] = {
    "INTEGER[]": ("[]", "[1]", "[1, NULL, 3]", "[2147483647, -1]", "range(20)"),
    "VARCHAR[]": ("[]", "['a', '']", "['日本', NULL]", "['b', 'a', 'b']"),
    "DATE[][]": ("[]", "[[]]", "[['2020-01-01'::DATE], NULL]", "[[NULL], ['infinity'::DATE]]"),
    "DECIMAL(9,2)[]": ("[1.5]", "[]", "[NULL, -2.25]"),
    "mood[]": ("[]", "['sad']", "['ok', NULL, '']"),
    "INTEGER[3]": ("[1, 2, 3]", "[NULL, 0, -1]", "[7, 7, 7]"),
    "DOUBLE[2]": ("[1.5, 'nan'::DOUBLE]", "[0, -2]", "[NULL, 'inf'::DOUBLE]"),
    "STRUCT(a INTEGER, b VARCHAR)": ("{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': ''}", "ROW(2, 'ß')"),
    "STRUCT(i INTEGER, s STRUCT(d DATE, l BIGINT[]))": (
        "{'i': 1, 's': {'d': '2020-01-01', 'l': [1]}}", "{'i': NULL, 's': NULL}",
        "{'i': 2, 's': {'d': NULL, 'l': []}}"),
    "STRUCT(v UTINYINT)[]": ("[]", "[{'v': 1}, NULL]", "[{'v': NULL}, {'v': 255}]"),
    "MAP(VARCHAR, INTEGER)": ("MAP {}", "MAP {'a': 1, 'ö': NULL}", "MAP {'b': 2}"),
    "MAP(INTEGER, VARCHAR[])": ("MAP {}", "MAP {1: ['a'], 2: NULL}", "MAP {3: []}"),
    "UNION(i INTEGER, s VARCHAR)": ("union_value(i := 1)", "union_value(s := 'x')",
                                    "union_value(s := NULL)", "union_value(i := NULL)"),
    "UNION(n DECIMAL(9,2), l INTEGER[])": ("union_value(n := 1.5)", "union_value(l := [1, NULL])"),
}  # fmt: skip
FAMILIES: dict[str, tuple[str, ...]] = {
    "int": tuple(_INTEGERS),
    "bignum": ("BIGNUM",),
    "float": ("FLOAT", "DOUBLE"),
    "dec": ("DECIMAL(4,1)", "DECIMAL(9,0)", "DECIMAL(18,3)", "DECIMAL(38,10)"),
    "text": ("VARCHAR",),
    "blob": ("BLOB",),
    "bit": ("BIT",),
    "bool": ("BOOLEAN",),
    "date": ("DATE",),
    "time": ("TIME",),
    "timetz": ("TIMETZ",),
    "timens": ("TIME_NS",),
    "ts": ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "tstz": ("TIMESTAMPTZ",),
    "interval": ("INTERVAL",),
    "uuid": ("UUID",),
    "mood": ("mood",),
    "enum": ("ENUM('x', 'y', 'ö')",),
    "json": ("JSON",),
    "nocase": ("NOCASE",),
    "ints": ("INTEGER[]",),
    "texts": ("VARCHAR[]",),
    "dates": ("DATE[][]",),
    "decs": ("DECIMAL(9,2)[]",),
    "moods": ("mood[]",),
    "array": ("INTEGER[3]",),
    "floats": ("DOUBLE[2]",),
    "struct": ("STRUCT(a INTEGER, b VARCHAR)",),
    "deep": ("STRUCT(i INTEGER, s STRUCT(d DATE, l BIGINT[]))",),
    "structs": ("STRUCT(v UTINYINT)[]",),
    "map": ("MAP(VARCHAR, INTEGER)",),
    "maps": ("MAP(INTEGER, VARCHAR[])",),
    "union": ("UNION(i INTEGER, s VARCHAR)",),
    "unions": ("UNION(n DECIMAL(9,2), l INTEGER[])",),
}
FAMILY = {type_: family for family, members in FAMILIES.items() for type_ in members}
TYPES = (*VALUES, *NESTED)
COMMON = ("INTEGER", "BIGINT", "VARCHAR", "DOUBLE", "DATE", "DECIMAL(18,3)", "TIMESTAMP", "BOOLEAN")
#: Families whose values have one order and one text: equal values do not differ.
KEYS = ("int", "dec", "text", "bool", "date", "uuid", "mood", "ts")


@dataclass(slots=True)
class Col:
    """A column as the statements after it see it."""

    name: str
    type: str
    #: no value is NULL, or given: it is generated
    required: bool = False
    generated: bool = False
    key: bool = False
    #: whether it alone is the primary key, which others may refer to
    primary: bool = False
    #: whether it refers to another table's key
    refers: bool = False

    @property
    def family(self) -> str:
        """The family of expressions that it stands in."""
        return FAMILY.get(self.type, "text")


@dataclass(slots=True)
class Tab:
    """A table or a view."""

    name: str
    cols: list[Col] = field(default_factory=list)
    view: bool = False
    temporary: bool = False
    #: whether a column is numbered by a sequence
    numbered: bool = False
    #: whether it has two keys
    keys_apart: bool = False

    def written(self) -> list[Col]:
        """The columns that INSERT may name."""
        return [col for col in self.cols if not col.generated]

    def keys(self) -> list[Col]:
        """The columns of its key."""
        return [col for col in self.cols if col.key]


def drawn_type(dice: Random) -> str:
    """A type; common ones more often."""
    return dice.choice(COMMON if dice.random() < 0.4 else TYPES)


def literal(dice: Random, type_: str, nulls: float = 0.1) -> str:
    """A value of a type as SQL."""
    if dice.random() < nulls:
        return f"NULL::{cast(type_)}" if dice.random() < 0.3 else "NULL"
    if type_ in NESTED:
        text = dice.choice(NESTED[type_])
        return f"{text}::{type_}" if dice.random() < 0.5 else f"({text})"
    text = dice.choice(VALUES[type_])
    short = dice.random()
    if type_ in _INTEGERS and short < 0.6:
        return text if text[0] != "-" else f"({text})"
    if type_ == "VARCHAR" and short < 0.7:
        return f"'{text}'"
    if type_ == "BOOLEAN" and short < 0.7:
        return text
    if type_ == "NOCASE":
        return f"'{text}'"
    return f"'{text}'::{type_}"


def cast(type_: str) -> str:
    """A type as a cast names it: a collation belongs to columns."""
    return "VARCHAR" if type_ == "NOCASE" else type_


def declared(type_: str, enc: str = "") -> str:
    """A type as a column declares it."""
    return f"VARCHAR{enc} COLLATE NOCASE" if type_ == "NOCASE" else f"{type_}{enc}"
