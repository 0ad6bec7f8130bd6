"""Keys of one table choose the rows of another one in PostgreSQL's language."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver.trusted.executor import keys_read, onion_adjustment
from tests.inside import context_of
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_ROWS = 3_000
#: Of each query how many rows come at most, beside those of the catalog.
_QUERIES = {
    "SELECT sum(w) FROM big, little WHERE big.k = little.k AND little.x = 7": 100,
    "SELECT sum(w) FROM big WHERE k IN (SELECT k FROM little WHERE x < 3)": 100,
    "SELECT sum(w), min(x) FROM big JOIN little USING (k) WHERE x IN (1, 2, NULL)": 100,
    "SELECT sum(w) FROM little, big WHERE (big.k = little.k AND x = 1) OR (big.k = little.k"
    " AND x = 2)": 100,
    "SELECT sum(w) FROM big, little WHERE big.k = little.k": _ROWS + 50,
}


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin("cryptdb")
    twin.run("CREATE TABLE big (k bigint ENC, w bigint ENC)")
    twin.run("CREATE TABLE little (k integer ENC, x integer ENC)")
    twin.run(f"INSERT INTO big SELECT i % 300, i FROM generate_series(1, {_ROWS}) AS i")
    twin.run("INSERT INTO little SELECT i * 6, i FROM generate_series(1, 50) AS i")
    yield twin
    twin.close()


@pytest.mark.parametrize("listed", [2_048, 0])
def test_keys_choose_the_rows(
    twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    monkeypatch.setattr(keys_read, "MOST_LISTED", listed)
    for sql, most in _QUERIES.items():
        twin.run(sql)  # opens layers
        traffic = context_of(twin.louver).engine.traffic
        before = traffic.rows_in
        twin.run(sql)
        assert traffic.rows_in - before <= most + 20, sql


def test_a_table_is_written_anew_when_a_layer_was_opened(
    twin: PostgresTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onion_adjustment, "LEAST_ROWS", 1)
    sizes = []
    for sql in ("SELECT count(*) FROM big WHERE k = 3", "SELECT count(*) FROM big WHERE w < 3"):
        twin.run(sql)
        sizes.append(_size(twin, "big"))
    assert sizes[0] == sizes[1]
    twin.run("SELECT * FROM big")


def _size(twin: PostgresTwin, name: str) -> int:
    from louver.wire.messages import Statement

    side = context_of(twin.louver).engine.side()
    size = side.value(Statement(f"SELECT pg_relation_size('public.{name}')"))
    side.close()
    return int(str(size))


@pytest.mark.parametrize("ceiling", ["size", "access"])
def test_keys_of_rows_that_a_condition_left_need_its_columns_ceilings(ceiling: str) -> None:
    """A look-up that needs no second step shows nothing of its own, keys of its rows do."""
    twin = PostgresTwin("sealed")
    twin.run(
        f"CREATE TABLE first (k bigint ENC MAY REVEAL equality, s text ENC MAY REVEAL {ceiling})"
    )
    twin.run("CREATE TABLE second (k bigint ENC MAY REVEAL equality UNIQUE, w bigint ENC)")
    twin.run("INSERT INTO first SELECT i, 's' || i % 100 FROM generate_series(1, 1200) AS i")
    twin.run("INSERT INTO second SELECT i, i FROM generate_series(1, 9000) AS i")
    context = context_of(twin.louver)
    before = context.engine.traffic.rows_in
    twin.run("SELECT sum(w) FROM first JOIN second USING (k) WHERE s = 's7' AND k > 0")
    came = context.engine.traffic.rows_in - before
    recorded = [fact for fact in context.ledger.facts(("rows",)) if "s" in fact.columns]
    twin.close()
    assert bool(recorded) == (ceiling == "access")
    assert came < 1_400 if recorded else came >= 10_200
