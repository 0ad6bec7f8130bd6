"""A small point function of Boyle, Gilboa and Ishai (2016) that can be told to leak.

It is slow and only for tests of the tests: `clear=False` is the classic mistake, to form
correction words from seeds whose control bit was not cleared. Answers stay right with it.
"""

from __future__ import annotations

import hashlib
import secrets

SEED_BYTES = 16


def shares(bits: int, at: int, *, clear: bool = True, shown: bool = False) -> list[bytes]:
    """The two shares of [x = at]; `shown` also puts the secret's lowest bit into the header."""
    seeds = [secrets.token_bytes(SEED_BYTES) for _ in range(2)]
    first, controls, words = tuple(seeds), [0, 1], b""
    for level in reversed(range(bits)):
        keep = at >> level & 1
        grown = [_grow(seed, clear=clear) for seed in seeds]
        lost = _xor(grown[0][1 - keep][0], grown[1][1 - keep][0])
        turns = [grown[0][side][1] ^ grown[1][side][1] ^ (keep == side) for side in range(2)]
        words += lost + bytes([turns[0] | turns[1] << 1])
        for party in range(2):
            seed, control = grown[party][keep]
            if controls[party]:
                seed, control = _xor(seed, lost), control ^ turns[keep]
            seeds[party], controls[party] = seed, int(control)
    head = bytes([1, bits, at & 1 if shown else 0])
    return [head + seed + words for seed in first]


def _grow(seed: bytes, *, clear: bool) -> list[tuple[bytes, int]]:
    """Two children: a seed and its control bit, the seed's lowest."""
    shares = []
    for side in (b"left", b"right"):
        child = bytearray(hashlib.blake2b(seed, digest_size=SEED_BYTES, person=side).digest())
        control = child[0] & 1
        if clear:
            child[0] &= 0xFE
        shares.append((bytes(child), control))
    return shares


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))
