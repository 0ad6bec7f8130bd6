"""Two-party shares: Rust against plain Python, both ways, and answers that are lies."""

from __future__ import annotations

import random
import secrets

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver._rust import server
from louver.trusted.vault.schemes import fss
from tests.generated import cases
from tests.providers import fss_reference as reference

WHOLE = 1 << 128


def select(share: bytes, records: list[bytes]) -> bytes:
    """A provider's answer to a point, from the page: the record, and the MAC's share."""
    width = len(records[0])
    record, mac = 0, 0
    for x, content in enumerate(records):
        bit, value = reference.value(share, x)
        record ^= int.from_bytes(content, "little") * bit
        mac ^= reference.dot(value, reference.tag(2, content))
    return record.to_bytes(width, "little") + mac.to_bytes(16, "little")


def add(share: bytes, points: list[int], numbers: list[int]) -> bytes:
    """A provider's answer to a sum, from the page."""
    products = (reference.value(share, x)[1] * n for x, n in zip(points, numbers, strict=True))
    return (sum(products) % WHOLE).to_bytes(16, "little")


def test_the_vectors_are_what_the_page_gives() -> None:
    assert reference.VECTORS.read_text(encoding="utf-8") == reference.text()


@pytest.mark.parametrize("at", [0, 3, 6, 7])
def test_a_record_is_found_by_plain_providers(at: int) -> None:
    records = [bytes([x + 1]) * 32 for x in range(7)]
    function = fss.Point(3, at)
    replies = [select(share, records) for share in function.shares()]
    assert function.open(replies, 2) == (records[at] if at < len(records) else None)
    tags = b"".join(reference.tag(2, row).to_bytes(16, "little") for row in records)
    for share, reply in zip(function.shares(), replies, strict=True):
        joined = b"".join(records)
        assert server.fss_select([share], None, len(records), joined, 32, tags) == [reply]


@settings(max_examples=cases(25), deadline=None)
@given(st.integers(1, 64), st.data())
def test_an_interval_is_summed_by_plain_providers(bits: int, data: st.DataObject) -> None:
    most = (1 << bits) - 1
    low, high = sorted(data.draw(st.tuples(st.integers(0, most), st.integers(0, most))))
    points = sorted({0, most, low, high, max(low - 1, 0), min(high + 1, most)})
    numbers = [random.Random(x).randrange(-(1 << 59), 1 << 59) for x in points]
    function = fss.Sum(bits, low, high)
    wanted = sum(n for x, n in zip(points, numbers, strict=True) if low <= x <= high)
    assert function.open([add(share, points, numbers) for share in function.shares()]) == [wanted]
    dummy = fss.Sum(bits, None, None)
    assert [len(share) for share in dummy.shares()] == [len(share) for share in function.shares()]
    assert dummy.open([add(share, points, numbers) for share in dummy.shares()]) == [0]


def test_points_and_ends_with_sums() -> None:
    points, numbers = [1, 5, 9, 15], [7, -8, 9, -10]
    for at, wanted in [(5, -8), (6, 0), (None, 0)]:
        function = fss.PointSum(4, at)
        assert function.open([add(share, points, numbers) for share in function.shares()]) == [
            wanted
        ]
    for end, wanted in [(0, 0), (1, 0), (6, -1), (16, -2)]:
        below = fss.Below(4, end)
        assert below.open([add(share, points, numbers) for share in below.shares()]) == [wanted]


def test_a_lie_is_an_error_that_tells_nothing() -> None:
    records = [bytes([x + 1]) * 16 for x in range(4)]
    function = fss.Point(2, 1)
    honest = [select(share, records) for share in function.shares()]
    lies = [bytes(32), secrets.token_bytes(32), honest[0][:-1], b""]
    for lie in lies:
        with pytest.raises(errors.Error) as caught:
            function.open([lie, honest[1]], 2)
        assert caught.value.code == "provider.lied"
    total = fss.Sum(8, 1, 200)
    answers = [add(share, [3, 4], [5, 6]) for share in total.shares()]
    for lie in (bytes(16), secrets.token_bytes(16), answers[0][:-1], b""):
        with pytest.raises(errors.Error) as caught:
            total.open([lie, answers[1]])
        assert caught.value.code == "provider.lied"


def test_what_cannot_be_asked() -> None:
    for bits, at in [(0, 0), (65, 0), (8, 256)]:
        with pytest.raises(ValueError):
            fss.Point(bits, at)
    for low, high in [(5, 4), (0, 256), (None, 4)]:
        with pytest.raises(ValueError):
            fss.Sum(8, low, high)
    with pytest.raises(ValueError):
        fss.Below(8, 257)
    assert "redacted" in repr(fss.Point(8, 77)._secret)


def test_damaged_shares_are_refused() -> None:
    share = fss.Point(16, 77).shares()[0]
    rng = random.Random(3)
    damaged = [b"", share[:-1], share + b"\0", bytes([2]) + share[1:]]
    damaged += [rng.randbytes(len(share)) for _ in range(50)]
    for bad in damaged:
        with pytest.raises(ValueError):
            server.fss_select([bad], None, 1, bytes([1] * 16), 16, bytes(16))
