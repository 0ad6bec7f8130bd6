"""Random queries over a lake of files of one, two or three rows, against plaintext DuckDB.

Small files make every condition choose: a file that is lost is a row that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import louver
from tests.executor.test_code_queries import TYPES, condition, query, stored
from tests.generated import cases
from tests.lake.tables import known_key
from tests.twin import Twin

KINDS = (
    ("split-block 16384", "no-value"),
    ("basic 2048", "any-value"),
    ("split-block 4096", "any-value"),
    ("basic 16384", "no-value"),
)
#: Queries and changes on each; most on the kind that lakes have by default.
COUNTS = {KINDS[0]: (80, 16)}
OTHERS = (15, 5)


@dataclass(frozen=True)
class Both:
    """The twin, and how many cases this kind of index has. Each kind draws others."""

    twin: Twin
    kind: tuple[str, str]

    @property
    def counts(self) -> tuple[int, int]:
        return COUNTS.get(self.kind, OTHERS)

    def random(self, seed: int) -> Random:
        return Random(f"{self.kind} {seed}")


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: " ".join(kind))
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    """The same rows in a lake and in DuckDB; r lies in files of two rows, s of one to three."""
    folder: Path = tmp_path_factory.mktemp("lake")
    filter_, nulls = request.param
    known_key(folder / "k.louverkey")
    con = louver.connect(f"lake:///{folder}/warehouse", keys=folder / "k.louverkey")
    con.execute(f"SET lake_filter = '{filter_}'; SET lake_nulls = '{nulls}'")
    twin, rng = Twin.beside(con, own_errors=True), Random(4)
    for table, size in (("r", 2), ("s", 3)):
        columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
        rows = [f"({n}, {', '.join(stored(name, rng) for name in TYPES)})" for n in range(40)]
        con.execute(f"SET lake_rows_per_file = {size}")
        twin.fill(
            f"CREATE TABLE {table} (n INTEGER, {columns})",
            f"INSERT INTO {table} VALUES {', '.join(rows)}",
        )
    con.execute("SET lake_rows_per_file = 1")
    twin.run("INSERT INTO s SELECT n + 100, * EXCLUDE (n) FROM s WHERE n < 6")
    yield Both(twin, request.param)
    twin.close()


def test_answers_equal(both: Both) -> None:
    twin = both.twin
    skipped: list[int] = []

    @settings(
        max_examples=cases(both.counts[0]), deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.integers(0, 2**48))
    def check(seed: int) -> None:
        sql = query(both.random(seed))
        twin.either(sql, ordered="LIMIT" in sql)
        fetched = twin.louver.lake.fetched()
        skipped.extend(fetch.files_total - fetch.files_kept for fetch in fetched)

    check()
    assert sum(skipped) > cases(both.counts[0])


def test_changes_equal(both: Both) -> None:
    """DELETE and UPDATE by random conditions, in transactions that are undone."""
    twin = both.twin

    @settings(
        max_examples=cases(both.counts[1]), deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.integers(0, 2**48))
    def check(seed: int) -> None:
        rng = both.random(seed)
        where = condition(rng)
        change = rng.choice((f"DELETE FROM r WHERE {where}", f"UPDATE r SET n = -n WHERE {where}"))
        twin.run("BEGIN")
        if twin.either(change) is not None:
            twin.run("FROM r")
        twin.run("ROLLBACK")

    check()
