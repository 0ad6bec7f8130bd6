"""What one provider sees of two secrets cannot be told apart (Must hold: private)."""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.providers import leaky
from tests.providers.distinguish import findings

VIEWS = 2_000
"""Of each secret: differences above 11 to 13 % are found for sure."""

Shares = list[bytes]


def views(make: Callable[[], Shares], count: int = VIEWS) -> list[Shares]:
    """What each provider sees, one list of views for each."""
    drawn = [make() for _ in range(count)]
    return [list(one) for one in zip(*drawn, strict=True)]


def told(
    first: Callable[[], Shares], second: Callable[[], Shares], count: int = VIEWS
) -> list[str]:
    """What tells two secrets apart, at any single provider."""
    pairs = zip(views(first, count), views(second, count), strict=True)
    return [f"provider {party}: {f}" for party, (a, b) in enumerate(pairs) for f in findings(a, b)]


class TestTheTests:
    """They pass where nothing leaks and fail where something does."""

    def test_noise_is_noise(self):
        assert not told(lambda: [os.urandom(60)], lambda: [os.urandom(60)])

    def test_a_point_function_that_is_right_passes(self):
        assert not told(lambda: leaky.shares(8, 0b1011_0100), lambda: leaky.shares(8, 0b0100_1011))

    def test_a_bit_in_the_header_is_found(self):
        found = told(lambda: leaky.shares(4, 3, shown=True), lambda: leaky.shares(4, 4, shown=True))
        assert any("bit 0 of byte 2" in one for one in found)

    def test_a_control_bit_that_was_not_cleared_is_found_by_pairs_of_bits(self):
        found = told(
            lambda: leaky.shares(8, 0, clear=False), lambda: leaky.shares(8, 255, clear=False)
        )
        assert any("parity of bits" in one for one in found)
        assert any("provider 0" in one for one in found)
        assert any("provider 1" in one for one in found)

    def test_a_length_is_found(self):
        assert told(lambda: [b"x"], lambda: [b"xx"])

    def test_a_weak_leak_spread_over_many_bits_is_found_by_the_classifier(self):
        """Each bit leans by 4 %, less than any bound on single bits."""

        def leaning(toward: int) -> Shares:
            bits = [(byte & 0xFF) < 128 + toward * 5 for byte in os.urandom(320)]
            packed = [
                sum(bit << place for place, bit in enumerate(bits[at : at + 8]))
                for at in range(0, 320, 8)
            ]
            return [bytes(packed)]

        found = told(lambda: leaning(1), lambda: leaning(-1))
        assert [one for one in found if "classifier" in one]
