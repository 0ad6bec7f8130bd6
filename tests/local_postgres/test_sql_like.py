"""CREATE TABLE (LIKE …) of tables with ENC columns: these are kept as they are there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver.trusted.vault import scheme
from tests.local_postgres.twin import PostgresTwin

_TABLE = (
    "CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC USING sealed MAY REVEAL equality"
    " DEFAULT 'none', b bigint ENC MAY REVEAL order CHECK (b > 0), n integer UNIQUE, m integer,"
    " g integer ENC GENERATED ALWAYS AS (n * 2) STORED)"
)


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run(_TABLE)
    yield opened
    opened.close()


def _kept(twin: PostgresTwin, name: str) -> dict[str, tuple[object, ...]]:
    """How the columns of a table are kept."""
    table = twin.louver._session.context.catalog.table("public", name)
    return {
        column.name: (
            column.encrypted, column.scheme, column.ceiling, set(column.stored),
            scheme.details(column, [table]),
        )
        for column in table.columns
    }  # fmt: skip


@pytest.mark.parametrize("name", ["t", "public.t", '"t"'])
@pytest.mark.parametrize("more", ["", "INCLUDING ALL", "INCLUDING DEFAULTS EXCLUDING INDEXES",
                                  "INCLUDING GENERATED INCLUDING CONSTRAINTS"])  # fmt: skip
def test_columns_are_kept_as_there(twin: PostgresTwin, name: str, more: str) -> None:
    twin.run(f"CREATE TABLE k (x integer, LIKE {name} {more}, y text ENC)")
    for sql in (
        "INSERT INTO k (x, id, b, n) VALUES (1, 1, 5, 7), (2, 2, 6, 8)",
        "INSERT INTO k (x, id, b, n) VALUES (3, 1, -5, 7)",
        "INSERT INTO k (x, id, b, n) VALUES (3, NULL, 5, 9)",
        "SELECT * FROM k ORDER BY x", "SELECT x FROM k WHERE a = 'none' AND b > 5",
        "UPDATE k SET a = 'z' WHERE id = 2", "INSERT INTO t SELECT id, a, b, n, m FROM k",
        "INSERT INTO k (x, id, a, b) SELECT n, id + 10, a, b FROM t",
        "SELECT * FROM k ORDER BY x, id",
    ):  # fmt: skip
        twin.run(sql)
    twin.reopen()
    twin.run("SELECT * FROM k ORDER BY x, id")
    own, source = _kept(twin, "k"), _kept(twin, "t")
    assert [column for column, row in own.items() if not row[0]] == ["x", "n", "m"]
    assert own["a"] == source["a"]
    assert own["b"] == source["b"]
    assert own["id"][:3] == source["id"][:3]


def test_what_comes_along_stays(twin: PostgresTwin) -> None:
    for sql in (
        "COMMENT ON COLUMN t.a IS 'names'", "CREATE UNIQUE INDEX ON t (b) WHERE n > 5",
        "CREATE SCHEMA s", "CREATE TABLE s.k (LIKE t INCLUDING ALL)",
        "CREATE TABLE two (LIKE s.k, z integer ENC)",
    ):  # fmt: skip
        twin.run(sql)
    twin.reopen()
    for sql in (
        "SELECT col_description('s.k'::regclass, 2)",
        "SELECT col_description('two'::regclass, 2)",
        "INSERT INTO s.k (id, b, n) VALUES (1, 5, 3), (2, 5, 9)",
        "INSERT INTO s.k (id, b, n) VALUES (3, 5, 10)", "SELECT * FROM s.k ORDER BY id",
        "INSERT INTO two SELECT id, a, b, n, m, g, b FROM s.k", "SELECT * FROM two ORDER BY id",
        "CREATE TABLE wrong (LIKE t, a integer)", "CREATE TABLE wrong (LIKE missing)",
        "CREATE TABLE IF NOT EXISTS two (LIKE t)",
    ):  # fmt: skip
        twin.run(sql)


def test_names_of_enc_columns_stay_from_the_server(twin: PostgresTwin) -> None:
    twin.run("CREATE TABLE wide (salary_of_somebody integer ENC, LIKE t)")
    twin.run("CREATE TABLE k (LIKE wide)")
    context = twin.louver._session.context
    for label in ("wide", "k"):
        table = context.catalog.table("public", label)
        names = {name for column in table.columns for name in column.stored.values()}
        assert not any("salary" in name for name in names)


def test_another_thing_of_the_name_is_refused(twin: PostgresTwin) -> None:
    for sql in ("CREATE SCHEMA s", "CREATE VIEW s.t AS SELECT 1 AS a"):
        twin.run(sql)
    own = twin.on_louver("CREATE TABLE k (LIKE s.t)")
    assert getattr(own.error, "code", "") == "sql.unsupported"


def test_views_and_temporary_tables_are_refused_beside_enc_columns(twin: PostgresTwin) -> None:
    for sql in ("CREATE VIEW v AS SELECT id, a FROM t", "CREATE TEMP TABLE tt (a integer)"):
        twin.run(sql)
    for name in ("v", "tt"):
        own = twin.on_louver(f"CREATE TABLE k (LIKE {name})")
        assert getattr(own.error, "code", "") == "sql.unsupported"
