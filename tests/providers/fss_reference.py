"""Shares of `spec/fss.md` in plain Python, slow and from the page alone.

Run as a program it writes spec/vectors/fss.json.
"""

from __future__ import annotations

import json
import random
import struct
from functools import cache
from pathlib import Path

from tests.lake.eds_blake3 import IV, MASK, Words, _compress

VECTORS = Path(__file__).resolve().parents[2] / "spec/vectors/fss.json"
POINT, LESS, INTERVAL = 1, 2, 3
TAG, WIDE = 1, 2
_WHOLE = 1 << 128
_CHUNK_START, _CHUNK_END, _ROOT, _CONTEXT, _MATERIAL = 1, 2, 8, 32, 64


def _blake3(data: bytes, chain: Words = IV, flags: int = 0) -> bytes:
    """BLAKE3 of at most one chunk."""
    blocks = [data[i : i + 64] for i in range(0, len(data), 64)] or [b""]
    for index, block in enumerate(blocks):
        more = flags | (_CHUNK_START if index == 0 else 0)
        if index == len(blocks) - 1:
            more |= _CHUNK_END | _ROOT
        chain = tuple(word & MASK for word in _compress(chain, block, 0, more))
    return struct.pack("<8I", *chain)


def tag(level: int, record: bytes) -> int:
    """The tag of a record of a level."""
    key = struct.unpack("<8I", _blake3(b"louver 2026-11 fss record tag v1", flags=_CONTEXT))
    digest = _blake3(struct.pack("<I", level) + record, key, _MATERIAL)
    return int.from_bytes(digest[:16], "little")


def dot(a: int, b: int) -> int:
    """The product of POLYVAL's field."""
    product = 0
    for bit in range(128):
        product ^= a if b >> bit & 1 else 0
        product = (product ^ (1 << 128 | 1 << 127 | 1 << 126 | 1 << 121 | 1) * (product & 1)) >> 1
    return product


@cache
def key(name: str) -> bytes:
    """A public key of the generator."""
    return _blake3(f"louver fss generator v1: {name}".encode())[:16]


def _double(byte: int) -> int:
    return (byte << 1 ^ (0x11B if byte & 0x80 else 0)) & 0xFF


@cache
def _sbox() -> list[int]:
    powers = [1]
    for _ in range(254):
        powers.append(powers[-1] ^ _double(powers[-1]))
    box = [0x63] * 256
    for index, power in enumerate(powers):
        inverse = powers[-index % 255]
        turned = inverse
        for by in range(1, 5):
            turned ^= (inverse << by | inverse >> (8 - by)) & 0xFF
        box[power] = turned ^ 0x63
    return box


