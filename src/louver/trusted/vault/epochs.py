"""Epochs of row ids: a writer first claims an epoch and draws 128 random bits for it.

A row id is `epoch << 36 | counter`. The bits enter every key and all associated data that depend on
a row, so rows with the same id in two histories of a database share no pad.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from louver.trusted.vault import native

COUNTER_BITS = 36
LIMIT = 1 << (63 - COUNTER_BITS)
_BITS = re.compile(r"[0-9a-f]{32}")


def number_of(row_id: int) -> int:
    """The number of a row's epoch."""
    return row_id >> COUNTER_BITS


def draw() -> str:
    """128 fresh random bits, in hexadecimal digits."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Epochs:
    """The epochs known in one history of a database; part of its catalog."""

    #: the random bits of every epoch that has written a row, by its number
    bits: Mapping[int, str] = field(default_factory=dict)
    #: other epochs below this number were claimed by an earlier release and have no bits
    legacy_below: int = 0

    @staticmethod
    def legacy() -> Epochs:
        """The epochs of a database that only earlier releases have written to."""
        return Epochs(legacy_below=LIMIT)

    @property
    def is_legacy(self) -> bool:
        """Whether only earlier releases have written so far."""
        return self.legacy_below == LIMIT

    @property
    def highest(self) -> int:
        """The greatest known epoch number."""
        before = 0 if self.is_legacy else self.legacy_below - 1
        return max(*self.bits, before, 0) if self.bits else max(before, 0)

    def knows(self, number: object) -> bool:
        """Whether rows of this epoch can be decrypted."""
        return isinstance(number, int) and (0 <= number < self.legacy_below or number in self.bits)

    def adding(self, number: int, bits: str) -> Epochs:
        """These epochs and one more. The first epoch with bits ends those of earlier releases."""
        if self.bits.get(number) == bits:
            return self
        if number in self.bits:
            raise ValueError("an epoch has its bits for ever")
        below = number if self.is_legacy else self.legacy_below
        return Epochs({**self.bits, number: bits}, below)

    @cached_property
    def handle(self) -> Any:
        """The epochs for the compiled module, which derives keys from them."""
        known = [(number, bytes.fromhex(bits)) for number, bits in self.bits.items()]
        return native.module().Epochs(self.legacy_below, known)

    def to_json(self) -> dict[str, Any]:
        """The form stored in the catalog."""
        bits = {str(number): bits for number, bits in self.bits.items()}
        return {"legacy_below": self.legacy_below, "bits": bits}

    @staticmethod
    def from_json(body: dict[str, Any] | None) -> Epochs:
        """The epochs of `to_json`; ValueError for anything else. None means an earlier release."""
        if body is None:
            return Epochs.legacy()
        below = body.pop("legacy_below")
        bits = {int(number): text for number, text in body.pop("bits").items()}
        fits = type(below) is int and 0 <= below <= LIMIT
        fits = fits and all(0 <= number < LIMIT for number in bits)
        if body or not fits or not all(_BITS.fullmatch(text) for text in bits.values()):
            raise ValueError("these are not epochs")
        return Epochs(bits, below)
