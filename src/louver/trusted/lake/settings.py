"""Settings of a table's files and index; stored in the encrypted catalog with the table."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from louver import errors

#: Names in the order of their codes (spec/eds.md, "Spec").
KINDS = ("basic", "register-blocked", "split-block", "split-block-256", "cache-sectorized")
HASHES = ("aes", "highwayhash", "siphash", "blake3", "sha256")
ENCRYPTIONS = ("none", "xor-bit", "xor-block", "aes")
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
    hash: str = "aes"
    encryption: str = "xor-bit"
    nulls: str = "no-value"

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        for name, allowed in (
            ("kind", KINDS),
            ("hash", HASHES),
            ("encryption", ENCRYPTIONS),
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
        """The eight public bytes at the start of every segment and token."""
        codes = KINDS.index(self.kind), HASHES.index(self.hash), ENCRYPTIONS.index(self.encryption)
        return struct.pack("<4BI", *codes, PROBES, self.bits)

    def as_dict(self) -> dict[str, Any]:
        """The settings as a dict, for the catalog."""
        return asdict(self)

    @staticmethod
    def of(values: Mapping[str, Any]) -> IndexSettings:
        """The settings in a table's `lake` field; missing ones have their defaults."""
        known = {item.name for item in fields(IndexSettings)}
        return IndexSettings(**{name: value for name, value in values.items() if name in known})
