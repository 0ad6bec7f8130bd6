"""What the operator of a provider allows one preparation, and what is allowed if nobody says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

CACHE_BYTES = 16 << 30
PREPARE_SECONDS = 120.0
PREPARE_MEMORY = 6 << 30
PREPARE_SCRATCH = 16 << 30


class Bounds(Protocol):
    """What an operator allows."""

    @property
    def cores(self) -> int:
        """Threads of DuckDB."""

    @property
    def cache_bytes(self) -> int:
        """Of prepared tables on disk."""

    @property
    def prepare_seconds(self) -> float:
        """Of one preparation, once it has begun."""

    @property
    def prepare_memory(self) -> int:
        """Bytes of one preparation."""

    @property
    def prepare_scratch(self) -> int:
        """Bytes on disk of one preparation, beside its table."""


@dataclass(frozen=True, slots=True)
class DefaultBounds:
    """Where nobody says anything."""

    cores: int = 0
    cache_bytes: int = CACHE_BYTES
    prepare_seconds: float = PREPARE_SECONDS
    prepare_memory: int = PREPARE_MEMORY
    prepare_scratch: int = PREPARE_SCRATCH
