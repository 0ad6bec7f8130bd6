"""Indexes on a server: over codes that are open, over plain columns, and what CREATE INDEX says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from louver import LeakageWarning
from louver.trusted.client.connect import open_session
from louver.trusted.client.dbapi import Connection
from louver.untrusted.engines.engine import Engine
from louver.wire.messages import Statement
from tests.postgres import servers

pytestmark = pytest.mark.filterwarnings(f"ignore::{LeakageWarning.__module__}.LeakageWarning")
_INDEXES = (
    "SELECT array_to_string(array(SELECT a.attname::text FROM unnest(i.indkey::int2[])"
    " WITH ORDINALITY AS k(n, place) JOIN pg_attribute a ON a.attrelid = i.indrelid"
    " AND a.attnum = k.n ORDER BY k.place), ',') AS names FROM pg_index i"
    " JOIN pg_class c ON c.oid = i.indrelid"
    " WHERE c.relname = $1 AND NOT i.indisunique ORDER BY 1"
)


@pytest.fixture
def connection(key_file: Path, tmp_path: Path) -> Iterator[Connection]:
    url = servers.database_url(f"indexed_{abs(hash(str(tmp_path)))}")
    connection = Connection(open_session(url, key_file, "cryptdb", language="duckdb"))
    connection.execute("CREATE TABLE t (a BIGINT ENC, b BIGINT ENC, p BIGINT, q DATE, w VARCHAR)")
    connection.execute(
        "INSERT INTO t SELECT i, i % 100, i, '2020-01-01', 'w' FROM range(3000) AS r(i)"
    )
    yield connection
    connection.close()


def engine(connection: Connection) -> Engine:
    """The connection to the server."""
    held = connection._session.context.engine
    assert isinstance(held, Engine)
    return held


def indexes(connection: Connection, table: str = "t") -> list[str]:
    """What indexes of the server's are over, by representation and declared name."""
    held = engine(connection)
    stored = {
        name: f"{column.name}.{kind}"
        for known in connection._session.context.catalog.tables.values()
        for column in known.columns
        for kind, name in column.stored.items()
    }
    rows = held.query(Statement(_INDEXES, (table,))).column(0).to_pylist()
    return sorted(",".join(stored[name] for name in row.split(",")) for row in rows)


def plan(connection: Connection, sql: str) -> str:
    """How the server runs what it is sent for a query."""
    (remote,) = connection.sql(sql).remote_sql()
    text = remote.partition("\n--")[0]
    lines = (
        engine(connection)
        .query(Statement(f"EXPLAIN {text}", _constants(text)))
        .column(0)
        .to_pylist()
    )
    return "\n".join(lines)


def _constants(text: str) -> tuple[int, ...]:
    return tuple(7 for number in range(1, 10) if f"${number}" in text)


def test_codes_are_indexed_when_they_open(connection: Connection) -> None:
    assert indexes(connection) == []
    assert connection.execute("SELECT p FROM t WHERE a = 7").fetchall() == [(7,)]
    assert indexes(connection) == ["a.eq"]
    assert connection.execute("SELECT count(*) FROM t WHERE b < 5").fetchall() == [(150,)]
    assert indexes(connection) == ["a.eq", "b.ord"]
    assert "Seq Scan" not in plan(connection, "SELECT p FROM t WHERE a = 7")


def test_an_opening_that_is_undone_leaves_no_index(connection: Connection) -> None:
    connection.execute("BEGIN")
    assert connection.execute("SELECT p FROM t WHERE a = 7").fetchall() == [(7,)]
    connection.execute("ROLLBACK")
    assert indexes(connection) == []


def test_a_declared_index_is_over_what_answers(connection: Connection) -> None:
    connection.execute("CREATE INDEX plain ON t (p, q)")
    connection.execute("CREATE INDEX mixed ON t (a, p)")
    connection.execute("CREATE INDEX computed ON t ((p + 1))")
    connection.execute("CREATE INDEX long ON t (w)")  # the server's would refuse long values
    assert indexes(connection) == ["p.plain,q.plain"]
    assert connection.execute("SELECT p FROM t WHERE a = 7").fetchall() == [(7,)]
    assert indexes(connection) == ["a.eq", "a.eq,p.plain", "p.plain,q.plain"]
    connection.execute("DROP INDEX mixed")
    connection.execute("DROP INDEX plain")
    assert indexes(connection) == ["a.eq"]
    assert connection.execute("SELECT p FROM t WHERE a = 8").fetchall() == [(8,)]


def test_a_table_that_is_made_anew_has_its_indexes(connection: Connection) -> None:
    connection.execute("CREATE INDEX plain ON t (p)")
    connection.execute("SELECT p FROM t WHERE b = 7").fetchall()
    connection.execute("CREATE UNIQUE INDEX key ON t (a)")
    assert indexes(connection) == ["b.eq", "p.plain"]
    assert connection.execute("SELECT p FROM t WHERE a = 9").fetchall() == [(9,)]


def test_names_that_would_end_a_text_are_names(connection: Connection) -> None:
    connection.execute("""CREATE TABLE "o'x" ("p'""1" BIGINT)""")
    connection.execute("""CREATE INDEX i ON "o'x" ("p'""1")""")
    assert indexes(connection, "o'x") == ["p'\"1.plain"]
    connection.execute("DROP INDEX i")
    assert indexes(connection, "o'x") == []


def test_an_index_follows_its_column(connection: Connection) -> None:
    connection.execute("SELECT p FROM t WHERE a = 7").fetchall()
    connection.execute("CREATE INDEX pair ON t (a, p)")
    connection.execute("ALTER TABLE t ALTER a DROP ENC")
    assert indexes(connection) == ["a.plain,p.plain"]
    connection.execute("ALTER TABLE t ALTER p SET ENC")
    assert indexes(connection) == []
    assert connection.execute("SELECT a FROM t WHERE p = 7").fetchall() == [(7,)]
    assert indexes(connection) == ["a.plain,p.eq", "p.eq"]
