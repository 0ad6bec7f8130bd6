"""Private questions as shares, and their answers (`spec/fss.md`)."""

from typing import final

@final
class Point:
    """One point function; VerifyError where the joined answers are a lie."""

    def __new__(
        cls, bits: int, at: int | None, parties: int = 2, scheme: str = "tree"
    ) -> Point: ...
    def shares(self) -> list[bytes]: ...
    def open(self, replies: list[bytes], level: int) -> bytes | None: ...

@final
class Sum:
    """One interval, both ends included; None, None adds nothing."""

    def __new__(cls, bits: int, low: int | None, high: int | None) -> Sum: ...
    def shares(self) -> list[bytes]: ...
    def open(self, replies: list[bytes]) -> list[int]: ...

@final
class PointSum:
    """One point function with sums as answers; None adds nothing."""

    def __new__(cls, bits: int, at: int | None) -> PointSum: ...
    def shares(self) -> list[bytes]: ...
    def open(self, replies: list[bytes]) -> list[int]: ...

@final
class PaillierModulus:
    """A modulus and its factors, made afresh in about a second (`spec/fss-many.md`)."""

    def __new__(cls) -> PaillierModulus: ...

@final
class PaillierSum:
    """One interval for any number of parties; None, None adds nothing.

    Without a modulus, one of this process's own. VerifyError where the answers are a lie.
    """

    def __new__(
        cls,
        bits: int,
        low: int | None,
        high: int | None,
        parties: int,
        modulus: PaillierModulus | None = None,
    ) -> PaillierSum: ...
    def shares(self) -> list[bytes]: ...
    def open(self, replies: list[bytes]) -> list[int]: ...

@final
class Sample:
    """Point functions of one payload, of (bits, place or None), that gather rows."""

    def __new__(cls, functions: list[tuple[int, int | None]]) -> Sample: ...
    def shares(self) -> list[list[bytes]]: ...
    def open(
        self, replies: list[bytes], width: int, slots: int, seeds: list[int]
    ) -> list[bytes] | None: ...

@final
class Below:
    """Points below an end, at most two to the power of bits, with sums as answers."""

    def __new__(cls, bits: int, end: int) -> Below: ...
    def shares(self) -> list[bytes]: ...
    def open(self, replies: list[bytes]) -> list[int]: ...
