"""VACUUM and ANALYZE reach the server's tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver.wire.messages import Statement
from tests.local_postgres.twin import PostgresTwin


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    twin.run("CREATE SCHEMA s")
    for name in ("t", "s.u", '"Full"'):
        twin.run(f"CREATE TABLE {name} (a integer ENC, p text)")
        twin.run(f"INSERT INTO {name} SELECT n, 'x' FROM generate_series(1, 3000) AS g(n)")
        twin.run(f"UPDATE {name} SET a = a + 1")
    yield twin
    twin.close()


def _files(twin: PostgresTwin) -> dict[str, int]:
    sql = (
        "SELECT relname::text AS r, relfilenode::bigint AS n FROM pg_class"
        " WHERE relname IN ('t', 'u', 'Full') AND relkind = 'r'"
    )
    rows = twin.louver._context.engine.query(Statement(sql))
    return dict(zip(rows.column("r").to_pylist(), rows.column("n").to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("VACUUM", ""), ("ANALYZE", ""), ("VACUUM t", ""), ("VACUUM ANALYZE VERBOSE t (a)", ""),
        ("VACUUM FULL t", "t"), ("VACUUM (FULL, VERBOSE) s.u, t", "t u"), ("VACUUM FULL s.u", "u"),
        ('VACUUM FULL "Full"', "Full"), ("VACUUM FULL", "t u Full"),
        ("VACUUM FULL missing", ""), ("VACUUM (FULL) t, missing", ""),
    ],
)  # fmt: skip
def test_tables_that_are_named_are_written_anew(twin: PostgresTwin, sql: str, names: str) -> None:
    before = _files(twin)
    twin.run(sql)
    assert {name for name, file in _files(twin).items() if file != before[name]} == set(
        names.split()
    )
    twin.run("SELECT count(*), sum(a) FROM t")


def test_within_a_transaction(twin: PostgresTwin) -> None:
    for sql in ("BEGIN", "ANALYZE t", "VACUUM t", "ROLLBACK", "SELECT count(*) FROM t"):
        twin.run(sql)
