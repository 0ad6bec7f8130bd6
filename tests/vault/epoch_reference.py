"""What depends on a row's epoch, written a second time from the spec pages alone: plain and slow.

Run as a program it writes spec/vectors/epochs.json anew.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from cryptography.hazmat.primitives.cmac import CMAC

VECTORS = Path(__file__).parents[2] / "spec/vectors/epochs.json"
ROOT = bytes(range(32))
TABLE, COLUMN, GENERATION = 3, 7, 4_000_000_000
LEGACY_BELOW = 2
BITS = {5: bytes(range(16)).hex(), 6: "ff" * 16, 9: hashlib.sha256(b"9").hexdigest()[:32]}
ROWS = [7, (2 << 36) - 1, 5 << 36, (5 << 36) + 1, (6 << 36) - 1, 6 << 36, (9 << 36) + 1000]
WORDS = re.compile(r"[A-Za-z0-9\x80-\U0010ffff]+")
PREFIXES, SUFFIXES, STEP_TOKENS, STEP_BYTES = (1, 2, 3, 4, 6, 8, 12, 16), (1, 2, 3), 32, 44


def hkdf(secret: bytes, info: str) -> bytes:
    """HKDF-SHA256 without salt: 32 bytes (spec/keyfile.md)."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, info.encode() + b"\x01", "sha256")


def key(purpose: str, row: int | None, secret: bytes = ROOT, context: str | None = None) -> bytes:
    """A key, for one row's epoch if a row is given."""
    info = f"louver/1/{purpose}/{context or f'{TABLE}/{COLUMN}/{GENERATION}'}"
    bits = None if row is None else BITS.get(row >> 36)
    assert row is None or bits or row >> 36 < LEGACY_BELOW
    return hkdf(secret, f"{info}/{bits}" if bits else info)


def aes(secret: bytes, block: bytes) -> bytes:
    """AES of one block."""
    return Cipher(AES(secret), ECB()).encryptor().update(block)


def wide(number: int) -> bytes:
    """A number as a block, in two's complement."""
    return number.to_bytes(16, "big", signed=True)


def associated(row: int) -> bytes:
    """What a sealed value is bound to (spec/rnd.md)."""
    bits = bytes.fromhex(BITS.get(row >> 36, ""))
    numbers = b"".join(number.to_bytes(4, "big") for number in (TABLE, COLUMN, GENERATION))
    key_id = hkdf(ROOT, "louver/1/key-id/0/0/0")[:8]
    version = b"\x02" if bits else b"\x01"
    return version + numbers + key_id + bits + row.to_bytes(8, "big", signed=True)


def sealed(row: int, encoded: bytes, nonce: bytes) -> bytes:
    """A sealed value."""
    bound = associated(row)
    body = AESGCM(key("sealed", None)).encrypt(nonce, encoded, bound)
    return bound[:1] + nonce + body


def mask(half: int, row: int) -> int:
    """F(row) - F(row - 1), or the same of G, under the keys of the row's epoch (spec/sum.md)."""
    secret = key("sum", row)[16 * half :][:16]
    own, before = (int.from_bytes(aes(secret, wide(number))) for number in (row, row - 1))
    return own - before


def masked(row: int, value: int | None) -> list[int]:
    """Low limb, high limb and flag of 60 bits."""
    total = ((value or 0) + mask(0, row)) % (1 << 120)
    flag = (int(value is not None) + mask(1, row)) % (1 << 60)
    return [total % (1 << 60), total >> 60, flag]


def closed(row: int, code: int) -> int:
    """A narrow equality code under its row's pad (spec/onion.md)."""
    pad = hashlib.sha256(key("layer/eq", row) + row.to_bytes(8, "big")).digest()[:8]
    return int.from_bytes((code ^ int.from_bytes(pad)).to_bytes(8, "big"), signed=True)


def tokens(text: str) -> set[bytes]:
    """All tokens of a text (spec/text.md)."""
    members = {b"\x01" + text.encode()}
    members |= {b"\x02" + text[:n].encode() for n in PREFIXES if n <= len(text)}
    members |= {b"\x03" + text[-n:].encode() for n in SUFFIXES if n <= len(text)}
    members |= {b"\x04" + word.encode() for word in WORDS.findall(text)}
    return members | {b"\x05" + text[at : at + 3].encode() for at in range(len(text) - 2)}


def filtered(row: int, text: str | None) -> bytes:
    """The filter of a text."""
    salting, padding = key("text", row)[:16], key("text", row)[16:]
    block, head = wide(row), b"\x01"
    if row >> 36 in BITS:
        salt = aes(salting, block)[:8]
        block, head = salt + block[8:], b"\x02" + salt
    members = set() if text is None else tokens(text)
    trapdoors = []
    for token in members:
        cmac = CMAC(AES(key("text", None)[:16]))
        cmac.update(token)
        trapdoors.append(cmac.finalize())
    steps = max(1, -(-len(members) // STEP_TOKENS))
    words = [aes(trapdoor, block) for trapdoor in trapdoors]
    spare = range(len(members), STEP_TOKENS * steps)
    words += [aes(padding, number.to_bytes(4, "big") + wide(row)[4:]) for number in spare]
    bits, size = 0, steps * STEP_BYTES * 8
    for word in words:
        first, step = int.from_bytes(word[:8]), int.from_bytes(word[8:]) | 1
        for turn in range(7):
            bits |= 1 << (((first + turn * step) % (1 << 64)) * size >> 64)
    return head + bits.to_bytes(size // 8, "little")


def exponent(row: int) -> int:
    """A row's exponent in the scheme sdb (spec/sdb.md)."""
    secret = key("row", row, hkdf(ROOT, "louver/1/sdb/0/0/0"), f"{TABLE}/0/0")
    return int.from_bytes(aes(secret[:16], wide(row)))


def vectors() -> dict[str, Any]:
    """Known answers for rows of two epochs of earlier releases and of three with bits."""
    numbers = [5, None, -7, 1 << 62, 0, -(1 << 63), 123]
    codes = [0, 1, (1 << 64) - 1, 77, 78, 79, 80]
    texts = ["", None, "the quick-brown fox", "漢字 100%", "a", "and a rather long text " * 3, "b"]
    rows = []
    for index, row in enumerate(ROWS):
        number = numbers[index]
        encoded = bytes([6 + (number is None)]) + (number or 0).to_bytes(8, "little", signed=True)
        nonce = hashlib.sha256(str(row).encode()).digest()[:12]
        rows.append(
            {
                "row_id": row,
                "number": None if number is None else str(number),
                "associated": associated(row).hex(),
                "sealed": sealed(row, encoded, nonce).hex(),
                "masked": [str(limb) for limb in masked(row, number)],
                "code": str(int.from_bytes(codes[index].to_bytes(8, "big"), signed=True)),
                "layer_key": key("layer/eq", row).hex(),
                "closed": str(closed(row, codes[index])),
                "text": texts[index],
                "filter": filtered(row, texts[index]).hex(),
                "exponent": f"{exponent(row):032x}",
            }
        )
    return {
        "note": "Rows of several epochs. Made by tests/vault/epoch_reference.py.",
        "root": ROOT.hex(),
        "table": TABLE,
        "column": COLUMN,
        "generation": GENERATION,
        "epochs": {"legacy_below": LEGACY_BELOW, "bits": {str(n): b for n, b in BITS.items()}},
        "rows": rows,
        "total": str(sum(number or 0 for number in numbers)),
        "not_null": sum(number is not None for number in numbers),
    }


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
