"""Leaks: to one provider the public shape of a question, the number and the length of its shares.
Answers: equality with secret values; one interval between secret ends.
Stored as: nothing; a share of a point function or of an interval for each provider.
Spec: spec/fss.md.
Broken by: providers that put their shares together: two for trees, all of them for the others.

The data is public, the question is private (Splinter): every provider is sent one share, none of
which tells more than its length, and what all of them answer is joined here and checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from louver import errors
from louver._rust import VerifyError
from louver._rust import fss as _native

#: What an answer to a point has besides its record.
TAG_BYTES = 16


class _Sums(Protocol):
    def shares(self) -> list[bytes]: ...
    def open(self, replies: list[bytes]) -> list[int]: ...


class Point:
    """One point function over `bits` bits (1 to 64): which record is wanted.

    `at` None is a dummy: it looks like any other, and its answer is to be thrown away. The scheme
    is "tree" for two parties, "owf" for any number of them (at most 24 bits); None takes the first
    where it can be.
    """

    def __init__(
        self, bits: int, at: int | None, parties: int = 2, scheme: str | None = None
    ) -> None:
        chosen = scheme or ("tree" if parties == 2 else "owf")
        self._secret = _native.Point(bits, at, parties, chosen)

    def shares(self) -> list[bytes]:
        """One share for each provider."""
        return self._secret.shares()

    def open(self, replies: list[bytes], level: int) -> bytes | None:
        """The record that the answers join to, None where the table has none.

        Raises `provider.lied` where they do not verify (Splinter, section 4, extended by a MAC).
        """
        try:
            return self._secret.open(replies, level)
        except (VerifyError, ValueError):
            raise errors.make("provider.lied") from None


class _Additive:
    """Shares whose answers are sums."""

    def __init__(self, secret: _Sums) -> None:
        self._secret = secret

    def shares(self) -> list[bytes]:
        """One share for each provider."""
        return self._secret.shares()

    def open(self, replies: list[bytes]) -> list[int]:
        """The sums that the answers join to, each above -2^63 and below 2^63.

        Raises `provider.lied` where they do not verify; one lie in 2^62 is missed.
        """
        try:
            return self._secret.open(replies)
        except (VerifyError, ValueError):
            raise errors.make("provider.lied") from None


class Sum(_Additive):
    """An interval over `bits` bits, both ends included. None and None: a dummy, with sums of 0."""

    def __init__(self, bits: int, low: int | None, high: int | None) -> None:
        super().__init__(_native.Sum(bits, low, high))


class PaillierSum(_Additive):
    """As `Sum`, for any number of parties and at most 32 bits (spec/fss-many.md, "paillier").

    Sums are at least -2^95 and below 2^95; one lie in 2^100 is missed. The last party's share is
    longer than the others'. The first one of a process takes a second more: it makes the modulus.
    """

    def __init__(self, bits: int, low: int | None, high: int | None, parties: int) -> None:
        super().__init__(_native.PaillierSum(bits, low, high, parties))

    def open(self, replies: list[bytes]) -> list[int]:
        """As of the others; where a table has no groups, there are no sums."""
        return super().open(replies) if any(replies) else []


class PointSum(_Additive):
    """A point function over `bits` bits whose answers are sums. None: a dummy, with sums of 0."""

    def __init__(self, bits: int, at: int | None) -> None:
        super().__init__(_native.PointSum(bits, at))


class Below(_Additive):
    """The points of `bits` bits below an end, which is at most 2^bits."""

    def __init__(self, bits: int, end: int) -> None:
        super().__init__(_native.Below(bits, end))


class Sample:
    """Point functions of one payload, each over its own number of bits, that gather rows in tables
    of slots (Splinter, appendix A). A place of None gathers nothing.
    """

    def __init__(self, bits: Sequence[int], places: Sequence[int | None]) -> None:
        self._secret = _native.Sample(list(zip(bits, places, strict=True)))

    def functions(self) -> list[SharesOfOne]:
        """The functions one by one, with a share for each provider."""
        return [SharesOfOne(shares) for shares in self._secret.shares()]

    def open(
        self, replies: list[bytes], width: int, slots: int, seeds: Sequence[int]
    ) -> list[bytes] | None:
        """All records that were gathered, verified; None where some hide behind each other.

        Raises `provider.lied` where they do not verify.
        """
        try:
            return self._secret.open(replies, width, slots, list(seeds))
        except (VerifyError, ValueError):
            raise errors.make("provider.lied") from None


class SharesOfOne:
    """One function of a `Sample`."""

    def __init__(self, shares: list[bytes]) -> None:
        self._shares = shares

    def shares(self) -> list[bytes]:
        """One share for each provider."""
        return self._shares

    def __repr__(self) -> str:
        return "SharesOfOne(redacted)"
