"""Settings of a table's files and index; stored in the encrypted catalog with the table."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from louver import errors

#: The kinds of filters, and their codes (spec/eds.md, "Spec").
KINDS = {"basic": 0, "split-block": 2}
#: The codes of AES-128 as the hash of elements, and of XOR per bit as the encryption.
HASH, ENCRYPTION = 0, 1
#: What tables of earlier releases may have. Their new files get the default kind, AES-128 and XOR
#: per bit; the client does not probe segments in a former form, so it reads all of their files.
FORMER = {
    "kind": ("register-blocked", "split-block-256", "cache-sectorized"),
    "hash": ("aes", "highwayhash", "siphash", "blake3", "sha256"),
    "encryption": ("xor-bit", "none", "xor-block", "aes"),
}
#: Whether a NULL matches no value, or any value.
NULLS = ("no-value", "any-value")

LEAST_BITS, MOST_BITS = 1 << 10, 1 << 16
#: Bits set per element: a split block always sets eight.
PROBES = 8


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The index settings of a table, for all its columns; `bits` per filter, a power of two."""

    on: bool = True
    kind: str = "split-block"
    bits: int = 16_384
    nulls: str = "no-value"

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        for name, allowed in (
            ("kind", tuple(KINDS)),
            ("nulls", NULLS),
        ):
            if getattr(self, name) not in allowed:
                raise errors.make("lake.setting", name=name, allowed=", ".join(allowed))
        size = self.bits
        if type(size) is not int or not LEAST_BITS <= size <= MOST_BITS or size & (size - 1):
            allowed_bits = f"a power of two from {LEAST_BITS} to {MOST_BITS}"
            raise errors.make("lake.setting", name="bits", allowed=allowed_bits)

    @property
    def spec(self) -> bytes:
        """The eight public bytes that begin every segment and token."""
        return struct.pack("<4BI", KINDS[self.kind], HASH, ENCRYPTION, PROBES, self.bits)

    def as_dict(self) -> dict[str, Any]:
        """The settings as a dict, for the catalog."""
        return asdict(self)

    @staticmethod
    def of(values: Mapping[str, Any]) -> IndexSettings:
        """The settings in a table's `lake` field; missing ones have their defaults."""
        for name in ("hash", "encryption"):
            if values.get(name, FORMER[name][0]) not in FORMER[name]:
                raise errors.make("lake.setting", name=name, allowed=FORMER[name][0])
        names = [item.name for item in fields(IndexSettings) if item.name in values]
        known = {name: values[name] for name in names}
        if known.get("kind") in FORMER["kind"]:
            del known["kind"]
        return IndexSettings(**known)