@cache
def _rounds(secret: bytes) -> list[bytes]:
    words, box, constant = [secret[i : i + 4] for i in range(0, 16, 4)], _sbox(), 1
    for at in range(4, 44):
        word = words[-1]
        if at % 4 == 0:
            word = bytes(box[byte] for byte in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _double(constant)
        words.append(bytes(a ^ b for a, b in zip(words[at - 4], word, strict=True)))
    return [b"".join(words[i : i + 4]) for i in range(0, 44, 4)]


def aes(secret: bytes, block: bytes) -> bytes:
    """AES-128 of one block (FIPS 197)."""
    box, keys = _sbox(), _rounds(secret)
    state = [a ^ b for a, b in zip(block, keys[0], strict=True)]
    for number, round_key in enumerate(keys[1:], 1):
        state = [box[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < 10:
            mixed = []
            for c in range(0, 16, 4):
                a = state[c : c + 4]
                every = a[0] ^ a[1] ^ a[2] ^ a[3]
                mixed += [a[i] ^ every ^ _double(a[i] ^ a[(i + 1) % 4]) for i in range(4)]
            state = mixed
        state = [a ^ b for a, b in zip(state, round_key, strict=True)]
    return bytes(state)


@cache
def grow(name: str, seed: int) -> int:
    """F of a key at a seed."""
    assert seed & 1 == 0
    return int.from_bytes(aes(key(name), seed.to_bytes(16, "little")), "little") ^ seed


SIDES = ("left", "right")
Tree = tuple[int, list[tuple[int, int]]]
"""The root's state, and each level's corrections of the left and of the right child."""


def step(state: int, bit: int, level: tuple[int, int]) -> int:
    """A child's state."""
    return grow(SIDES[bit], state & ~1) ^ (level[bit] if state & 1 else 0)


class Way:
    """Both parties' states on the way to a secret."""

    def __init__(self, rng: random.Random) -> None:
        self.roots = [rng.getrandbits(128) & ~1, rng.getrandbits(128) | 1]
        self.states = list(self.roots)
        self.levels: list[tuple[int, int]] = []

    def down(self, bit: int) -> None:
        """Corrects a level and goes to the secret's next node."""
        left, right = ([grow(side, s & ~1) for s in self.states] for side in SIDES)
        lost = left if bit else right
        seed = (lost[0] ^ lost[1]) & ~1
        level = (
            seed | (left[0] ^ left[1] ^ bit ^ 1) & 1,
            seed | (right[0] ^ right[1] ^ bit) & 1,
        )
        self.states = [step(state, bit, level) for state in self.states]
        self.levels.append(level)

    def correction(self, payload: int) -> int:
        """What makes this node's additive value the payload."""
        first, second = (grow("value 0", s & ~1) for s in self.states)
        rest = payload - first + second
        return (-rest if self.states[1] & 1 else rest) % _WHOLE

    def trees(self) -> list[Tree]:
        """Each party's tree."""
        return [(root, self.levels) for root in self.roots]


def _blocks(values: list[int]) -> bytes:
    return b"".join(value.to_bytes(16, "little") for value in values)


def _header(scheme: int, group: int, bits: int, party: int) -> bytes:
    return bytes([1, scheme, group, bits, party, 2, 0, 0])


def _tree_bytes(tree: Tree) -> bytes:
    root, levels = tree
    rights = sum((right & 1) << i for i, (_, right) in enumerate(levels))
    return _blocks([root & ~1]) + rights.to_bytes(8, "little") + _blocks([a for a, _ in levels])


def _bit(number: int, bits: int, at: int) -> int:
    return number >> (bits - 1 - at) & 1


def point(rng: random.Random, group: int, bits: int, at: int, payload: int) -> list[bytes]:
    """Both shares of a point function."""
    path = Way(rng)
    for i in range(bits):
        path.down(_bit(at, bits, i))
    last = path.correction(payload)
    if group == TAG:
        last = (path.states[0] ^ path.states[1] ^ payload) & ~1
    return [
        _header(POINT, group, bits, party) + _tree_bytes(tree) + _blocks([last])
        for party, tree in enumerate(path.trees())
    ]


def less(rng: random.Random, bits: int, ends: list[tuple[int, int]], constant: int) -> list[bytes]:
    """Both shares of a sum of payloads times [x < end], and a constant."""
    scheme = LESS if len(ends) == 1 else INTERVAL
    shares = [_header(scheme, WIDE, bits, party) for party in range(2)]
    for end, payload in ends:
        path, values = Way(rng), []
        for i in range(bits):
            values.append(path.correction(payload * _bit(end, bits, i)))
            if i + 1 < bits:
                path.down(_bit(end, bits, i))
        for party, tree in enumerate(path.trees()):
            shares[party] += _tree_bytes(tree) + _blocks(values)
    mask = rng.getrandbits(128)
    return [shares[0] + _blocks([mask]), shares[1] + _blocks([(constant - mask) % _WHOLE])]


def _read(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16)]


def _read_tree(share: bytes, body: bytes, levels: int) -> tuple[Tree, bytes]:
    root = _read(body[:16])[0] | share[4]
    rights = int.from_bytes(body[16:24], "little")
    lefts = _read(body[24 : 24 + 16 * levels])
    pairs = [(left, left & ~1 | rights >> i & 1) for i, left in enumerate(lefts)]
    return (root, pairs), body[24 + 16 * levels :]


def value(share: bytes, x: int) -> tuple[int, int]:
    """One share's control bit (0 for comparisons) and value at a point."""
    scheme, group, bits, party = share[1:5]
    sign = -1 if party else 1
    if scheme == POINT:
        (state, levels), body = _read_tree(share, share[8:], bits)
        for i, level in enumerate(levels):
            state = step(state, _bit(x, bits, i), level)
        last = _read(body)[0] if state & 1 else 0
        if group == TAG:
            return state & 1, state & ~1 ^ last
        return state & 1, sign * (grow("value 0", state & ~1) + last) % _WHOLE
    total, body = 0, share[8:]
    for _ in range(scheme - 1):
        (state, levels), body = _read_tree(share, body, bits - 1)
        for i, correction in enumerate(_read(body[: 16 * bits])):
            if not _bit(x, bits, i):
                total += grow("value 0", state & ~1) + (correction if state & 1 else 0)
            if i + 1 < bits:
                state = step(state, _bit(x, bits, i), levels[i])
        body = body[16 * bits :]
    return 0, (sign * total + _read(body)[0]) % _WHOLE


def vectors() -> dict[str, object]:
    """Known answers, the same on every run."""
    rng = random.Random(5)
    names = [*SIDES, *(f"value {i}" for i in range(8))]
    cases = []
    for bits in (1, 2, 7, 24, 63, 64):
        most = (1 << bits) - 1
        at = rng.getrandbits(bits)
        points = sorted({0, most, at, at ^ 1, rng.getrandbits(bits)})
        alpha = rng.getrandbits(128)
        ends = [(at, alpha), (most, (-alpha) % _WHOLE)]
        for shares in (
            point(rng, TAG, bits, at, alpha & ~1),
            point(rng, WIDE, bits, at, alpha),
            less(rng, bits, ends[:1], 3),
            less(rng, bits, ends, 0),
        ):
            for share in shares:
                answers = [value(share, x) for x in points]
                cases.append(
                    {
                        "share": share.hex(),
                        "points": [str(x) for x in points],
                        "bits": [bit for bit, _ in answers],
                        "values": [f"{value:032x}" for _, value in answers],
                    }
                )
    record = bytes(range(100))
    tags = [{"level": n, "record": record.hex(), "tag": f"{tag(n, record):032x}"} for n in (0, 7)]
    a, b = rng.getrandbits(128), rng.getrandbits(128)
    product = {"a": f"{a:032x}", "b": f"{b:032x}", "product": f"{dot(a, b):032x}"}
    keys = {name: key(name).hex() for name in names}
    return {"keys": keys, "cases": cases, "tags": tags, "products": [product]}


def text() -> str:
    """The file of known answers."""
    return json.dumps(vectors(), indent=1) + "\n"


if __name__ == "__main__":
    VECTORS.write_text(text(), encoding="utf-8")
