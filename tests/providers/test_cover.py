"""Which nodes cover an interval of ranks, and which clauses are left when they meet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from louver.trusted.executor.private.constants import _merged, _once
from louver.trusted.executor.private.rounds import cover


@given(st.integers(0, 12), st.data())
def test_nodes_cover_an_interval_exactly_with_two_a_level(top: int, data: st.DataObject) -> None:
    size = 1 << top
    first = data.draw(st.integers(0, size))
    last = data.draw(st.integers(first, size))
    nodes = cover(first, last, top + 1)
    # Their number, and of which levels they are, says nothing of the interval.
    assert [level for level, _ in nodes] == [level for level in range(top + 1) for _ in "12"]
    covered = [
        rank
        for level, node in nodes
        if node is not None
        for rank in range(node << level, node + 1 << level)
    ]
    assert sorted(covered) == list(range(first, last))


@given(st.integers(1, 300), st.data())
def test_the_last_level_need_not_be_a_power_of_two(count: int, data: st.DataObject) -> None:
    """A table of `count` keys has levels until one node holds all."""
    levels = (count - 1).bit_length() + 1
    first = data.draw(st.integers(0, count))
    last = data.draw(st.integers(first, count))
    covered = [
        rank
        for level, node in cover(first, last, levels)
        if node is not None
        for rank in range(node << level, min(node + 1 << level, count))
    ]
    assert sorted(covered) == list(range(first, last))


SPANS = st.tuples(st.integers(0, 40), st.integers(0, 10)).map(lambda p: (p[0], p[0] + p[1]))


@given(st.lists(SPANS, max_size=8), st.integers(0, 3))
def test_spans_that_meet_count_once_and_dummies_fill_up(
    spans: list[tuple[int, int]], spare: int
) -> None:
    keys = _merged([(span, 7) for span in spans], len(spans) + spare)
    assert len(keys.spans) == len(keys.fingerprints) == len(spans) + spare
    counted = [p for span in keys.spans if span for p in range(span[0], span[1] + 1)]
    wanted = {point for low, high in spans for point in range(low, high + 1)}
    assert sorted(counted) == sorted(wanted)


@given(st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=9))
def test_a_key_is_asked_once(points: list[int | None]) -> None:
    keys = _once(points, points)
    assert len(keys.points) == len(points)
    distinct = [point for point in keys.points if point is not None]
    assert sorted(distinct) == sorted({point for point in points if point is not None})
