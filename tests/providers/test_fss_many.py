"""Shares for any number of providers, as Python sees them: records by one key, sums by intervals.

The constructions themselves (all ends of small domains, coalitions, hostile bytes) are tested in
Rust; here, that tables go in as they lie in memory and come out as plain Python computes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver._rust import VerifyError, fss, server
from louver.trusted.vault.schemes import fss as schemes
from louver.untrusted.providers import native
from louver.wire import reply_sizes
from tests.generated import cases


@pytest.fixture(scope="module")
def modulus() -> fss.PaillierModulus:
    return fss.PaillierModulus()


def table(rows: list[tuple[int, int, int, int]]) -> tuple[Any, ...]:
    """Points, starts, groups and values of rows of key, group and two values."""
    rows = sorted(rows)
    points, counts = np.unique(np.array([r[0] for r in rows], np.uint64), return_counts=True)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    groups = np.array([r[1] for r in rows], np.uint32)
    return points, starts, groups, np.array([r[2:] for r in rows], np.int64).reshape(-1)


LONG = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1, 0]))


@settings(
    max_examples=cases(4),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.data(), st.integers(2, 4), st.integers(1, 10))
def test_sums_of_intervals(
    modulus: fss.PaillierModulus, data: st.DataObject, parties: int, bits: int
) -> None:
    most = (1 << bits) - 1
    key = st.integers(0, most)
    row = st.tuples(key, st.integers(0, 10), LONG, LONG)
    rows = data.draw(st.lists(row, min_size=1, max_size=20))
    low, high = sorted(data.draw(st.tuples(key, key)))
    expected = [0] * 22
    for point, group, *values in rows:
        for column, value in enumerate(values):
            expected[2 * group + column] += value * (low <= point <= high)
    columns: tuple[Any, ...] = (*table(rows), 2, 11)
    sums = fss.PaillierSum(bits, low, high, parties, modulus)
    replies = [server.paillier_sum(share, *columns) for share in sums.shares()]
    assert {len(reply) for reply in replies} == {reply_sizes.paillier_sums(22)}
    assert sums.open(replies) == expected
    nothing = fss.PaillierSum(bits, None, None, parties, modulus)
    assert [len(s) for s in nothing.shares()] == [len(s) for s in sums.shares()]
    replies = [server.paillier_sum(share, *columns) for share in nothing.shares()]
    assert nothing.open(replies) == [0] * 22


def test_parts_and_the_process_s_own_modulus() -> None:
    points = np.arange(0, 4096, 3, dtype=np.uint64)
    sums = schemes.PaillierSum(12, 5, 4000, 3)
    replies = []
    for share in sums.shares():
        parts = [
            native.paillier_columns([share], part, None, None, None, 1, 1)[0]
            for part in np.array_split(points, 4)
        ]
        replies.append(native.paillier_join(share, parts))
    assert sums.open(replies) == [int(((points >= 5) & (points <= 4000)).sum())]
    replies[1] = replies[0]
    with pytest.raises(errors.Error) as caught:
        sums.open(replies)
    assert caught.value.code == "provider.lied"
    assert schemes.PaillierSum(12, None, None, 3).open([b"", b"", b""]) == []


def test_what_is_refused(modulus: fss.PaillierModulus) -> None:
    for bits, low, high, parties in ((0, 0, 0, 3), (33, 0, 0, 3), (4, 1, 0, 3), (4, 0, 16, 3)):
        with pytest.raises(ValueError):
            fss.PaillierSum(bits, low, high, parties, modulus)
    with pytest.raises(ValueError):
        fss.PaillierSum(4, 1, None, 3, modulus)
    share = fss.PaillierSum(4, 1, 2, 3, modulus).shares()[0]
    point = np.array([16], np.uint64)
    for bad in (share, share[:-1], share + b"\0", b"", b"\2" + share[1:]):
        with pytest.raises(ValueError):
            server.paillier_sum(bad, point, None, None, None, 1, 1)
    with pytest.raises(TypeError):
        modulus.__reduce__()
    assert "redacted" in repr(fss.PaillierSum(4, 1, 2, 3, modulus))
    assert server.share_header(share)["scheme"] == "paillier"


@pytest.mark.parametrize("parties", [2, 3, 4, 5])
def test_records_by_one_key(parties: int) -> None:
    width, bits = 48, 11
    points = np.arange(1, 2048, 7, dtype=np.uint64)
    records = np.random.default_rng(parties).integers(0, 256, (len(points), width), np.uint8)
    records[:, 0] |= 1
    tags = native.record_tags(2, records, width)
    for at in (0, 1, 8, 2046, 2047):
        point = fss.Point(bits, at, parties, "owf")
        replies = [
            native.select([share], points, len(points), records, width, tags)[0]
            for share in point.shares()
        ]
        here = np.flatnonzero(points == at)
        assert point.open(replies, 2) == (records[here[0]].tobytes() if len(here) else None)
        for reply in lies(replies):
            with pytest.raises(VerifyError):
                point.open(reply, 2)


def lies(replies: list[bytes]) -> Iterator[list[bytes]]:
    for position in (0, len(replies[0]) - 1):
        changed = bytearray(replies[1])
        changed[position] ^= 1
        yield [replies[0], bytes(changed), *replies[2:]]
