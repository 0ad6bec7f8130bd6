"""BLAKE3 with a key, in plain Python: what the tests check tags by."""

from __future__ import annotations

import struct

IV = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)  # fmt: skip
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
MASK = 0xFFFFFFFF
CHUNK, BLOCK = 1024, 64
CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED = 1, 2, 4, 8, 16
Words = tuple[int, ...]


def _rotated(value: int, by: int) -> int:
    return (value >> by | value << (32 - by)) & MASK


def _mix(state: list[int], at: tuple[int, int, int, int], x: int, y: int) -> None:
    a, b, c, d = at
    for word, first, second in ((x, 16, 12), (y, 8, 7)):
        state[a] = (state[a] + state[b] + word) & MASK
        state[d] = _rotated(state[d] ^ state[a], first)
        state[c] = (state[c] + state[d]) & MASK
        state[b] = _rotated(state[b] ^ state[c], second)


def _compress(chain: Words, block: bytes, counter: int, flags: int) -> Words:
    words = list(struct.unpack("<16I", block.ljust(BLOCK, b"\0")))
    state = [*chain, *IV[:4], counter & MASK, counter >> 32, len(block), flags]
    for _ in range(7):
        for i in range(4):
            _mix(state, (i, i + 4, i + 8, i + 12), words[2 * i], words[2 * i + 1])
        for i in range(4):
            at = (i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
            _mix(state, at, words[8 + 2 * i], words[9 + 2 * i])
        words = [words[i] for i in ORDER]
    return tuple(state[i] ^ state[i + 8] for i in range(8))


def _chunk(key: Words, data: bytes, counter: int, root: int) -> Words:
    blocks = [data[i : i + BLOCK] for i in range(0, len(data), BLOCK)] or [b""]
    chain = key
    for index, block in enumerate(blocks):
        flags = KEYED | (CHUNK_START if index == 0 else 0)
        if index == len(blocks) - 1:
            flags |= CHUNK_END | root
        chain = _compress(chain, block, counter, flags)
    return chain


def _tree(key: Words, data: bytes, counter: int, root: int) -> Words:
    if len(data) <= CHUNK:
        return _chunk(key, data, counter, root)
    chunks = 1 << ((len(data) - 1) // CHUNK).bit_length() - 1
    left = _tree(key, data[: chunks * CHUNK], counter, 0)
    right = _tree(key, data[chunks * CHUNK :], counter + chunks, 0)
    return _compress(key, struct.pack("<16I", *left, *right), 0, KEYED | PARENT | root)


def keyed_blake3(key: bytes, data: bytes) -> bytes:
    """The 32 bytes of BLAKE3 under a key of 32 bytes."""
    return struct.pack("<8I", *_tree(struct.unpack("<8I", key), data, 0, ROOT))
