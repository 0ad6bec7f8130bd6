"""The operator's limits for one preparation, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

CACHE_BYTES = 16 << 30
PREPARE_SECONDS = 120.0
PREPARE_MEMORY = 6 << 30
PREPARE_SCRATCH = 16 << 30


class Bounds(Protocol):
    """The operator's limits."""

    @property
    def cores(self) -> int:
        """Threads of DuckDB."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of prepared tables on disk."""

    @property
    def prepare_seconds(self) -> float:
        """The time limit of one preparation, once it has begun."""

    @property
    def prepare_memory(self) -> int:
        """Bytes of memory of one preparation."""

    @property
    def prepare_scratch(self) -> int:
        """Bytes on disk of one preparation, besides its table."""


@dataclass(frozen=True, slots=True)
class DefaultBounds:
    """The default limits."""

    cores: int = 0
    cache_bytes: int = CACHE_BYTES
    prepare_seconds: float = PREPARE_SECONDS
    prepare_memory: int = PREPARE_MEMORY
    prepare_scratch: int = PREPARE_SCRATCH
