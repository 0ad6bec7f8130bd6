"""Every type of DuckDB as PRIMARY KEY, UNIQUE and plain, ENC and not, against plaintext DuckDB:
rows that come one by one, a duplicate, an update, a delete, a reconnect.
"""

from __future__ import annotations

import pytest

from louver import errors
from tests.twin import Twin

#: Two values of each type.
TYPES = {
    "BOOLEAN": ("true", "false"), "TINYINT": ("1", "-2"), "UTINYINT": ("1", "2"),
    "SMALLINT": ("1", "-2"), "USMALLINT": ("1", "2"), "INTEGER": ("1", "-2"),
    "UINTEGER": ("1", "2"), "BIGINT": ("1", "-2"), "UBIGINT": ("1", "18446744073709551615"),
    "HUGEINT": ("1", "170141183460469231731687303715884105727"),
    "UHUGEINT": ("1", "340282366920938463463374607431768211455"),
    "BIGNUM": ("1", "123456789012345678901234567890123456789012"),
    "FLOAT": ("1.5", "'nan'"), "DOUBLE": ("1.5", "'inf'"), "DECIMAL(38, 4)": ("1.5", "2.25"),
    "VARCHAR": ("'a'", "''"), "BLOB": ("'a'::BLOB", "''::BLOB"), "BIT": ("'101'", "'0101'"),
    "UUID": ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-0000-0000-000000000001'"),
    "DATE": ("'2020-01-01'", "'infinity'"), "TIME": ("'01:00:00'", "'24:00:00'"),
    "TIME_NS": ("'01:00:00.000000001'", "'02:00:00'"),
    "TIMETZ": ("'01:00:00+01'", "'02:00:00+00'"), "TIMESTAMP": ("'2020-01-01'", "'infinity'"),
    "TIMESTAMP_S": ("'2020-01-01'", "'2021-01-01'"),
    "TIMESTAMP_MS": ("'2020-01-01'", "'2021-01-01'"),
    "TIMESTAMP_NS": ("'2020-01-01 00:00:00.000000001'", "'2021-01-01'"),
    "TIMESTAMPTZ": ("'2020-01-01'", "'2021-01-01'"), "INTERVAL": ("'1 day'", "'1 month'"),
    "JSON": ("'[1]'", "'{}'"), "ENUM('x', 'y')": ("'x'", "'y'"), "mood": ("'sad'", "'ok'"),
    "INT[]": ("[1]", "[2, NULL]"), "INT[2]": ("[1, 2]", "[3, 4]"),
    "STRUCT(a INT)": ("{'a': 1}", "{'a': NULL}"), "MAP(INT, INT)": ("MAP {1: 2}", "MAP {2: 3}"),
    "UNION(a INT, b VARCHAR)": ("union_value(a := 1)", "union_value(b := 'x')"),
}  # fmt: skip
KEYS = ("k {0} PRIMARY KEY, u {0} UNIQUE, p {0}", "k {0}, u {0}, p {0}")
#: A duplicate of each key among them.
CHANGES = (
    "INSERT INTO {0} VALUES ({1}, {1}, {1}, 1)", "INSERT INTO {0} VALUES ({2}, {2}, {2}, 2)",
    "INSERT INTO {0} VALUES ({1}, NULL, NULL, 3)", "UPDATE {0} SET p = {2}, v = 9 WHERE v = 1",
    "DELETE FROM {0} WHERE v = 2", "INSERT INTO {0} VALUES ({2}, {1}, {1}, 4)",
    "INSERT INTO {0} VALUES ({2}, {2}, NULL, 5)",
)  # fmt: skip


def _both(twin: Twin, sql: str) -> bool:
    """Run it on both; whether DuckDB takes it."""
    return twin.either(sql) is not None


@pytest.mark.parametrize("protection", [" ENC", ""])
def test_types(twin: Twin, protection: str) -> None:
    twin.both("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    pairs = {}
    for number, (type_, values) in enumerate(TYPES.items()):
        for columns in KEYS:
            listed = columns.format(f"{type_}{protection}")
            if _both(twin, f"CREATE TABLE t{number} ({listed}, v INT)"):
                break
        pairs[f"t{number}"] = values
        for change in CHANGES:
            _both(twin, change.format(f"t{number}", *values))
    twin.reopen()
    for name, (first, two) in pairs.items():
        _both(twin, f"INSERT INTO {name} VALUES ({two}, {first}, {first}, 6)")
        twin.run(f"FROM {name}")


def test_types_that_arrow_lacks_are_refused(twin: Twin) -> None:
    twin.session.execute("CREATE TABLE t (a INT ENC)")
    for sql in (
        "CREATE TABLE u (g GEOMETRY ENC)", "CREATE TABLE u (g STRUCT(x GEOMETRY[]))",
        "CREATE TABLE u AS SELECT 'POINT (1 2)'::GEOMETRY AS g",
        "CREATE TABLE u (v VARIANT ENC)", "CREATE TABLE u (v MAP(INT, VARIANT) ENC)",
        "ALTER TABLE t ADD COLUMN g GEOMETRY", "ALTER TABLE t ALTER a TYPE GEOMETRY USING NULL",
    ):  # fmt: skip
        with pytest.raises(errors.NotSupportedError):
            twin.session.execute(sql)
    twin.session.execute("CREATE TABLE u (geometry INT, s STRUCT(geometry INT) ENC)")


@pytest.mark.parametrize("protection", [" ENC", ""])
def test_lists_of_an_enum_that_have_no_element(twin: Twin, protection: str) -> None:
    """DuckDB gives up a whole database for some of these where they come as Arrow's."""
    twin.both("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    for number, type_ in enumerate(("mood[]", "mood[2]", "STRUCT(l mood[])", "MAP(INT, mood)")):
        twin.both(f"CREATE TABLE e{number} (l {type_}{protection}, a INT{protection}, b INT)")
        for value in ("NULL", f"NULL::{type_}"):
            twin.run(f"INSERT INTO e{number} VALUES ({value}, 1, 1) RETURNING l, a")
        twin.both(f"INSERT INTO e{number} (a) SELECT a + 1 FROM e{number}")
        twin.run(f"FROM e{number}")
    twin.both("INSERT INTO e0 VALUES ([], 5, 5), (['ok', NULL], 6, 6)")
    twin.both("UPDATE e0 SET l = [] WHERE b = 6", "UPDATE e0 SET l = NULL WHERE b = 5")
    twin.run("FROM e0")


@pytest.mark.parametrize("protection", [" ENC", ""])
@pytest.mark.parametrize("text", ["", " ", "ENC", "check", "USING sdb"])
def test_defaults_that_are_texts(twin: Twin, protection: str, text: str) -> None:
    twin.both(
        f"CREATE TABLE d (a VARCHAR{protection} DEFAULT '{text}', b INT{protection})",
        f"ALTER TABLE d ADD COLUMN c VARCHAR{protection} DEFAULT '{text}'",
        "INSERT INTO d (b) VALUES (1)",
    )
    twin.run("FROM d")
