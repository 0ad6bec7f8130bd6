"""The lake's index written a second time, from spec/eds.md alone: slow, plain, and independent.

Run as a program it writes spec/vectors/eds.json anew.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from tests.lake.eds_blake3 import keyed_blake3

VECTORS = Path(__file__).parents[2] / "spec/vectors/eds.json"
TOP = (1 << 64) - 1
BASIC, REGISTER, SPLIT_64, SPLIT_256, SECTORIZED = range(5)
ODD = (
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
)  # fmt: skip


def aes(key: bytes, block: bytes) -> bytes:
    """AES-128 of one block."""
    return Cipher(AES(key), ECB()).encryptor().update(block)


def hkdf(root: bytes, info: str) -> bytes:
    """HKDF-SHA256 without salt: 32 bytes."""
    extracted = hmac.digest(bytes(32), root, "sha256")
    return hmac.digest(extracted, info.encode() + b"\x01", "sha256")


def path(value: int) -> list[int]:
    """Ids of the nodes from the root to a leaf."""
    return [(1 << length) - 1 + (value >> (64 - length)) for length in range(65)]


def cover(low: int, high: int, first: int = 0, length: int = 0) -> list[int]:
    """The least set of nodes over exactly [low, high], searched from the root down."""
    last = first + (1 << (64 - length)) - 1
    if last < low or first > high:
        return []
    if low <= first and last <= high:
        return [(1 << length) - 1 + (first >> (64 - length))]
    middle = first + (1 << (63 - length))
    return cover(low, high, first, length + 1) + cover(low, high, middle, length + 1)


def positions(kind: int, bits: int, k: int, digest: bytes) -> list[int]:
    """Which bits an element has."""
    words = struct.unpack("<8I", digest)
    h1, h2, h3 = struct.unpack("<QQQ", digest[:24])
    high = [((h1 + i * (h2 | 1) + i * i * h3) & TOP) >> 32 for i in range(k)]
    if kind == BASIC:
        return [number * bits >> 32 for number in high]
    if kind == REGISTER:
        block = words[7] * (bits // 64) >> 32
        return [block * 64 + (number * 64 >> 32) for number in high]
    if kind in (SPLIT_64, SPLIT_256):
        block = words[1] * (bits // 256) >> 32
        lanes = words if kind == SPLIT_256 else [words[0]] * 8
        bit = [(ODD[i] * lanes[i] & 0xFFFFFFFF) >> 27 for i in range(8)]
        return [block * 256 + i * 32 + bit[i] for i in range(8)]
    block, own = words[0] * (bits // 512) >> 32, int.from_bytes(digest[16:], "little")
    sector = [words[1] & 3, 4 + (words[1] >> 2 & 3)]
    return [block * 512 + sector[i % 2] * 64 + (own >> 6 * i) % 64 for i in range(k)]


@dataclass
class Index:
    """One index under a root secret."""

    root: bytes
    table: int
    column: int
    generation: int
    spec: bytes
    keys: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Derive its keys."""
        address = f"{self.table}/{self.column}/{self.generation}"
        for part in ("id", "hash", "positions", "dummies", "tags"):
            info = f"louver/1/lake/eds/{self.spec.hex()}/{part}/{address}"
            self.keys[part] = hkdf(self.root, info)
        self.kind, _, self.encryption, self.k, self.bits = struct.unpack("<4BI", self.spec)
        self.id = self.keys["id"][:16]

    def places(self, element: bytes) -> list[int]:
        """The positions of an element."""
        halves = self.keys["hash"][:16], self.keys["hash"][16:]
        return positions(self.kind, self.bits, self.k, b"".join(aes(h, element) for h in halves))

    def position_key(self, position: int) -> bytes:
        """The key of a row."""
        block = b"\x01" + bytes(11) + struct.pack(">I", position)
        return aes(self.keys["positions"][:16], block)

    def segment(self, segment_id: bytes, ranges: Iterable[tuple[int, int]]) -> bytes:
        """A segment of files that have values."""
        rows = [0] * self.bits
        ranges = list(ranges)
        for file, (low, high) in enumerate(ranges):
            for element in [node(n, b"*") for n in path(low)] + [node(n, b"+") for n in path(high)]:
                for position in self.places(element):
                    rows[position] |= 1 << file
        count = len(ranges)
        width = next((w for w in (1, 2, 4) if count <= 8 * w), -(-count // 64) * 8)
        head = b"LVSG\x01" + self.spec + self.id + segment_id + struct.pack("<I", count) + bytes(3)
        stored = [
            bytes(
                a ^ b
                for a, b in zip(
                    row.to_bytes(width, "little"), self._pad(p, segment_id, width), strict=True
                )
            )
            for p, row in enumerate(rows)
        ]
        key = self.keys["tags"]
        if self.bits * width <= 1 << 20:
            tags = keyed_blake3(key, head + b"\xff" * 4 + b"".join(stored))[:16]
        else:
            tags = b"".join(
                keyed_blake3(key, head + struct.pack("<I", p) + row)[:16]
                for p, row in enumerate(stored)
            )
        return head + b"".join(stored) + tags

    def _pad(self, position: int, segment_id: bytes, width: int) -> bytes:
        if self.encryption == 0:
            return bytes(width)
        key = self.position_key(position)
        blocks = range(-(-width // 16))
        return b"".join(aes(key, segment_id + struct.pack(">I", b)) for b in blocks)[:width]

    def token(self, low: int, high: int, sides: bool) -> bytes:
        """The token of a range."""
        own = aes(self.keys["dummies"][:16], struct.pack(">QQ", low, high))

        def point(domain: int, at: int) -> bytes:
            return aes(own, bytes([domain, sides]) + bytes(10) + struct.pack(">I", at))

        def shuffle(part: list[bytes], first: int) -> list[bytes]:
            for last in range(len(part) - 1, 0, -1):
                at = int.from_bytes(point(2, first + last)[:8], "big") * (last + 1) >> 64
                part[last], part[at] = part[at], part[last]
            return part

        least = [node(n, b"*") for n in sorted(cover(0, high), reverse=True)]
        greatest = [node(n, b"+") for n in sorted(cover(low, TOP), reverse=True)]
        fill = [point(1, at)[:15] + b"\xff" for at in range(128 - len(least) - len(greatest))]
        if sides:
            cut = 64 - len(least)
            elements = shuffle(least + fill[:cut], 0) + shuffle(greatest + fill[cut:], 64)
        else:
            elements = shuffle(least + greatest + fill, 0)
        out = b"LVTK\x01" + self.spec + self.id + bytes([sides, 0, 0])
        for position in (p for element in elements for p in self.places(element)):
            key = self.position_key(position) if self.encryption else bytes(16)
            out += struct.pack("<I", position) + key
        return out


def node(number: int, side: bytes) -> bytes:
    """The element of a node."""
    return number.to_bytes(15, "little") + side


def huge(value: int) -> int:
    """Numbers of 128 bits with a sign."""
    middle = 1 << 62
    if value >= middle:
        return 3 * middle + (value - middle >> 65)
    if value < -middle:
        return middle - 1 - (-middle - 1 - value >> 65)
    return value + (1 << 63)


def real(value: float) -> int:
    """Floating-point numbers."""
    if value != value:
        value = float("nan")
    whole = struct.pack(">d", abs(value) if value != value else value + 0.0)
    bits = int.from_bytes(whole, "big")
    return TOP - bits if bits >> 63 else bits | 1 << 63


def letters(text: bytes) -> int:
    """The paper's map, by the rule for other bytes."""
    digits: list[int] = []
    for byte in text[:12]:
        if not ord("a") <= byte <= ord("z"):
            digits += [0 if byte < ord("a") else 25] * (12 - len(digits))
            break
        digits.append(byte - ord("a"))
    digits += [0] * (12 - len(digits))
    number = 0
    for digit in digits:
        number = number * 30 + digit
    return number


def vectors() -> dict[str, Any]:
    """What spec/vectors/eds.json says."""
    root, path = bytes(range(32)), (3, 7, 2)
    ranges = [(0, TOP), (5, 5), (1 << 63, (1 << 63) + 1000), (1000, 2000), (TOP, TOP)]
    ranges += [(i * 10**15, i * 10**15 + 10**14) for i in range(14)]
    asked_ranges = [(0, TOP), (5, 5), (1500, 1 << 63), (6, 999), (TOP, TOP)]
    cases = []
    for kind, encryption, bits in [
        (BASIC, 1, 1024), (REGISTER, 1, 1024), (SPLIT_64, 1, 2048), (SPLIT_64, 0, 1024),
        (SPLIT_256, 1, 1024), (SECTORIZED, 1, 1024),
    ]:  # fmt: skip
        index = Index(root, *path, struct.pack("<4BI", kind, 0, encryption, 8, bits))
        segment_id = bytes([kind, encryption]) + bytes(range(10))
        segment = index.segment(segment_id, ranges)
        tokens = [
            {"low": str(low), "high": str(high), "sides": sides,
             "begin": token[:132].hex(), "sha256": hashlib.sha256(token).hexdigest(),
             "hits": [i for i, (a, b) in enumerate(ranges) if a <= high and b >= low]}
            for low, high in asked_ranges for sides in (False, True)
            for token in [index.token(low, high, sides)]
        ]  # fmt: skip
        cases.append({
            "spec": index.spec.hex(), "index_id": index.id.hex(), "segment_id": segment_id.hex(),
            "header": segment[:48].hex(), "row_of_3": segment[48 + 12 : 48 + 16].hex(),
            "tag": segment[-16:].hex(), "sha256": hashlib.sha256(segment).hexdigest(),
            "tokens": tokens,
        })  # fmt: skip
    return {
        "note": "The lake's index: see spec/eds.md. Made by tests/lake/eds_reference.py.",
        "root": root.hex(), "place": path,
        "ranges": [[str(low), str(high)] for low, high in ranges],
        "cases": cases, "maps": maps(), "signatures": signatures(root, path[0]),
    }  # fmt: skip


def maps() -> dict[str, list[list[str]]]:
    """Values as text, and their numbers."""
    wide = [-(1 << 127), -(1 << 62) - 1, -(1 << 62), -1, 0, 1, (1 << 62) - 1, 1 << 62, 1 << 80]
    reals = [float("-inf"), -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, float("inf"), float("nan")]
    texts = ["", "a", "b", "azzz", "Ab", "aa", "~", "z~", "abcdefghijklmnop", "é"]
    return {
        "BIGINT": [[str(v), str(v + (1 << 63))] for v in (-(1 << 63), -1, 0, 1, (1 << 63) - 1)],
        "UBIGINT": [[str(v), str(v)] for v in (0, 1, TOP)],
        "HUGEINT": [[str(v), str(huge(v))] for v in [*wide, (1 << 127) - 1]],
        "DOUBLE": [[repr(v), str(real(v))] for v in reals],
        "VARCHAR": [[t, str(int.from_bytes(t.encode()[:8].ljust(8, b"\0"), "big"))] for t in texts],
        "letters": [[t, str(letters(t.encode()))] for t in texts],
    }


def signatures(root: bytes, table: int) -> list[dict[str, str]]:
    """Of one purpose each."""
    out = []
    for purpose, context, data in [("lake/root", b"", b""), ("lake/root", b"ab", b"c")]:
        key = hkdf(root, f"louver/1/lake/sign/{purpose}/{table}/0/0")
        tag = hmac.digest(key, struct.pack(">Q", len(context)) + context + data, "sha256")
        out.append({
            "purpose": purpose, "context": context.hex(), "data": data.hex(), "tag": tag.hex(),
        })  # fmt: skip
    return out


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1) + "\n", encoding="utf-8")
