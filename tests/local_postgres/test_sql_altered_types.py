"""ALTER DOMAIN and ALTER TYPE in PostgreSQL's language: the rows of ENC columns are tried."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin

_MADE = (
    "CREATE DOMAIN d AS int", "CREATE DOMAIN ds AS d[]", "CREATE TYPE c AS (x d, y text)",
    "CREATE FUNCTION f(v d) RETURNS text LANGUAGE sql AS $$ SELECT 'f' || v $$",
    "CREATE FUNCTION g(v c) RETURNS text LANGUAGE sql AS $$ SELECT 'g' || (v).x $$",
    "CREATE TABLE t (a d ENC, b text ENC, n d, more ds ENC)",
)  # fmt: skip


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    for sql in _MADE:
        opened.run(sql)
    yield opened
    opened.close()


_STATEMENTS = (
    "ALTER DOMAIN d ADD CONSTRAINT pos CHECK (VALUE > 0)", "ALTER DOMAIN d ADD CHECK (VALUE < 50)",
    "ALTER DOMAIN d DROP CONSTRAINT pos", "ALTER DOMAIN d DROP CONSTRAINT IF EXISTS d_check",
    "ALTER DOMAIN d RENAME CONSTRAINT pos TO positive", "ALTER DOMAIN d DROP CONSTRAINT positive",
    "ALTER DOMAIN d SET DEFAULT 7", "ALTER DOMAIN d DROP DEFAULT", "ALTER DOMAIN d SET NOT NULL",
    "ALTER DOMAIN d DROP NOT NULL", "ALTER DOMAIN ds ADD CONSTRAINT one CHECK (VALUE[1] <> 3)",
    "INSERT INTO t VALUES (5, 'x', 6, '{1,2}'), (90, 'y', NULL, '{3}')",
    "INSERT INTO t (b) VALUES ('w') RETURNING *", "INSERT INTO t VALUES (-1, 'z', 1, NULL)",
    "UPDATE t SET a = n - 7 WHERE b = 'x'", "DELETE FROM t WHERE a < 0", "DELETE FROM t",
    "ALTER TYPE c ADD ATTRIBUTE z numeric", "ALTER TYPE c RENAME ATTRIBUTE z TO zz",
    "ALTER TYPE c DROP ATTRIBUTE IF EXISTS zz", "ALTER TYPE c ALTER ATTRIBUTE z TYPE text",
    "ALTER TYPE c DROP ATTRIBUTE z, ADD ATTRIBUTE w int", "ALTER TYPE c DROP ATTRIBUTE w CASCADE",
    "SELECT f(5), f(-5)", "SELECT g(row(1, 'k')::c)", "SELECT g(row(1, 'k', 2)::c)",
    "SELECT '{3,1}'::ds", "BEGIN", "ROLLBACK", "COMMIT", "SAVEPOINT s", "ROLLBACK TO s",
    "ALTER DOMAIN nope ADD CHECK (VALUE > 1)", "ALTER TYPE nope ADD ATTRIBUTE x int",
)  # fmt: skip
_SHOWN = (
    "SELECT * FROM t ORDER BY a, b", "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE contypid <> 0 ORDER BY 1, 2", "SELECT typdefault, typnotnull FROM pg_type"
    " WHERE typname = 'd'", "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
    " WHERE attrelid = 'c'::regclass AND NOT attisdropped ORDER BY attnum",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_types_are_altered_by_chance(twin: PostgresTwin, seed: int) -> None:
    chance = random.Random(seed)
    for sql in [*chance.choices(_STATEMENTS, k=70), "ROLLBACK"]:
        twin.run(sql)
    twin.reopen()
    for sql in (*_SHOWN, "INSERT INTO t (b) VALUES ('v') RETURNING a, n", "SELECT f(0)"):
        twin.run(sql)


def test_types_of_values_stay(twin: PostgresTwin) -> None:
    for sql in ("CREATE TYPE mood AS ENUM ('a')", "CREATE TEMP TABLE tt (m mood, k d)",
                "INSERT INTO tt VALUES ('a', 1)", "CREATE TABLE u (v c ENC, w c[])"):  # fmt: skip
        twin.run(sql)
    for sql in ("ALTER TYPE mood ADD VALUE 'b'", "ALTER DOMAIN d ADD CHECK (VALUE > 0)",
                "ALTER TYPE c ADD ATTRIBUTE z int", "ALTER TYPE c DROP ATTRIBUTE y",
                "ALTER TYPE c RENAME ATTRIBUTE y TO z", "ALTER TYPE mood RENAME VALUE 'a' TO 'c'",
                "ALTER DOMAIN ds ADD CONSTRAINT late CHECK (VALUE[1] > 0) NOT VALID",
                "ALTER DOMAIN ds SET DEFAULT nextval('s')",
                "ALTER DOMAIN d OWNER TO x"):  # fmt: skip
        own = twin.on_louver(sql)
        assert own.error is not None, sql
        assert getattr(own.error, "code", "") != "internal"
    twin.run("SELECT * FROM tt")
    twin.run("ALTER TYPE c ALTER ATTRIBUTE y TYPE int")
    for sql in ("DROP TABLE tt", "ALTER DOMAIN d ADD CONSTRAINT k CHECK (VALUE <> 9)", *_SHOWN):
        twin.run(sql)


def test_comments_on_constraints_stay(twin: PostgresTwin) -> None:
    shown = (
        "SELECT conname, obj_description(oid, 'pg_constraint') FROM pg_constraint"
        " WHERE conname IN ('pos', 'p', 'q', 'dp', 'dq') ORDER BY conname"
    )
    for sql in (
        "ALTER TABLE t ADD CONSTRAINT p CHECK (n > 0)", "COMMENT ON CONSTRAINT p ON t IS 'it''s'",
        "ALTER DOMAIN d ADD CONSTRAINT dp CHECK (VALUE > 0)",
        "COMMENT ON CONSTRAINT dp ON DOMAIN d IS 'of a domain'",
        "ALTER DOMAIN d RENAME CONSTRAINT dp TO dq", "ALTER TABLE t RENAME CONSTRAINT p TO q",
        shown, "BEGIN", "COMMENT ON CONSTRAINT dq ON DOMAIN d IS 'other'", shown, "ROLLBACK", shown,
    ):  # fmt: skip
        twin.run(sql)
    twin.reopen()
    for sql in (shown, "ALTER TABLE t DROP CONSTRAINT q", shown,
                "COMMENT ON CONSTRAINT dq ON DOMAIN d IS NULL", shown):  # fmt: skip
        twin.run(sql)
