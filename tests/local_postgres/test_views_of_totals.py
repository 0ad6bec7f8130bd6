"""Views of totals that the server computes: their names are no more than aliases of its rows, and
the tables below them are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres.twin import PostgresTwin


@pytest.fixture
def twin() -> Iterator[PostgresTwin]:
    twin = PostgresTwin()
    for sql in (
        "CREATE SCHEMA apart",
        "CREATE TABLE votes (phone bigint, state text ENC, weight integer ENC)",
        "CREATE TABLE apart.votes (phone bigint, state text)",
        "INSERT INTO votes VALUES (1, 'NY', 3), (1, 'CA', 4), (2, 'NY', NULL)",
        "INSERT INTO apart.votes VALUES (7, 'TX'), (7, 'WA')",
        "CREATE VIEW by_phone AS SELECT phone, count(*) FROM votes GROUP BY phone",
        "CREATE VIEW by_state (s, n) AS SELECT state, count(*) FROM votes GROUP BY state",
        "CREATE VIEW apart.totals AS SELECT phone, count(*) FROM apart.votes GROUP BY phone",
        "CREATE VIEW of_other AS SELECT phone, count(*) FROM apart.votes GROUP BY phone",
        "CREATE VIEW above AS SELECT phone + 1 AS next, count FROM by_phone",
    ):
        assert not twin.differs(sql), sql
    yield twin
    twin.close()


@pytest.mark.parametrize("path", ["public", "apart", "apart, public"])
def test_views_of_totals(twin: PostgresTwin, path: str) -> None:
    assert not twin.differs(f"SET search_path TO {path}")
    for name in (
        "public.by_phone", "public.by_state", "apart.totals", "public.of_other", "public.above",
    ):  # fmt: skip
        for clauses in ("", " ORDER BY 1 LIMIT 1", " AS x WHERE x IS NOT NULL"):
            assert not twin.differs(f"SELECT * FROM {name}{clauses}"), (name, clauses)
    for sql in (
        "SELECT * FROM public.by_phone JOIN public.votes USING (phone)",
        "SELECT by_phone.count FROM public.by_phone, apart.totals WHERE by_phone.phone < 7",
        "SELECT by_state FROM public.votes AS by_state",
        "CREATE TEMP TABLE totals_now AS SELECT * FROM public.by_phone",
        "SELECT * FROM totals_now JOIN public.above ON next = phone",
    ):
        assert not twin.differs(sql), sql
