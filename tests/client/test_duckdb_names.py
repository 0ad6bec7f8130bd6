"""Every name of DuckDB's connections and relations is ours, or is listed with what to use."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import louver
from louver.trusted.client.duckdb_names import CONNECTION, RELATION
from tests.client.harness import connection


@pytest.fixture
def con() -> Iterator[louver.Connection]:
    with connection() as connected:
        connected.execute('CREATE TABLE t (Name VARCHAR ENC, n INTEGER ENC, "map" INTEGER)')
        connected.execute("INSERT INTO t VALUES ('Ada', 1, 2), ('Bob', 3, 4)")
        yield connected


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("theirs", "ours", "listed"),
    [
        (duckdb.DuckDBPyConnection, louver.Connection, CONNECTION),
        (duckdb.DuckDBPyRelation, louver.Relation, RELATION),
    ],
)
def test_every_name_is_ours_or_listed(theirs: type, ours: type, listed: dict[str, str]) -> None:
    assert public(theirs) - public(ours) == set(listed)


def test_a_name_that_is_listed_says_what_to_use(con: louver.Connection) -> None:
    for name, instead in CONNECTION.items():
        with pytest.raises(AttributeError) as caught:
            getattr(con, name)
        assert instead in str(caught.value)
    relation = con.sql("SELECT n FROM t")
    for name, instead in RELATION.items():
        with pytest.raises(AttributeError) as caught:
            getattr(relation, name)
        assert instead in str(caught.value)
    with pytest.raises(AttributeError, match="its columns are n"):
        _ = relation.nonsense
    assert not hasattr(relation, "__nonsense__")
    assert not hasattr(con, "nonsense")


def test_columns_are_attributes(con: louver.Connection) -> None:
    relation = con.table("t")
    plain = duckdb.connect()
    plain.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES ('Ada', 1, 2), ('Bob', 3, 4)) t(Name, n, m)"
    )
    assert relation.name.order("1").fetchall() == plain.table("t").Name.order("1").fetchall()
    assert relation.n.columns == ["n"]
    assert relation.n.sum("n").fetchall() == [(4,)]
    assert relation.map.order("1").fetchall() == [(2,), (4,)], "columns go before the list"


def test_closed_rows_are_fetched_again(con: louver.Connection) -> None:
    relation = con.table("t").order("n")
    assert relation.fetchone() == ("Ada", 1, 2)
    relation.close()
    assert len(relation.fetchall()) == 2
    assert relation.rank_dense("over (order by n)").columns == ["dense_rank() OVER (ORDER BY n)"]
