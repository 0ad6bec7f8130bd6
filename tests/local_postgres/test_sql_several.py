"""Definitions that say several things: all of them or none, as on plaintext PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin

_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname ~ '^s[0-9]' ORDER BY 1"
_ROWS = "SELECT * FROM t ORDER BY a"


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (a int ENC, b text ENC, c int)")
    opened.run("INSERT INTO t VALUES (1, 'x', 10), (2, 'y', 20)")
    yield opened
    opened.close()


def test_schemas_with_elements(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE SCHEMA s1 CREATE VIEW v AS SELECT b FROM a WHERE id > 1 CREATE INDEX ON a (b)"
        " CREATE TABLE a (id int ENC PRIMARY KEY DEFAULT nextval('s1.q'), b text ENC)"
        " CREATE SEQUENCE q",
        "SHOW search_path", "INSERT INTO s1.a (b) VALUES ('x'), ('y')", "SELECT * FROM s1.v",
        "SELECT tablename, indexname FROM pg_indexes WHERE schemaname = 's1' ORDER BY 2",
        "SELECT * FROM a", "CREATE SCHEMA s1 CREATE TABLE c (id int)",
        "CREATE SCHEMA s2 CREATE TABLE c (id int) CREATE TABLE c (id int)", _SCHEMAS,
        "CREATE SCHEMA s3 CREATE TEMP VIEW v AS SELECT 1 AS a", _SCHEMAS,
        "CREATE SCHEMA IF NOT EXISTS s4 CREATE TABLE c (id int)",
        "BEGIN", "CREATE SCHEMA s5 CREATE VIEW w AS SELECT * FROM e CREATE TABLE e (id int ENC)",
        "SHOW search_path", "INSERT INTO s5.e VALUES (4)", "SELECT * FROM s5.w", "ROLLBACK",
        "SELECT * FROM s5.w", "SET search_path = s1", "SELECT * FROM v",
        "CREATE SCHEMA s6 CREATE VIEW v2 AS SELECT * FROM v CREATE TABLE a (z int ENC)",
        "SELECT * FROM s6.v2", "SELECT * FROM s6.a", "SHOW search_path", _SCHEMAS,
    ):  # fmt: skip
        twin.run(sql)
    twin.reopen()
    twin.run("SELECT * FROM s6.v2")
    assert twin.louver._session.context.catalog.table("s6", "a").columns[0].encrypted


@pytest.mark.parametrize("element", [
    "CREATE TABLE public.c (id int)", "CREATE INDEX ON public.t (a)",
    "CREATE INDEX i ON ONLY public.t (a)", "GRANT SELECT ON t TO public", "CREATE TABLE c (LIKE t)"
    " CREATE TRIGGER x BEFORE INSERT ON c FOR EACH ROW EXECUTE FUNCTION f()",
])  # fmt: skip
def test_other_elements_are_refused(twin: PostgresTwin, element: str) -> None:
    own = twin.on_louver(f"CREATE SCHEMA s1 {element}")
    assert getattr(own.error, "code", "") == "postgres.refused"
    twin.run(_SCHEMAS)


def test_tables_with_actions_of_several_sorts(twin: PostgresTwin) -> None:
    for sql in (
        "ALTER TABLE t DROP COLUMN b, ADD COLUMN b int ENC DEFAULT 7",
        "ALTER TABLE t ADD COLUMN k text ENC, ALTER COLUMN a TYPE bigint, ALTER c SET DEFAULT 5,"
        " ADD CHECK (a > 0)",
        "INSERT INTO t (a) VALUES (-1)", "INSERT INTO t (a) VALUES (3) RETURNING *",
        "ALTER TABLE t ADD COLUMN z int, ALTER COLUMN c SET NOT NULL, DROP COLUMN missing",
        "ALTER TABLE t ADD COLUMN z int, ALTER COLUMN k SET NOT NULL",
        "ALTER TABLE t ALTER c DROP DEFAULT, ALTER c SET NOT NULL, ADD z int ENC",
        "INSERT INTO t (a) VALUES (9)",
        "ALTER TABLE IF EXISTS t DROP z, ADD z int ENC DEFAULT 3, ALTER z SET DEFAULT 4,"
        " DROP CONSTRAINT t_a_check",
        "INSERT INTO t (a, c) VALUES (-3, 1) RETURNING *",
        "ALTER TABLE IF EXISTS nope ADD COLUMN z int, DROP COLUMN y",
        "ALTER TABLE nope ADD COLUMN z int, DROP COLUMN y",
        "BEGIN", "ALTER TABLE t ADD w int ENC, DROP k", _ROWS, "ROLLBACK",
        "BEGIN", "ALTER TABLE t ADD w int ENC, DROP nothing", _ROWS, "ROLLBACK",
        "ALTER TABLE t ALTER a DROP DEFAULT, ADD y int ENC NOT NULL DEFAULT 1,"
        " ALTER y DROP DEFAULT",
    ):  # fmt: skip
        twin.run(sql)
        twin.run(_ROWS)
    twin.reopen()
    twin.run(_ROWS)


def test_actions_that_depend_on_each_other_are_refused(twin: PostgresTwin) -> None:
    for sql in (
        "ALTER TABLE t ADD n int NOT NULL, ALTER n ADD GENERATED ALWAYS AS IDENTITY",
        "ALTER TABLE t ALTER c TYPE bigint USING c + 1, DROP a",
    ):
        own = twin.on_louver(sql)
        assert getattr(own.error, "code", "") == "sql.unsupported"
        twin.run(_ROWS)


def test_indexes_that_would_be_invalid_are_refused(twin: PostgresTwin) -> None:
    twin.run("INSERT INTO t VALUES (1, 'x', 10)")
    own = twin.on_louver("CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)")
    assert getattr(own.error, "code", "") == "postgres.refused"
    for sql in ("DROP INDEX i", "CREATE UNIQUE INDEX i ON t (a)",
                "CREATE UNIQUE INDEX CONCURRENTLY i ON t (nope)", "REINDEX TABLE t",
                "DELETE FROM t WHERE c = 10", "CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)",
                "INSERT INTO t VALUES (2, 'y', 20)"):  # fmt: skip
        twin.run(sql)


def test_what_is_expected_of_functions(twin: PostgresTwin) -> None:
    state = "SELECT f(1), provolatile, procost, proisstrict FROM pg_proc WHERE proname = 'f'"
    for sql in (
        "CREATE FUNCTION f(n int) RETURNS int LANGUAGE sql AS 'SELECT coalesce(n, 8) + 1'", state,
        "ALTER FUNCTION f(int) IMMUTABLE", state, "ALTER FUNCTION f STRICT COST 5", state,
        "SELECT f(c), f(NULL) FROM t ORDER BY 1", "ALTER FUNCTION f(text) STABLE", state,
        "BEGIN", "ALTER FUNCTION f CALLED ON NULL INPUT VOLATILE", state,
        "SELECT f(c), f(NULL) FROM t ORDER BY 1", "ROLLBACK", state,
    ):  # fmt: skip
        twin.run(sql)
    for action in ("RENAME TO g", "SET search_path = public", "OWNER TO current_user",
                   "SECURITY DEFINER", "SET SCHEMA pg_temp"):  # fmt: skip
        own = twin.on_louver(f"ALTER FUNCTION f(int) {action}")
        assert getattr(own.error, "code", "") == "sql.unsupported", action
    twin.reopen()
    twin.run(state)
