"""What one provider sees of two secrets cannot be told apart (Must hold: private)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from louver._rust import fss
from tests.providers import leaky
from tests.providers.distinguish import findings

VIEWS = 1_200
"""Of each secret: a question whose yes differs by 20 % or more is found."""

Shares = list[bytes]


def views(make: Callable[[], Shares], count: int = VIEWS) -> list[Shares]:
    """What each provider sees, one list of views for each."""
    drawn = [make() for _ in range(count)]
    return [list(share) for share in zip(*drawn, strict=True)]


def views_apart(
    first: Callable[[], Shares], second: Callable[[], Shares], count: int = VIEWS
) -> list[str]:
    """What tells two secrets apart, at any single provider."""
    pairs = zip(views(first, count), views(second, count), strict=True)
    return [f"provider {party}: {f}" for party, (a, b) in enumerate(pairs) for f in findings(a, b)]


@dataclass(frozen=True)
class Case:
    """Two secrets that a provider must not tell apart, and how shares of them are made."""

    name: str
    first: Callable[[], Shares]
    second: Callable[[], Shares]
    parties: int = 2


def point(bits: int, at: int | None, parties: int = 2) -> Callable[[], Shares]:
    """Shares of one point: what select, nodes, dyadic and buckets send."""
    scheme = "tree" if parties == 2 else "owf"
    return lambda: fss.Point(bits, at, parties, scheme).shares()


def joined(*makers: Callable[[], Shares]) -> Callable[[], Shares]:
    """Several functions in one message: each provider's shares of all of them in a row."""
    return lambda: [b"".join(parts) for parts in zip(*(make() for make in makers), strict=True)]


CASES = [
    Case("point, 1 bit", point(1, 0), point(1, 1)),
    Case("point, ends of 8 bits", point(8, 0), point(8, 255)),
    Case("point, one bit apart in 20 bits", point(20, 0x5A5A5), point(20, 0x5A5A4)),
    Case("point, top bit of 64 bits", point(64, 0), point(64, 1 << 63)),
    Case("point, a dummy", point(10, None), point(10, 77)),
    Case(
        "interval, narrow and wide",
        lambda: fss.Sum(10, 500, 501).shares(),
        lambda: fss.Sum(10, 0, 1023).shares(),
    ),
    Case(
        "interval, its two ends",
        lambda: fss.Sum(10, 0, 100).shares(),
        lambda: fss.Sum(10, 923, 1023).shares(),
    ),
    Case(
        "interval, a dummy",
        lambda: fss.Sum(8, None, None).shares(),
        lambda: fss.Sum(8, 17, 170).shares(),
    ),
    Case(
        "search step, left and right",
        lambda: fss.PointSum(12, 0b0000_1111_0000).shares(),
        lambda: fss.PointSum(12, 0b1111_1111_0000).shares(),
    ),
    Case(
        "search step, a dummy",
        lambda: fss.PointSum(12, None).shares(),
        lambda: fss.PointSum(12, 0xABC).shares(),
    ),
    Case(
        "keys below an end",
        lambda: fss.Below(10, 1).shares(),
        lambda: fss.Below(10, 1 << 10).shares(),
    ),
    Case(
        "two clauses that are the same, of which one is a dummy, and two that are not",
        joined(point(6, 9), point(6, None)),
        joined(point(6, 9), point(6, 54)),
    ),
    Case("three providers, ends of 6 bits", point(6, 0, 3), point(6, 63, 3), 3),
    Case("three providers, a dummy", point(4, None, 3), point(4, 5, 3), 3),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_provider_cannot_tell_two_secrets_apart(case: Case):
    assert len(case.first()) == case.parties
    assert not views_apart(case.first, case.second)


@pytest.mark.parametrize("bits", [1, 2, 7, 8, 9, 24, 33, 63, 64])
def test_shares_have_one_length_for_a_width(bits: int):
    last = (1 << bits) - 1
    points = [*point(bits, 0)(), *point(bits, last)(), *point(bits, None)()]
    spans = [fss.Sum(bits, *span).shares() for span in ((0, 0), (0, last), (last, last))]
    spans.append(fss.Sum(bits, None, None).shares())
    sums = [fss.PointSum(bits, at).shares() for at in (0, last, None)]
    assert len(set(map(len, points))) == 1
    for several in (spans, sums):
        assert len({len(share) for shares in several for share in shares}) == 1


@pytest.mark.parametrize("parties", [3, 4])
def test_shares_for_several_providers_have_one_length(parties: int):
    several = [point(7, at, parties)() for at in (0, 127, None)]
    assert {len(shares) for shares in several} == {parties}
    assert len({len(share) for shares in several for share in shares}) == 1


class TestTheTests:
    """They pass where nothing leaks and fail where something does."""

    def test_noise_is_noise(self):
        assert not views_apart(lambda: [os.urandom(60)], lambda: [os.urandom(60)])

    def test_a_point_function_that_is_right_passes(self):
        assert not views_apart(
            lambda: leaky.shares(8, 0b1011_0100), lambda: leaky.shares(8, 0b0100_1011)
        )

    def test_a_bit_in_the_header_is_found(self):
        suspicions = views_apart(
            lambda: leaky.shares(4, 3, shown=True), lambda: leaky.shares(4, 4, shown=True)
        )
        assert any("bit 0 of byte 2" in suspicion for suspicion in suspicions)

    def test_a_control_bit_that_was_not_cleared_is_found_by_pairs_of_bits(self):
        suspicions = views_apart(
            lambda: leaky.shares(8, 0, clear=False), lambda: leaky.shares(8, 255, clear=False)
        )
        assert any("parity of bits" in suspicion for suspicion in suspicions)
        assert any("provider 0" in suspicion for suspicion in suspicions)
        assert any("provider 1" in suspicion for suspicion in suspicions)

    def test_a_length_is_found(self):
        assert views_apart(lambda: [b"x"], lambda: [b"xx"])

    def test_a_weak_leak_spread_over_many_bits_is_found_by_the_classifier(self):
        """Each bit leans by 4 %, less than any bound on single bits."""

        def leaning(toward: int) -> Shares:
            bits = [(byte & 0xFF) < 128 + toward * 5 for byte in os.urandom(320)]
            packed = [
                sum(bit << index for index, bit in enumerate(bits[at : at + 8]))
                for at in range(0, 320, 8)
            ]
            return [bytes(packed)]

        suspicions = views_apart(lambda: leaning(1), lambda: leaning(-1))
        assert [suspicion for suspicion in suspicions if "classifier" in suspicion]
