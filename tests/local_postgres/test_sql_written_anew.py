"""ALTER COLUMN … TYPE and SET EXPRESSION write columns of keys and generated ones anew."""

from __future__ import annotations

from random import Random

import pytest

from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin, difference

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_TABLES = (
    "CREATE TABLE parent (x int ENC PRIMARY KEY, y int UNIQUE)",
    "CREATE TABLE child (a int ENC, b int ENC REFERENCES parent, c int REFERENCES parent (y),"
    " d int ENC GENERATED ALWAYS AS (a * 2) STORED, e int ENC GENERATED ALWAYS AS (a - 1) STORED"
    " REFERENCES parent)",
    "INSERT INTO parent SELECT n, n + 10 FROM generate_series(1, 6) AS n",
    "INSERT INTO child VALUES (3, 1, 12), (4, NULL, 13), (5, 2, NULL)",
)
_KEYS = (("parent", "x"), ("parent", "y"), ("child", "b"), ("child", "c"), ("child", "a"))


def drawn(random: Random) -> str:
    """A statement that writes a column anew, or rows."""
    table, column = random.choice(_KEYS)
    type_, step = random.choice(("int", "bigint", "numeric(10,0)")), random.randint(-2, 2)
    expression = random.choice((f"a + ({step})", f"a * {abs(step)}", "a / (a - 4)", "NULL"))
    generated = random.choice("de")
    return random.choice((
        f"ALTER TABLE {table} ALTER {column} TYPE {type_}",
        f"ALTER TABLE {table} ALTER COLUMN {column} SET DATA TYPE bigint USING {column} + ({step})",
        f"ALTER TABLE child ALTER {generated} SET EXPRESSION AS ({expression})",
        "ALTER TABLE child ALTER d SET EXPRESSION AS (a + 1),"
        f" ALTER e SET EXPRESSION AS ({expression})",
        f"INSERT INTO child (a, b) VALUES ({random.randint(1, 6)}, {random.randint(1, 7)})",
        f"SELECT a FROM child WHERE d = {random.randint(1, 9)}",
    ))  # fmt: skip


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_what_is_written_anew_keeps_keys(profile: str) -> None:
    random, done = generator(f"written anew {profile}"), 0
    twin = PostgresTwin(profile)
    try:
        for sql in _TABLES:
            twin.run(sql)
        for _ in range(cases(60)):
            sql = drawn(random)
            plain, own = twin.both(sql)
            assert not difference(plain, own), f"{sql}: {plain} {own}"
            done += plain.error is None
            for table in ("parent", "child"):
                twin.run(f"SELECT * FROM {table}")
        assert done > 10
    finally:
        twin.close()


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_keys_may_be_of_another_type_than_what_refers_to_them(profile: str) -> None:
    twin = PostgresTwin(profile)
    random = generator(f"other types {profile}")
    types = {"y": "numeric(10,0)", "z": "numeric(10,2)", "f": "float8", "t": "varchar(5)"}
    columns = ", ".join(f"{name} {type_} ENC UNIQUE" for name, type_ in types.items())
    own = random.choice(("int", "bigint", "smallint"))
    try:
        for sql in (
            f"CREATE TABLE parent ({columns})",
            "INSERT INTO parent SELECT n, n, n, n FROM generate_series(1, 4) AS n",
            f"CREATE TABLE child (y {own} ENC REFERENCES parent (y), z {own} ENC REFERENCES parent"
            f" (z), f {own} ENC REFERENCES parent (f), t text ENC REFERENCES parent (t))",
        ):
            twin.run(sql)
        for _ in range(cases(30)):
            name, value = random.choice("yzft"), random.randint(1, 6)
            twin.run(f"INSERT INTO child ({name}) VALUES ($1)", [str(value)])
            twin.run(f"UPDATE child SET {name} = '{random.randint(1, 6)}' WHERE {name} IS NOT NULL")
            twin.run(f"DELETE FROM parent WHERE {name} = '{value + 3}'")
            twin.run("SELECT * FROM child")
    finally:
        twin.close()
