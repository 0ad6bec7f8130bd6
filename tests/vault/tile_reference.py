"""Tiles, written a second time from spec/tile.md alone: plain and slow.

Run as a program it writes spec/vectors/tile.json anew.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.vault import epoch_reference

VECTORS = Path(__file__).parents[2] / "spec/vectors/tile.json"
SLOTS = 1024
BOOLEAN, FIXED, TEXT, BYTES, LIST = 2, 3, 4, 5, 6
EPOCH_ROWS = (5 << 36, 70)
"""A first row whose epoch has bits, and one of an earlier release."""


def packed(numbers: list[int], bits: int) -> bytes:
    """1,024 numbers in lanes."""
    if bits > 64:
        low = packed([number % (1 << 64) for number in numbers], 64)
        return low + packed([number >> 64 for number in numbers], bits - 64)
    word = 32 if bits <= 32 else 64
    lanes = SLOTS // word
    streams = [0] * lanes
    for index, number in enumerate(numbers):
        streams[index % lanes] |= number << (index // lanes * bits)
    words = [
        stream >> (word * turn) & ((1 << word) - 1) for turn in range(bits) for stream in streams
    ]
    return b"".join(number.to_bytes(word // 8, "little") for number in words)


def check(kind: int, width: int, form: bytes) -> bytes:
    """The four bytes that tell a form."""
    return hashlib.sha256(bytes([kind]) + struct.pack("<I", width) + form).digest()[:4]


def filled(values: list[Any], other: Any) -> list[Any]:
    """The values up to the last slot."""
    return [*values, *[other] * (SLOTS - len(values))]


def bits_of(flags: list[bool]) -> bytes:
    """A bit for each slot."""
    number = sum(1 << index for index, flag in enumerate(flags) if flag)
    return number.to_bytes(SLOTS // 8, "little")


def packed_tile(values: list[int | None], kind: int, width: int, form: dict[str, Any]) -> bytes:
    """The plaintext of numbers."""
    base, bits, nulls = int(form["base"]), form["bits"], form["nulls"]
    text = bytes([1, bits, nulls]) + base.to_bytes(16, "little", signed=True)
    head = struct.pack("<HBB", len(values), 1 + 16 * nulls, bits) + check(kind, width, text)
    if nulls:
        head += bits_of([value is not None for value in values])
    if kind == BOOLEAN:
        return head + (bits_of([value == 1 for value in values]) if bits else b"")
    rests = [0 if value is None else (value - base) % (1 << 8 * width) for value in values]
    return head + packed(filled(rests, 0), bits)


def strings(values: list[bytes], width: int) -> bytes:
    """Lengths and bytes; no lengths of a fixed width."""
    if width:
        return b"".join(values)
    size = (max(map(len, values), default=0).bit_length() + 7) // 8
    lengths = b"".join(len(value).to_bytes(size, "little") for value in values)
    return bytes([size]) + lengths + b"".join(values)


def literals(body: bytes) -> bytes:
    """A body as an LZ4 block that compresses nothing but the zeros at its end."""
    rest = body.rstrip(b"\0")
    zeros = len(body) - len(rest)
    # The first zero is literal, the last five too; the others repeat the one before them.
    first, repeated, last = rest + b"\0", zeros - 6, b"\0" * 5
    assert len(first) >= 15
    assert repeated - 4 >= 15

    def extended(count: int) -> bytes:
        return b"\xff" * (count // 255) + bytes([count % 255])

    sequence = b"\xff" + extended(len(first) - 15) + first + b"\x01\x00"
    return sequence + extended(repeated - 4 - 15) + bytes([len(last) << 4]) + last


def unit_tile(values: list[bytes | None], kind: int, width: int, unit: int, way: str) -> bytes:
    """The plaintext of byte strings."""
    null = bytes(width)
    valid = [value is not None for value in values]
    layout, bits, body = 2, 0, b""
    if not all(valid):
        layout, body = 18, bits_of(valid)
    if way == "dictionary":
        entries = sorted({value for value in values if value is not None})
        indices = [0 if value is None else entries.index(value) for value in values]
        bits = max(0, len(entries) - 1).bit_length()
        body += packed(filled(indices, 0), bits)
        body += struct.pack("<H", len(entries)) + strings(entries, width)
        layout += 1
    else:
        body += strings([null if value is None else value for value in values], width)
    stored = body
    if way == "compressed":
        stored, layout = literals(body), layout + 32
    plain = struct.pack("<HBB", len(values), layout, bits) + check(kind, width, b"\x02")
    plain += struct.pack("<II", len(stored), len(body)) + stored
    return plain + bytes(-len(plain) % unit)


def sealed(first: int, plain: bytes, name: str) -> bytes:
    """A tile under the key of its column."""
    bound = epoch_reference.associated(first)
    nonce = hashlib.sha256(f"{name} {first}".encode()).digest()[:12]
    key = epoch_reference.key("tile", None)
    return bound[:1] + nonce + AESGCM(key).encrypt(nonce, plain, bound)


def numbers(seed: int, count: int, base: int, bits: int, nulls: bool) -> list[int | None]:
    """Numbers of a form, the same at each run."""
    drawn = [
        int.from_bytes(hashlib.sha256(f"{seed} {index}".encode()).digest())
        for index in range(count)
    ]
    return [
        None if nulls and number % 7 == 0 else base + (number >> 16) % (1 << bits)
        for number in drawn
    ]


#: Type, class, width, base, bits, NULLs, rows.
PACKED = [
    ("int64", FIXED, 8, -5, 20, False, 1024),
    ("int64", FIXED, 8, -(1 << 63), 64, True, 9),
    ("int64", FIXED, 8, 7, 0, False, 3),
    ("int32", FIXED, 4, -100, 13, True, 1000),
    ("int16", FIXED, 2, -(1 << 15), 16, False, 40),
    ("uint64", FIXED, 8, 1 << 62, 45, True, 70),
    ("date32", FIXED, 4, 8035, 12, False, 1024),
    ("decimal128", FIXED, 16, -(10**20), 70, True, 100),
    ("bool", BOOLEAN, 1, 0, 1, True, 77),
    ("bool", BOOLEAN, 1, 1, 0, False, 5),
]
WORDS = ["TRUCK", "MAIL", "", "größer", "REG AIR"]
#: Type, class, width, rows as hexadecimal, unit, way.
UNITS: list[tuple[str, int, int, list[bytes | None], int, str]] = [
    ("utf8", TEXT, 0, [word.encode() for word in WORDS], 64, "plain"),
    ("utf8", TEXT, 0, [*[b"MAIL", None, b"SHIP"] * 300, b"MAIL"], 100, "dictionary"),
    ("utf8", TEXT, 0, [None] * 3, 256, "dictionary"),
    ("binary", BYTES, 0, [b"some bytes, then zeros" + bytes(4000), None, b""], 32, "compressed"),
    ("float64", FIXED, 8, [struct.pack("<d", 0.1), None, struct.pack("<d", -0.0)], 200, "plain"),
    ("float64", FIXED, 8, [struct.pack("<d", 2.5)] * 90, 50, "dictionary"),
    (
        "list<utf8>", LIST, 0,
        [
            b"\x0c\x0b\0\0\0\x01\0\0\0\x08\x02\0\0\0hi", b"\x0d\0\0\0\0",
            b"\x0c\x09\0\0\0\x01\0\0\0\x09\0\0\0\0",
        ],
        16, "plain",
    ),
]  # fmt: skip


def vectors() -> dict[str, Any]:
    """Known answers of every layout."""
    tiles: list[dict[str, Any]] = []
    for index, (kind, number, width, base, bits, nulls, count) in enumerate(PACKED):
        values = numbers(index, count, base, bits, nulls)
        form = {"base": str(base), "bits": bits, "nulls": nulls}
        plain = packed_tile(values, number, width, form)
        texts = [None if value is None else str(value) for value in values]
        tiles.append({"type": kind, "packed": form, "values": texts, "plain": plain})
    for kind, number, width, pieces, unit, way in UNITS:
        plain = unit_tile(pieces, number, width, unit, way)
        texts = [None if piece is None else piece.hex() for piece in pieces]
        form = {"unit": unit, "limit": 5000}
        tiles.append({"type": kind, "units": form, "values": texts, "plain": plain})
    for index, tile in enumerate(tiles):
        first = EPOCH_ROWS[index % 2]
        plain = tile.pop("plain")
        tile["first"] = first
        tile["plain_sha256"] = hashlib.sha256(plain).hexdigest()
        tile["sealed"] = sealed(first, plain, str(index)).hex()
    return {
        "note": "Made by tests/vault/tile_reference.py. Values of units are bytes in hexadecimal.",
        "root": epoch_reference.ROOT.hex(),
        "table": epoch_reference.TABLE,
        "column": epoch_reference.COLUMN,
        "generation": epoch_reference.GENERATION,
        "epochs": {
            "legacy_below": epoch_reference.LEGACY_BELOW,
            "bits": {str(number): bits for number, bits in epoch_reference.BITS.items()},
        },
        "tiles": tiles,
    }


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1) + "\n", encoding="utf-8")
