"""DROP of kinds of objects that no database of Louver's has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
#: What stands behind DROP and, where there is one, behind IF EXISTS.
_MISSING = (
    ("ACCESS METHOD", "x"), ("AGGREGATE", "x(*)"), ("AGGREGATE", "no.x(int)"),
    ("AGGREGATE", "x(missing)"), ("CAST", "(text AS text)"), ("CAST", "(missing AS int)"),
    ("COLLATION", "x"), ("CONVERSION", "no.x"), ("EVENT TRIGGER", "x"), ("EXTENSION", "x"),
    ("FOREIGN TABLE", "x"), ("FOREIGN DATA WRAPPER", "x"), ("LANGUAGE", "x"),
    ("MATERIALIZED VIEW", "x"), ("MATERIALIZED VIEW", "t"), ("OPERATOR", "@#@ (int, int)"),
    ("OPERATOR", "+ (missing, int)"), ("OPERATOR CLASS", "x USING btree"),
    ("OPERATOR FAMILY", "x USING btree"), ("POLICY", "x ON t"), ("PROCEDURE", "x"),
    ("PUBLICATION", "x"), ("ROUTINE", "x"), ("RULE", "x ON t"), ("RULE", "x ON missing"),
    ("SERVER", "x"), ("STATISTICS", "x"), ("TEXT SEARCH PARSER", "x"),
    ("TEXT SEARCH CONFIGURATION", "no.x"), ("TRIGGER", "x ON t"), ("TRIGGER", "x ON missing"),
)  # fmt: skip


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (a integer ENC)")
    opened.run("CREATE FUNCTION f() RETURNS integer RETURN 1")
    yield opened
    opened.close()


@pytest.mark.parametrize(("kind", "name"), _MISSING)
def test_answers_are_those_of_plaintext(twin: PostgresTwin, kind: str, name: str) -> None:
    version = twin.louver._session.context.catalog.version
    for begins, ends in (("", ""), ("BEGIN", "COMMIT"), ("BEGIN READ ONLY", "COMMIT")):
        for sql in (f"DROP {kind} IF EXISTS {name}", f"DROP {kind} {name}",
                    f"DROP {kind} IF EXISTS {name} CASCADE", f"DROP {kind} IF EXISTS"):  # fmt: skip
            for each in filter(None, (begins, sql, ends)):
                twin.run(each)
    assert twin.louver._session.context.catalog.version == version


def test_what_the_transaction_has_done_stays(twin: PostgresTwin) -> None:
    for sql in ("BEGIN", "CREATE TABLE u (a integer ENC)", "DROP TRIGGER IF EXISTS x ON u",
                "INSERT INTO u VALUES (1)", "SAVEPOINT s", "DROP RULE IF EXISTS x ON u",
                "ROLLBACK TO s", "DROP AGGREGATE sum(int)", "ROLLBACK TO s", "COMMIT",
                "SELECT * FROM u", "DROP", "DROP TABLE u"):  # fmt: skip
        twin.run(sql)


@pytest.mark.parametrize("sql", [
    "DROP EXTENSION plpgsql", "DROP EXTENSION IF EXISTS plpgsql CASCADE", "DROP ROUTINE f",
    "DROP ROLE IF EXISTS missing", "DROP DATABASE IF EXISTS missing", "DROP USER missing",
    "DROP TABLESPACE IF EXISTS missing", "DROP OWNED BY CURRENT_USER",
])  # fmt: skip
def test_what_would_change_something_is_refused(twin: PostgresTwin, sql: str) -> None:
    outcome = twin.on_louver(sql)
    assert isinstance(outcome.error, errors.NotSupportedError)
    assert outcome.error.code == "sql.unsupported"
    twin.run("SELECT f()")
