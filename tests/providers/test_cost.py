"""Prices grow with the sizes as figure 6 of the paper says, and shares are as long as stated."""

from __future__ import annotations

import pytest

from louver._rust import fss
from louver.trusted.planner.private import cost
from louver.trusted.planner.private.cost import Link, Sizes
from louver.wire.questions import Dataset, Level, Protocol, TableFacts
from tests.providers.fake import Fake

TWO_PARTY = [1, 2, 7, 24, 40, 64]


def sizes(rows: int, clauses: int = 1, parties: int = 2, limit: int = 0) -> Sizes:
    bits = max((rows - 1).bit_length(), 1)
    levels = tuple(Level(max(rows >> d, 1), max(bits - d, 1), 1, 64) for d in range(bits + 1))
    return Sizes(rows, rows, bits, levels, 3, bits, clauses, parties, limit)


@pytest.mark.parametrize("bits", TWO_PARTY)
def test_shares_are_as_long_as_the_price_says(bits: int) -> None:
    assert {len(s) for s in fss.Point(bits, 1).shares()} == {cost.point_bytes(bits, 2)}
    assert {len(s) for s in fss.Below(bits, 1).shares()} == {cost.below_bytes(bits)}
    assert {len(s) for s in fss.Sum(bits, 0, 1).shares()} == {cost.interval_bytes(bits)}


@pytest.mark.parametrize(
    ("protocol", "rounds"),
    [
        (Protocol.SELECT, 1),
        (Protocol.SUM, 1),
        (Protocol.NODES, 2),
        (Protocol.SEARCH, 8),
        (Protocol.BUCKETS, 1),
        (Protocol.DYADIC, 1),
        (Protocol.PAILLIER, 1),
    ],
)
def test_rounds_are_those_of_figure_6(protocol: Protocol, rounds: int) -> None:
    parties = 2 if protocol in ("select", "sum", "nodes", "search") else 3
    assert cost.estimate(protocol, sizes(1 << 20, parties=parties)).rounds == rounds


@pytest.mark.parametrize("protocol", [Protocol.SELECT, Protocol.SUM, Protocol.NODES])
def test_bytes_grow_with_the_logarithm_and_work_with_the_table(protocol: Protocol) -> None:
    small, large = (cost.estimate(protocol, sizes(1 << bits)) for bits in (10, 20))
    assert large.sent < 5 * small.sent
    assert large.received < 5 * small.received
    assert 500 * small.blocks < large.blocks < 5000 * small.blocks


def test_a_walk_shares_prefixes() -> None:
    assert cost.walked(1, 24) == 24
    assert cost.walked(1 << 24, 24) == 2 * (1 << 24) - 2
    assert cost.walked(1000, 64) < 1000 * 64


def test_several_providers_pay_with_long_shares() -> None:
    assert cost.point_bytes(24, 3) == pytest.approx(192.3 * 1024, rel=0.001)
    assert cost.point_bytes(20, 5) == pytest.approx(96.0 * 1024, rel=0.001)
    assert cost.estimate(Protocol.PAILLIER, sizes(1 << 8, parties=3)).powers > 0


def test_a_search_fetches_one_record_and_parallel_questions_one_a_clause() -> None:
    wide = (Level(1 << 10, 12, 1, 60_000),)
    narrow = (Level(1 << 20, 24, 1, 64),)
    few = Sizes(1 << 20, 1 << 20, 24, narrow, 1, 20, 2, 2, 1)
    parallel, search = (cost.estimate(p, few) for p in (Protocol.SELECT, Protocol.SEARCH))
    assert cost.cheapest([parallel, search], Link()) == 0
    slow = Link(latency_s=0.0, bytes_per_s=1e3, blocks_per_s=1e15, scanned_per_s=1e15)
    many = Sizes(1 << 10, 1 << 10, 12, wide, 1, 10, 64, 2, 1)
    both = [cost.estimate(p, many) for p in (Protocol.SELECT, Protocol.SEARCH)]
    assert cost.cheapest(both, slow) == 1


def test_rounds_of_a_search_share_their_number() -> None:
    for bits in (1, 3, 4, 20):
        assert cost.estimate(Protocol.SEARCH, sizes(1 << bits)).rounds == -(-bits // 3) + 1


def test_the_choice_knows_the_shape_and_no_secret() -> None:
    fake = Fake.of(t=("a INTEGER, b INTEGER", []))
    sql = "SELECT max(b) FROM t WHERE a IN (?, ?, ?)"
    table = fake.dataset.tables[0]
    dataset = Dataset(b"i", (b"v",), (TableFacts(table.name, table.columns, 1 << 20),))
    chosen = {
        cost.choose(fake.plan(sql, values), dataset, 2, Link())
        for values in ([1, 2, 3], [1, 1, 1], [None, 5, 10**30], [-5, 0, 7])
    }
    assert chosen == {0}


def test_a_price_reads_as_a_line() -> None:
    text = cost.words(cost.estimate(Protocol.SUM, sizes(1 << 20)), Link())
    assert text.startswith("1 round, 1,320 bytes to and 48 bytes from each provider")
