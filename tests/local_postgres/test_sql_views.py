"""Changes through views that PostgreSQL updates by itself, as on plaintext, by the same rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_SCHEMA = (
    "CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC DEFAULT 'd', n integer ENC)",
    "CREATE TABLE c (id serial, t integer ENC REFERENCES t ON DELETE CASCADE)",
    "CREATE VIEW v AS SELECT * FROM t WHERE n > 2",
    "CREATE VIEW w AS SELECT n AS m, id AS key, a || '!' AS loud FROM t WHERE n > 2"
    " WITH CHECK OPTION",
    "CREATE VIEW x AS SELECT key, m FROM w WHERE m < 60 WITH LOCAL CHECK OPTION",
    "CREATE VIEW y AS SELECT a AS n, n AS a, id FROM t",
    "CREATE VIEW z (k, n) AS SELECT id, n FROM t WHERE n > 1",
    "CREATE VIEW agg AS SELECT count(*) AS c FROM t",
    "CREATE VIEW j AS SELECT t.id FROM t JOIN c ON c.t = t.id",
)
_COLUMNS = {
    "v": ("id", "n"),
    "w": ("key", "m"),
    "x": ("key", "m"),
    "y": ("id", "a"),
    "z": ("k", "n"),
}


@pytest.fixture(scope="module", params=["cryptdb", "sealed"])
def twin(request: pytest.FixtureRequest) -> Iterator[PostgresTwin]:
    opened = PostgresTwin(request.param)
    for sql in _SCHEMA:
        opened.run(sql)
    yield opened
    opened.close()


def test_changes_of_views_do_what_they_do_on_plaintext(twin: PostgresTwin) -> None:
    random, ran = generator("views"), 0
    for _ in range(cases(60)):
        view = random.choice([*_COLUMNS])
        key, number = _COLUMNS[view]
        key_value, other = random.randint(1, 12), random.randint(0, 70)
        back = random.choice(("", "", " RETURNING *", f" RETURNING {number}, {key} + 1"))
        sql = random.choice((
            f"INSERT INTO {view} ({key}, {number}) VALUES ({key_value}, {other}){back}",
            f"INSERT INTO {view} ({number}, {key}) SELECT {other}, {key_value}{back}",
            f"INSERT INTO {view} ({key}, {number}) VALUES ({key_value}, {other})"
            f" ON CONFLICT ({key}) DO UPDATE SET {number} = excluded.{number}{back}",
            f"UPDATE {view} SET {number} = {number} + 3 WHERE {key} < {key_value}{back}",
            f"UPDATE {view} AS q SET {number} = {other} WHERE q.{key} = {key_value}{back}",
            f"DELETE FROM {view} WHERE {number} > {other} AND {key} <> {key_value}{back}",
            f"DELETE FROM {view} AS q WHERE q.{key} = {key_value}{back}",
            f"INSERT INTO c (t) VALUES ({key_value})",
            "UPDATE w SET m = m + 1 WHERE loud = 'd!'", "UPDATE v SET a = DEFAULT",
            "UPDATE y SET n = a::text WHERE n = 'd'",
        ))  # fmt: skip
        outcome, code = twin.refused_or_differs(sql, ["leak.", "sql.unsupported"])
        assert not outcome, (sql, outcome)
        ran += not code
        if random.random() < 0.1:
            twin.run("SELECT * FROM t ORDER BY id")
            twin.run("SELECT t FROM c ORDER BY id")
    assert ran > 0.6 * cases(60)


def test_what_cannot_be_changed_is_postgresql_s_error(twin: PostgresTwin) -> None:
    for sql in (
        "UPDATE agg SET c = 1", "DELETE FROM agg", "INSERT INTO agg VALUES (1)",
        "INSERT INTO w (loud) VALUES ('x')", "UPDATE w SET loud = 'x'", "DELETE FROM j",
        "UPDATE v SET missing = 1", "INSERT INTO w (key, m) VALUES (1, 0)",
    ):  # fmt: skip
        assert twin.on_louver(sql).state == twin.on_plain(sql).state, sql
    for sql in (
        "UPDATE w SET m = 1 WHERE key IN (SELECT id FROM t)",
        "WITH q AS (SELECT 1) DELETE FROM v", "UPDATE w SET m = 1 FROM c WHERE c.t = key",
    ):  # fmt: skip
        assert isinstance(twin.on_louver(sql).error, errors.NotSupportedError), sql


def test_a_view_may_not_carry_what_its_table_may_not(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE s (id integer ENC PRIMARY KEY, p integer, a text ENC)")
    twin.run("CREATE VIEW sv AS SELECT a AS p, id, p AS q FROM s WHERE a > 'b'")
    twin.run("INSERT INTO s VALUES (1, 1, 'x'), (2, 2, 'a')")
    for sql in ("UPDATE sv SET q = length(p)", "UPDATE sv SET q = id"):
        outcome = twin.on_louver(sql)
        assert isinstance(outcome.error, errors.LeakageRefused), sql
    twin.run("UPDATE sv SET p = p || 'y' WHERE q = 1")
    twin.run("SELECT * FROM s ORDER BY id")


def test_defaults_of_columns_of_views(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE TABLE d (a int PRIMARY KEY, b text ENC DEFAULT 'table', c text,"
        " n int ENC DEFAULT 7)",
        "CREATE VIEW dv AS SELECT a, b, c, n FROM d",
        "ALTER VIEW dv ALTER COLUMN b SET DEFAULT 'view'",
        "ALTER TABLE dv ALTER c SET DEFAULT 'c; of view'",
        "INSERT INTO dv (a) VALUES (1)",
        "INSERT INTO dv VALUES (2, DEFAULT, DEFAULT, DEFAULT), (3, 'x', 'y', 8)",
        "INSERT INTO d (a) VALUES (4)",
        "UPDATE dv SET b = DEFAULT WHERE a = 3",
        "CREATE VIEW dw AS SELECT a AS aa, b AS bb FROM dv WHERE a > 0",
        "ALTER VIEW dw ALTER COLUMN bb SET DEFAULT 'w'",
        "INSERT INTO dw VALUES (5) RETURNING *",
        "BEGIN",
        "ALTER VIEW dw ALTER COLUMN aa SET DEFAULT 77",
        "INSERT INTO dw DEFAULT VALUES",
        "ROLLBACK",
        "INSERT INTO dw DEFAULT VALUES",
        "ALTER VIEW dv RENAME COLUMN c TO cc",
        "ALTER VIEW dv RENAME TO du",
        "INSERT INTO du VALUES (6)",
        "ALTER VIEW du ALTER COLUMN b DROP DEFAULT",
    ):
        twin.run(sql)
    twin.reopen()
    twin.run("INSERT INTO du VALUES (7)")
    twin.run("INSERT INTO dw VALUES (8) ON CONFLICT (aa) DO UPDATE SET bb = excluded.bb")
    twin.run("DROP VIEW dw")
    twin.run("CREATE VIEW dw AS SELECT a AS aa, b AS bb FROM d")
    twin.run("INSERT INTO dw VALUES (9)")
    twin.run("SELECT * FROM d ORDER BY a")
    twin.run("CREATE SEQUENCE drawn")
    twin.run("CREATE TEMP VIEW dt AS SELECT * FROM d")
    for sql in (
        "ALTER VIEW dw ALTER aa SET DEFAULT nextval('drawn')",
        "ALTER VIEW dt ALTER a SET DEFAULT 1",
    ):
        assert isinstance(twin.on_louver(sql).error, errors.NotSupportedError), sql
