"""TPC-H in PostgreSQL's language, every column ENC: all queries answer as on plaintext PostgreSQL.

The data is that of DuckDB's generator, the texts are the specification's, which both dialects take.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local_postgres import tpc
from tests.local_postgres.twin import PostgresTwin
from tests.tpc import sources

_SCALE = 0.01
#: What plaintext PostgreSQL needs for its own answer to be quick; Louver has none of these.
_INDEXES = ("lineitem (l_partkey, l_suppkey)", "partsupp (ps_suppkey)", "lineitem (l_orderkey)")
pytestmark = [
    pytest.mark.filterwarnings("ignore::louver.LeakageWarning"),
    pytest.mark.in_turn,
]


@pytest.fixture(params=sources.POLICIES)
def twin(request: pytest.FixtureRequest) -> Iterator[PostgresTwin]:
    policy = sources.policy(request.param)
    twin = PostgresTwin(policy=str(policy))
    yield twin
    twin.close()


def test_all_queries_answer_as_on_plaintext(twin: PostgresTwin) -> None:
    with sources.generate(sources.TPCH, _SCALE) as generated:
        tpc.load(twin, generated)
        for index in _INDEXES:
            twin.plain.execute(f"CREATE INDEX ON {index}")
        twin.plain.execute("ANALYZE")
        queries = sources.queries(generated, sources.TPCH)
    assert [*queries] == [*sources.TPCH.numbers]
    for sql in queries.values():
        twin.run(sql)
