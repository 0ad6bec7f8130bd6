"""A whole session over the local PostgreSQL, which no URL chooses yet: the seam holds.

The catalog still calls the default schema `main`, so both databases get one of that name here; what
the executor says in DuckDB's SQL is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

import louver
from louver import errors
from louver._rust import postgres
from tests import shared
from tests.postgres import servers

_ROWS = "(1, 'x', 1.50, '2020-01-01'), (2, 'y', 2.50, '2020-01-02'), (3, NULL, NULL, NULL)"


@pytest.fixture
def connection() -> Iterator[louver.Connection]:

    keys = str(shared.key_file())
    with louver.connect(
        servers.database_url("local_postgres"), keys=keys, language="postgres"
    ) as opened:
        opened.execute(
            "CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC, b numeric(10,2) ENC,"
            " d date ENC)"
        )
        opened.execute(f"INSERT INTO t VALUES {_ROWS}")
        yield opened
        opened.execute("DROP TABLE t CASCADE")


def test_queries_are_finished_by_postgresql(connection: louver.Connection) -> None:
    def rows(sql: str) -> list[tuple[object, ...]]:
        return connection.execute(sql).fetchall()

    assert rows("SELECT a FROM t WHERE id = 2") == [("y",)]
    # PostgreSQL's own: division of integers, the order of NULLs, types of results, its functions.
    assert rows("SELECT id / 2, a FROM t ORDER BY a DESC") == [(1, None), (1, "y"), (0, "x")]
    assert rows("SELECT sum(b), count(*), avg(id) FROM t") == [
        (Decimal("4.00"), 3, Decimal("2.0000000000000000"))
    ]
    assert rows("SELECT string_agg(a, ',' ORDER BY id), to_char(max(d), 'DD.MM.') FROM t") == [
        ("x,y", "02.01.")
    ]
    assert rows("SELECT jsonb_build_object('a', a) FROM t WHERE b > 2") == [({"a": "y"},)]
    assert rows("SELECT DISTINCT ON (a IS NULL) id FROM t ORDER BY a IS NULL, id DESC") == [
        (2,), (3,),
    ]  # fmt: skip
    assert rows(
        "SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum = 2"
    ) == [("a",)]


def test_errors_are_postgresql_s(connection: louver.Connection) -> None:
    for sql, state in (("SELECT aa FROM t", "42703"), ("SELECT 1 / (id - 1) FROM t", "22012"),
                       ("SELECT a + 1 FROM t", "42883")):  # fmt: skip
        with pytest.raises(errors.Error) as error:
            connection.execute(sql).fetchall()
        assert error.value.sqlstate == state
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_the_server_holds_no_plaintext(connection: louver.Connection) -> None:
    server = servers.shared()
    connection.execute("INSERT INTO t VALUES (7, 'a canary that sings')")
    assert connection.execute("SELECT a FROM t WHERE id = 7").fetchall() == [
        ("a canary that sings",)
    ]
    admin = postgres.Session(str(server.folder), servers.PORT, servers.USER, "postgres")
    for sql in ("CREATE TABLE songs AS SELECT 'a canary in plain text' AS a", "CHECKPOINT",
                "DROP TABLE songs"):  # fmt: skip
        if sql.startswith("DROP"):
            files = [path for path in (server.folder / "data").rglob("*") if path.is_file()]
            held = b"".join(path.read_bytes() for path in files)
        admin.run([(sql, [])])
    admin.close()
    assert b"canary in plain text" in held
    assert b"canary that sings" not in held


_EVERY = (
    "n numeric ENC, i interval ENC, j jsonb ENC, a integer[] ENC, z timestamptz ENC, u uuid ENC,"
    " o boolean ENC, e text ENC"
)
_EVERY_ROW = (
    "2.50, '1 day', '{\"k\": \"a, b\"}', '{1,2}', '2020-01-01',"
    " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', true, ''"
)


@pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
def test_rows_of_every_type_have_all_faces(connection: louver.Connection) -> None:
    connection.execute(f"CREATE TABLE every (k integer PRIMARY KEY, {_EVERY})")
    connection.execute(f"INSERT INTO every VALUES (1, {_EVERY_ROW})")
    connection.execute("INSERT INTO every (k) VALUES (2)")
    relation = connection.sql("SELECT * FROM every ORDER BY k")
    frame = relation.df()
    assert list(frame.columns) == ["k", "n", "i", "j", "a", "z", "u", "o", "e"]
    assert frame["n"][0] == Decimal("2.50")
    assert frame["a"].tolist() == [[1, 2], None]
    assert relation.pl()["a"].to_list() == ["{1,2}", None]
    assert relation.fetchnumpy()["k"].tolist() == [1, 2]
    written: list[bytes] = []
    relation.execute()
    louver_csv = relation._ran()
    louver_csv.csv(written.append)
    assert b"".join(written).decode().splitlines() == [
        "k,n,i,j,a,z,u,o,e",
        '1,2.50,1 day,"{""k"": ""a, b""}","{1,2}",2020-01-01 00:00:00+00,'
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,true,""',
        "2,,,,,,,,",
    ]
    assert "{1,2}" in str(relation)
    connection.execute("DROP TABLE every")


def test_the_ledger_is_a_relation(connection: louver.Connection) -> None:
    leakage = connection.leakage()
    assert leakage.columns[:4] == ["sequence", "when", "table_name", "columns"]
    assert leakage.arrow().num_rows == len(leakage) > 0
    assert "table_name" in str(leakage)
