"""TPC-DS in PostgreSQL's language, every column ENC: all queries answer as on plaintext PostgreSQL.

The data and the texts are those of DuckDB's extension; PostgreSQL takes all 99 as they are.
"""

from __future__ import annotations

import pytest

from tests.local_postgres import tpc
from tests.local_postgres.twin import PostgresTwin, difference
from tests.tpc import harness, sources

pytestmark = [pytest.mark.filterwarnings("ignore::louver.LeakageWarning"), pytest.mark.soak]


@pytest.mark.parametrize("policy", sources.POLICIES)
def test_all_queries_answer_as_on_plaintext(policy: str) -> None:
    """None differs, none is refused, and none finds nothing."""
    origin = harness.Plain.make(sources.TPCDS)
    twin = PostgresTwin(policy=str(sources.policy(policy)))
    outcomes: dict[int, str] = {}
    try:
        tpc.load(twin, origin.con)
        twin.plain.execute("ANALYZE")
        for number, sql in origin.queries.items():
            plain, own = twin.both(sql)
            assert plain.error is None, (number, plain.error)
            assert plain.rows, number
            if different := difference(plain, own):
                outcomes[number] = own.state or different[:300]
    finally:
        twin.close()
        origin.con.close()
    assert [*origin.queries] == [*sources.TPCDS.numbers]
    assert outcomes == {}
