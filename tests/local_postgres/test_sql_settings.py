"""SET, RESET, SHOW and DISCARD, prepared statements and cursors, beside plaintext PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.local_postgres.twin import PostgresTwin


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC, b numeric(6,2) ENC)")
    opened.run("INSERT INTO t VALUES (1, 'x', 1.5), (2, 'y', 2.5), (3, NULL, NULL)")
    opened.run("CREATE SCHEMA app")
    opened.run("CREATE TABLE app.u (v text ENC)")
    opened.run("INSERT INTO app.u VALUES ('in app')")
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def fresh(twin: PostgresTwin) -> Iterator[None]:
    yield
    for sql in ("ROLLBACK", "DISCARD ALL", "SET TimeZone = 'UTC'"):
        twin.run(sql)


def run(twin: PostgresTwin, *statements: str) -> None:
    """Run statements, about each of which both must say the same."""
    for sql in statements:
        twin.run(sql)


def test_names_and_values(twin: PostgresTwin) -> None:
    run(
        twin, "SHOW timezone", "SHOW TIME ZONE", "SET TIME ZONE 'Europe/Paris'", "SHOW TimeZone",
        "SELECT '2020-07-01 00:00'::timestamptz::text, current_setting('timezone')",
        "SET TIME ZONE -3.5", "SHOW timezone", "SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE",
        "SHOW timezone", "SET TIME ZONE LOCAL", "SET TIME ZONE 'Nowhere/Land'",
        "SET datestyle TO 'ISO, DMY'", "SHOW DateStyle", "SELECT '2/1/2020'::date",
        "SET datestyle = German, DMY", "SELECT '2020-01-02'::date::text", "RESET datestyle",
        "SET IntervalStyle = 'iso_8601'", "SELECT interval '1 day 2 hours'::text",
        "SET extra_float_digits = 0", "SELECT (0.1::float8 + 0.2)::text",
        "RESET extra_float_digits",
        "SELECT (0.1::float8 + 0.2)::text", "SET bytea_output TO escape", "SHOW bytea_output",
        "SET application_name = 'it''s me'", "SHOW application_name", "SHOW nope", "SET nope = 1",
        "RESET nope", "SET work_mem = '2MB'", "SHOW work_mem", "SET work_mem = 'much'",
        "SET enable_seqscan TO off", "SHOW enable_seqscan", "SET statement_timeout = '2s'",
        "SHOW statement_timeout", "SET statement_timeout = 0", "SET lock_timeout = 1, 2",
        "SET client_encoding = 'UTF8'", "SET NAMES 'utf8'", "SHOW client_encoding",
        "SET standard_conforming_strings = on", "SHOW standard_conforming_strings",
        "SET idle_in_transaction_session_timeout = 0", "SET row_security = off",
        "SET xmloption = content", "SET check_function_bodies = false",
        "SET default_tablespace = ''", "SET default_table_access_method = heap",
        "SET SESSION AUTHORIZATION DEFAULT", "SET ROLE NONE", "RESET ROLE",
        "SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS nope IMMEDIATE",
    )  # fmt: skip


def test_the_search_path(twin: PostgresTwin) -> None:
    run(
        twin, "SELECT * FROM u", "SET search_path = app, public", "SHOW search_path",
        "SELECT * FROM u", "SELECT count(*) FROM t", "SELECT current_schemas(false)::text",
        "SET search_path TO 'app'", "SELECT * FROM t", "SET SCHEMA 'public'", "SELECT * FROM u",
        "SET search_path TO DEFAULT", "SHOW search_path", 'SET search_path = "Other", public',
        "SHOW search_path", "RESET search_path", "SET search_path = later, public",
        "CREATE SCHEMA later", "CREATE TABLE made (i integer ENC)",
        "SELECT schemaname FROM pg_tables WHERE tablename = 'made'", "DROP TABLE later.made",
        "DROP SCHEMA later", "RESET search_path", "SHOW search_path", "SELECT count(*) FROM t",
    )  # fmt: skip


def test_settings_of_ones_own(twin: PostgresTwin) -> None:
    run(
        twin, "SET app.user_id = '7'", "SELECT current_setting('app.user_id')",
        "SHOW app.user_id", "SELECT current_setting('app.nope')",
        "SELECT current_setting('app.nope', true)", "RESET app.user_id",
        "SELECT current_setting('app.user_id')",
    )  # fmt: skip


def test_what_is_set_goes_with_its_transaction(twin: PostgresTwin) -> None:
    show = "SELECT current_setting('application_name'), current_setting('search_path')"
    run(
        twin, "SET application_name = 'before'", "SET LOCAL application_name = 'nowhere'", show,
        "BEGIN", "SET application_name = 'within'", "SET LOCAL search_path = app", show,
        "SELECT * FROM u", "SAVEPOINT s", "SET LOCAL application_name = 'deeper'",
        "SET search_path = public", show, "SELECT * FROM u", "ROLLBACK TO s", show,
        "SELECT * FROM u", "COMMIT", show, "BEGIN", "SET application_name = 'undone'",
        "SET search_path = app", show, "ROLLBACK", show, "BEGIN", "RESET application_name", show,
        "ROLLBACK", show, "BEGIN", "SET LOCAL timezone = 'Asia/Tokyo'", "SET timezone = 'UTC'",
        "SHOW timezone", "ROLLBACK", "SHOW timezone", "RESET ALL", "SHOW search_path",
    )  # fmt: skip


def test_a_setting_is_kept_by_databases_that_are_made_anew(twin: PostgresTwin) -> None:
    run(twin, "SET timezone = 'Asia/Tokyo'", "SET search_path = app, public")
    context = twin.louver._session.context
    context.local.rebuild(context.catalog)
    run(twin, "SHOW timezone", "SELECT * FROM u", "SELECT now()::text ~ '[+]09$'")


def test_a_timeout_ends_a_statement(twin: PostgresTwin) -> None:
    twin.louver.execute("SET statement_timeout = '20ms'")
    with pytest.raises(errors.OperationalError) as error:
        twin.louver.execute("SELECT pg_sleep(5) IS NULL")
    assert error.value.sqlstate == "57014"


def test_definitions_mean_the_same_under_any_setting(twin: PostgresTwin) -> None:
    run(twin, "SET datestyle = 'German, DMY'", "SET intervalstyle = sql_standard",
        "SET extra_float_digits = 0",
        "CREATE TABLE d (i integer ENC, d date ENC DEFAULT '01.02.2020', f float8 ENC DEFAULT"
        " 0.1::float8 + 0.2::float8, v interval ENC DEFAULT '-1 2:03:04',"
        " CHECK (d > '31.12.1999'))",
        "CREATE VIEW w AS SELECT *, date '05.06.2021' AS x, 1.1::float8 * 3 AS y FROM d",
        "INSERT INTO d (i) VALUES (1)", "SELECT * FROM d", "SELECT * FROM w")  # fmt: skip
    twin.reopen()
    run(twin, "RESET datestyle", "RESET intervalstyle", "RESET extra_float_digits",
        "INSERT INTO d (i) VALUES (2)", "SELECT * FROM d", "SELECT * FROM w",
        "INSERT INTO d (d) VALUES ('1999-01-01')", "SET datestyle = 'ISO, DMY'",
        "ALTER TABLE d ALTER d SET DEFAULT '01/02/2021'", "RESET datestyle",
        "INSERT INTO d (i) VALUES (3)", "SELECT * FROM d", "DROP VIEW w",
        "DROP TABLE d")  # fmt: skip


def test_values_of_execute_are_coerced_as_assigned(twin: PostgresTwin) -> None:
    run(
        twin,
        "CREATE TABLE q (a text ENC, i int ENC, n numeric(10,2) ENC, d date ENC, l int[] ENC)",
        "INSERT INTO q VALUES ('x', 1, 1.25, '2020-01-01', '{1,2}')",
        "PREPARE p (text, int, boolean, smallint) AS"
        " SELECT * FROM q WHERE a = $1 OR i = $2 OR $3 OR i = $4",
        "EXECUTE p ('x', 5::smallint, false, 4)", "EXECUTE p ('y', 1.4, null, 4::bigint)",
        "EXECUTE p (5::smallint, 10.5::float, 4::bigint, 'bytea')",
        "EXECUTE p ('x', 'one', true, 1)", "EXECUTE p ('x', 'x'::text, true, 1)",
        "PREPARE r (numeric, date, int[]) AS SELECT $1 + n, $2 - d, $3 || l FROM q",
        "EXECUTE r (2, date '2021-01-01' + 3, array[7,8])",
        "BEGIN", "SELECT now() IS NULL", "SAVEPOINT a", "EXECUTE p ('x', 1 / 0, true, 1)",
        "ROLLBACK TO a", "EXECUTE p ('x', 1, true, 1)", "ROLLBACK",
        "CREATE TABLE q AS SELECT 1 / 0", "CREATE TABLE IF NOT EXISTS q AS SELECT 1 / 0",
        "DEALLOCATE ALL", "DROP TABLE q",
    )  # fmt: skip


def test_louvers_own_settings(twin: PostgresTwin) -> None:
    connection = twin.louver
    connection.execute("SET local_processing = off")
    assert connection.execute("SHOW local_processing").fetchall() == [("off",)]
    assert connection.execute("SHOW local_processing").description[0][:2] == (
        "local_processing", "text",
    )  # fmt: skip
    connection.execute("RESET ALL")
    assert connection.execute("SHOW local_processing").fetchall() == [("on",)]


def test_discard(twin: PostgresTwin) -> None:
    run(
        twin, "CREATE TEMP TABLE held (i integer)", "PREPARE q AS SELECT 1",
        "SET application_name = 'x'", "BEGIN", "DISCARD ALL", "ROLLBACK", "DISCARD PLANS",
        "DISCARD SEQUENCES", "EXECUTE q", "DISCARD ALL", "EXECUTE q", "SELECT * FROM held",
        "SHOW application_name", "CREATE TEMP TABLE held (i integer)", "DISCARD TEMP",
        "SELECT * FROM held", "CLOSE ALL", "UNLISTEN *", "RESET ALL",
        "SELECT pg_advisory_unlock_all() IS NULL", "VACUUM t", "ANALYZE t", "ANALYZE nope",
        "BEGIN", "ANALYZE", "VACUUM", "ROLLBACK",
    )  # fmt: skip


def test_prepared_statements(twin: PostgresTwin) -> None:
    run(
        twin, "PREPARE q(int) AS SELECT a FROM t WHERE id = $1", "EXECUTE q(2)", "EXECUTE q('1')",
        "EXECUTE q(1 + 2)", "EXECUTE q(NULL)", "EXECUTE q", "EXECUTE q(1, 2)", "EXECUTE q('x')",
        "EXECUTE q((SELECT 1))", "PREPARE q AS SELECT 1", "DEALLOCATE q", "EXECUTE q(1)",
        "DEALLOCATE q", "PREPARE r AS INSERT INTO t VALUES ($1, $2, $3) RETURNING id, b",
        "EXECUTE r(10 + 1, 'a''b', '7.125')", "EXECUTE r(11, 'twice', 1)",
        "PREPARE u(int, text) AS UPDATE t SET a = $2 WHERE id = $1", "EXECUTE u(11, 'new')",
        "PREPARE d(int) AS DELETE FROM t WHERE id = $1 RETURNING *", "EXECUTE d(11)",
        "PREPARE n(numeric, text) AS SELECT $1 + 1, pg_typeof($1), $2 || 'x', pg_typeof($2)",
        "EXECUTE n(2, 3)", "PREPARE j AS SELECT $1::jsonb -> 'a', $2::int[]",
        """EXECUTE j('{"a": [1]}', '{1,2}')""", "PREPARE s(varchar(2)) AS SELECT $1",
        "PREPARE v(int, int) AS SELECT $2", "EXECUTE v(1, 2)", 'PREPARE "Q" AS VALUES (1), (2)',
        'EXECUTE "Q"', "EXECUTE Q", "PREPARE nope AS SELECT * FROM nope", "PREPARE x AS BEGIN",
        "DEALLOCATE PREPARE ALL", "EXECUTE u(1, 'z')", "DEALLOCATE ALL",
        "PREPARE w AS SELECT count(*) FROM u", "SET search_path = app",
        "PREPARE w AS SELECT count(*) FROM u", "EXECUTE w", "BEGIN", "PREPARE y AS SELECT 3",
        "ROLLBACK", "EXECUTE y",
    )  # fmt: skip


def test_cursors(twin: PostgresTwin) -> None:
    declared = "CURSOR FOR SELECT id, a FROM t ORDER BY id"
    run(
        twin, f"DECLARE c {declared}", "BEGIN", f"DECLARE c SCROLL {declared}", "FETCH c",
        "FETCH 2 FROM c", "FETCH PRIOR FROM c", "FETCH BACKWARD ALL IN c", "FETCH BACKWARD c",
        "MOVE FORWARD 2 FROM c", "FETCH 0 FROM c", "FETCH FORWARD 0 c", "FETCH ALL c",
        "FETCH NEXT c", "FETCH LAST c", "FETCH FIRST c", "FETCH ABSOLUTE 2 FROM c",
        "FETCH RELATIVE -1 FROM c", "FETCH ABSOLUTE -2 FROM c", "FETCH ABSOLUTE 9 FROM c",
        "FETCH ABSOLUTE 0 FROM c", "FETCH RELATIVE 0 FROM c", "FETCH -1 FROM c", "MOVE ALL c",
        "MOVE BACKWARD ALL c", "CLOSE c", "FETCH c", "ROLLBACK", "BEGIN",
        f"DECLARE c NO SCROLL {declared}", "FETCH 2 c", "FETCH PRIOR c", "ROLLBACK", "BEGIN",
        f"DECLARE c {declared}", f"DECLARE c {declared}", "ROLLBACK", "BEGIN",
        f"DECLARE c {declared}", "SAVEPOINT s", f"DECLARE d {declared}", "FETCH 1 c",
        "ROLLBACK TO s", "FETCH 1 c", "FETCH 1 d", "COMMIT", "FETCH c", "BEGIN",
        "DECLARE h CURSOR WITH HOLD FOR VALUES (1), (2), (3)", "FETCH h", "DELETE FROM t",
        "COMMIT", "FETCH ALL h", "CLOSE ALL", "FETCH h",
        "DECLARE h INSENSITIVE CURSOR WITH HOLD FOR SELECT 1 / 1 AS n", "FETCH h", "CLOSE h",
    )  # fmt: skip


def test_set_config_takes_a_path_as_it_stands_there(twin: PostgresTwin) -> None:
    for path in ("", " ", "app,  public", '"App",APP', "a b", 'a, "', "app"):
        run(
            twin, f"SELECT set_config('search_path', '{path}', false)", "SHOW search_path",
            "SELECT current_schemas(false)", "SELECT * FROM u",
        )  # fmt: skip
    run(
        twin, "BEGIN", "SELECT pg_catalog.set_config('search_path', ' ', true), 1 AS n",
        "SELECT * FROM u", "COMMIT", "SHOW search_path", "SELECT * FROM u",
        "SELECT set_config('search_path', 'x', true)", "SHOW search_path",
        "SELECT set_config('application_name', 'x', true)", "SHOW application_name",
        "SELECT set_config('DateStyle', 'sql', true)", "SELECT set_config('nothing', 'x', true)",
        "SELECT set_config('search_path', ' ', false)",
        "CREATE SCHEMA made CREATE TABLE abc (a int ENC) CREATE VIEW v AS SELECT a FROM abc",
        "SELECT * FROM made.v", "SHOW search_path", "DROP SCHEMA made CASCADE",
    )  # fmt: skip
