"""Functions in SQL whose bodies are strings, which are decided by what they name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.local_postgres.twin import PostgresTwin


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    yield opened
    opened.close()


def _all(twin: PostgresTwin, *statements: str) -> None:
    for sql in statements:
        twin.run(sql)


def test_functions_whose_bodies_are_strings(twin: PostgresTwin) -> None:
    _all(
        twin,
        "CREATE TABLE t (id integer ENC)",
        "CREATE FUNCTION f(a int = 1, int = 2) RETURNS int LANGUAGE sql AS 'SELECT $1 + $2'",
        "CREATE FUNCTION f(text) RETURNS text LANGUAGE sql AS 'SELECT $1 || f(2)'",
        "CREATE FUNCTION many(a anyelement) RETURNS SETOF anyelement LANGUAGE sql AS 'SELECT $1'",
        "SELECT f(), f('x'::text), many(3)",
        "INSERT INTO t SELECT many(f(7))",
        "DROP FUNCTION f(int, int)",
        "SELECT f('x'::text)",
        "CREATE FUNCTION f(a int = 10) RETURNS int LANGUAGE sql AS 'SELECT $1'",
        "SELECT f(), f('x'::text)",
        "DROP FUNCTION f(text)",
        "SELECT f(), id FROM t",
        "DROP FUNCTION f, many",
    )


def test_functions_of_one_name_come_and_go(twin: PostgresTwin) -> None:
    _all(
        twin,
        "CREATE FUNCTION g(a int) RETURNS text LANGUAGE sql AS $$ SELECT 'one ' || $1 $$",
        "CREATE FUNCTION g(a text) RETURNS text LANGUAGE sql AS $$ SELECT 'two ' || $1 $$",
        "DROP FUNCTION g(int)",
        "SELECT g('x'::text)",
        "CREATE FUNCTION g(a int, b int = 2) RETURNS text LANGUAGE sql AS $$ SELECT 'three' $$",
        "SELECT g(1), g('x'::text)",
        "DROP FUNCTION g(text)",
    )
    twin.reopen()
    _all(
        twin,
        "SELECT g(1)",
        "SELECT g('x'::text)",
        "CREATE FUNCTION g(a text = 'q') RETURNS text LANGUAGE sql AS $$ SELECT 'four ' || $1 $$",
        "DROP FUNCTION g(int, int)",
        "SELECT g()",
    )
    twin.reopen()
    _all(twin, "SELECT g()", "SELECT g(1)", "DROP FUNCTION g", "SELECT g()")


@pytest.mark.parametrize("body", [
    "SELECT pg_notify('a', 'b'); SELECT 1", "NOTIFY a; SELECT 1", "SELECT quiet() + loud()",
    'SELECT U&"\\0070\\0067_advisory_lock"(1); SELECT 1', "SELECT 1 FROM pg_cursors",
    'SELECT "a loud one"()', "SELECT atom()", "SET app.who = 'x'; SELECT 1",
    "SELECT length(set_config('app.who', 'x', true))",
])  # fmt: skip
def test_functions_that_do_more_than_compute(twin: PostgresTwin, body: str) -> None:
    twin.louver.execute("BEGIN")
    for sql in (
        "CREATE FUNCTION quiet() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION loud() RETURNS int LANGUAGE sql AS 'SELECT pg_backend_pid()'",
        """CREATE FUNCTION "a loud one"() RETURNS int LANGUAGE sql AS 'SELECT pg_backend_pid()'""",
        "CREATE FUNCTION atom() RETURNS int BEGIN ATOMIC SELECT pg_advisory_unlock(1)::int; END",
        f"CREATE FUNCTION tried() RETURNS int LANGUAGE sql AS $${body}$$",
        "SELECT quiet()",
    ):
        twin.louver.execute(sql)
    with pytest.raises(errors.NotSupportedError) as raised:
        twin.louver.execute("SELECT tried()")
    assert raised.value.code == "postgres.refused"
    twin.louver.execute("ROLLBACK")


def test_arguments_may_be_named_by_their_numbers_in_bodies_without_quotes(
    twin: PostgresTwin,
) -> None:
    _all(
        twin,
        "CREATE FUNCTION less(a int, b int) RETURNS int LANGUAGE sql RETURN a - $2",
        "CREATE FUNCTION last(a int, b int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT $2;"
        " SELECT CASE WHEN $1 > $2 THEN a END; END",
        "CREATE FUNCTION times(int, int) RETURNS int LANGUAGE sql RETURN $1 * $2",
        "SELECT less(5, 2), last(5, 2), last(1, 2), times(2, 3)",
        "CREATE OR REPLACE FUNCTION less(a int, b int) RETURNS int LANGUAGE sql RETURN $2 - a",
        "SELECT less(5, 2)",
        "DROP FUNCTION less, last, times",
    )
    sql = "CREATE FUNCTION more(a int) RETURNS int LANGUAGE sql RETURN $2"
    assert not twin.differs(sql)
