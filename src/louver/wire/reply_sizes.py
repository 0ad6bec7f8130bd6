"""Sizes of the parts of a `Reply`, computed from public values.

A reply is the concatenation of its parts, in the order of the shares, without counts or lengths.
See spec/splinter.md, "Protocols".
"""

from __future__ import annotations

from collections.abc import Sequence

from louver.wire.binary import malformed
from louver.wire.questions import Level, Prepared

#: Bytes of a tag, of a sum and of a count.
BLOCK = 16
#: For a modulus of 2,048 bits (spec/fss-many.md, "paillier").
_CIPHERTEXT_BYTES = 512
_SUMS_OF_CIPHERTEXT = 19
_HEAD_BYTES = 5


def record(level: Level) -> int:
    """A record's share, then the tag's."""
    return level.width + BLOCK


def sums(prepared: Prepared) -> int:
    """A number for each group and column."""
    return prepared.group_count * len(prepared.sums) * BLOCK


def paillier(prepared: Prepared) -> int:
    """The same as ciphertexts; empty if nothing is summed."""
    count = prepared.group_count * len(prepared.sums)
    return paillier_sums(count) if count else 0


def paillier_sums(count: int) -> int:
    """This many sums as ciphertexts."""
    return _HEAD_BYTES + -(-count // _SUMS_OF_CIPHERTEXT) * _CIPHERTEXT_BYTES


def gathered(level: Level, slots: int, seeds: int) -> int:
    """Rows of a search in tables of slots, one table for each seed."""
    return (level.width + 2 * BLOCK) * slots * seeds


def cut(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Split a reply into its parts.

    Raises:
        errors.Error: `wire.format`, if its length is not their sum.
    """
    if len(data) != sum(sizes):
        raise malformed("a reply of another length")
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return parts
